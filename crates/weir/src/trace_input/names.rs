//! What devices are called: blktrace names its files after them; this machine's names count only for what was recorded
//! on it since it booted.

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
    let mut names = DeviceNames::new();
    for (device, stem) in streams.iter().filter_map(Stream::device_and_stem) {
        if is_device_name(stem) {
            names.insert(device, stem.to_string());
        }
    }
    let here = streams.iter().flat_map(Stream::first_items).any(|item| is_of_this_boot(item, root));
    for device in streams.iter().flat_map(Stream::devices).filter(|_| here) {
        if let Some(name) = name_here(device, root) {
            names.entry(device).or_insert(name);
        }
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

/// The wall clock less the recording's clock is when the machine booted: blktrace's is CLOCK_MONOTONIC.
fn is_of_this_boot(item: &Item, root: &Path) -> bool {
    let Item::WallClock { time_ns, wall_ns } = item else { return false };
    let Ok(stat) = weir_fs::read_lossily(root.join("proc/stat")) else { return false };
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
    let (Some(booted_s), Some(recorded_ns)) = (booted, wall_ns.checked_sub(*time_ns)) else { return false };
    recorded_ns.abs_diff(booted_s.saturating_mul(1_000_000_000)) <= BOOT_TOLERANCE_NS
}

fn name_here(device: DeviceNumber, root: &Path) -> Option<String> {
    let link = fs::read_link(root.join(format!("sys/dev/block/{device}"))).ok()?;
    Some(link.file_name()?.to_str()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
