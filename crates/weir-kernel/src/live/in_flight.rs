//! Requests under way, as the kernel counts them.

use std::fs;
use std::path::Path;

use weir_core::target::DeviceNumber;

/// By disk, those without any left out; `devices` empty means all.
pub fn by_device(devices: &[DeviceNumber]) -> Vec<(DeviceNumber, u64)> {
    let Ok(disks) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut counts: Vec<_> = disks.flatten().filter_map(|disk| of_disk(&disk.path())).collect();
    counts.retain(|(device, count)| *count > 0 && (devices.is_empty() || devices.contains(device)));
    counts.sort_unstable();
    counts
}

fn of_disk(disk: &Path) -> Option<(DeviceNumber, u64)> {
    let device = DeviceNumber::parse(&fs::read_to_string(disk.join("dev")).ok()?)?;
    let counts = fs::read_to_string(disk.join("inflight")).ok()?;
    Some((device, counts.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).sum()))
}
