//! A cgroup of version 2 whose memory.high and io.max may be turned: what it holds and does, and who is in it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use weir_control::private::{Candidate, Group, Memory};
use weir_core::target::DeviceNumber;
use weir_knobs::KnobName;

use crate::cgroup::{self, folders};
use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::io_cgroup::IoCgroup;
use crate::mounts::Mount;
use crate::psi;

/// What cpu.max holds where nobody has set it.
const NO_QUOTA: &str = "max 100000";

/// Files in which a cgroup below has a limit of its own.
const LIMITS: [&str; 3] = ["memory.high", "memory.max", "io.max"];

/// Looks at a cgroup again and again.
#[derive(Debug)]
pub struct CgroupSight {
    host: Host,
    folder: String,
    device: DeviceNumber,
    before: Option<Counts>,
}

/// What a cgroup has written to each device since it was made, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupWrites(BTreeMap<DeviceNumber, u64>);

/// A device that gets less than this share of what a cgroup writes to another one is not flooded by it.
const COUNTS: u64 = 20;
/// Less than this, a log or the time of an inode, tells nothing of where a cgroup writes in bulk.
const LITTLE: u64 = 1 << 20;

impl CgroupWrites {
    /// Whether it has written in bulk since then, and next to nothing of that to this device: whoever floods one device may have a log on
    /// another. Before it has written anything nothing is known: pages may be dirty for long.
    pub fn is_elsewhere(&self, device: DeviceNumber, before: &CgroupWrites) -> bool {
        let (here, most) = self.since(device, before);
        most >= LITTLE && here < (most / COUNTS).max(1)
    }

    /// The same of one whose writes to this device are held: a share of what goes elsewhere tells nothing then.
    pub fn has_left(&self, device: DeviceNumber, before: &CgroupWrites) -> bool {
        let (here, most) = self.since(device, before);
        most >= LITTLE && here < LITTLE
    }

    /// Bytes to this device since then, and the most to any.
    fn since(&self, device: DeviceNumber, before: &CgroupWrites) -> (u64, u64) {
        let since = |device| self.to(device).saturating_sub(before.to(device));
        (since(device), self.0.keys().copied().map(since).max().unwrap_or(0))
    }

    /// Bytes to a device.
    fn to(&self, device: DeviceNumber) -> u64 {
        self.0.get(&device).copied().unwrap_or(0)
    }

    /// Bytes to all but this device. What passes through several of them is counted by each.
    fn but_to(&self, device: DeviceNumber) -> u64 {
        self.0.values().sum::<u64>() - self.to(device)
    }
}

/// What a cgroup's files count since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    written_bytes: Option<u64>,
    elsewhere_bytes: u64,
    read_bytes: u64,
    memory_stall_us: u64,
    io_stall_us: u64,
    refault_pages: u64,
    cpu_us: Option<u64>,
}

impl IoCgroup {
    /// Its memory.high. `None` where its path does not fit into the name of a knob.
    pub fn high(&self) -> Option<KnobName> {
        self.knob("memory.high".to_string())
    }

    /// Its cpu.max; as [`IoCgroup::high`].
    pub fn quota(&self) -> Option<KnobName> {
        self.knob("cpu.max".to_string())
    }

    /// Looks at it from now on, and at what it writes to this device.
    pub fn sight(&self, host: &Host, device: DeviceNumber) -> CgroupSight {
        let (host, folder) = (host.keeping_open(), self.folder().to_string());
        CgroupSight { host, folder, device, before: None }
    }

    /// What it has written to each device; `None` where nothing counts that: it has no io controller, or none of memory, without which
    /// its pages are written back in the name of a cgroup above (`wb_get_create` of mm/backing-dev.c).
    pub fn written(&self, host: &Host) -> Option<CgroupWrites> {
        if !host.tree.exists(&format!("{}/memory.high", self.folder())) {
            return None;
        }
        host.tree.parsed(&format!("{}/io.stat", self.folder()), parse_io).ok().map(|(written, _)| written)
    }

    /// What is to be known of it before its limits are turned; who shares it is for others to say.
    pub fn candidate(&self, host: &Host) -> Candidate {
        let tree = &host.tree;
        let has = |file: &str| tree.exists(&format!("{}/{file}", self.folder()));
        let kind = tree.line(&format!("{}/cgroup.type", self.folder())).unwrap_or_default();
        Candidate {
            path: self.path().to_string(),
            is_root: self.is_root(),
            has_high: has("memory.high"),
            has_pace: has("io.max"),
            has_quota: tree.line(&format!("{}/cpu.max", self.folder())).is_some_and(|line| line == NO_QUOTA),
            // Where the kernel keeps no pressure (`psi=0`), the file may be there, and is not read.
            has_pressure: tree.parsed(&format!("{}/memory.pressure", self.folder()), psi::parse).is_ok(),
            is_limited: tree.line(&format!("{}/memory.high", self.folder())).is_some_and(is_limit),
            is_threaded: kind.contains("threaded"),
            limited_below: self.limited_below(host),
            ..Candidate::default()
        }
    }

