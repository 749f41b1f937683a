//! What each product writes, as it writes it, and how fast it must be: data, one file a product. The doctor runs the
//! steps (`weir doctor --for`), [`crate::rules::product`] holds the checks against what was measured.
//!
//! A **transaction** is a list of writes in order, some of them followed by a sync: what one commit of the product waits
//! for. One thread issues one after another.

mod etcd;
pub(crate) mod innodb;
mod kafka;
pub(crate) mod postgres;
mod rocksdb;
pub(crate) mod sqlite;

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_core::workload::spec::SyncMode;

use crate::topic::{COMMIT_FAIR_NS, COMMIT_GOOD_NS, Topic};

/// A program that keeps its data on the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// MySQL with InnoDB and its binary log.
    Mysql,
    /// MariaDB with InnoDB and its binary log.
    Mariadb,
    /// PostgreSQL.
    Postgres,
    /// etcd.
    Etcd,
    /// Apache Kafka.
    Kafka,
    /// RocksDB.
    Rocksdb,
    /// SQLite.
    Sqlite,
}

/// One thing that a product does, measured by itself or beside another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Stable, and unlike that of any other product's step: `etcd-wal`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// What is run.
    pub load: Load,
    /// What runs beside it.
    pub beside: Option<Beside>,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Transactions, one after another.
    Transactions(Transaction),
    /// Sequential reads of 1 MiB of the test file, past the page cache.
    BulkRead,
}

/// Something that runs beside a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// For people.
    pub title: &'static str,
    /// What is run.
    pub load: Load,
    /// How often a second; absent: as often as it can.
    pub per_second: Option<u32>,
}

/// A list of writes that belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transaction {
    /// The files they go to.
    pub files: &'static [Ground],
    /// The writes, in order.
    pub writes: &'static [Write],
    /// How the files are opened.
    pub open: Open,
}

/// What a file is when it is first written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Blocks that were written before, as in a log that is used again.
    Written,
    /// So many bytes that the file system has set aside and not written (fallocate).
    Allocated(u64),
    /// An empty file that grows by each write, up to so many bytes; then it is written over.
    Growing(u64),
}

/// How files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Through the page cache.
    Plain,
    /// O_DSYNC: durable when a write returns.
    Dsync,
    /// O_SYNC: the same, with all metadata.
    Sync,
    /// O_DIRECT.
    Direct,
    /// O_DIRECT and O_DSYNC.
    DirectDsync,
    /// O_DIRECT and O_SYNC.
    DirectSync,
}

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Index of the file.
    pub file: usize,
    /// Where it goes.
    pub order: Order,
    /// Its size in bytes; several are taken in turn.
    pub sizes: &'static [u32],
    /// The sync of its file that follows it.
    pub sync: Option<SyncMode>,
    /// How many such writes in a row; the sync follows the last.
    pub times: u32,
    /// A write that begins a block of so many bytes is padded to its end; 0: none is.
    pub ahead: u32,
}

/// Where a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Behind the last one of its file.
    Append,
    /// At a random block of the file.
    Random,
    /// At the beginning of the file.
    Start,
}

/// Something that must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// Stable name: `wal-fsync-p99`.
    pub name: &'static str,
    /// In words, without the figure: `99 % of WAL syncs`.
    pub what: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// The step it is measured by.
    pub step: &'static str,
    /// What must hold.
    pub demand: Demand,
    /// Where the figure comes from.
    pub source: Source,
}

/// A figure to reach, and a better one that calls for no remark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// 99th percentile of the sync alone, in ns, at most.
    SyncP99 {
        /// The bar.
        bar: u64,
        /// Good.
        good: u64,
    },
    /// 99th percentile of the whole transaction, in ns, at most.
    TransactionP99 {
        /// The bar.
        bar: u64,
        /// Good.
        good: u64,
    },
    /// Transactions a second, at least.
    Rate {
        /// The bar.
        bar: f64,
        /// Good.
        good: f64,
        /// How many units one transaction is: pages, records.
        units: f64,
        /// Their name.
        unit: &'static str,
    },
    /// Bytes a second, at least.
    Bytes {
        /// The bar.
        bar: f64,
        /// Good.
        good: f64,
    },
    /// Share of the rate of another step that remains, at least.
    Kept {
        /// The bar.
        bar: f64,
        /// Good.
        good: f64,
        /// The step that is held against it.
        of: &'static str,
    },
}

