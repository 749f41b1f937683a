//! Which bdi writes back the pages of a disk's file systems.

use weir_core::target::DeviceNumber;

use crate::host::Host;
use crate::{bdi, block};

/// A file system that has a bdi of its own. Its pages do not count as the disk's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnBdi {
    /// The file system's number, under which its syncs are counted. A path on it may have another one: btrfs numbers each
    /// subvolume.
    pub number: DeviceNumber,
    /// The bdi's name under `/sys/class/bdi`, where the kernel tells.
    pub bdi: Option<String>,
}

/// The file systems on a disk that are mounted for writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteBack {
    /// Those with a bdi of their own.
    pub own: Vec<OwnBdi>,
    /// Whether others write back through the disk's.
    pub shares_the_disks: bool,
}

impl Host {
    /// How the pages of file systems on a disk are written back; nothing where mounts cannot be read.
    pub fn write_back(&self, disk: DeviceNumber) -> WriteBack {
        let mut found = WriteBack::default();
        for mount in self.written_mounts() {
            let lies_here = |name: &String| {
                block::number_of(&self.tree, &self.whole_device(name)).is_ok_and(|number| number == disk)
            };
            if mount.kind == "btrfs" {
                let members = self.devices_of_btrfs(&mount);
                if members.iter().any(lies_here) {
                    let bdi = members.first().and_then(|member| bdi::of_btrfs(&self.tree, member));
                    found.own.push(OwnBdi { number: mount.number, bdi });
                }
            } else if !mount.number.is_anonymous() && !found.shares_the_disks {
                let name = || block::name_of(&self.tree, mount.number);
                found.shares_the_disks = mount.number == disk || name().as_ref().is_some_and(lies_here);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::knob::testing::Machine;

    const DISK: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
    const MOUNTS: &str = "43 30 0:39 / /data rw,noatime - btrfs /dev/loop0 rw,subvolid=5,subvol=/\n\
                          44 30 0:41 / /usb ro - btrfs /dev/loop1 ro\n\
                          45 30 0:39 /@home /home rw - btrfs /dev/loop0 rw,subvolid=256,subvol=/@home\n";

    fn machine(mounts: &str) -> Machine {
        let machine = Machine::new();
        machine.set("/proc/self/mountinfo", mounts);
        machine.set("/sys/class/bdi/btrfs-27/read_ahead_kb", "4096");
        machine.set("/sys/class/bdi/btrfs-28/read_ahead_kb", "4096");
        machine
    }

    #[test]
    fn a_disk_of_a_file_system_with_a_bdi_of_its_own() {
        let machine = machine(MOUNTS);
        let own = |bdi: Option<&str>| OwnBdi {
            number: DeviceNumber { major: 0, minor: 39 },
            bdi: bdi.map(String::from),
        };
        // Before Linux 5.11 no link says which of the two it is.
        assert_eq!(machine.host.write_back(DISK), WriteBack { own: vec![own(None)], ..WriteBack::default() });
        machine.set("/sys/fs/btrfs/5d2a4df8/devices/loop0/dev", "7:0");
        symlink("../../class/bdi/btrfs-27", machine.real("/sys/fs/btrfs/5d2a4df8/bdi")).unwrap();
        let found = machine.host.write_back(DISK);
        assert_eq!(found, WriteBack { own: vec![own(Some("btrfs-27"))], ..WriteBack::default() });
        assert_eq!(machine.host.write_back(DeviceNumber { major: 8, minor: 0 }), WriteBack::default());
    }

    /// As a service sees it to which all mounts are read-only.
    #[test]
    fn a_file_system_that_others_write_to_is_the_disks() {
        let found = machine(&MOUNTS.replace("rw,noatime", "ro,noatime")).host.write_back(DISK);
        assert_eq!(found.own.len(), 1, "{found:?}");
        let found = machine("43 30 7:0 / /data ro - ext4 /dev/loop0 rw\n").host.write_back(DISK);
        assert!(found.shares_the_disks);
        let found = machine("43 30 7:0 / /data ro - ext4 /dev/loop0 ro\n").host.write_back(DISK);
        assert!(!found.shares_the_disks);
    }

    #[test]
    fn most_file_systems_share_their_disks_bdi() {
        let machine = machine("43 30 7:0 / /data rw - ext4 /dev/loop0 rw\n");
        let found = machine.host.write_back(DISK);
        assert_eq!(found, WriteBack { own: Vec::new(), shares_the_disks: true });
    }
}
