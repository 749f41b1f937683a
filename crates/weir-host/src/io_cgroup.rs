//! The cgroup whose limits hold what a process writes past the page cache.

use std::io;

use weir_core::target::DeviceNumber;
use weir_knobs::{KnobName, Scope};

use crate::cgroup::{self, BLKIO, folders};
use crate::error::HostError;
use crate::host::Host;

/// Groups below a cgroup that are looked through.
pub(crate) const GROUPS_MAX: usize = 1024;

/// A cgroup as the block layer throttles it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoCgroup {
    path: String,
    folder: String,
    version: u8,
}

impl IoCgroup {
    /// Its path in its hierarchy, `/` for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// One of version 2, by its path there and its folder.
    pub(crate) fn of_version_2(path: String, folder: String) -> IoCgroup {
        IoCgroup { path, folder, version: 2 }
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether it is the root, which holds everybody who is in no other.
    pub fn is_root(&self) -> bool {
        self.path == "/"
    }

    /// The limit of bytes a second that its processes write to a device. `None` where its path does not fit into the
    /// name of a knob, under which a journal keeps it.
    pub fn write_limit(&self, device: DeviceNumber) -> Option<KnobName> {
        let setting = match self.version {
            1 => format!("blkio.throttle.write_bps_device/{device}"),
            _ => format!("io.max/{device}/wbps"),
        };
        self.knob(setting)
    }

    /// A setting of it, if its path fits into a name from which a journal finds the same cgroup again. What is read of a name that
    /// is no UTF-8 may be another's name.
    pub(crate) fn knob(&self, setting: String) -> Option<KnobName> {
        let knob = KnobName { scope: Scope::Cgroup(self.path.clone()), setting };
        let is_read_whole = !self.path.contains(char::REPLACEMENT_CHARACTER);
        (is_read_whole && knob.to_string().parse() == Ok(knob.clone())).then_some(knob)
    }
}

impl Host {
    /// The cgroup that a process's I/O counts for: in version 1 its own of blkio; in version 2 the nearest one, from its
    /// own upwards, that has the io controller. `None` where the process is gone, or no cgroup limits block devices here.
    pub fn io_cgroup_of(&self, process: u32) -> Option<IoCgroup> {
        let lines = self.tree.parsed(&format!("/proc/{process}/cgroup"), cgroup::parse).ok()?;
        let path_of = |is_wanted: &dyn Fn(&str) -> bool| {
            lines.iter().find(|(controllers, _)| is_wanted(controllers)).map(|(_, path)| path.as_str())
        };
        if let Some(path) = path_of(&|controllers| controllers.split(',').any(|name| name == BLKIO))
            && let Ok(mount) = self.mount_of_blkio()
        {
            let (path, folder) = folders(&mount, path).into_iter().next()?;
            return Some(IoCgroup { path, folder, version: 1 });
        }
        let mount = self.mount_of_version_2().ok()?;
        let all = folders(&mount, path_of(&str::is_empty)?);
        let is_root = |path: &str| path == "/";
        let counted = |folder: &str| self.tree.exists(&format!("{folder}/io.max"));
        let found = all.into_iter().find(|(path, folder)| is_root(path) || counted(folder));
        found.map(|(path, folder)| IoCgroup { path, folder, version: 2 })
    }

