//! Kafka: large appends through the page cache, flushed rarely (the kernel writes them), and consumers that read what
//! they have missed from the disk.

use super::{Beside, Check, Demand, Ground, Load, Open, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::Fdatasync;

/// Batches of 1 MiB; a flush each 64 MiB stands for the kernel's write-back and keeps the measured rate that of the disk
/// instead of the memory's.
const APPENDS: Transaction = Transaction {
    files: &[Ground::Growing(512 << 20)],
    writes: &[Write { times: 64, ..Write::append(0, &[1 << 20], Some(Fdatasync)) }],
    open: Open::Plain,
};

pub(super) const STEPS: &[Step] = &[
    Step {
        id: "kafka-append",
        title: "appends of 1 MiB through the page cache, a flush each 64 MiB",
        load: Load::Transactions(APPENDS),
        beside: None,
    },
    Step {
        id: "kafka-read",
        title: "a consumer that reads old segments from the disk",
        load: Load::BulkRead,
        beside: None,
    },
    Step {
        id: "kafka-append-read",
        title: "the same appends beside that consumer",
        load: Load::Transactions(APPENDS),
        beside: Some(Beside { title: "a consumer beside appends", load: Load::BulkRead, per_second: None }),
    },
];

/// 600 MB/s of linear writes on six disks of 7,200 turns a minute: 100 MB/s each.
const DESIGN: &str = "Kafka, Design, 4.2 Persistence, 600 MB/s on six disks, here one of them, \
                      https://kafka.apache.org/documentation/#persistence";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "append-rate",
        what: "appends",
        topic: Topic::Sequential,
        step: "kafka-append",
        demand: Demand::Bytes { bar: 100e6, good: 100e6 },
        source: Source::Figure(DESIGN),
    },
    Check {
        name: "read-rate",
        what: "reads of old segments",
        topic: Topic::Sequential,
        step: "kafka-read",
        demand: Demand::Bytes { bar: 100e6, good: 100e6 },
        source: Source::Figure(DESIGN),
    },
    Check {
        name: "append-beside-reader",
        what: "of the appends remain beside a reader of old segments",
        topic: Topic::Sequential,
        step: "kafka-append-read",
        demand: Demand::Kept { bar: 0.2, good: 0.5, of: "kafka-append" },
        source: Source::Own("Kafka publishes no figure; a half is good, a fifth the bar, as under a flood"),
    },
];