/// Where a bar comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The product's documentation states it as what storage must reach.
    Bar(&'static str),
    /// The product's documentation has the figure, and it is weir that makes a bar of it.
    Figure(&'static str),
    /// The product publishes none: weir's own grade.
    Own(&'static str),
}

impl Source {
    /// In words.
    pub fn text(self) -> String {
        match self {
            Source::Bar(document) => format!("published bar: {document}"),
            Source::Figure(document) => format!("published figure, a bar by weir: {document}"),
            Source::Own(why) => format!("weir's own grade: {why}"),
        }
    }
}

/// p99 of commits that a product without a published bar is held to, as the default examination's commits are.
const OWN_COMMIT: Demand = Demand::TransactionP99 { bar: COMMIT_FAIR_NS, good: COMMIT_GOOD_NS };

impl Product {
    /// All of them.
    pub const ALL: [Product; 7] = [
        Product::Mysql,
        Product::Mariadb,
        Product::Postgres,
        Product::Etcd,
        Product::Kafka,
        Product::Rocksdb,
        Product::Sqlite,
    ];

    /// The name that is typed.
    pub fn name(self) -> &'static str {
        match self {
            Product::Mysql => "mysql",
            Product::Mariadb => "mariadb",
            Product::Postgres => "postgres",
            Product::Etcd => "etcd",
            Product::Kafka => "kafka",
            Product::Rocksdb => "rocksdb",
            Product::Sqlite => "sqlite",
        }
    }

    /// The name as its makers write it.
    pub fn title(self) -> &'static str {
        match self {
            Product::Mysql => "MySQL",
            Product::Mariadb => "MariaDB",
            Product::Postgres => "PostgreSQL",
            Product::Etcd => "etcd",
            Product::Kafka => "Kafka",
            Product::Rocksdb => "RocksDB",
            Product::Sqlite => "SQLite",
        }
    }

    /// What is run, in order.
    pub fn steps(self) -> &'static [Step] {
        match self {
            Product::Mysql | Product::Mariadb => innodb::STEPS,
            Product::Postgres => postgres::STEPS,
            Product::Etcd => etcd::STEPS,
            Product::Kafka => kafka::STEPS,
            Product::Rocksdb => rocksdb::STEPS,
            Product::Sqlite => sqlite::STEPS,
        }
    }

    /// What must hold, the most important first.
    pub fn checks(self) -> &'static [Check] {
        match self {
            Product::Mysql => innodb::MYSQL,
            Product::Mariadb => innodb::MARIADB,
            Product::Postgres => postgres::CHECKS,
            Product::Etcd => etcd::CHECKS,
            Product::Kafka => kafka::CHECKS,
            Product::Rocksdb => rocksdb::CHECKS,
            Product::Sqlite => sqlite::CHECKS,
        }
    }

    /// Bytes that its files take beside the test file, at most.
    pub fn extra_bytes(self) -> u64 {
        let of = |load: Load| match load {
            Load::Transactions(t) => t.files.iter().map(|ground| ground.bytes()).sum(),
            Load::BulkRead => 0u64,
        };
        let sizes = self.steps().iter().map(|s| of(s.load) + s.beside.map_or(0, |b| of(b.load)));
        sizes.max().unwrap_or(0)
    }
}

impl FromStr for Product {
    type Err = String;

    fn from_str(text: &str) -> Result<Product, String> {
        let known = Product::ALL.map(Product::name).join(", ");
        let found = Product::ALL.into_iter().find(|product| product.name() == text);
        found.ok_or_else(|| format!("expected one of {known}, got `{text}`"))
    }
}

impl Ground {
    /// Bytes of a file of its own.
    pub fn bytes(self) -> u64 {
        match self {
            Ground::Written => 0,
            Ground::Allocated(bytes) | Ground::Growing(bytes) => bytes,
        }
    }
}

impl Open {
    /// Whether writes go past the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Open::Direct | Open::DirectDsync | Open::DirectSync)
    }
}

