//! What /proc and /sys say about tasks and devices.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weir_blocktrace::fsync::{Beneath, FileId};
use weir_core::target::DeviceNumber;

use super::symbols::plain;

/// Open files of a process that are looked at: whoever opens more must not keep others waiting.
pub(crate) const FILES_MAX: usize = 1024;

/// A task that sleeps inside a system call.
pub(super) struct Inside {
    pub tid: u32,
    pub tgid: u32,
    pub comm: String,
    pub number: u64,
    pub arguments: [u64; 3],
}

/// Tasks asleep inside system calls at this moment; those that run say no number.
pub(super) fn tasks_inside_calls() -> Vec<Inside> {
    let mut found = Vec::new();
    for tgid in numbers("/proc") {
        for tid in numbers(&format!("/proc/{tgid}/task")) {
            found.extend(inside(tgid, tid));
        }
    }
    found
}

/// The call a task sleeps in.
pub(super) fn inside(tgid: u32, tid: u32) -> Option<Inside> {
    let line = weir_fs::text_of_task(tid, "syscall").ok()?;
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let arguments = [argument()?, argument()?, argument()?];
    Some(Inside { tid, tgid, comm: comm(tgid)?, number, arguments })
}

/// A process's name, which may itself end with white space.
pub(super) fn comm(tgid: u32) -> Option<String> {
    let text = weir_fs::read_lossily(format!("/proc/{tgid}/comm")).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_string())
}

/// The device number of the file system of an open file, or of the device that is open.
pub(super) fn device_of_descriptor(tgid: u32, descriptor: u64) -> Option<DeviceNumber> {
    let facts = weir_fs::facts_unasked(format!("/proc/{tgid}/fd/{descriptor}")).ok()?;
    let number = number_by_stat(&facts);
    (!number.is_anonymous()).then(|| whole(number))
}

/// The number of an open file's file system as stat says it, or of the device that is open.
pub(crate) fn number_by_stat(facts: &weir_fs::Facts) -> DeviceNumber {
    let is_device = facts.mode & libc::S_IFMT == libc::S_IFBLK;
    let (major, minor) = if is_device { facts.special } else { facts.device };
    DeviceNumber { major, minor }
}

/// A process that has a file open for writing. `left` open files are looked at, at most: an account may have millions.
pub(super) fn writer_of(file: FileId, left: &mut usize) -> Option<u32> {
    numbers("/proc").find(|tgid| {
        let most = FILES_MAX.min(*left);
        numbers(&format!("/proc/{tgid}/fd")).take(most).any(|descriptor| {
            *left -= 1;
            is_open_for_writing(*tgid, descriptor, file)
        })
    })
}

fn is_open_for_writing(tgid: u32, descriptor: u32, file: FileId) -> bool {
    let Ok(facts) = weir_fs::facts_unasked(format!("/proc/{tgid}/fd/{descriptor}")) else { return false };
    let (major, minor) = facts.device;
    let number = DeviceNumber { major, minor };
    // btrfs shows each subvolume under a number of its own.
    let same = number == file.file_system || (number.is_anonymous() && file.file_system.is_anonymous());
    if facts.inode != file.inode || !same {
        return false;
    }
    position_to_write(tgid, descriptor).is_some()
}

/// Where a process stands in a file that it has open for writing; `None` where it has not.
pub(crate) fn position_to_write(tgid: u32, descriptor: u32) -> Option<u64> {
    let info = weir_fs::text_of_task(tgid, &format!("fdinfo/{descriptor}")).ok()?;
    position_of(&info)
}

fn position_of(info: &str) -> Option<u64> {
    let after = |name| info.lines().find_map(|line| line.strip_prefix(name));
    let flags = i32::from_str_radix(after("flags:")?.trim(), 8).ok()?;
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return None;
    }
    after("pos:")?.trim().parse().ok()
}

