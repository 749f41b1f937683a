//! Parsers on damaged text: an answer or an error, never a panic.

use proptest::prelude::*;

use weir_core::target::DeviceNumber;

use crate::error::BadLine;
use crate::knob::place;
use crate::{bdi, cgroup, cpu, diskstats, limits, mounts, processes, psi, vm};

/// A parser reduced to whether it understood, with a text it does understand.
type Case = (&'static str, fn(&str) -> Result<(), BadLine>, &'static str);

const SDA: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

const CASES: [Case; 17] = [
    (
        "mountinfo",
        |t| mounts::parse(t).map(drop),
        "27 1 254:0 / /a\\040b rw shared:1 - ext4 /dev/vda rw,discard\n",
    ),
    ("cgroup", |t| cgroup::parse(t).map(drop), "7:blkio:/a\n0::/b\n"),
    (
        "io.max",
        |t| cgroup::parse_device_limits(t, "rbps").map(drop),
        "7:0 rbps=max wbps=2097152\n8:0 1048576\n",
    ),
    (
        "diskstats",
        |t| diskstats::parse(t).map(drop),
        " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
    ),
    ("pressure", |t| psi::parse(t).map(drop), "some avg10=0.20 avg60=0.62 avg300=0.81 total=132\n"),
    ("stat", |t| cpu::parse_stat(t).map(drop), "cpu  100 0 50 800 50 0 0 0 0 0\n"),
    ("cpu list", |t| cpu::parse_cpu_list(t).map(drop), "0-3,8,10-11\n"),
    ("loadavg", |t| cpu::parse_loadavg(t).map(drop), "0.20 0.18 12.5 1/80 11206\n"),
    ("meminfo", |t| vm::parse_meminfo(t).map(drop), vm::tests::MEMINFO),
    ("swaps", |t| vm::parse_swaps(t).map(drop), "Filename\n/dev/sda2 partition 4194300 16 -2\n"),
    ("vmstat", |t| vm::parse_vmstat(t).map(drop), "nr_dirty 1889\npswpin 0\n"),
    (
        "limits",
        |t| limits::parse_limit(t, "Max open files").map(drop),
        "Max open files   20000   30000   files\n",
    ),
    ("process io", |t| processes::parse(t).map(drop), "read_bytes: 4096\nwrite_bytes: 8192\n"),
    ("choices", |t| place::parse_whole(t).map(drop), "none [mq-deadline] kyber bfq\n"),
    ("io.weight", |t| place::parse_default(t).map(drop), "default 100\n8:0 50\n"),
    (
        "io.max of a device",
        |t| place::parse_keyed(t, SDA, "wbps").map(drop),
        "7:0 wbps=max\n8:0 rbps=max wbps=1\n",
    ),
    ("bdi stats", |t| bdi::parse_stats(t).map(drop), "BdiWritten:  3144704 kB\nBdiWriteback: 8 kB\n"),
];

#[test]
fn every_sample_is_understood() {
    for (name, parse, sample) in CASES {
        assert_eq!(parse(sample), Ok(()), "{name}");
    }
}

proptest! {
    #[test]
    fn damage_never_panics(
        case in 0..CASES.len(),
        from in any::<prop::sample::Index>(),
        length in 0_usize..12,
        put in prop_oneof!["[ -~\n]{0,8}", "\\PC{0,8}", Just(u64::MAX.to_string()), Just(u32::MAX.to_string())],
    ) {
        let (_, parse, sample) = CASES[case];
        let from = from.index(sample.len());
        let to = (from + length).min(sample.len());
        let damaged = format!("{}{put}{}", &sample[..from], &sample[to..]);
        if let Err(bad) = parse(&damaged) {
            let lines = damaged.lines().count();
            prop_assert!(bad.line <= lines.max(1) && !bad.item.is_empty(), "{bad:?} in {damaged:?}");
        }
    }
}
