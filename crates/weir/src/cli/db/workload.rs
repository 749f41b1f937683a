//! `weir db prepare`, `run`, `warmup` and `cleanup`.

use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Distribution};
use weir_oltp::Script;

use super::connect::ConnectArgs;
use crate::cli::bench::word;
use crate::output::Format;

const PREPARE_EXAMPLES: &str = "\
Examples:
  weir db prepare --mysql
      1 table of 10,000 rows in the database `weir`
  weir db prepare --mysql=root@db1 --tables 10 --table-size 1000000 --threads 4
  weir db prepare --server postgres://ann@db2/mine
      into a database of your own, which is empty

weir writes only into a database that it has made, or that you name and that is empty or holds \
nothing but its tables.";

const RUN_EXAMPLES: &str = "\
Scripts: read_write, read_only, write_only, point_select, update_index, update_non_index, insert, \
delete, bulk_insert, select_random_points, select_random_ranges (the statements of sysbench's), and \
commit: one small write a transaction.

Examples:
  weir db run --mysql --threads 8 --time 60
      sysbench's oltp_read_write
  weir db run point_select --postgres --threads 16 --keys zipf:0.99
  weir db run --mysql --rate 500 --arrival poisson --warmup 5s
      open loop: stalls show
  weir db run commit --postgres --threads 4
      nothing but commits
  weir db run read_only --server mysql://ann@db1,db2/sbtest
      spread over two servers
  weir db run --script orders.lua --mysql -- --batch=5
      your own sysbench script: trusted code

Times: 500ms, 30s, 5m, 1h; a bare number is seconds. Results go to stdout, progress to stderr.";

const WARMUP_EXAMPLES: &str = "\
Examples:
  weir db warmup --mysql --tables 10";

const CLEANUP_EXAMPLES: &str = "\
Removes the tables that weir made, and the database if weir made that too and nothing else is in \
it.

Examples:
  weir db cleanup --mysql
  weir db cleanup --server postgres://ann@db2/mine";

/// Options of `prepare`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = [PREPARE_EXAMPLES, super::connect::SERVERS].join("\n\n"))]
pub struct PrepareArgs {
    /// For which script; only bulk_insert has tables of its own, one for each of --threads
    #[arg(value_name = "SCRIPT", value_parser = word::<Script>)]
    pub script: Option<Script>,
    /// Where.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Which tables.
    #[command(flatten)]
    pub tables: TableArgs,
    /// Tables filled at the same time [default: 1]
    #[arg(long, value_name = "N", help_heading = "How")]
    pub threads: Option<u32>,
    /// Seed of the rows [default: 0]
    #[arg(long, value_name = "N", help_heading = "How")]
    pub seed: Option<u64>,
}

/// Options of `run`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = [RUN_EXAMPLES, super::connect::SERVERS].join("\n\n"))]
pub struct RunArgs {
    /// What a transaction does [default: read_write]
    #[arg(value_name = "SCRIPT", value_parser = word::<Script>)]
    pub script: Option<Script>,
    /// Run the events of your own Lua script for sysbench instead; options of its own come last, after `--`
    #[arg(long = "script", value_name = "FILE", conflicts_with = "script")]
    pub lua: Option<String>,
    /// Options that the script declares: `-- --orders=10`
    #[arg(last = true, value_name = "SCRIPT-OPTIONS", requires = "lua")]
    pub lua_options: Vec<String>,
    /// Where.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// What and how.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Load no programs into the kernel; they measure the server's syncs and requests
    #[arg(long)]
    pub no_trace: bool,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

/// What describes a workload, for every command that runs one.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkloadArgs {
    /// Which tables.
    #[command(flatten)]
    pub tables: TableArgs,
    /// What a transaction does.
    #[command(flatten)]
    pub mix: MixArgs,
    /// How long and how fast.
    #[command(flatten)]
    pub course: CourseArgs,
}

/// Options of `warmup`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = [WARMUP_EXAMPLES, super::connect::SERVERS].join("\n\n"))]
pub struct WarmupArgs {
    /// Where.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Which tables.
    #[command(flatten)]
    pub tables: TableArgs,
    /// Tables read at the same time [default: 1]
    #[arg(long, value_name = "N", help_heading = "How")]
    pub threads: Option<u32>,
}

/// Options of `cleanup`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = [CLEANUP_EXAMPLES, super::connect::SERVERS].join("\n\n"))]
pub struct CleanupArgs {
    /// Where.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Remove tables that sysbench made, too
    #[arg(long, help_heading = "Tables")]
    pub sysbench_tables: bool,
}

