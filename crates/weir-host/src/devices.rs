//! The block devices that carry I/O of their own: whole disks and what is mapped over them, no partitions.

use std::collections::HashSet;
use std::path::Path;

use weir_core::target::{Layer, LayerKind, TargetFacts, Throttle};

use crate::block;
use crate::cgroup;
use crate::error::HostError;
use crate::host::Host;
use crate::mounts::Mount;
use crate::stack::Stack;
use crate::target;

impl Host {
    /// Names of all block devices, partitions included: cheap, to see whether anything has changed.
    pub fn device_names(&self) -> Vec<String> {
        self.tree.names("/sys/class/block")
    }

    /// All of them, by name. Those that vanish meanwhile are left out.
    pub fn devices(&self) -> Vec<Layer> {
        let whole = |layer: &Layer| !matches!(layer.kind, LayerKind::Partition { .. });
        let read = |name: &String| block::layer(&self.tree, name, &mut Vec::new()).ok();
        self.device_names().iter().filter_map(read).filter(whole).collect()
    }

    /// Where file systems that may lie on a device are mounted for writing, by whomever, in the kernel's order; of each the first
    /// place only. Nothing where the mounts cannot be read.
    pub fn mounts_for_writing(&self) -> Vec<String> {
        self.places(Mount::is_written)
    }

    /// The same of those places where this process itself may write.
    pub fn mounts_that_take_writes(&self) -> Vec<String> {
        self.places(Mount::takes_writes)
    }

    fn places(&self, is_meant: impl Fn(&Mount) -> bool) -> Vec<String> {
        let all = self.mounts().unwrap_or_default();
        let mounts = first_of_each(all.clone(), is_meant).into_iter();
        let mounts = mounts.filter(|mount| !target::is_served(&mount.kind));
        let places = mounts.map(|mount| mount.mount_point);
        places.filter(|place| !leads_through_served(Path::new(place), &all)).collect()
    }

    /// Whether a path, as it is written, leads through what a server or another account's program serves: it may leave whoever asks
    /// it waiting for ever.
    pub fn is_served(&self, path: &Path) -> bool {
        self.mounts().map_or(true, |mounts| leads_through_served(path, &mounts))
    }

    /// A mount of each file system that is mounted for writing.
    pub(crate) fn written_mounts(&self) -> Vec<Mount> {
        first_of_each(self.mounts().unwrap_or_default(), Mount::is_written)
    }

    /// Limits that cgroups put on these devices, for this process or for write-back.
    pub fn throttles(&self, devices: &[Layer]) -> Vec<Throttle> {
        let mounts = self.mounts().unwrap_or_default();
        let members = cgroup::memberships(&self.tree, &mounts, &mut Vec::new());
        cgroup::throttles(&self.tree, &members, devices).0
    }

    /// The disks that a device stands on, through whatever is mapped over them: itself where it is one.
    pub fn disks_beneath(&self, device: &str) -> Vec<String> {
        let mut stack = Stack::default();
        stack.add(&self.tree, device, None);
        let (layers, _) = stack.top_down();
        layers.into_iter().filter(|layer| layer.over.is_empty()).map(|layer| layer.name).collect()
    }

    /// The device that somebody means by a kernel's name (`sda`), a path of a device, or any other path: the device
    /// its I/O passes. A partition's I/O is counted on its disk, so the disk is meant.
    ///
    /// # Errors
    /// When the path cannot be resolved; `Ok(None)` where no single block device stands behind it.
    pub fn device_of(&self, text: &str) -> Result<Option<Layer>, HostError> {
        let is_name = !text.contains('/') && self.tree.exists(&format!("/sys/class/block/{text}/dev"));
        let node = format!("/dev/{}", text.replace('!', "/"));
        // A path that does not exist would stand for the folder above it, but a device cannot be meant that way.
        if !is_name && self.live {
            Path::new(text).metadata().map_err(|error| HostError::io(Path::new(text), error))?;
        }
        let facts = self.target(Path::new(if is_name { node.as_str() } else { text }))?;
        Ok(meant(&facts).cloned())
    }
}

/// Of each file system the first mount that is meant.
fn first_of_each(mut mounts: Vec<Mount>, is_meant: impl Fn(&Mount) -> bool) -> Vec<Mount> {
    let mut seen = HashSet::new();
    mounts.retain(|mount| is_meant(mount) && seen.insert(mount.number));
    mounts
}

/// Whether a path, as it is written, leads through a mount that is served. Of those at one place the last is seen.
fn leads_through_served(path: &Path, mounts: &[Mount]) -> bool {
    let mut seen: Vec<&Mount> = Vec::new();
    for mount in mounts.iter().filter(|mount| path.starts_with(&mount.mount_point)) {
        seen.retain(|other| other.mount_point != mount.mount_point);
        seen.push(mount);
    }
    seen.iter().any(|mount| target::is_served(&mount.kind))
}

