//! Which devices are meant.

use std::path::Path;

use weir_core::target::DeviceNumber;
use weir_host::{Host, HostError};

use crate::devices::behind;
use crate::failure::Lacking;

/// A device that is to be guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// As somebody named it.
    pub asked: String,
    /// The kernel's name of the whole disk, or of what is mapped over disks.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Numbers under which syncs of its file systems are counted, where those are others.
    pub file_systems: Vec<DeviceNumber>,
    /// Where its file system is mounted, if a path on one was named.
    pub mount_point: Option<String>,
    /// The disks beneath it.
    pub disks: Vec<String>,
}

impl BlockDevice {
    /// Whether it stands on a disk of another one.
    pub fn shares_with(&self, other: &BlockDevice) -> bool {
        self.disks.iter().any(|disk| other.disks.contains(disk))
    }

    /// Whether what the same name means by now is to be guarded in its place: the device under another name or number, or a file system
    /// that is mounted there now. The folder that remains where one was unmounted lies further up, on a device that nobody meant.
    pub fn gives_way_to(&self, now: &BlockDevice) -> bool {
        match (&self.mount_point, &now.mount_point) {
            (None, None) => true,
            (Some(before), Some(now)) => now.len() >= before.len(),
            _ => false,
        }
    }
}

/// Those that were named, or every device with a file system that is mounted for writing; each once. In sentences, the names that are
/// not followed because another one means the same device.
///
/// # Errors
/// When a name means no single block device, or there is none to guard.
pub fn find_all(host: &Host, named: &[String]) -> anyhow::Result<(Vec<BlockDevice>, Vec<String>)> {
    let mut block_devices: Vec<BlockDevice> = Vec::new();
    let mut remarks = Vec::new();
    let mut add = |block_device: BlockDevice| {
        let Some(known) = block_devices.iter().find(|known| known.name == block_device.name) else {
            block_devices.push(block_device);
            return;
        };
        let (asked, name, known) = (&block_device.asked, &known.name, &known.asked);
        if !named.is_empty() && asked != known {
            remarks.push(format!(
                "{asked} means {name}, which is guarded as {known}: a device that {asked} means later is not guarded"
            ));
        }
    };
    for name in named {
        add(behind(name, find(host, name))?);
    }
    if named.is_empty() {
        let mounts = host.mounts_for_writing().into_iter();
        mounts.filter_map(|mount| find(host, &mount).ok().flatten()).for_each(&mut add);
    }
    if block_devices.is_empty() {
        let what = "no file system of a block device is mounted for writing".to_string();
        return Err(Lacking { what, hint: Some("name a device, or a path on one".to_string()) }.into());
    }
    Ok((block_devices, remarks))
}

/// What one name means; `None` where no single block device stands behind it.
///
/// # Errors
/// When it cannot be resolved.
pub fn find(host: &Host, asked: &str) -> Result<Option<BlockDevice>, HostError> {
    let Some(layer) = host.device_of(asked)? else { return Ok(None) };
    let path = Path::new(asked);
    let of_file_system = asked.contains('/').then(|| host.target(path)).transpose()?;
    let file_system = of_file_system.and_then(|facts| facts.file_system);
    let own = file_system.as_ref().map(|system| system.device_number);
    // A file system's pages are written by the domain of the very device it lies on, which may be mapped over others.
    let number = own.filter(|number| !number.is_anonymous()).unwrap_or(layer.number);
    let flow = host.flow(number)?;
    let (name, number) = (flow.name().to_string(), flow.number());
    let file_systems = flow.file_systems();
    let mount_point = file_system.map(|system| system.mount_point);
    let disks = host.disks_beneath(&name);
    Ok(Some(BlockDevice { asked: asked.to_string(), name, number, file_systems, mount_point, disks }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::testing::Disks;

    #[test]
    fn a_name_that_means_a_device_of_another_name_is_told_of() {
        let disks = Disks::of(&["sda", "sdb"]);
        disks.mount(&[("/", "sda"), ("/srv/b", "sdb")]);
        let found = |named: &[&str]| {
            let named: Vec<String> = named.iter().map(ToString::to_string).collect();
            let (block_devices, remarks) = find_all(&disks.host(), &named).unwrap();
            (block_devices.into_iter().map(|device| device.name).collect::<Vec<_>>().join(" "), remarks)
        };
        let nothing: Vec<String> = Vec::new();
        assert_eq!(found(&[]), ("sda sdb".to_string(), nothing.clone()));
        assert_eq!(found(&["/srv/a", "/srv/b", "/srv/b"]), ("sda sdb".to_string(), nothing));
        let (names, remarks) = found(&["/srv/a", "/srv/b", "/srv/c"]);
        let [remark] = &remarks[..] else { panic!("{remarks:?}") };
        assert_eq!(names, "sda sdb");
        assert!(remark.starts_with("/srv/c means sda, which is guarded as /srv/a: "), "{remark}");
    }

    #[test]
    fn a_name_that_means_another_device_by_now_is_followed_but_not_up_the_tree() {
        let of = |mount_point: Option<&str>| BlockDevice {
            asked: "/srv/db/mysql".to_string(),
            name: "sdb".to_string(),
            number: DeviceNumber { major: 8, minor: 16 },
            file_systems: Vec::new(),
            mount_point: mount_point.map(String::from),
            disks: Vec::new(),
        };
        for (before, now, gives_way) in [
            // A link such as /dev/disk/by-id/….
            (None, None, true),
            // Mounted late, or another disk there.
            (Some("/"), Some("/srv/db"), true),
            (Some("/srv/db"), Some("/srv/db"), true),
            // Unmounted.
            (Some("/srv/db"), Some("/"), false),
            (Some("/srv/db"), None, false),
            (None, Some("/"), false),
        ] {
            assert_eq!(of(before).gives_way_to(&of(now)), gives_way, "{before:?} {now:?}");
        }
    }
}
