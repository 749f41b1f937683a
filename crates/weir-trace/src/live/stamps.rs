//! What the stamps that the kernel keeps in a request mean on this kernel.

use std::fs;

use libbpf_rs::btf::{Btf, types};

use super::{IssueStamp, Options, StartStamp};

/// How true `start_time_ns` is, and whether `io_start_time_ns` can stand for D on all queues watched.
pub fn of_this_kernel(options: &Options) -> (StartStamp, IssueStamp) {
    if plugs_remember_a_time() {
        // Both stamps are the plug's then, which may be older than the issue.
        return (StartStamp::PlugStarted, IssueStamp::Program);
    }
    let start = match release() {
        (5, 16..) | (6, ..=5) => StartStamp::BatchAllocated,
        _ => StartStamp::Exact,
    };
    (start, if queues_are_stamped(options) { IssueStamp::Request } else { IssueStamp::Program })
}

/// Since 6.9 (`blk_time_get_ns`), unless some kernel took it back or ahead: its own types tell.
fn plugs_remember_a_time() -> bool {
    let Ok(btf) = Btf::from_vmlinux() else { return true };
    let Some(plug) = btf.type_by_name::<types::Struct<'_>>("blk_plug") else { return true };
    plug.iter().any(|member| member.name.is_some_and(|name| name == "cur_ktime"))
}

/// Whether all queues keep the statistics for which the kernel stamps the issue: write-back throttling is on. Any
/// device may come later, so where not all of them are known beforehand, this holds for the disks there are.
fn queues_are_stamped(options: &Options) -> bool {
    let Ok(disks) = fs::read_dir("/sys/block") else { return false };
    disks.flatten().all(|disk| {
        let read = |file: &str| fs::read_to_string(disk.path().join(file)).unwrap_or_default();
        let number = read("dev");
        let is_watched = options.devices.is_empty()
            || options.devices.iter().any(|device| device.to_string() == number.trim());
        !is_watched || read("queue/wbt_lat_usec").trim().parse::<u64>().is_ok_and(|target_us| target_us > 0)
    })
}

/// Major and minor of the kernel's release; zeros where it cannot be read.
fn release() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
