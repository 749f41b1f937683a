//! The result of a run of transactions: what its record says, with the self-checks. Derived, never measured; the JSON
//! schema is described in `docs/reference/record.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::durability::Durability;
use super::limits::Diagnosis;
use super::processors::Processors;
use super::record::ServerRecord;
use super::{Kind, OltpSpec};
use weir_core::result::record::Note;
use weir_core::result::run_result::{
    CpuResult, LatencyResult, LatenessResult, Regime, Stall, SteadyResult, WarmupResult,
};
use weir_core::stats::Histogram;

/// Value of [`OltpResult::schema`] that this version writes.
pub const SCHEMA: &str = "weir.oltp-result/1";

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OltpResult {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The record's name in the store.
    pub id: String,
    /// Where the raw record lies; filled in by whoever has put it there.
    pub record_path: Option<String>,
    /// Start, RFC 3339 with offset.
    pub started_at: String,
    /// What was asked for.
    pub spec: OltpSpec,
    /// A user's script instead of `spec.script`.
    pub script_path: Option<String>,
    /// Who answered.
    pub server: ServerRecord,
    /// Measured time.
    pub elapsed_ns: u64,
    /// Whole transactions, from their intended start.
    pub transactions: KindResult,
    /// Statements by kind; those that did not occur are absent.
    pub statements: BTreeMap<Kind, KindResult>,
    /// Share of the transactions' time outside statements: work that a script marks as its own, and the wait between
    /// attempts. `null` in an open loop, where transactions also wait for their connection.
    pub rest_time_share: Option<f64>,
    /// Statements as sysbench counts them.
    pub queries: Queries,
    /// What went wrong and was borne.
    pub errors: Errors,
    /// How the connections fared.
    pub connections: Connections,
    /// Leading intervals that differ from the rest (MSER-5 on transactions per second).
    pub warmup: WarmupResult,
    /// Whether five rounds after the warm-up were steady.
    pub steady: SteadyResult,
    /// Spans of different throughput, in order; `iops` are transactions per second.
    pub regimes: Vec<Regime>,
    /// CPU time; an operation is a transaction, the process is the client.
    pub cpu: CpuResult,
    /// The client's share of all CPU time that the machine spent; `null` where that is not known.
    pub client_cpu_share: Option<f64>,
    /// Open loop only: how the schedule was kept.
    pub lateness: Option<LatenessResult>,
    /// The longest that any transaction was seen waiting.
    pub stall: Option<Stall>,
    /// The error that ended the run.
    pub error: Option<String>,
    /// Why the run ended early, if it did.
    pub ended_early: Option<String>,
    /// Who used the processors, as every sentence here has it; `null` where nothing tells.
    #[serde(default)]
    pub processors: Option<Processors>,
    /// Whether commits were durable, by what was promised and what was seen.
    pub durability: Durability,
    /// What limited the run; `null` where server and machine were not watched.
    #[serde(default)]
    pub verdict: Option<Diagnosis>,
    /// What a reader must know.
    pub notes: Vec<Note>,
}

/// Transactions, or one kind of statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindResult {
    /// Finished.
    pub count: u64,
    /// Failed.
    pub errors: u64,
    /// Rows read or changed.
    pub rows: u64,
    /// Finished per second.
    pub per_second: f64,
    /// Share of the time of all transactions (open loop: of all statements).
    pub time_share: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latency: LatencyResult,
}

impl KindResult {
    /// Figures of a histogram; errors, rows and shares are the caller's.
    pub fn of(latency: &Histogram, elapsed_ns: u64) -> KindResult {
        KindResult {
            count: latency.count(),
            errors: 0,
            rows: 0,
            per_second: weir_core::result::series::per_second(latency.count(), elapsed_ns),
            time_share: 0.0,
            latency: LatencyResult::of(latency),
        }
    }
}

/// Statements as sysbench counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Reading.
    pub read: u64,
    /// Writing.
    pub write: u64,
    /// Transaction control and the rest.
    pub other: u64,
    /// All of them per second.
    pub per_second: f64,
}

impl Queries {
    /// All of them.
    pub fn total(self) -> u64 {
        self.read + self.write + self.other
    }
}

/// What went wrong and was borne.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// By the server's code.
    pub ignored: BTreeMap<String, u64>,
    /// Transactions that took more than one attempt; their latency holds all attempts.
    pub retried: u64,
    /// Share of transactions that did.
    pub retried_share: f64,
    /// Connections made again.
    pub reconnects: u64,
}

/// How the connections fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// How many.
    pub count: usize,
    /// Transactions of the one that finished fewest.
    pub fewest: u64,
    /// Transactions of the one that finished most.
    pub most: u64,
    /// Closed loop: share of the connections' time that was spent in transactions; near 1 where the measuring itself
    /// costs nothing.
    pub busy_share: Option<f64>,
}