    fn limited_below(&self, host: &Host) -> Option<String> {
        let is_limited = |(_, folder): &(String, String)| {
            LIMITS.iter().any(|file| host.tree.line(&format!("{folder}/{file}")).is_some_and(is_limit))
        };
        let below = host.tree.folders(self.folder());
        let below =
            below.map(|name| (format!("{}/{name}", self.path()), format!("{}/{name}", self.folder())));
        below.take(crate::io_cgroup::GROUPS_MAX).find(is_limited).map(|(path, _)| path)
    }
}

fn is_limit(text: String) -> bool {
    !text.is_empty() && cgroup::is_a_limit(&text)
}

impl Host {
    /// The cgroup of version 2 that a process is in. `None` where the process is gone, or there is no such hierarchy.
    pub fn own_cgroup_of(&self, process: u32) -> Option<IoCgroup> {
        let lines = self.tree.parsed(&format!("/proc/{process}/cgroup"), cgroup::parse).ok()?;
        let (_, path) = lines.iter().find(|(controllers, _)| controllers.is_empty())?;
        let mount = self.mount_of_version_2().ok()?;
        let (path, folder) = folders(&mount, path).into_iter().next()?;
        Some(IoCgroup::of_version_2(path, folder))
    }

    /// Whether cgroups of version 2 can have limits of memory here: version 1 may have that controller.
    pub fn has_memory_limits(&self) -> bool {
        let controllers = |mount: Mount| self.tree.line(&format!("{}/cgroup.controllers", mount.mount_point));
        let controllers = self.mount_of_version_2().ok().and_then(controllers);
        controllers.is_some_and(|controllers| controllers.split_whitespace().any(|name| name == "memory"))
    }

    /// Where cgroup version 2 is mounted, and this process's own cgroup there.
    pub fn cgroup_folders(&self) -> Option<(PathBuf, PathBuf)> {
        let mount = self.mount_of_version_2().ok()?;
        Some((self.tree.real(&mount.mount_point), self.cgroup_folder_of(std::process::id())?))
    }

    /// The folder of the cgroup of version 2 that a process is in.
    pub fn cgroup_folder_of(&self, process: u32) -> Option<PathBuf> {
        self.own_cgroup_of(process).map(|group| self.tree.real(group.folder()))
    }

    /// The path in the hierarchy of version 2 of a cgroup that is named by it, with or without the first slash, or by its folder.
    pub fn cgroup_path(&self, named: &str) -> String {
        let mount = self.mount_of_version_2().ok();
        let below = mount.as_ref().and_then(|mount| Path::new(named).strip_prefix(&mount.mount_point).ok());
        let path = below.map_or(named, |below| below.to_str().unwrap_or(named));
        format!("/{}", path.trim_matches('/'))
    }

    /// The share of page cache that the kernel lets be dirty, 0 to 1.
    pub fn dirty_share(&self) -> f64 {
        let settings = self.vm_settings();
        let ratio = settings.dirty.ratio_percent.filter(|percent| *percent > 0);
        let of_memory = || {
            let available = self.available_memory_bytes().ok()?;
            Some(settings.dirty_threshold_bytes? as f64 / available.max(1) as f64)
        };
        ratio.map_or_else(|| of_memory().unwrap_or(0.2), |percent| percent as f64 / 100.0).clamp(0.01, 1.0)
    }
}

impl CgroupSight {
    /// What it holds now, and did since the look before. This does not tell what its processes gave to write(2), nor whether that is
    /// bulk work.
    ///
    /// # Errors
    /// When it is gone, or its files cannot be read or understood.
    pub fn look(&mut self) -> Result<Group, HostError> {
        let tree = &self.host.tree;
        let file = |name: &str| format!("{}/{name}", self.folder);
        let current: u64 = tree.value(&file("memory.current"))?;
        let (memory, refault_pages) = tree.parsed(&file("memory.stat"), parse_stat)?;
        let stall_us = |name: &str| tree.parsed(&file(name), psi::parse).map_or(0, |p| p.full_total_us);
        let io = tree.parsed(&file("io.stat"), parse_io).ok();
        let now = Counts {
            written_bytes: io.as_ref().map(|(written, _)| written.to(self.device)),
            elsewhere_bytes: io.as_ref().map_or(0, |(written, _)| written.but_to(self.device)),
            read_bytes: io.map_or(0, |(_, read)| read),
            memory_stall_us: stall_us("memory.pressure"),
            io_stall_us: stall_us("io.pressure"),
            refault_pages,
            cpu_us: tree.parsed(&file("cpu.stat"), parse_cpu).ok(),
        };
        let before = self.before.replace(now).unwrap_or(now);
        let written = now.written_bytes.zip(before.written_bytes);
        let cpu_us = now.cpu_us.zip(before.cpu_us);
        Ok(Group {
            memory: Memory { current, ..memory },
            high: None,
            is_at_work: false,
            written_bytes: written.map(|(now, before)| now.saturating_sub(before)),
            elsewhere_bytes: now.elsewhere_bytes.saturating_sub(before.elsewhere_bytes),
            sent_bytes: 0,
            before_bytes: 0,
            cpu_us: cpu_us.map(|(now, before)| now.saturating_sub(before)),
            read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
            memory_stall_ns: 1000 * now.memory_stall_us.saturating_sub(before.memory_stall_us),
            io_stall_ns: 1000 * now.io_stall_us.saturating_sub(before.io_stall_us),
            refault_bytes: self.host.page_bytes() * now.refault_pages.saturating_sub(before.refault_pages),
        })
    }
}

