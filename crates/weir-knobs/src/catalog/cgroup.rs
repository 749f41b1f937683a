//! Knobs of a cgroup.

use super::{Kind, PLAIN, Risk, ScopeKind, Spec, rank};

const GROUP: Spec = Spec { scope: ScopeKind::Cgroup, rank: rank::LIMIT, ..PLAIN };
const ENTANGLED: &str =
    "a throttled group can delay the journal's commit of every process on the same file system";
const THROTTLE: Spec = Spec {
    path: "/sys/fs/cgroup{}/io.max",
    kind: Kind::Limit { min: 1, max: i64::MAX },
    default: "max",
    risk: Risk::Careful(ENTANGLED),
    trap: "Buffered writes count for the group only on ext2, ext4, btrfs, f2fs and xfs, and by the process \
        that first dirtied the file.",
    ..GROUP
};

/// Knobs of a cgroup.
pub const KNOBS: &[Spec] = &[
    Spec {
        setting: "io.max/DEV/rbps",
        unit: "bytes/s",
        meaning: "How much the group may read from the device.",
        trap: "",
        ..THROTTLE
    },
    Spec {
        setting: "io.max/DEV/wbps",
        unit: "bytes/s",
        meaning: "How much the group may write to the device.",
        ..THROTTLE
    },
    Spec {
        setting: "io.max/DEV/riops",
        unit: "per second",
        meaning: "How many reads of the device the group may make.",
        trap: "",
        ..THROTTLE
    },
    Spec {
        setting: "io.max/DEV/wiops",
        unit: "per second",
        meaning: "How many writes to the device the group may make.",
        ..THROTTLE
    },
    Spec {
        setting: "blkio.throttle.write_bps_device/DEV",
        path: "/sys/fs/cgroup{}/blkio.throttle.write_bps_device",
        unit: "bytes/s",
        meaning: "How much the group may write to the device, in cgroup version 1.",
        trap: "It holds writes past the page cache only: what is written back counts for the root group. Groups below \
               it have limits of their own.",
        ..THROTTLE
    },
    Spec {
        setting: "io.latency/DEV/target",
        path: "/sys/fs/cgroup{}/io.latency",
        kind: Kind::Number { min: 0, max: i64::MAX },
        unit: "µs",
        default: "0",
        meaning: "Latency that the group's I/O is to keep: groups with a looser target are throttled for it; 0 is none.",
        trap: "It compares groups beside each other only, and needs a kernel built with it.",
        ..GROUP
    },
    Spec {
        setting: "io.weight",
        path: "/sys/fs/cgroup{}/io.weight",
        kind: Kind::Number { min: 1, max: 10_000 },
        default: "100",
        meaning: "The group's share of each device among the groups beside it.",
        trap: "It acts only where bfq or io.cost is in force.",
        ..GROUP
    },
    Spec {
        setting: "cpu.max",
        path: "/sys/fs/cgroup{}/cpu.max",
        kind: Kind::Quota,
        unit: "µs",
        default: "max 100000",
        meaning: "Processor time that the group may use in each period, on all processors together.",
        trap: "A process that has used it up stands still for the rest of the period; before Linux 6.18 also inside the \
               kernel, with a lock that others may wait for.",
        risk: Risk::Careful("all work of the group is slower"),
        ..GROUP
    },
    Spec {
        setting: "memory.high",
        path: "/sys/fs/cgroup{}/memory.high",
        kind: Kind::Limit { min: 0, max: i64::MAX },
        unit: "bytes",
        default: "max",
        meaning: "Memory, page cache included, from which on the group is slowed and made to give some back.",
        trap: "Its dirty limits are a share of it: a small value slows the group's buffered writes.",
        risk: Risk::Careful("a group whose processes need more than this crawls"),
        // Rounded down to whole pages.
        tolerance: 65_535,
        ..GROUP
    },
];
