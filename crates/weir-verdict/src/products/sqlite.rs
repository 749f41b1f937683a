//! SQLite with `synchronous=FULL`: a commit in WAL mode is an append and a sync; with a rollback journal it takes
//! three: the journal's pages, its header, the database.

use super::{Check, Demand, Ground, Load, OWN_COMMIT, Open, Order, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::Fdatasync;

/// Frames of a page and 24 bytes; the log begins anew at a checkpoint, each 1,000 pages.
const WAL: Transaction = Transaction {
    files: &[Ground::Growing(4 << 20)],
    writes: &[Write::append(0, &[4120, 8240], Some(Fdatasync))],
    open: Open::Plain,
};

/// A header of 512 bytes, and two pages of 4 KiB, each with 8 bytes; then the header with their number; then the pages in
/// the database. The journal is neither made nor removed here, as with `journal_mode=PERSIST`.
const ROLLBACK: Transaction = Transaction {
    files: &[Ground::Growing(1 << 20), Ground::Written],
    writes: &[
        Write { order: Order::Start, ..Write::append(0, &[512 + 2 * 4104], Some(Fdatasync)) },
        Write { order: Order::Start, ..Write::append(0, &[512], Some(Fdatasync)) },
        Write::random(1, &[4096], 2, Some(Fdatasync)),
    ],
    open: Open::Plain,
};

pub(super) const STEPS: &[Step] = &[
    Step {
        id: "sqlite-wal",
        title: "commits in WAL mode: one or two pages + fdatasync",
        load: Load::Transactions(WAL),
        beside: None,
    },
    Step {
        id: "sqlite-rollback",
        title: "commits with a rollback journal: three fdatasyncs",
        load: Load::Transactions(ROLLBACK),
        beside: None,
    },
];

/// The steps of both journal modes, WAL first.
pub const MODES: [&str; 2] = ["sqlite-wal", "sqlite-rollback"];

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "wal-commit-p99",
        what: "99 % of the commits in WAL mode",
        topic: Topic::Commit,
        step: "sqlite-wal",
        demand: OWN_COMMIT,
        source: Source::Own("SQLite publishes no bar; 5 ms is good, 20 ms the bar, as for other commits"),
    },
    Check {
        name: "rollback-rate",
        what: "commits with a rollback journal",
        topic: Topic::Commit,
        step: "sqlite-rollback",
        demand: Demand::Rate { bar: 60.0, good: 60.0, units: 1.0, unit: "commits/s" },
        source: Source::Figure(
            "SQLite, FAQ 19, a disk of 7,200 turns a minute, https://sqlite.org/faq.html#q19",
        ),
    },
];