/// Tables, as sysbench has them. Serialised, it has what was typed, by the names of the options.
#[derive(Debug, Clone, Default, clap::Args, serde::Serialize)]
#[command(next_help_heading = "Tables")]
#[serde(rename_all = "kebab-case")]
pub struct TableArgs {
    /// How many: sbtest1, sbtest2, … [default: 1]
    #[arg(long, value_name = "N")]
    pub tables: Option<u32>,
    /// Rows in each [default: 10000]
    #[arg(long, value_name = "N")]
    pub table_size: Option<u64>,
    /// Let the server number the rows [default: true]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub auto_inc: Option<bool>,
    /// Make `id` a secondary index instead of the primary key [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub secondary: Option<bool>,
    /// Make the index on `k` [default: true]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub create_secondary: Option<bool>,
    /// MySQL: the storage engine of the tables [default: innodb]
    #[arg(long, visible_alias = "mysql-storage-engine", value_name = "NAME")]
    pub storage_engine: Option<String>,
    /// Write into tables that sysbench made, too: same names, same columns
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sysbench_tables: bool,
}

/// What a transaction does, as sysbench has it. Serialised, it has what was typed and is not for a user's script too, by the
/// names of the options.
#[derive(Debug, Clone, Default, clap::Args, serde::Serialize)]
#[command(next_help_heading = "Transactions")]
#[serde(rename_all = "kebab-case")]
pub struct MixArgs {
    /// Point selects a transaction [default: 10]
    #[arg(long, value_name = "N")]
    pub point_selects: Option<u32>,
    /// Have range selects at all [default: true]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub range_selects: Option<bool>,
    /// Rows of a range [default: 100]
    #[arg(long, value_name = "N")]
    pub range_size: Option<u32>,
    /// Range selects a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub simple_ranges: Option<u32>,
    /// SELECT SUM a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub sum_ranges: Option<u32>,
    /// SELECT … ORDER BY a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub order_ranges: Option<u32>,
    /// SELECT DISTINCT a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub distinct_ranges: Option<u32>,
    /// Updates of the indexed column a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub index_updates: Option<u32>,
    /// Updates of the other column a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub non_index_updates: Option<u32>,
    /// Pairs of DELETE and INSERT a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub delete_inserts: Option<u32>,
    /// Points of select_random_points [default: 10]
    #[arg(long, value_name = "N")]
    pub random_points: Option<u32>,
    /// Ranges of select_random_ranges [default: 10]
    #[arg(long, value_name = "N")]
    pub number_of_ranges: Option<u32>,
    /// Width of each of these ranges [default: 5]
    #[arg(long, value_name = "N")]
    pub delta: Option<u32>,
    /// Each statement by itself, without BEGIN and COMMIT [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub skip_trx: Option<bool>,
    /// Send values in the text of statements instead of preparing statements in the server
    #[arg(long)]
    #[serde(skip)]
    pub no_prepared: bool,
    /// Which rows are popular: uniform, zipf:THETA, pareto:H, gaussian:DEVIATION or hot:ROWS:ACCESSES [default: uniform]
    #[arg(long, value_name = "DIST", value_parser = word::<Distribution>)]
    pub keys: Option<Distribution>,
    /// Seed of every random choice: the same seed gives the same transactions [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub seed: Option<u64>,
}

/// How long and how fast.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How long and how fast")]
pub struct CourseArgs {
    /// Connections, one thread each [default: 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Stop after this time, counted after warm-up; 0: no limit [default: 10s; none with --transactions]
    #[arg(long, visible_alias = "time", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Stop after this many transactions; 0: no limit [default: 0]
    #[arg(long, visible_alias = "events", value_name = "N")]
    pub transactions: Option<u64>,
    /// Leading time that is run but not counted [default: 0]
    #[arg(long, visible_alias = "warmup-time", value_name = "TIME")]
    pub warmup: Option<Nanos>,
    /// Open loop: start this many transactions a second over all connections, even if earlier ones have not ended
    #[arg(long, value_name = "TPS")]
    pub rate: Option<f64>,
    /// Open loop: constant or poisson distances between starts [default: constant]
    #[arg(long, value_name = "ARRIVAL", value_parser = word::<Arrival>, requires = "rate")]
    pub arrival: Option<Arrival>,
    /// Open loop: later than this after its intended start, a transaction is late [default: 1s]
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub late_after: Option<Nanos>,
    /// Connect again, with pauses, when the server goes away; else the run ends there
    #[arg(long)]
    pub reconnect: bool,
    /// Longest time a statement may take; 0: no limit [default: 0]
    #[arg(long, value_name = "TIME")]
    pub statement_timeout: Option<Nanos>,
}