/// `anon 4096` and so on: memory by what it is, and pages that were needed again.
fn parse_stat(text: &str) -> Result<(Memory, u64), BadLine> {
    let mut all = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let bad = || BadLine::new(index + 1, "NAME NUMBER", line);
        let (name, number) = line.split_once(' ').ok_or_else(bad)?;
        all.insert(name, number.trim().parse::<u64>().map_err(|_| bad())?);
    }
    let of = |name: &str| all.get(name).copied().unwrap_or(0);
    // Before Linux 5.18 the kernel's own is told in parts only.
    let parts = || ["slab", "kernel_stack", "pagetables", "percpu", "sock"].iter().map(|name| of(name)).sum();
    let memory = Memory {
        current: 0,
        anon: of("anon"),
        kernel: all.get("kernel").copied().unwrap_or_else(parts),
        shmem: of("shmem"),
        file: of("file"),
        file_mapped: of("file_mapped"),
        file_dirty: of("file_dirty"),
        file_writeback: of("file_writeback"),
    };
    Ok((memory, of("workingset_activate_file") + of("workingset_refault_anon")))
}

/// `usage_usec 5`, then what that is made of.
fn parse_cpu(text: &str) -> Result<u64, BadLine> {
    let used = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse().ok());
    used.ok_or_else(|| BadLine::new(1, "usage_usec NUMBER", text.lines().next().unwrap_or_default()))
}

