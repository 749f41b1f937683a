//! RocksDB: a log whose writes are synced (`WriteOptions::sync`), alone and beside a compaction that writes tables of
//! 64 MiB through the page cache and syncs each.

use super::{Beside, Check, Demand, Ground, Load, OWN_COMMIT, Open, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::Fdatasync;

/// A batch of a few records, or of several writers together.
const WAL: Transaction = Transaction {
    files: &[Ground::Growing(256 << 20)],
    writes: &[Write::append(0, &[1024, 1024, 4096, 16384], Some(Fdatasync))],
    open: Open::Plain,
};

/// `target_file_size_base` is 64 MiB; tables are synced when they are complete.
const COMPACTION: Transaction = Transaction {
    files: &[Ground::Growing(512 << 20)],
    writes: &[Write { times: 64, ..Write::append(0, &[1 << 20], Some(Fdatasync)) }],
    open: Open::Plain,
};

pub(super) const STEPS: &[Step] = &[
    Step {
        id: "rocksdb-wal",
        title: "WAL appends of 1 to 16 KiB + fdatasync",
        load: Load::Transactions(WAL),
        beside: None,
    },
    Step {
        id: "rocksdb-compaction",
        title: "the same appends beside a compaction",
        load: Load::Transactions(WAL),
        beside: Some(Beside {
            title: "a compaction: 1 MiB writes, a sync each 64 MiB",
            load: Load::Transactions(COMPACTION),
            per_second: None,
        }),
    },
];

const OWN: &str = "RocksDB publishes no figure; 5 ms is good, 20 ms the bar, as for other commits";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "wal-sync-p99",
        what: "99 % of the synced writes",
        topic: Topic::Commit,
        step: "rocksdb-wal",
        demand: OWN_COMMIT,
        source: Source::Own(OWN),
    },
    Check {
        name: "wal-beside-compaction",
        what: "of the synced writes remain beside a compaction",
        topic: Topic::Commit,
        step: "rocksdb-compaction",
        demand: Demand::Kept { bar: 0.2, good: 0.5, of: "rocksdb-wal" },
        source: Source::Own("RocksDB publishes no figure; a half is good, a fifth the bar, as under a flood"),
    },
];
