//! Knobs of a block device's queue.

use super::{Kind, PLAIN, Risk, ScopeKind, Spec, rank};

const QUEUE: Spec = Spec { scope: ScopeKind::Device, ..PLAIN };
const REQUESTS: Spec = Spec { of_requests: true, ..QUEUE };

/// What the kernel calls the two states of a volatile write cache.
const CACHE: &[&str] = &["write back", "write through"];

/// From Linux 6.11 on, a change of any limit or feature of the queue works the read-ahead out anew.
const READ_AHEAD: &[&str] = &["read_ahead_kb"];

/// Knobs of a device's queue, in the order a transaction writes them.
pub const KNOBS: &[Spec] = &[
    Spec {
        setting: "scheduler",
        path: "/sys/block/{}/queue/scheduler",
        kind: Kind::Choice,
        default: "mq-deadline with one hardware queue, none with several",
        meaning: "The program that chooses the next request for the device.",
        trap: "A switch resets nr_requests and everything under iosched/; bfq also turns the default wbt \
            off.",
        rank: rank::SCHEDULER,
        resets: &[
            "nr_requests",
            "wbt_lat_usec",
            "iosched/async_depth",
            "iosched/fifo_batch",
            "iosched/front_merges",
            "iosched/prio_aging_expire",
            "iosched/read_expire",
            "iosched/write_expire",
            "iosched/writes_starved",
            "iosched/read_lat_nsec",
            "iosched/write_lat_nsec",
            "iosched/back_seek_max",
            "iosched/back_seek_penalty",
            "iosched/fifo_expire_async",
            "iosched/fifo_expire_sync",
            "iosched/low_latency",
            "iosched/max_budget",
            "iosched/slice_idle",
            "iosched/slice_idle_us",
            "iosched/strict_guarantees",
            "iosched/timeout_sync",
        ],
        ..REQUESTS
    },
    Spec {
        setting: "nr_requests",
        path: "/sys/block/{}/queue/nr_requests",
        kind: Kind::Number { min: 4, max: 2048 },
        unit: "requests",
        default: "twice the hardware's depth, at most 256, with a scheduler; the hardware's depth without",
        meaning: "How many requests each of the device's queues may hold, waiting and in flight.",
        trap: "Without a scheduler no more than the hardware's own depth is taken. A change waits for all I/O of the \
               queue, and resets mq-deadline's async_depth.",
        rank: rank::REQUESTS,
        resets: &["iosched/async_depth"],
        ..REQUESTS
    },
    Spec {
        setting: "wbt_lat_usec",
        path: "/sys/block/{}/queue/wbt_lat_usec",
        kind: Kind::Number { min: 0, max: u32::MAX as i64 },
        unit: "µs",
        default: "2000 where the device claims not to rotate, 75000 where it does; 0 under bfq",
        meaning: "Latency of reads that writeback is throttled to keep; 0 turns the throttle off.",
        trap: "It uses the latency of reads only: it cannot protect an fsync.",
        risk: Risk::Inexact(
            "any write marks it as set by hand, so a later switch to bfq or io.cost no longer turns it off; only a \
             restart clears that",
        ),
        rank: rank::WBT,
        ..REQUESTS
    },
    Spec {
        setting: "max_sectors_kb",
        path: "/sys/block/{}/queue/max_sectors_kb",
        kind: Kind::Number { min: 4, max: u32::MAX as i64 },
        unit: "KiB",
        default: "1280 or 4096 by kernel version, at most max_hw_sectors_kb",
        meaning: "The largest request the kernel sends: with nr_requests, it bounds the bytes in flight.",
        trap: "A change resets read_ahead_kb on newer kernels.",
        resets: READ_AHEAD,
        ..QUEUE
    },
    Spec {
        setting: "read_ahead_kb",
        path: "/sys/block/{}/queue/read_ahead_kb",
        kind: Kind::Number { min: 0, max: u32::MAX as i64 },
        unit: "KiB",
        default: "128, or more where the device asks for it",
        meaning: "How far ahead buffered sequential reads are fetched.",
        trap: "Without effect on O_DIRECT, and on files that are open already. A file system on several devices (md, \
               LVM, btrfs) reads ahead by its own top device.",
        tolerance: 63,
        rank: rank::LIMIT,
        ..QUEUE
    },
    Spec {
        setting: "nomerges",
        path: "/sys/block/{}/queue/nomerges",
        kind: Kind::Number { min: 0, max: 2 },
        default: "0",
        meaning: "Whether neighbouring requests are merged: 0 always, 1 only the cheap way, 2 never.",
        ..REQUESTS
    },
    Spec {
        setting: "rq_affinity",
        path: "/sys/block/{}/queue/rq_affinity",
        kind: Kind::Number { min: 0, max: 2 },
        default: "1",
        meaning: "Which CPU finishes a request: 0 whichever is interrupted, 1 one near its sender, 2 its sender's.",
        ..REQUESTS
    },
    Spec {
        setting: "iostats",
        path: "/sys/block/{}/queue/iostats",
        kind: Kind::Number { min: 0, max: 1 },
        default: "1",
        meaning: "Whether the kernel counts the device's I/O.",
        trap: "With 0, iostat, weir and every other monitor see a device that does nothing.",
        risk: Risk::Careful("monitors of the device see nothing"),
        resets: READ_AHEAD,
        ..QUEUE
    },
    Spec {
        setting: "write_cache",
        path: "/sys/block/{}/queue/write_cache",
        kind: Kind::Word(CACHE),
        default: "as the device reports it",
        meaning: "Whether the kernel believes that the device has a volatile cache, and so sends flushes.",
        trap: "This is the kernel's view only: the device's own cache goes on as before.",
        risk: Risk::Durability(
            "`write through` stops flushes: with a volatile cache, commits that were confirmed are lost at a power \
             failure",
        ),
        resets: READ_AHEAD,
        ..QUEUE
    },
    Spec {
        setting: "device_write_cache",
        path: "/sys/block/{}/device/scsi_disk/*/cache_type",
        kind: Kind::Word(CACHE),
        default: "as the device was made or formatted",
        meaning: "The cache of the disk itself, as `hdparm -W` sets it for SATA and SAS disks.",
        trap: "Off, it costs most disks most of their write speed; the setting may survive a restart.",
        risk: Risk::Durability(
            "with the cache on, what was written last is lost at a power failure unless it was flushed or the device \
             protects it",
        ),
        ..QUEUE
    },
];