impl Write {
    const fn append(file: usize, sizes: &'static [u32], sync: Option<SyncMode>) -> Write {
        Write { file, order: Order::Append, sizes, sync, times: 1, ahead: 0 }
    }

    const fn random(file: usize, sizes: &'static [u32], times: u32, sync: Option<SyncMode>) -> Write {
        Write { file, order: Order::Random, sizes, sync, times, ahead: 0 }
    }
}

impl Transaction {
    /// Sizes of its smallest and its largest write.
    pub fn sizes(&self) -> (u32, u32) {
        let padded = |write: &Write| Some(write.ahead).filter(|ahead| *ahead > 0);
        let all = || self.writes.iter().flat_map(|w| w.sizes.iter().copied().chain(padded(w)));
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }

    /// Operations that a run counts as commits in one transaction: writes with a sync, or all where each is durable.
    pub fn commits(&self) -> u32 {
        let durable = !matches!(self.open, Open::Plain | Open::Direct);
        let of = |w: &Write| if durable { w.times } else { u32::from(w.sync.is_some()) };
        self.writes.iter().map(of).sum()
    }

    /// Writes in one transaction.
    pub fn operations(&self) -> u32 {
        self.writes.iter().map(|write| write.times).sum()
    }

    /// Its only write, where it has one.
    pub fn is_single(&self) -> bool {
        self.operations() == 1
    }
}

fn step_of(id: &str) -> Option<&'static Step> {
    Product::ALL.into_iter().flat_map(|product| product.steps()).find(|step| step.id == id)
}

/// The title of a step, or of what runs beside it.
pub fn title_of(id: &str) -> Option<&'static str> {
    match id.strip_suffix(BESIDE) {
        Some(id) => step_of(id)?.beside.map(|beside| beside.title),
        None => step_of(id).map(|step| step.title),
    }
}

/// The transaction that a step times, if it does; not that of what runs beside it.
pub fn transaction_of(id: &str) -> Option<&'static Transaction> {
    match &step_of(id)?.load {
        Load::Transactions(transaction) => Some(transaction),
        Load::BulkRead => None,
    }
}

/// What the id of a measurement ends in that ran beside a step.
pub const BESIDE: &str = "-beside";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_others_are_refused_with_what_is_known() {
        for product in Product::ALL {
            assert_eq!(product.name().parse(), Ok(product));
        }
        let error = "oracle".parse::<Product>().unwrap_err();
        assert!(error.contains("mysql, mariadb, postgres") && error.contains("`oracle`"), "{error}");
    }

    /// The data hold together: a check names a step of its product, a write a file of its transaction.
    #[test]
    fn the_data_hold_together() {
        for product in Product::ALL {
            let known = |id: &str| product.steps().iter().any(|step| step.id == id);
            assert!(!product.checks().is_empty() && product.extra_bytes() <= 1 << 30, "{product:?}");
            for check in product.checks() {
                assert!(known(check.step), "{}: {}", check.name, check.step);
                let Demand::Kept { of, .. } = check.demand else { continue };
                assert!(known(of), "{}: {of}", check.name);
            }
            for step in product.steps() {
                assert_eq!(title_of(step.id), Some(step.title));
                let loads = [Some(step.load), step.beside.map(|beside| beside.load)];
                for load in loads.into_iter().flatten() {
                    if let Load::Transactions(transaction) = load {
                        check_transaction(step.id, &transaction);
                    }
                }
            }
        }
    }

    fn check_transaction(id: &str, transaction: &Transaction) {
        assert!(transaction.commits() > 0, "{id}: nothing is made durable");
        for write in transaction.writes {
            assert!(write.file < transaction.files.len() && write.times > 0, "{id}");
            let aligned = write.sizes.iter().all(|size| size % 4096 == 0);
            assert!(!write.sizes.is_empty() && (aligned || !transaction.open.is_direct()), "{id}");
            // None begins in one block and ends in the next.
            assert!(write.ahead == 0 || write.sizes.iter().sum::<u32>() == write.ahead, "{id}");
            let grows = matches!(transaction.files[write.file], Ground::Growing(_));
            assert!(!grows || write.order != Order::Random, "{id}: random writes need written blocks");
        }
    }
}
