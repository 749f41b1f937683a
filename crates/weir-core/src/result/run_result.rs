//! The result of a run: what its record says, with the self-checks. Derived, never measured; the JSON schema is
//! described in `docs/reference/record.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::record::{Class, FinalSync, Note, VerifyRecord};
use crate::stats::little::Little;
use crate::stats::quantile::quantile;
use crate::stats::steady::Steady;
use crate::stats::warmup::Warmup;
use crate::stats::{Histogram, Quantile};

/// Value of [`RunResult::schema`] that this version writes.
pub const SCHEMA: &str = "weir.result/1";

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The record's name in the store.
    pub id: String,
    /// Where the raw record lies; filled in by whoever has put it there.
    pub record_path: Option<String>,
    /// What kind of run: `bench`, `fileio`, `doctor`.
    pub kind: String,
    /// Start, RFC 3339 with offset.
    pub started_at: String,
    /// Each job's result, in the order of the record.
    pub jobs: Vec<JobResult>,
    /// Floods that ran beside the jobs.
    pub floods: Vec<FloodResult>,
    /// Why the run ended early, if it did.
    pub ended_early: Option<String>,
    /// What a reader must know about the whole run.
    pub notes: Vec<Note>,
}

/// The result of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// Measured time.
    pub elapsed_ns: u64,
    /// Reads, writes and syncs together; a commit counts as the write and the sync it is made of.
    pub total: Total,
    /// By class; classes without operations are absent.
    pub classes: BTreeMap<Class, ClassResult>,
    /// The class that the headline, steady state and regimes are judged on: commit if there are any, else the one
    /// with most operations. `null` without operations.
    pub headline: Option<Class>,
    /// Leading intervals that differ from the rest (MSER-5 on operations per second).
    pub warmup: WarmupResult,
    /// Whether five rounds after the warm-up were steady.
    pub steady: SteadyResult,
    /// Spans of different throughput, in order; a single one where nothing changed.
    pub regimes: Vec<Regime>,
    /// Little's law; `null` where it does not apply (open loop) or nothing was measured in flight.
    pub little: Option<Little>,
    /// CPU time.
    pub cpu: CpuResult,
    /// Open loop only: how the schedule was kept.
    pub lateness: Option<LatenessResult>,
    /// The longest that any operation was seen waiting; `null` without intervals.
    pub stall: Option<Stall>,
    /// Syncs at the end, apart from throughput.
    pub final_sync: Option<FinalSync>,
    /// Verification, where asked for.
    pub verify: Option<VerifyRecord>,
    /// The I/O error that ended the job.
    pub error: Option<String>,
    /// What a reader must know about this job.
    pub notes: Vec<Note>,
}

/// Operations of all kinds together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// Reads, writes and syncs.
    pub operations: u64,
    /// Of these per second.
    pub iops: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Of these per second.
    pub bytes_per_second: f64,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Operations finished.
    pub count: u64,
    /// Operations failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latency: LatencyResult,
}

/// How long operations of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Mean latency, from intended start to completion.
    pub mean_ns: f64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Median.
    pub p50: Quantile,
    /// 90th percentile.
    pub p90: Quantile,
    /// 95th percentile.
    pub p95: Quantile,
    /// 99th percentile.
    pub p99: Quantile,
    /// 99.9th percentile.
    pub p99_9: Quantile,
    /// 99.99th percentile.
    pub p99_99: Quantile,
}

/// The warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmupResult {
    /// What MSER-5 says.
    pub rule: Warmup,
    /// Leading time that it would leave out.
    pub cut_ns: u64,
    /// Operations per second in that time over operations per second after it; 1 where nothing is cut.
    pub rate_ratio: f64,
}

/// The steady state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyResult {
    /// Judged over five rounds of equal length at the end of the run.
    Judged {
        /// Operations per second.
        iops: Steady,
        /// p99 of the headline class; `null` with fewer than 300 samples in a round.
        p99: Option<Steady>,
        /// Both hold; in an open loop, whose rate is given, p99 does.
        holds: bool,
    },
    /// Fewer than five intervals after the warm-up, or, in an open loop, too few samples.
    TooShort,
}

