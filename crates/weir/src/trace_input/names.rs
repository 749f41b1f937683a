//! What devices are called: weir's recordings say so, blktrace names its files after them; this machine's names count only
//! for what was recorded on it since it booted.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use weir_blocktrace::Item;
use weir_core::target::DeviceNumber;

use super::stream::Stream;

/// Clocks are adjusted while a machine runs; another boot is further away.
const BOOT_TOLERANCE_NS: u64 = 2_000_000_000;

/// Names by device.
pub type DeviceNames = HashMap<DeviceNumber, String>;

/// What is known when all files are open.
pub fn names_of(streams: &[Stream], root: &Path) -> DeviceNames {
    let headers = || streams.iter().filter_map(Stream::header);
    let recorded = headers().flat_map(|header| &header.names).map(|of| (of.device, of.name.clone()));
    let mut names: DeviceNames = recorded.collect();
    for (device, stem) in streams.iter().filter_map(Stream::device_and_stem) {
        if is_device_name(stem) {
            names.entry(device).or_insert_with(|| stem.to_string());
        }
    }
    let is_here = match headers().next() {
        Some(header) => is_this_boot(&header.boot_id, root),
        None => streams.iter().flat_map(Stream::first_items).any(|item| is_of_this_boot(item, root)),
    };
    // Any device may come up later in the recording.
    for (device, name) in is_here.then(|| names_here(root)).into_iter().flatten() {
        names.entry(device).or_insert(name);
    }
    names
}

/// Whether a file's stem is what the kernel calls a disk, rather than what somebody called a recording.
fn is_device_name(stem: &str) -> bool {
    const DRIVERS: [&str; 17] = [
        "sd", "vd", "xvd", "hd", "nvme", "dm-", "md", "loop", "mmcblk", "nbd", "rbd", "ram", "zram", "sr",
        "nullb", "pmem", "bcache",
    ];
    let rest = DRIVERS.iter().find_map(|driver| stem.strip_prefix(driver));
    let named = |c: char| c.is_ascii_digit() || "np".contains(c);
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && (rest.chars().all(named)
                || (rest.len() <= 4 && rest.chars().all(|c| c.is_ascii_alphanumeric())))
    })
}

fn is_this_boot(boot_id: &str, root: &Path) -> bool {
    let here = weir_fs::read_lossily(root.join("proc/sys/kernel/random/boot_id"));
    !boot_id.is_empty() && here.is_ok_and(|here| here.trim() == boot_id)
}

/// The wall clock less the recording's clock is when the machine booted: blktrace's is CLOCK_MONOTONIC. Another machine that
/// booted with this one is taken for it.
fn is_of_this_boot(item: &Item, root: &Path) -> bool {
    let Item::WallClock { time_ns, wall_ns } = item else { return false };
    let Ok(stat) = weir_fs::read_lossily(root.join("proc/stat")) else { return false };
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
    let (Some(booted_s), Some(recorded_ns)) = (booted, wall_ns.checked_sub(*time_ns)) else { return false };
    recorded_ns.abs_diff(booted_s.saturating_mul(1_000_000_000)) <= BOOT_TOLERANCE_NS
}

/// All block devices of this machine.
fn names_here(root: &Path) -> Vec<(DeviceNumber, String)> {
    let named = |entry: fs::DirEntry| {
        let device = DeviceNumber::parse(entry.file_name().to_str()?)?;
        Some((device, fs::read_link(entry.path()).ok()?.file_name()?.to_str()?.to_string()))
    };
    let folder = fs::read_dir(root.join("sys/dev/block"));
    folder.into_iter().flatten().flatten().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use weir_blocktrace::recording::{Header, NamedDevice, preamble};

    use super::super::open::Meter;
    use super::super::source::Source;
    use super::super::stream::Broken;
    use super::*;

    /// Names of a recording of weir's without a single event, on a machine with a disk of the same number and another one.
    #[test]
    fn a_recording_s_own_names_come_first_and_this_boot_s_behind_them() {
        let disk = |minor| DeviceNumber { major: 8, minor };
        let root = tempfile::tempdir().unwrap();
        for folder in ["proc/sys/kernel/random", "sys/dev/block"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "here\n").unwrap();
        for (number, name) in [("8:0", "sdx"), ("8:16", "sdb")] {
            let link = root.path().join("sys/dev/block").join(number);
            symlink(format!("../../devices/pci/block/{name}"), link).unwrap();
        }
        for (boot_id, of_others) in [("here", Some("sdb")), ("elsewhere", None), ("", None)] {
            let names = vec![NamedDevice { device: disk(0), name: "sda".to_string() }];
            let header = Header { names, boot_id: boot_id.to_string(), ..Header::default() };
            let path = root.path().join("a.weirtrace");
            fs::write(&path, preamble(&header).unwrap()).unwrap();
            let stream = Stream::open(&Source::file(path), 1, &Meter::default(), &Broken::default());
            let names = names_of(&[stream.unwrap().unwrap()], root.path());
            let name = |minor| names.get(&disk(minor)).map(String::as_str);
            assert_eq!((name(0), name(16)), (Some("sda"), of_others), "{boot_id}");
        }
    }

    #[test]
    fn names_of_files_and_of_this_boot_are_told_from_others() {
        for (stem, is) in [
            ("sda", true),
            ("nvme0n1", true),
            ("dm-0", true),
            ("vda", true),
            ("md127", true),
            ("sandbox", false),
            ("s2-ext4-mqdl", false),
            ("trace", false),
            ("sd", false),
        ] {
            assert_eq!(is_device_name(stem), is, "{stem}");
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/stat"), "cpu 1 2\nbtime 1700000000\n").unwrap();
        let clock = |boot_s: u64| Item::WallClock { time_ns: 5_000, wall_ns: boot_s * 1_000_000_000 + 5_000 };
        for (boot_s, is) in [(1_700_000_000, true), (1_700_000_001, true), (1_700_000_060, false)] {
            assert_eq!(is_of_this_boot(&clock(boot_s), root.path()), is, "{boot_s}");
        }
    }
}