/// How often a task has slept: its switches to others that it asked for.
pub(super) fn sleeps(tid: u32) -> Option<u64> {
    let status = weir_fs::read_lossily(format!("/proc/{tid}/status")).ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

/// The functions on the stack of a sleeping task, innermost first.
pub(super) fn kernel_stack(tid: u32) -> Vec<String> {
    let text = weir_fs::text_of_task(tid, "stack").unwrap_or_default();
    let name = |line: &str| Some(plain(line.split_ascii_whitespace().nth(1)?.split('+').next()?).to_string());
    text.lines().filter_map(name).collect()
}

/// What lies under a device, down to the devices that have none beneath.
pub(super) fn beneath(device: DeviceNumber) -> Beneath {
    const LAYERS_MAX: usize = 8;
    let mut beneath = Beneath::default();
    let mut layer = vec![whole(device)];
    for _ in 0..LAYERS_MAX {
        let mut below = Vec::new();
        for device in layer {
            let under = slaves(device);
            beneath.has_copies |= !under.is_empty() && has_copies(device);
            if under.is_empty() { beneath.leaves.push(device) } else { below.extend(under) }
        }
        layer = below;
    }
    let named = |leaf: &DeviceNumber| Some((*leaf, nvme_name(*leaf)?));
    let namespaces: Vec<(DeviceNumber, String)> = beneath.leaves.iter().filter_map(named).collect();
    if !namespaces.is_empty() {
        // Of one with several paths, hidden disks get the requests. They have no `dev` under /sys.
        let diskstats = weir_fs::read_lossily("/proc/diskstats").unwrap_or_default();
        for (namespace, name) in namespaces {
            beneath.paths.extend(nvme_paths_of(&name, &diskstats).into_iter().map(|path| (path, namespace)));
        }
        beneath.leaves.extend(beneath.paths.iter().map(|(path, _)| *path));
    }
    beneath.leaves.sort();
    beneath.leaves.dedup();
    beneath
}

/// The name of an NVMe namespace; `None` of any other device.
fn nvme_name(device: DeviceNumber) -> Option<String> {
    let folder = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let name = folder.file_name()?.to_str()?;
    name.starts_with("nvme").then(|| name.to_string())
}

/// A namespace `nvme0n1` has paths `nvme0c0n1`, `nvme0c1n1` (drivers/nvme/host/multipath.c,
/// nvme_mpath_set_disk_name); not every kernel gives them a number there.
fn nvme_paths_of(name: &str, diskstats: &str) -> Vec<DeviceNumber> {
    let Some((subsystem, namespace)) = name.rsplit_once('n') else { return Vec::new() };
    let is_path = |disk: &str| {
        let between = disk.strip_prefix(subsystem).and_then(|rest| rest.strip_prefix('c'));
        let controller = between.and_then(|rest| rest.strip_suffix(namespace)?.strip_suffix('n'));
        controller.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()))
    };
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (major, minor) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        (major != 0 && is_path(words.next()?)).then_some(DeviceNumber { major, minor })
    };
    diskstats.lines().filter_map(of_line).collect()
}

/// Whether a device writes copies of what it gets: it encrypts, or computes parity.
fn has_copies(device: DeviceNumber) -> bool {
    let read = |file| weir_fs::read_lossily(format!("/sys/dev/block/{device}/{file}")).unwrap_or_default();
    writes_copies(&read("dm/uuid"), read("md/level").trim())
}

fn writes_copies(dm_uuid: &str, md_level: &str) -> bool {
    dm_uuid.starts_with("CRYPT-") || matches!(md_level, "raid4" | "raid5" | "raid6")
}

/// The numbers of the file systems that a process sees mounted, by mount, where stat names others: btrfs shows each subvolume
/// under a number of its own. A process may see as many mounts as it likes; those beyond a bound are left out.
pub(crate) fn file_systems_of(tgid: u32) -> HashMap<u64, DeviceNumber> {
    const MOST: u64 = 1 << 20;
    let mut text = Vec::new();
    let file = fs::File::open(format!("/proc/{tgid}/mountinfo"));
    let _ = file.and_then(|file| file.take(MOST).read_to_end(&mut text));
    numbers_of_mounts(&String::from_utf8_lossy(&text))
}

/// Of lines such as `43 30 0:39 / /data rw …`.
fn numbers_of_mounts(text: &str) -> HashMap<u64, DeviceNumber> {
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, DeviceNumber::parse(words.nth(1)?)?))
    };
    text.lines().filter_map(of_line).collect()
}

/// The disk of a partition; any other device itself.
pub(crate) fn whole(device: DeviceNumber) -> DeviceNumber {
    let folder = format!("/sys/dev/block/{device}");
    if !Path::new(&folder).join("partition").exists() {
        return device;
    }
    let disk = fs::canonicalize(&folder).ok().and_then(|path| number_in(path.parent()?));
    disk.unwrap_or(device)
}

fn slaves(device: DeviceNumber) -> Vec<DeviceNumber> {
    let entries = fs::read_dir(format!("/sys/dev/block/{device}/slaves"));
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| number_in(&entry.path())).map(whole).collect()
}

fn number_in(folder: &Path) -> Option<DeviceNumber> {
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    DeviceNumber::parse(&text)
}