    /// The processes that a limit of this cgroup holds: those in it, and in version 2 those in the groups below it. `None`
    /// where it has more groups than are looked through, or some that cannot be: another account may make as many as it likes.
    pub fn processes_in(&self, group: &IoCgroup) -> Option<Vec<u32>> {
        let (mut found, mut folders) = (Vec::new(), vec![group.folder.clone()]);
        let mut next = 0;
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            let listed = match self.tree.text(&format!("{folder}/cgroup.procs")) {
                // It went meanwhile, or is of threads, whose processes are listed above it.
                Err(HostError::Io { error, .. })
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported) =>
                {
                    String::new()
                }
                // So may be a path that is too long: who is in there is not known.
                listed => listed.ok()?,
            };
            found.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
            if group.version == 2 {
                let known = folders.len();
                let below = self.tree.folders(&folder).map(|name| format!("{folder}/{name}"));
                folders.extend(below.take(GROUPS_MAX + 1 - known));
                // A name that is no text leads nowhere: who is in there is not known.
                if folders[known..].iter().any(|folder| folder.contains(char::REPLACEMENT_CHARACTER)) {
                    return None;
                }
            }
            if folders.len() > GROUPS_MAX {
                return None;
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    const DISK: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

    fn knob(group: &IoCgroup) -> Option<String> {
        group.write_limit(DISK).map(|knob| knob.to_string())
    }

    #[test]
    fn in_version_2_it_is_the_nearest_that_counts_block_io() {
        let machine = Machine::new();
        machine.set("/sys/fs/cgroup/unified/db.slice/cgroup.procs", "5");
        machine.set("/sys/fs/cgroup/unified/db.slice/my.service/cgroup.procs", "7\n8");
        for (line, expected) in [
            ("0::/db.slice", Some("cgroup:/db.slice/io.max/7:0/wbps")),
            // Its own has no io controller: its I/O counts for the one above.
            ("0::/db.slice/my.service", Some("cgroup:/db.slice/io.max/7:0/wbps")),
            ("0::/other.slice", Some("cgroup:/io.max/7:0/wbps")),
            ("5:memory:/db.slice", None),
        ] {
            machine.set("/proc/7/cgroup", line);
            let group = machine.host.io_cgroup_of(7);
            assert_eq!(group.as_ref().and_then(knob).as_deref(), expected, "{line}");
            if let Some(group) = group {
                assert_eq!(group.is_root(), line.contains("other"), "{line}");
            }
        }
        machine.set("/proc/7/cgroup", "0::/db.slice/my.service");
        let group = machine.host.io_cgroup_of(7).unwrap();
        assert_eq!((group.path(), machine.host.processes_in(&group)), ("/db.slice", Some(vec![5, 7, 8])));
        assert_eq!(machine.host.io_cgroup_of(99), None);
    }

    #[test]
    fn more_groups_than_are_looked_through_hide_nobody() {
        let machine = Machine::new();
        let below = |nth: usize| format!("/sys/fs/cgroup/unified/db.slice/{nth}/cgroup.procs");
        (1..GROUPS_MAX).for_each(|nth| machine.set(&below(nth), &nth.to_string()));
        machine.set("/proc/7/cgroup", "0::/db.slice");
        let group = machine.host.io_cgroup_of(7).unwrap();
        assert!(machine.host.processes_in(&group).unwrap().contains(&(GROUPS_MAX as u32 - 1)));
        machine.set(&below(GROUPS_MAX), "5");
        assert_eq!(machine.host.processes_in(&group), None);
    }

    #[test]
    fn in_version_1_it_is_its_own_of_blkio() {
        let machine = Machine::new();
        machine.set("/proc/7/cgroup", "7:blkio:/backup/nightly\n0::/db.slice");
        machine.set("/sys/fs/cgroup/blkio/backup/nightly/cgroup.procs", "7");
        machine.set("/sys/fs/cgroup/blkio/backup/nightly/below/cgroup.procs", "9");
        let group = machine.host.io_cgroup_of(7).unwrap();
        let expected = "cgroup:/backup/nightly/blkio.throttle.write_bps_device/7:0";
        assert_eq!(knob(&group).as_deref(), Some(expected));
        let inside = machine.host.processes_in(&group);
        assert_eq!(inside, Some(vec![7]), "a limit of version 1 does not reach below");
        machine.set("/proc/7/cgroup", "7:blkio:/");
        assert!(machine.host.io_cgroup_of(7).unwrap().is_root());
        // What a journal could not give back is not turned.
        for odd in ["io.containers/a b", "a/..b", "a/io.max/8:0", "a\u{1b}[2J b", "a\u{fffd}"] {
            machine.set("/proc/7/cgroup", &format!("7:blkio:/{odd}"));
            assert_eq!(knob(&machine.host.io_cgroup_of(7).unwrap()), None, "{odd:?}");
        }
    }
}
