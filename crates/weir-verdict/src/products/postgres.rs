//! PostgreSQL: blocks of 8 KiB written to log segments that are used again, made durable by one of the methods of
//! `wal_sync_method`. The methods are compared as pg_test_fsync does: one block, then two.

use super::{Check, Ground, Load, OWN_COMMIT, Open, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::{Fdatasync, Fsync};

/// XLOG_BLCKSZ.
const BLOCK: &[u32] = &[8192];

const WITH_FDATASYNC: &[Write] = &[Write::append(0, BLOCK, Some(Fdatasync))];
const WITH_FSYNC: &[Write] = &[Write::append(0, BLOCK, Some(Fsync))];
const BY_OPENING: &[Write] = &[Write::append(0, BLOCK, None)];
const TWO_WITH_FDATASYNC: &[Write] = &[Write { times: 2, ..Write::append(0, BLOCK, Some(Fdatasync)) }];
const TWO_BY_OPENING: &[Write] = &[Write { times: 2, ..Write::append(0, BLOCK, None) }];

const fn step(id: &'static str, title: &'static str, writes: &'static [Write], open: Open) -> Step {
    let load = Load::Transactions(Transaction { files: &[Ground::Written], writes, open });
    Step { id, title, load, beside: None }
}

/// The values of `wal_sync_method` that Linux has, its default first, each with the step that measures it as the server
/// writes: through the page cache (O_DIRECT takes the developers' option `debug_io_direct`).
pub const METHODS: [(&str, &str); 4] = [
    ("fdatasync", "pg-fdatasync"),
    ("open_datasync", "pg-open-datasync"),
    ("fsync", "pg-fsync"),
    ("open_sync", "pg-open-sync"),
];

/// Two blocks in one commit, by the default and by the other method that syncs data alone.
pub const TWO_BLOCKS: [&str; 2] = ["pg-fdatasync-2", "pg-open-datasync-2"];

pub(super) const STEPS: &[Step] = &[
    step("pg-fdatasync", "WAL 8 KiB, fdatasync", WITH_FDATASYNC, Open::Plain),
    step("pg-open-datasync", "WAL 8 KiB, open_datasync", BY_OPENING, Open::Dsync),
    step("pg-fsync", "WAL 8 KiB, fsync", WITH_FSYNC, Open::Plain),
    step("pg-open-sync", "WAL 8 KiB, open_sync", BY_OPENING, Open::Sync),
    step("pg-fdatasync-2", "WAL 2 × 8 KiB, fdatasync", TWO_WITH_FDATASYNC, Open::Plain),
    step("pg-open-datasync-2", "WAL 2 × 8 KiB, open_datasync", TWO_BY_OPENING, Open::Dsync),
    step("pg-direct-datasync", "WAL 8 KiB, O_DIRECT open_datasync", BY_OPENING, Open::DirectDsync),
    step("pg-direct-sync", "WAL 8 KiB, O_DIRECT open_sync", BY_OPENING, Open::DirectSync),
];

pub(super) const CHECKS: &[Check] = &[Check {
    name: "wal-commit-p99",
    what: "99 % of the commits by fdatasync (the default)",
    topic: Topic::Commit,
    step: "pg-fdatasync",
    demand: OWN_COMMIT,
    source: Source::Own(
        "PostgreSQL publishes no figure; half a turn of a hard disk is 5 ms, four times that the bar",
    ),
}];