/// Files with numbers for names, found as they are asked for: a process may have a million open.
pub(crate) fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The cgroup of a process (`self`, or its number): that of v2, or where that has none the one in systemd's own hierarchy of
/// v1. `None` at the root.
pub(super) fn cgroup_of(process: &str) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/cgroup")).ok()?;
    cgroup_in(&String::from_utf8_lossy(&text))
}

fn cgroup_in(text: &str) -> Option<String> {
    let of = |prefix: &str| text.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(prefix));
    let found = [":", "name=systemd:"].into_iter().filter_map(of).find(|path| *path != "/");
    found.map(str::to_string)
}

/// A group of cgroup v2 as the programs know it: its id, and how deep it lies.
pub(crate) fn cgroup(path: &Path) -> io::Result<(u64, u32)> {
    let path = fs::canonicalize(path)?;
    let mounts = weir_fs::read_lossily("/proc/self/mounts")?;
    let mut root = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, at, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2" && path.starts_with(at)).then(|| at.to_string())
    });
    let root = root.next_back().ok_or_else(|| io::Error::other("no cgroup v2 is mounted there"))?;
    let below = path.strip_prefix(&root).map_err(io::Error::other)?;
    Ok((fs::metadata(&path)?.ino(), below.components().count() as u32))
}

#[cfg(test)]
mod tests {
    use super::{FileId, cgroup_in, numbers_of_mounts, nvme_paths_of, position_of, writer_of, writes_copies};
    use weir_core::target::DeviceNumber;

    #[test]
    fn the_cgroup_is_that_of_v2_or_of_systemd() {
        for (text, expected) in [
            ("0::/system.slice/mariadb.service\n", Some("/system.slice/mariadb.service")),
            ("12:cpu,cpuacct:/a\n1:name=systemd:/docker/0123\n0::/\n", Some("/docker/0123")),
            ("0::/odd:name\n", Some("/odd:name")),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(cgroup_in(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_nvme_namespace_has_the_paths_of_its_subsystem() {
        let stats = " 259 0 nvme0n1 1 2\n 259 1 nvme0c0n1 1 2\n 259 3 nvme0c11n1 1 2\n 259 4 nvme0c0n11 1 2\n \
            259 5 nvme1c0n1 1 2\n 259 6 nvme0n1p1 1 2\n 0 0 nvme0c2n1 1 2\nnothing\n";
        let minors = |name| nvme_paths_of(name, stats).iter().map(|path| path.minor).collect::<Vec<_>>();
        for (name, expected) in [
            ("nvme0n1", vec![1, 3]),
            ("nvme0n11", vec![4]),
            ("nvme2n1", vec![]),
            ("nvme", vec![]),
            ("sda", vec![]),
        ] {
            assert_eq!(minors(name), expected, "{name}");
        }
    }

    #[test]
    fn layers_that_write_copies_are_known_by_what_made_them() {
        for (dm_uuid, md_level, copies) in [
            ("CRYPT-LUKS2-0123-data\n", "", true),
            ("LVM-0123\n", "", false),
            ("", "raid6", true),
            ("", "raid1", false),
            ("", "", false),
        ] {
            assert_eq!(writes_copies(dm_uuid, md_level), copies, "{dm_uuid}{md_level}");
        }
    }

    #[test]
    fn a_mount_tells_the_number_of_its_file_system() {
        let text = "30 1 254:0 / / rw - ext4 /dev/vda rw\n43 30 0:39 / /data rw - btrfs /dev/loop0 rw\n44 30 nothing\n";
        let numbers = numbers_of_mounts(text);
        let (root, data) = (DeviceNumber { major: 254, minor: 0 }, DeviceNumber { major: 0, minor: 39 });
        assert_eq!(numbers, [(30, root), (43, data)].into());
    }

    #[test]
    fn a_search_for_a_writer_ends_whoever_has_how_many_files_open() {
        let nobodys = FileId { file_system: DeviceNumber { major: 0, minor: 0 }, inode: u64::MAX };
        let mut left = 2;
        assert_eq!((writer_of(nobodys, &mut left), left), (None, 0));
        assert_eq!((writer_of(nobodys, &mut left), left), (None, 0));
    }

    #[test]
    fn only_files_open_for_writing_have_a_position() {
        let info = |flags| format!("pos:\t4096\nflags:\t{flags}\nmnt_id:\t29\n");
        let cases = [("0100001", Some(4096)), ("02100002", Some(4096)), ("0100000", None), ("nothing", None)];
        for (flags, expected) in cases {
            assert_eq!(position_of(&info(flags)), expected, "{flags}");
        }
    }
}
