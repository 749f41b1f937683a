//! etcd: a log that each entry is appended to and made durable in before it counts, and a B+ tree (bbolt) that is
//! committed ten times a second.

use super::{Beside, Check, Demand, Ground, Load, Open, Order, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::Fdatasync;

/// The log's segments are allocated in whole and then written (server/storage/wal: `SegmentSizeBytes`, 64 MB each, here
/// four of them); an append of a few small entries takes 2 to 8 KiB.
const WAL: Transaction = Transaction {
    files: &[Ground::Allocated(256 << 20)],
    writes: &[Write::append(0, &[2048, 4096, 2048, 8192], Some(Fdatasync))],
    open: Open::Plain,
};

/// bbolt's `Tx.Commit`: the changed pages and a sync, then one of the two meta pages and a sync.
const BACKEND: Transaction = Transaction {
    files: &[Ground::Written],
    writes: &[
        Write::random(0, &[4096], 4, Some(Fdatasync)),
        Write { order: Order::Start, ..Write::append(0, &[4096], Some(Fdatasync)) },
    ],
    open: Open::Plain,
};

/// Every 100 ms (`--backend-batch-interval`).
const COMMITS_PER_SECOND: u32 = 10;

pub(super) const STEPS: &[Step] = &[
    Step {
        id: "etcd-wal",
        title: "WAL appends of 2 to 8 KiB + fdatasync, one writer, beside the backend's commits",
        load: Load::Transactions(WAL),
        beside: Some(Beside {
            title: "backend commits, 10 a second",
            load: Load::Transactions(BACKEND),
            per_second: Some(COMMITS_PER_SECOND),
        }),
    },
    Step {
        id: "etcd-backend",
        title: "backend commits of 5 pages with two fdatasyncs",
        load: Load::Transactions(BACKEND),
        beside: None,
    },
];

const FAQ: &str = "etcd, FAQ, https://etcd.io/docs/v3.5/faq/";
const HARDWARE: &str = "etcd, Hardware recommendations, https://etcd.io/docs/v3.5/op-guide/hardware/";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "wal-fsync-p99",
        what: "99 % of the WAL's fdatasyncs",
        topic: Topic::Commit,
        step: "etcd-wal",
        demand: Demand::SyncP99 { bar: 10_000_000, good: 10_000_000 },
        source: Source::Bar(FAQ),
    },
    Check {
        name: "backend-commit-p99",
        what: "99 % of the backend's commits",
        topic: Topic::Commit,
        step: "etcd-backend",
        demand: Demand::TransactionP99 { bar: 25_000_000, good: 25_000_000 },
        source: Source::Bar(FAQ),
    },
    Check {
        name: "wal-rate",
        what: "sequential durable writes",
        topic: Topic::Commit,
        step: "etcd-wal",
        demand: Demand::Rate { bar: 50.0, good: 500.0, units: 1.0, unit: "appends/s" },
        source: Source::Bar(HARDWARE),
    },
];
