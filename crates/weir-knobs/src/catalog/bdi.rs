//! Knobs of a bdi: the share of the dirty limits that one disk, or one file system without a disk, may use.

use super::{Kind, PLAIN, Risk, ScopeKind, Spec, rank};

const BDI: Spec = Spec { scope: ScopeKind::Bdi, rank: rank::LIMIT, ..PLAIN };
const FINE: Spec = Spec { unit: "ppm", since: Some("6.2"), ..BDI };
const BYTES: Spec = Spec {
    kind: Kind::Number { min: 0, max: i64::MAX },
    unit: "bytes",
    // The kernel keeps parts per million of the dirty limit, which itself moves with free memory.
    tolerance: 1 << 20,
    since: Some("6.2"),
    ..BDI
};
const DRIFTS: &str = "the kernel keeps it as a share of the present dirty limit, which moves with free \
    memory; weir restores the share, not the bytes";

/// Knobs of a bdi.
pub const KNOBS: &[Spec] = &[
    Spec {
        setting: "max_ratio",
        path: "/sys/class/bdi/{}/max_ratio",
        kind: Kind::Number { min: 0, max: 100 },
        unit: "%",
        default: "100",
        meaning: "The share of the dirty limit that this device's dirty data may use.",
        trap: "Without strict_limit it acts only once the whole machine nears its dirty limit.",
        resets: &["max_ratio_fine"],
        ..BDI
    },
    Spec {
        setting: "max_ratio_fine",
        path: "/sys/class/bdi/{}/max_ratio_fine",
        kind: Kind::Number { min: 0, max: 1_000_000 },
        default: "1000000",
        meaning: "max_ratio in parts per million.",
        trap: "Without strict_limit it acts only once the whole machine nears its dirty limit.",
        ..FINE
    },
    Spec {
        setting: "max_bytes",
        path: "/sys/class/bdi/{}/max_bytes",
        default: "the dirty limit",
        meaning: "max_ratio as bytes of this device's dirty data.",
        trap: "More than the dirty limit is refused by the kernel, less than a millionth of it becomes 0.",
        risk: Risk::Inexact(DRIFTS),
        resets: &["max_ratio_fine"],
        ..BYTES
    },
    Spec {
        setting: "min_ratio",
        path: "/sys/class/bdi/{}/min_ratio",
        kind: Kind::Number { min: 0, max: 100 },
        unit: "%",
        default: "0",
        meaning: "The share of the dirty limit that is kept for this device.",
        trap: "It must not be above max_ratio, and the shares of all devices together stay below 100 %.",
        resets: &["min_ratio_fine"],
        ..BDI
    },
    Spec {
        setting: "min_ratio_fine",
        path: "/sys/class/bdi/{}/min_ratio_fine",
        kind: Kind::Number { min: 0, max: 1_000_000 },
        default: "0",
        meaning: "min_ratio in parts per million.",
        ..FINE
    },
    Spec {
        setting: "min_bytes",
        path: "/sys/class/bdi/{}/min_bytes",
        default: "0",
        meaning: "min_ratio as bytes of this device's dirty data.",
        risk: Risk::Inexact(DRIFTS),
        resets: &["min_ratio_fine"],
        ..BYTES
    },
    Spec {
        setting: "strict_limit",
        path: "/sys/class/bdi/{}/strict_limit",
        kind: Kind::Number { min: 0, max: 1 },
        default: "0, or 1 for FUSE",
        meaning: "Whether max_ratio holds at all times, not only when the whole machine nears its dirty limit.",
        trap: "Without effect while max_ratio is 100 %. With it, a writer at the limit is stopped, not slowed; on \
               some kernels an idle device's share reaches 0 and stops writers for seconds.",
        risk: Risk::Careful("writers to this device can be stopped for seconds"),
        rank: rank::SWITCH,
        since: Some("6.2"),
        ..BDI
    },
];
