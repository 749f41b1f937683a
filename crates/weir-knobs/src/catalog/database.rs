//! Variables of database servers: what `SET GLOBAL` and `ALTER SYSTEM` change while the server runs.

use super::{Kind, PLAIN, Risk, ScopeKind, Spec, rank};

const MYSQL: Spec =
    Spec { scope: ScopeKind::MySql, risk: Risk::Careful(EVERYBODY), path: "SET GLOBAL {}", ..PLAIN };
const POSTGRES: Spec =
    Spec { scope: ScopeKind::Postgres, risk: Risk::Careful(EVERYBODY), path: "ALTER SYSTEM SET {}", ..PLAIN };
const EVERYBODY: &str = "it affects every session of the server";
const COMMITS: &str = "confirmed transactions may be lost when the machine fails";
const MINUTES: Kind = Kind::Number { min: 1, max: i32::MAX as i64 };
const PAGES: Kind = Kind::Number { min: 0, max: 256 };

/// Variables of MySQL and MariaDB.
pub const MYSQL_KNOBS: &[Spec] = &[
    Spec {
        setting: "innodb_io_capacity_max",
        kind: Kind::Number { min: 100, max: u32::MAX as i64 },
        unit: "pages/s",
        default: "twice innodb_io_capacity, 2000 at least",
        meaning: "The most pages a second that InnoDB flushes when redo or dirty pages press.",
        trap: "Set below innodb_io_capacity it takes that down with it.",
        resets: &["innodb_io_capacity"],
        rank: rank::REQUESTS,
        ..MYSQL
    },
    Spec {
        setting: "innodb_io_capacity",
        kind: Kind::Number { min: 100, max: u32::MAX as i64 },
        unit: "pages/s",
        default: "200; MySQL 8.4: 10000",
        meaning: "How many pages a second InnoDB flushes in the background, and by how much it does when \
            idle.",
        trap: "It is not the limit of the device: set to the peak IOPS, it wears the device out. \
               Above innodb_io_capacity_max it is cut down to that.",
        rank: rank::SCHEDULERS_OWN,
        ..MYSQL
    },
    Spec {
        setting: "innodb_max_dirty_pages_pct",
        kind: Kind::Number { min: 0, max: 99 },
        unit: "%",
        default: "90",
        meaning: "Share of the buffer pool above which dirty pages are flushed hard.",
        ..MYSQL
    },
    Spec {
        setting: "innodb_max_dirty_pages_pct_lwm",
        kind: Kind::Number { min: 0, max: 99 },
        unit: "%",
        default: "10; MariaDB: 0, which is off",
        meaning: "Share of the buffer pool above which dirty pages are flushed ahead of need.",
        ..MYSQL
    },
    Spec {
        setting: "innodb_adaptive_flushing",
        kind: Kind::Word(&["ON", "OFF"]),
        default: "ON",
        meaning: "Whether the rate of flushing follows the rate at which redo is written.",
        ..MYSQL
    },
    Spec {
        setting: "innodb_lru_scan_depth",
        kind: Kind::Number { min: 100, max: u32::MAX as i64 },
        unit: "pages",
        default: "1024; MariaDB: 1536",
        meaning: "How far the page cleaner looks for pages to free, in each instance of the buffer pool.",
        ..MYSQL
    },
    Spec {
        setting: "innodb_flush_neighbors",
        kind: Kind::Number { min: 0, max: 2 },
        default: "0; MariaDB: 1",
        meaning: "Whether pages beside a dirty one are flushed with it, which helps disks that turn.",
        ..MYSQL
    },
    Spec {
        setting: "innodb_flush_log_at_trx_commit",
        kind: Kind::Number { min: 0, max: 3 },
        default: "1",
        meaning: "Whether a commit waits for its redo to be durable: 1 always, 2 and 0 once a second.",
        risk: Risk::Durability(COMMITS),
        ..MYSQL
    },
    Spec {
        setting: "sync_binlog",
        kind: Kind::Number { min: 0, max: u32::MAX as i64 },
        unit: "commits",
        default: "1; MariaDB: 0",
        meaning: "After how many commits the binary log is made durable; 0 leaves it to the kernel.",
        risk: Risk::Durability(COMMITS),
        ..MYSQL
    },
];

/// Variables of PostgreSQL.
pub const POSTGRES_KNOBS: &[Spec] = &[
    Spec {
        setting: "checkpoint_timeout",
        kind: MINUTES,
        unit: "s",
        default: "300",
        meaning: "Longest time between two checkpoints.",
        ..POSTGRES
    },
    Spec {
        setting: "checkpoint_completion_target",
        kind: Kind::Choice,
        default: "0.9",
        meaning: "Over which share of the time to the next checkpoint the writes of one are spread.",
        ..POSTGRES
    },
    Spec {
        setting: "max_wal_size",
        kind: Kind::Number { min: 2, max: i32::MAX as i64 },
        unit: "MB",
        default: "1024",
        meaning: "How much WAL may grow before a checkpoint begins.",
        ..POSTGRES
    },
    Spec {
        setting: "checkpoint_flush_after",
        kind: PAGES,
        unit: "pages",
        default: "32",
        meaning: "After how many pages a checkpoint asks the kernel to write them out; 0 leaves it to the kernel.",
        trap: "It is PostgreSQL's own control of floods: try it before the kernel's dirty limits.",
        ..POSTGRES
    },
    Spec {
        setting: "backend_flush_after",
        kind: PAGES,
        unit: "pages",
        default: "0",
        meaning: "The same for pages that sessions write themselves.",
        ..POSTGRES
    },
    Spec {
        setting: "bgwriter_flush_after",
        kind: PAGES,
        unit: "pages",
        default: "64",
        meaning: "The same for the background writer.",
        ..POSTGRES
    },
    Spec {
        setting: "bgwriter_delay",
        kind: Kind::Number { min: 10, max: 10_000 },
        unit: "ms",
        default: "200",
        meaning: "How long the background writer rests between two rounds.",
        ..POSTGRES
    },
    Spec {
        setting: "bgwriter_lru_maxpages",
        kind: Kind::Number { min: 0, max: 1_073_741_823 },
        unit: "pages",
        default: "100",
        meaning: "The most pages that the background writer writes in a round; 0 stops it.",
        ..POSTGRES
    },
    Spec {
        setting: "commit_delay",
        kind: Kind::Number { min: 0, max: 100_000 },
        unit: "µs",
        default: "0",
        meaning: "How long a commit waits for others to share its flush with.",
        ..POSTGRES
    },
    Spec {
        setting: "wal_compression",
        kind: Kind::Word(&["on", "off", "pglz", "lz4", "zstd"]),
        default: "off",
        meaning: "Whether whole pages in the WAL are compressed.",
        ..POSTGRES
    },
    Spec {
        setting: "synchronous_commit",
        kind: Kind::Word(&["on", "off", "local", "remote_write", "remote_apply"]),
        default: "on",
        meaning: "Whether a commit waits for its WAL to be durable.",
        risk: Risk::Durability(COMMITS),
        ..POSTGRES
    },
];
