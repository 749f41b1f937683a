//! What is asked for: tables, transactions, keys, pace.

use serde::{Deserialize, Serialize};

use weir_core::units::Nanos;
use weir_core::workload::spec::{Distribution, Rate};

/// What a transaction does; the names are those of sysbench's scripts without `oltp_`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// Point and range selects, updates, a delete and an insert.
    #[default]
    ReadWrite,
    /// The selects of `read_write`.
    ReadOnly,
    /// The writes of `read_write`.
    WriteOnly,
    /// One row by its key.
    PointSelect,
    /// One update of an indexed column.
    UpdateIndex,
    /// One update of a column without an index.
    UpdateNonIndex,
    /// One new row.
    Insert,
    /// One row less.
    Delete,
    /// New rows without end, many a statement; no transaction of sysbench's other tables.
    BulkInsert,
    /// Rows at several random points of `k`.
    SelectRandomPoints,
    /// Counts over several random ranges of `k`.
    SelectRandomRanges,
    /// One small write a transaction: the purest sync of a database. weir's own.
    Commit,
}

/// A database workload in full; serialises as it stands in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OltpSpec {
    /// What a transaction does.
    pub script: Script,
    /// Tables `sbtest1` … `sbtestN`.
    pub tables: u32,
    /// Rows a table.
    pub table_size: u64,
    /// Point selects a transaction.
    pub point_selects: u32,
    /// Whether `read_write` and `read_only` have range selects at all.
    pub range_selects: bool,
    /// Simple ranges a transaction.
    pub simple_ranges: u32,
    /// `SUM` ranges a transaction.
    pub sum_ranges: u32,
    /// `ORDER BY` ranges a transaction.
    pub order_ranges: u32,
    /// `DISTINCT` ranges a transaction.
    pub distinct_ranges: u32,
    /// Rows a range.
    pub range_size: u32,
    /// Updates of the indexed column a transaction.
    pub index_updates: u32,
    /// Updates of the other column a transaction.
    pub non_index_updates: u32,
    /// Pairs of delete and insert a transaction.
    pub delete_inserts: u32,
    /// Points of `select_random_points`.
    pub random_points: u32,
    /// Ranges of `select_random_ranges`.
    pub number_of_ranges: u32,
    /// Width of each of these ranges.
    pub delta: u32,
    /// Each statement by itself, without BEGIN and COMMIT.
    pub skip_trx: bool,
    /// Let the server number the rows.
    pub auto_inc: bool,
    /// Make `id` a secondary index instead of the primary key.
    pub secondary: bool,
    /// Make the index on `k`.
    pub create_secondary: bool,
    /// MySQL: the storage engine of new tables.
    pub storage_engine: String,
    /// Prepare statements in the server; else the values stand in the text.
    pub prepared: bool,
    /// Which keys.
    pub keys: Distribution,
    /// Connections, one thread each.
    pub threads: u32,
    /// Open loop at so many transactions per second over all threads; absent: closed loop.
    pub rate: Option<Rate>,
    /// Open loop: a transaction that ends later than this after its intended start is late.
    pub late_after: Nanos,
    /// Stop after this time (measured after warm-up); 0: no limit.
    pub duration: Nanos,
    /// Stop after this many transactions; 0: no limit.
    pub transactions: u64,
    /// Leading time that is run but not counted.
    pub warmup: Nanos,
    /// The seed of every random choice.
    pub seed: u64,
    /// Connect again, with back-off, when the server goes away; else the run ends with an error.
    pub reconnect: bool,
    /// The server's codes after which a transaction runs again, besides deadlocks, lock time-outs and serialisation
    /// failures; `all`: every code.
    pub retry_errors: Vec<String>,
    /// Longest time one statement may take before its connection is given up; 0: no limit.
    pub statement_timeout: Nanos,
}

impl Default for OltpSpec {
    /// sysbench's defaults where it has the option.
    fn default() -> Self {
        OltpSpec {
            script: Script::ReadWrite,
            tables: 1,
            table_size: 10_000,
            point_selects: 10,
            range_selects: true,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            skip_trx: false,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            storage_engine: "innodb".to_string(),
            prepared: true,
            keys: Distribution::Uniform,
            threads: 1,
            rate: None,
            late_after: Nanos(1_000_000_000),
            duration: Nanos(10_000_000_000),
            transactions: 0,
            warmup: Nanos(0),
            seed: 0,
            reconnect: false,
            retry_errors: Vec::new(),
            statement_timeout: Nanos(0),
        }
    }
}
