//! InnoDB in MySQL and MariaDB: a redo log that is used again and a binary log that grows, both synced in each
//! transaction; pages of 16 KiB that are written twice, so that a torn one can be repaired.

use super::{Check, Demand, Ground, Load, OWN_COMMIT, Open, Source, Step, Transaction, Write};
use crate::topic::Topic;
use weir_core::workload::spec::SyncMode::Fdatasync;

/// Blocks of 512 bytes (OS_FILE_LOG_BLOCK_SIZE); a small transaction fills one to four of them. The first write into each
/// 8 KiB is padded to their end (innodb_log_write_ahead_size), so that the kernel need not read pages of a log used again.
const REDO: Write =
    Write { ahead: 8192, ..Write::append(0, &[512, 1024, 2048, 1024, 2048, 1536], Some(Fdatasync)) };
const BINLOG: Write = Write::append(1, &[500, 900, 1700], Some(Fdatasync));
const PAGE: &[u32] = &[16 << 10];
/// Pages in one round of flushing here, and their bytes in the doublewrite file.
const PAGES: u32 = 16;
const DOUBLED: &[u32] = &[256 << 10];

pub(super) const STEPS: &[Step] = &[
    Step {
        id: "innodb-redo",
        title: "redo log, 512 bytes to 2 KiB + fdatasync",
        load: Load::Transactions(Transaction {
            files: &[Ground::Written],
            writes: &[REDO],
            open: Open::Plain,
        }),
        beside: None,
    },
    Step {
        id: "innodb-transaction",
        title: "a transaction: redo log and binary log, each with its fdatasync",
        load: Load::Transactions(Transaction {
            files: &[Ground::Written, Ground::Growing(256 << 20)],
            writes: &[REDO, BINLOG],
            open: Open::Plain,
        }),
        beside: None,
    },
    Step {
        id: "innodb-pages",
        title: "16 pages of 16 KiB, O_DIRECT, + fdatasync",
        load: Load::Transactions(Transaction {
            files: &[Ground::Written],
            writes: &[Write::random(0, PAGE, PAGES, Some(Fdatasync))],
            open: Open::Direct,
        }),
        beside: None,
    },
    Step {
        id: "innodb-doublewrite",
        title: "the same pages by way of the doublewrite file, O_DIRECT, + two fdatasyncs",
        load: Load::Transactions(Transaction {
            files: &[Ground::Written, Ground::Allocated(16 << 20)],
            writes: &[
                Write::append(1, DOUBLED, Some(Fdatasync)),
                Write::random(0, PAGE, PAGES, Some(Fdatasync)),
            ],
            open: Open::Direct,
        }),
        beside: None,
    },
];

const fn transaction(why: &'static str) -> Check {
    Check {
        name: "transaction-p99",
        what: "99 % of the transactions with binary log",
        topic: Topic::Commit,
        step: "innodb-transaction",
        demand: OWN_COMMIT,
        source: Source::Own(why),
    }
}

/// Pages a second that the server's own flushing counts on unless it is told otherwise.
const fn pages(document: &'static str) -> Check {
    Check {
        name: "page-flush-rate",
        what: "pages flushed by way of the doublewrite file",
        topic: Topic::Sequential,
        step: "innodb-doublewrite",
        demand: Demand::Rate { bar: 200.0, good: 200.0, units: PAGES as f64, unit: "pages/s" },
        source: Source::Figure(document),
    }
}

pub(super) const MYSQL: &[Check] = &[
    transaction("MySQL publishes no figure; 5 ms is good, 20 ms the bar, as for other commits"),
    pages(
        "MySQL manual, innodb_io_capacity: 200 by default up to 8.3 (10,000 since), \
         https://dev.mysql.com/doc/refman/8.4/en/innodb-configuring-io-capacity.html",
    ),
];

pub(super) const MARIADB: &[Check] = &[
    transaction("MariaDB publishes no figure; 5 ms is good, 20 ms the bar, as for other commits"),
    pages(
        "MariaDB, innodb_io_capacity: 200 by default, https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables",
    ),
];

/// The steps of pages without and with the doublewrite file.
pub const DOUBLEWRITE: [&str; 2] = ["innodb-pages", "innodb-doublewrite"];
/// Pages in one transaction of either.
pub const DOUBLEWRITE_PAGES: f64 = PAGES as f64;
