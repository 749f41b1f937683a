//! Knobs of the schedulers: they exist while the scheduler is in force, and each switch starts them afresh.

use super::{Kind, PLAIN, ScopeKind, Spec, rank};

/// What a scheduler rounds times in milliseconds to: the longest tick of a kernel.
const TICK_MS: i64 = 10;
const MILLISECONDS: Kind = Kind::Number { min: 0, max: 3_600_000 };
const SWITCH: Kind = Kind::Number { min: 0, max: 1 };
const ANY: Kind = Kind::Number { min: 0, max: i32::MAX as i64 };

const OWN: Spec = Spec { scope: ScopeKind::Device, rank: rank::SCHEDULERS_OWN, of_requests: true, ..PLAIN };
const DEADLINE: Spec = Spec { scheduler: Some("mq-deadline"), ..OWN };
const KYBER: Spec = Spec { scheduler: Some("kyber"), ..OWN };
const BFQ: Spec = Spec { scheduler: Some("bfq"), ..OWN };

/// Knobs of mq-deadline, kyber and bfq.
pub const KNOBS: &[Spec] = &[
    Spec {
        setting: "iosched/async_depth",
        path: "/sys/block/{}/queue/iosched/async_depth",
        kind: Kind::Number { min: 1, max: 2048 },
        unit: "requests",
        default: "nr_requests",
        meaning: "How many asynchronous requests (reads and writes that no process waits for) may be queued.",
        trap: "By default it equals nr_requests and caps nothing.",
        ..DEADLINE
    },
    Spec {
        setting: "iosched/fifo_batch",
        path: "/sys/block/{}/queue/iosched/fifo_batch",
        kind: ANY,
        unit: "requests",
        default: "16",
        meaning: "How many neighbouring requests of one direction are sent before deadlines are checked \
            again.",
        ..DEADLINE
    },
    Spec {
        setting: "iosched/front_merges",
        path: "/sys/block/{}/queue/iosched/front_merges",
        kind: SWITCH,
        default: "1",
        meaning: "Whether a request may be merged in front of another.",
        ..DEADLINE
    },
    Spec {
        setting: "iosched/prio_aging_expire",
        path: "/sys/block/{}/queue/iosched/prio_aging_expire",
        kind: MILLISECONDS,
        unit: "ms",
        default: "10000",
        meaning: "After this time a request of low I/O priority goes before those of higher priority.",
        tolerance: TICK_MS,
        since: Some("5.18"),
        ..DEADLINE
    },
    Spec {
        setting: "iosched/read_expire",
        path: "/sys/block/{}/queue/iosched/read_expire",
        kind: MILLISECONDS,
        unit: "ms",
        default: "500",
        meaning: "Deadline of a read: from then on it goes first.",
        tolerance: TICK_MS,
        ..DEADLINE
    },
    Spec {
        setting: "iosched/write_expire",
        path: "/sys/block/{}/queue/iosched/write_expire",
        kind: MILLISECONDS,
        unit: "ms",
        default: "5000",
        meaning: "Deadline of a write: from then on it goes before other writes.",
        tolerance: TICK_MS,
        ..DEADLINE
    },
    Spec {
        setting: "iosched/writes_starved",
        path: "/sys/block/{}/queue/iosched/writes_starved",
        kind: ANY,
        unit: "batches",
        default: "2",
        meaning: "How many batches of reads may go before waiting writes.",
        trap: "Sync writes count as writes: a commit waits behind that many batches of reads.",
        ..DEADLINE
    },
    Spec {
        setting: "iosched/read_lat_nsec",
        path: "/sys/block/{}/queue/iosched/read_lat_nsec",
        kind: Kind::Number { min: 1, max: i64::MAX },
        unit: "ns",
        default: "2000000",
        meaning: "Latency that reads are to keep; where they do not, the others get fewer requests.",
        ..KYBER
    },
    Spec {
        setting: "iosched/write_lat_nsec",
        path: "/sys/block/{}/queue/iosched/write_lat_nsec",
        kind: Kind::Number { min: 1, max: i64::MAX },
        unit: "ns",
        default: "10000000",
        meaning: "Latency that sync writes are to keep; where they do not, the others get fewer requests.",
        ..KYBER
    },
    Spec {
        setting: "iosched/back_seek_max",
        path: "/sys/block/{}/queue/iosched/back_seek_max",
        kind: ANY,
        unit: "KiB",
        default: "16384",
        meaning: "How far backwards a disk's head may be sent for the next request.",
        ..BFQ
    },
    Spec {
        setting: "iosched/back_seek_penalty",
        path: "/sys/block/{}/queue/iosched/back_seek_penalty",
        kind: Kind::Number { min: 1, max: i32::MAX as i64 },
        default: "2",
        meaning: "How many times as dear a way backwards is as one forwards.",
        ..BFQ
    },
    Spec {
        setting: "iosched/fifo_expire_async",
        path: "/sys/block/{}/queue/iosched/fifo_expire_async",
        kind: Kind::Number { min: 1, max: i32::MAX as i64 },
        unit: "ms",
        default: "250",
        meaning: "Deadline of an asynchronous request.",
        ..BFQ
    },
    Spec {
        setting: "iosched/fifo_expire_sync",
        path: "/sys/block/{}/queue/iosched/fifo_expire_sync",
        kind: Kind::Number { min: 1, max: i32::MAX as i64 },
        unit: "ms",
        default: "125",
        meaning: "Deadline of a synchronous request.",
        ..BFQ
    },
    Spec {
        setting: "iosched/low_latency",
        path: "/sys/block/{}/queue/iosched/low_latency",
        kind: SWITCH,
        default: "1",
        meaning: "Whether bfq favours what it takes for interactive: good on desktops, not for a server's throughput.",
        ..BFQ
    },
    Spec {
        setting: "iosched/max_budget",
        path: "/sys/block/{}/queue/iosched/max_budget",
        kind: ANY,
        unit: "sectors",
        default: "0",
        meaning: "How much one process may have served before the next has its turn; 0 lets bfq find out.",
        ..BFQ
    },
    Spec {
        setting: "iosched/slice_idle",
        path: "/sys/block/{}/queue/iosched/slice_idle",
        kind: Kind::Number { min: 0, max: 4293 },
        unit: "ms",
        default: "8",
        meaning: "How long the device is left idle for the next request of the process it served; 0 does not wait.",
        trap: "The same setting as slice_idle_us, in milliseconds.",
        resets: &["iosched/slice_idle_us"],
        ..BFQ
    },
    Spec {
        setting: "iosched/slice_idle_us",
        path: "/sys/block/{}/queue/iosched/slice_idle_us",
        kind: Kind::Number { min: 0, max: 4_294_966 },
        unit: "µs",
        default: "8000",
        meaning: "How long the device is left idle for the next request of the process it served; 0 does not wait.",
        trap: "The same setting as slice_idle, in microseconds.",
        resets: &["iosched/slice_idle"],
        ..BFQ
    },
    Spec {
        setting: "iosched/strict_guarantees",
        path: "/sys/block/{}/queue/iosched/strict_guarantees",
        kind: SWITCH,
        default: "0",
        meaning: "Whether one request at a time is sent, so that shares hold exactly, at the cost of throughput.",
        ..BFQ
    },
    Spec {
        setting: "iosched/timeout_sync",
        path: "/sys/block/{}/queue/iosched/timeout_sync",
        kind: Kind::Number { min: 1, max: 3_600_000 },
        unit: "ms",
        default: "124",
        meaning: "How long one process may be served before the next has its turn.",
        tolerance: TICK_MS,
        ..BFQ
    },
];