/// A span of constant throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regime {
    /// Start, since the start of measuring.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Operations of the headline class per second.
    pub iops: f64,
    /// Bytes of the headline class per second.
    pub bytes_per_second: f64,
    /// Median latency of the headline class, within a bucket of 1/8 octave; `null` without distribution.
    pub p50_ns: Option<u64>,
    /// 99th percentile, likewise; `null` with fewer than 300 samples.
    pub p99_ns: Option<u64>,
}

/// CPU time while measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuResult {
    /// This process, user and system, per operation.
    pub process_ns_per_operation: f64,
    /// The whole machine, kernel workers and other processes included, per operation; 0 where the run was too short
    /// (below 0.5 s) to see it.
    pub machine_ns_per_operation: f64,
    /// Processors this process kept busy.
    pub process_busy: f64,
    /// Processors that were busy, whoever used them; likewise.
    pub machine_busy: f64,
    /// Processors there are.
    pub processors: u32,
}

/// How an open loop kept its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatenessResult {
    /// Operations whose intended start lay inside the run.
    pub intended: u64,
    /// Of these, late.
    pub late: u64,
    /// `late / intended`.
    pub late_share: f64,
    /// An operation is late when it finishes longer than this after its intended start.
    pub late_after_ns: u64,
    /// Due but not started when the run ended.
    pub not_started: u64,
    /// Longest distance from intended to real start.
    pub start_delay_max_ns: u64,
    /// Distances from intended to real start; `null` in records of 0.1.0.
    pub start_delay: Option<StartDelayResult>,
    /// Starts that were late because as many operations as the depth allows were in flight.
    #[serde(default)]
    pub waited_for_depth: u64,
}

/// How far real starts were behind intended ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StartDelayResult {
    /// Median.
    pub p50: Quantile,
    /// 99th percentile.
    pub p99: Quantile,
    /// Longest.
    pub max_ns: u64,
    /// Share of the starts that were more than [`START_IS_LATE_NS`] behind.
    pub late_share: f64,
    /// [`START_IS_LATE_NS`] where that holds.
    pub late_after_ns: u64,
}

/// A start this far behind its time is late: what a machine that is not busy keeps to.
pub const START_IS_LATE_NS: u64 = 100_000;

/// A schedule counts as kept where at most this share of what was due ended late or did not start.
pub const LATE_SHARE_MAX: f64 = 0.01;

/// The longest wait seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Age of the oldest operation in flight.
    pub oldest_ns: u64,
    /// When it was seen, since the start of measuring.
    pub at_ns: u64,
}

/// A flood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FloodResult {
    /// As typed.
    pub spec: String,
    /// Bytes handed to the page cache.
    pub bytes: u64,
    /// Of these per second.
    pub bytes_per_second: f64,
    /// Why it ended.
    pub ended: String,
}

impl LatencyResult {
    /// The figures of a histogram.
    pub fn of(latency: &Histogram) -> LatencyResult {
        let at = |q| quantile(latency, q);
        LatencyResult {
            mean_ns: latency.mean().unwrap_or(0.0),
            min_ns: latency.min().unwrap_or(0),
            max_ns: latency.max().unwrap_or(0),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
        }
    }

    /// The first percentile up to p99.9 that has too few samples behind it: its name, how many it has and needs.
    pub fn too_few(&self) -> Option<(&'static str, u64, u64)> {
        let all = [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
        ];
        all.into_iter().find_map(|(name, quantile)| match quantile {
            Quantile::Insufficient { have, need } => Some((name, have, need)),
            Quantile::Value { .. } => None,
        })
    }
}

impl JobResult {
    /// The class of the headline with its name.
    pub fn headline(&self) -> Option<(Class, &ClassResult)> {
        let class = self.headline?;
        self.classes.get(&class).map(|result| (class, result))
    }
}