/// `8:0 rbytes=1 wbytes=2 …`: what was written to each device, and read from all.
fn parse_io(text: &str) -> Result<(CgroupWrites, u64), BadLine> {
    let (mut written, mut read) = (CgroupWrites::default(), 0);
    for (index, line) in text.lines().enumerate() {
        let bad = || BadLine::new(index + 1, "MAJOR:MINOR KEY=VALUE…", line);
        let mut words = line.split_whitespace();
        let number = words.next().and_then(DeviceNumber::parse).ok_or_else(bad)?;
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let value: u64 = value.parse().map_err(|_| bad())?;
            match key {
                "wbytes" => _ = written.0.insert(number, value),
                "rbytes" => read += value,
                _ => {}
            }
        }
    }
    Ok((written, read))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::knob::testing::Machine;

    const DISK: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
    const FOLDER: &str = "/sys/fs/cgroup/unified/backup";

    fn machine() -> Machine {
        let machine = Machine::new();
        for (file, text) in [
            ("cgroup.type", "domain"),
            ("memory.current", "50000000"),
            ("memory.high", "max"),
            ("io.max", ""),
            (
                "memory.stat",
                "anon 1000\nfile 40000\nkernel 2000\nshmem 300\nfile_mapped 100\nfile_dirty 70\nfile_writeback 7\nworkingset_activate_file 5",
            ),
            (
                "memory.pressure",
                "some avg10=0 avg60=0 avg300=0 total=9\nfull avg10=0 avg60=0 avg300=0 total=4",
            ),
            ("io.stat", "7:0 rbytes=1 wbytes=1000 rios=1 wios=1 dbytes=0 dios=0\n8:0 rbytes=2 wbytes=9"),
        ] {
            machine.set(&format!("{FOLDER}/{file}"), text);
        }
        machine.set("/proc/7/cgroup", "7:blkio:/a\n0::/backup");
        machine
    }

    #[test]
    fn the_table_of_mounts_is_read_once() {
        let machine = machine();
        assert!(machine.host.own_cgroup_of(7).is_some());
        machine.set("/proc/self/mountinfo", "");
        assert!(machine.host.clone().own_cgroup_of(7).is_some(), "however long others make it");
    }

    #[test]
    fn what_a_cgroup_holds_and_does_is_read() {
        let machine = machine();
        let group = machine.host.own_cgroup_of(7).unwrap();
        assert_eq!((group.path(), group.is_root()), ("/backup", false));
        assert_eq!(group.high().unwrap().to_string(), "cgroup:/backup/memory.high");
        let mut sight = group.sight(&machine.host, DISK);
        let first = sight.look().unwrap();
        let memory = Memory {
            current: 50_000_000,
            anon: 1000,
            kernel: 2000,
            shmem: 300,
            file: 40_000,
            file_mapped: 100,
            file_dirty: 70,
            file_writeback: 7,
        };
        assert_eq!(first, Group { memory, written_bytes: Some(0), ..Group::default() });
        machine.set(&format!("{FOLDER}/io.stat"), "7:0 rbytes=4 wbytes=1500");
        machine.set(&format!("{FOLDER}/memory.pressure"), "full avg10=0 avg60=0 avg300=0 total=9");
        machine.set(&format!("{FOLDER}/memory.stat"), "slab 5\nsock 6\nworkingset_activate_file 7");
        let second = sight.look().unwrap();
        assert_eq!((second.written_bytes, second.read_bytes, second.memory.kernel), (Some(500), 1, 11));
        assert_eq!((second.memory_stall_ns, second.refault_bytes), (5000, 2 * 4096));
        fs::remove_dir_all(machine.real(FOLDER)).unwrap();
        assert!(sight.look().unwrap_err().is_absent());
    }

    #[test]
    fn a_flood_is_on_the_device_that_gets_it() {
        let written = |text: &str| parse_io(text).unwrap().0;
        let before = written("7:0 rbytes=9 wbytes=1000\n8:0 rbytes=0 wbytes=5000");
        for (now, is_elsewhere, has_left) in [
            ("7:0 wbytes=1000\n8:0 wbytes=9000000", true, true),
            ("7:0 wbytes=9000\n8:0 wbytes=9000000", true, true),
            ("7:0 wbytes=901000\n8:0 wbytes=9000000", false, true),
            // A fiftieth, since it is paced.
            ("7:0 wbytes=2001000\n8:0 wbytes=100005000", true, false),
            ("7:0 wbytes=1001\n8:0 wbytes=5000", false, false),
            ("8:0 wbytes=9000000", true, true),
            ("7:0 wbytes=1000\n8:0 wbytes=9000", false, false),
            ("7:0 wbytes=9001000\n8:0 wbytes=5000", false, false),
            ("", false, false),
        ] {
            let now = written(now);
            let found = (now.is_elsewhere(DISK, &before), now.has_left(DISK, &before));
            assert_eq!(found, (is_elsewhere, has_left), "{now:?}");
        }
        assert!(!written("7:0 wbytes=1").is_elsewhere(DISK, &CgroupWrites::default()));
    }

    #[test]
    fn a_cgroup_is_named_in_three_ways() {
        let machine = machine();
        for named in ["/a.slice/b", "a.slice/b/", "/sys/fs/cgroup/unified/a.slice/b"] {
            assert_eq!(machine.host.cgroup_path(named), "/a.slice/b", "{named}");
        }
        assert_eq!(machine.host.cgroup_path("/"), "/");
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (text, line) in [("anon x", 1), ("anon 1\nfile", 2)] {
            assert_eq!(parse_stat(text).unwrap_err().line, line, "{text}");
        }
        for text in ["7-0 wbytes=1", "7:0 wbytes=x"] {
            assert_eq!(parse_io(text).unwrap_err().line, 1, "{text}");
        }
    }

    #[test]
    fn what_speaks_against_holding_a_cgroup_is_seen() {
        type Change = fn(&Machine);
        type Is = fn(&Candidate) -> bool;
        let cases: [(Change, Is); 8] = [
            (|_| {}, |c| c.has_high && c.has_pace && !c.is_threaded && c.limited_below.is_none()),
            (|_| {}, |c| c.has_pressure),
            (|machine| machine.remove(&format!("{FOLDER}/memory.pressure")), |c| !c.has_pressure),
            (|machine| machine.set(&format!("{FOLDER}/cgroup.type"), "domain threaded"), |c| c.is_threaded),
            (|machine| machine.remove(&format!("{FOLDER}/memory.high")), |c| !c.has_high),
            (|machine| machine.set(&format!("{FOLDER}/memory.high"), "67108864"), |c| c.is_limited),
            (|machine| machine.set(&format!("{FOLDER}/memory.high"), "max"), |c| !c.is_limited),
            (
                |machine| machine.set(&format!("{FOLDER}/inner/memory.high"), "1000000"),
                |c| c.limited_below.as_deref() == Some("/backup/inner"),
            ),
        ];
        for (at, (change, is_seen)) in cases.into_iter().enumerate() {
            let machine = machine();
            change(&machine);
            let candidate = machine.host.own_cgroup_of(7).unwrap().candidate(&machine.host);
            assert!(is_seen(&candidate), "{at}: {candidate:?}");
        }
    }
}
