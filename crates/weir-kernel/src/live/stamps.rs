//! What the stamps that the kernel keeps in a request mean on this kernel.

use std::fs;

use libbpf_rs::btf::{Btf, types};

use super::control::{BioAt, Kernel, RequestAt};
use super::{IssueStamp, Options, StartStamp};
use crate::tracepoints;

/// How true `start_time_ns` is, and whether `io_start_time_ns` can stand for D on all queues watched.
pub fn of_this_kernel(options: &Options) -> (StartStamp, IssueStamp) {
    // Since 6.9 (`blk_time_get_ns`), unless some kernel took it back or ahead.
    if has_member("blk_plug", "cur_ktime") {
        // Both stamps are the plug's then, which may be older than the issue.
        return (StartStamp::PlugStarted, IssueStamp::Program);
    }
    let start =
        if has_member("blk_plug", "cached_rq") { StartStamp::BatchAllocated } else { StartStamp::Exact };
    (start, if queues_are_stamped(options) { IssueStamp::Request } else { IssueStamp::Program })
}

/// Whether a structure of the kernel's has a member, as its own types tell: releases do not, since distributions take
/// changes back and ahead.
fn has_member(structure: &str, member: &str) -> bool {
    let Ok(btf) = Btf::from_vmlinux() else { return true };
    let Some(found) = btf.type_by_name::<types::Struct<'_>>(structure) else { return true };
    found.iter().any(|one| one.name.is_some_and(|name| name == member))
}

/// What the programs have to be told of this kernel.
pub fn kernel() -> Kernel {
    let Ok(btf) = Btf::from_vmlinux() else { return Kernel::default() };
    let place_of = |tracepoint, structure| tracepoints::place_of(&btf, tracepoint, structure).unwrap_or(0);
    let bio_at = |tracepoint| place_of(tracepoint, "bio");
    Kernel {
        flush_sequence: flush_sequence(&btf),
        bio_at: BioAt {
            queue: bio_at("block_bio_queue"),
            split: bio_at("block_split"),
            get_request: bio_at("block_getrq"),
            merge: bio_at("block_bio_backmerge"),
        },
        request_at: RequestAt {
            insert: place_of("block_rq_insert", "request"),
            issue: place_of("block_rq_issue", "request"),
        },
    }
}

/// The flag of `rq_flags` that marks requests of a flush sequence. Since 6.10 an enumeration numbers it, at first one
/// without a name, which no program can ask for; before that it was a macro.
fn flush_sequence(btf: &Btf<'_>) -> u32 {
    const AS_MACRO: u32 = 1 << 4;
    let flags = btf.type_by_kind::<types::Enum<'_>>();
    let named = |numbered: types::Enum<'_>| {
        let found = numbered.iter().find(|one| one.name.is_some_and(|name| name == "__RQF_FLUSH_SEQ"));
        found.map(|one| 1 << one.value)
    };
    flags.filter_map(named).next().unwrap_or(AS_MACRO)
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