/// A file system's I/O is seen where all of it passes, a device's on that device.
fn meant(facts: &TargetFacts) -> Option<&Layer> {
    if facts.file_system.is_some() {
        return facts.device_layer();
    }
    let top = facts.stack.first()?;
    match &top.kind {
        LayerKind::Partition { disk, .. } => facts.layer(disk),
        _ => Some(top),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    #[test]
    fn a_partition_means_its_disk_and_a_mapped_device_itself() {
        let disk = Layer { name: "sda".into(), ..Layer::default() };
        let over = |name: &str, kind| Layer {
            name: name.into(),
            over: vec!["sda".into()],
            kind,
            ..Layer::default()
        };
        let partition = LayerKind::Partition { disk: "sda".into(), number: 1, start_bytes: 0 };
        let mapped = LayerKind::Dm { dm_name: "db".into(), dm_type: "LVM".into() };
        for (top, expected) in [(over("sda1", partition), "sda"), (over("dm-0", mapped), "dm-0")] {
            let facts = TargetFacts {
                stack: vec![top, disk.clone()],
                device: Some("sda".into()),
                ..TargetFacts::default()
            };
            assert_eq!(meant(&facts).map(|layer| layer.name.as_str()), Some(expected));
            let on_file_system = TargetFacts { file_system: Some(Default::default()), ..facts };
            assert_eq!(meant(&on_file_system).map(|layer| layer.name.as_str()), Some("sda"));
        }
    }

    #[test]
    fn volumes_of_one_group_stand_on_one_disk() {
        let machine = Machine::new();
        for (device, number) in [("sda", "8:0"), ("dm-1", "254:1"), ("dm-2", "254:2")] {
            machine.set(&format!("/sys/class/block/{device}/dev"), number);
        }
        // The link leads to the folder of the disk.
        machine.set("/sys/devices/block/sda/sda2/dev", "8:2");
        machine.set("/sys/devices/block/sda/sda2/partition", "2");
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(to, machine.real(from)).unwrap();
        link("../../devices/block/sda/sda2", "/sys/class/block/sda2");
        for volume in ["dm-1", "dm-2"] {
            machine.set(&format!("/sys/class/block/{volume}/dm/name"), volume);
            std::fs::create_dir_all(machine.real(&format!("/sys/class/block/{volume}/slaves/sda2"))).unwrap();
        }
        let disks = |device| machine.host.disks_beneath(device);
        for (device, disk) in
            [("sda", "sda"), ("sda2", "sda"), ("dm-1", "sda"), ("dm-2", "sda"), ("loop0", "loop0")]
        {
            assert_eq!(disks(device), [disk], "{device}");
        }
    }

    /// As a service with ProtectSystem=strict sees them: every mount is read-only but those of its own folders.
    #[test]
    fn a_read_only_mount_of_a_written_file_system_counts_for_who_asks_what_is_written() {
        let machine = Machine::new();
        machine.set(
            "/proc/self/mountinfo",
            "43 30 254:1 / / ro,relatime - ext4 /dev/vda1 rw\n\
             44 43 254:1 /lib /var/lib/weir rw,relatime - ext4 /dev/vda1 rw\n\
             45 43 8:16 / /srv/db ro,relatime - xfs /dev/sdb rw\n\
             46 43 0:39 / /data ro,relatime - btrfs /dev/sdc rw\n\
             47 43 8:48 / /old ro - ext4 /dev/sdd ro\n\
             48 43 8:64 / /half rw - ext4 /dev/sde ro\n",
        );
        assert_eq!(machine.host.mounts_for_writing(), ["/", "/srv/db", "/data"]);
        assert_eq!(machine.host.mounts_that_take_writes(), ["/var/lib/weir"]);
    }

    #[test]
    fn what_a_server_or_a_program_serves_is_not_asked() {
        let machine = Machine::new();
        machine.set(
            "/proc/self/mountinfo",
            "43 30 7:0 / /data rw - ext4 /dev/loop0 rw\n\
             44 30 0:41 / /home/eve/trap rw - fuse.sshfs eve@host: rw,allow_other\n\
             45 30 8:17 / /usb rw - fuseblk /dev/sdb1 rw\n\
             46 30 0:42 / /share rw - nfs4 server:/ rw\n\
             47 30 0:39 / /photos rw - btrfs /dev/loop1 rw\n\
             48 30 7:2 / /home/eve rw - ext4 /dev/loop2 rw\n\
             49 30 0:43 / /home/eve rw - fuse.trap trap rw,allow_other\n\
             50 49 7:3 / /home/eve/below rw - ext4 /dev/loop3 rw\n\
             51 44 7:4 / /home/eve/trap rw - ext4 /dev/loop4 rw\n\
             52 30 0:44 / /over rw - fuse.old old rw\n\
             53 52 7:5 / /over rw - ext4 /dev/loop5 rw\n",
        );
        assert_eq!(machine.host.mounts_for_writing(), ["/data", "/photos", "/over"]);
        for (path, is_served) in [
            ("/data/x", false),
            ("/share/x", true),
            ("/home/eve/below", true),
            ("/over/x", false),
            ("/database", false),
        ] {
            assert_eq!(machine.host.is_served(Path::new(path)), is_served, "{path}");
        }
    }

    #[test]
    fn a_loop_device_over_what_is_served_is_found_without_asking_its_file() {
        let machine = Machine::new();
        machine.set(
            "/proc/self/mountinfo",
            "43 30 7:0 / /data rw - ext4 /dev/loop0 rw\n\
             46 30 0:42 / /share rw - nfs4 server:/ rw\n\
             47 30 8:0 / /srv rw - ext4 /dev/sda rw\n",
        );
        for (backing_file, file_system) in [("/share/disk", None), ("/srv/disk", Some("ext4"))] {
            machine.set("/sys/class/block/loop0/loop/backing_file", backing_file);
            let facts = machine.host.target(Path::new("/dev/loop0")).unwrap();
            let LayerKind::Loop { file_system: found, .. } = &facts.stack[0].kind else {
                panic!("{:?}", facts.stack);
            };
            assert_eq!(found.as_ref().map(|found| found.kind.as_str()), file_system, "{backing_file}");
            let is_said = facts.blind.iter().any(|said| said.contains("/share/disk is served"));
            assert_eq!(is_said, file_system.is_none(), "{:?}", facts.blind);
        }
    }
}
