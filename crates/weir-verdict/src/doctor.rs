//! The shape of a doctor's report: what it measured, what follows, and what to do about it. It is derived from a
//! record by [`super::report`] and rendered as text, JSON and HTML.

use serde::{Deserialize, Serialize};

use crate::map::LoadMap;
use crate::products::Product;
use crate::sustained::Sustained;
use crate::sustained::fall::Fall;
pub use crate::topic::Topic;
use weir_core::result::record::Class;
use weir_core::units::Bytes;

/// Value of [`DoctorReport::schema`] that this version writes.
pub const SCHEMA: &str = "weir.doctor/1";

/// Everything `weir doctor` says about one target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The record it was derived from.
    pub record_id: String,
    /// Version of weir that measured.
    pub weir_version: String,
    /// The exact command, argument by argument.
    pub command: Vec<String>,
    /// Start, RFC 3339 with offset.
    pub started_at: String,
    /// `quick`, `default` or `thorough`.
    pub mode: String,
    /// Time the whole examination took.
    pub elapsed_ns: u64,
    /// The folder examined.
    pub path: String,
    /// What was read about target and machine before anything was measured, in reading order. The full conditions
    /// are in the record.
    pub facts: Vec<Fact>,
    /// The verdict in one sentence.
    pub headline: Headline,
    /// What was concluded, one topic each, in reading order.
    pub findings: Vec<Finding>,
    /// What to change, the measured first; empty: see `closing`.
    pub advice: Vec<Advice>,
    /// What is to be done, in one sentence: that nothing is, or why nothing is advised.
    #[serde(default)]
    pub closing: String,
    /// Experiments that fit what was found and would tell more than an examination can.
    #[serde(default)]
    pub next: Vec<NextStep>,
    /// What could not be seen or measured, and what weakens the findings.
    pub caveats: Vec<Statement>,
    /// Depth curves.
    pub curves: Vec<Curve>,
    /// Everything measured, in the order it was measured.
    pub measurements: Vec<Measurement>,
    /// The flood and the rescue, where they were tried.
    pub flood: Option<FloodStory>,
    /// Where the time of commits went, where stages could be seen.
    #[serde(default)]
    pub commit_stages: Vec<CommitStages>,
    /// The product whose workload was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Product>,
    /// How long writes keep their rate, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
    /// How reads, writes and commits share the device, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<LoadMap>,
    /// Bars of the product and of the user, and whether they were met.
    pub bars: Vec<BarResult>,
    /// Why the examination ended early, if it did.
    pub ended_early: Option<String>,
}

/// One fact, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// A word or two: `file system`, `scheduler`.
    pub label: String,
    /// The value with its unit.
    pub value: String,
    /// Where it was read: a path, or empty where it is put together from several.
    pub source: String,
}

/// How good something is for a database. The thresholds stand in the sentence that gives the grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Nothing to worry about.
    Good,
    /// Works; some workloads will feel it.
    Fair,
    /// A database will suffer.
    Poor,
    /// Could not be judged.
    Unknown,
}

impl Grade {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Good => "good",
            Grade::Fair => "fair",
            Grade::Poor => "poor",
            Grade::Unknown => "unknown",
        }
    }
}

/// The verdict in one sentence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Headline {
    /// The worst grade among the findings that decide.
    pub grade: Grade,
    /// The sentence.
    pub text: String,
}

/// One conclusion: its sentences, each with evidence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub topic: Topic,
    /// How good that is for a database; absent where the topic is no matter of good or bad.
    pub grade: Option<Grade>,
    /// A few words: `NVMe-like`, `commit p99 4.2 ms`.
    pub summary: String,
    /// The sentences; the first carries the conclusion.
    pub statements: Vec<Statement>,
}

/// A sentence and what it stands on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The sentence.
    pub text: String,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
}

impl Statement {
    /// A sentence with its evidence.
    pub fn new(text: impl Into<String>, evidence: Vec<Evidence>) -> Statement {
        Statement { text: text.into(), evidence }
    }
}

/// One figure behind a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Id of a [`Measurement`], or `fact:` and a path or name.
    pub source: String,
    /// The figure with its unit: `p99 1.23 ms`.
    pub figure: String,
    /// How many operations stand behind it; 0 for facts.
    pub n: u64,
    /// 95 % confidence interval with unit, where there is one: `[720, 790] IOPS`.
    pub interval: Option<String>,
}

/// A change to consider. weir never makes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Advice {
    /// What it concerns.
    pub topic: Topic,
    /// The knob or setting: `vm.dirty_bytes`.
    pub knob: String,
    /// Its value now.
    pub current: String,
    /// The value to try.
    pub proposed: String,
    /// Whether the gain was measured in this run (else it is an experiment to make).
    pub measured: bool,
    /// What it brings, with evidence.
    pub effect: Statement,
    /// What it costs on the other axis, with evidence where measured.
    pub cost: Statement,
    /// What it means for data after a power failure.
    pub durability: String,
    /// How it is undone, in words.
    pub reversibility: String,
    /// The exact command.
    pub command: String,
    /// The exact command that puts it back.
    pub undo: String,
}

/// An experiment to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// What it would tell, in a sentence.
    pub why: String,
    /// The exact command.
    pub command: String,
    /// What for, after `to`: `find the best`.
    pub purpose: String,
}

/// A mean with its 95 % confidence interval over consecutive intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end; equals the mean where fewer than 3 intervals exist.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many intervals.
    pub intervals: u32,
    /// Length of each.
    pub interval_ns: u64,
}

/// Latency of one operation class, from intended start to completion. Quantiles are absent where too few
/// operations stand behind them (300 for p99, 3,000 for p99.9).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Operations.
    pub n: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Longest.
    pub max_ns: u64,
}

/// What one step measured: one class of one job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// Stable within a report: `read-4k-d32`, `commit-16k-t10`.
    pub id: String,
    /// For people: `random reads 4 KiB, depth 32`.
    pub title: String,
    /// The class reported: commit where every write is synced. Of a map's mixture the one of most operations; its figures are
    /// of both.
    pub class: Class,
    /// Size of each operation.
    pub block: Bytes,
    /// Operations in flight per thread.
    pub depth: u32,
    /// Threads.
    pub threads: u32,
    /// Engine that ran it: `io_uring`, `psync`.
    pub engine: String,
    /// Whether O_DIRECT was used.
    pub direct: bool,
    /// Operations per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Latency.
    pub latency: LatencySummary,
    /// Distribution for plots: (low ns, high ns, count), 8 buckets per power of two.
    pub distribution: Vec<(u64, u64, u64)>,
    /// Median of the sync alone, where a commit has a separate one.
    pub sync_p50_ns: Option<u64>,
    /// Share of the time the device had a request in flight, 0..1 (iostat's %util); absent where not seen.
    pub utilization: Option<f64>,
    /// Share of all processors that was busy meanwhile, or of those that weir may use if that is more, 0..1; absent where not seen.
    pub cpu_busy: Option<f64>,
    /// Age of the oldest operation in flight at any interval's end: shows operations that never finished.
    pub oldest_ns_max: u64,
    /// Measured time.
    pub elapsed_ns: u64,
    /// IOPS × mean latency over the requests really in flight; 1 when the measurement is consistent.
    pub little_ratio: Option<f64>,
    /// Latency of the syncs alone, in the steps of a product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<LatencySummary>,
    /// A fall of the rate within a step that does nothing but saturate the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<Fall>,
    /// What the engine noticed.
    pub notes: Vec<String>,
    /// The I/O error that ended it, if any.
    pub error: Option<String>,
}

/// How IOPS and latency follow depth.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Curve {
    /// `read-4k`, `write-4k`, `write-16k`.
    pub id: String,
    /// For people: `random reads 4 KiB, O_DIRECT`.
    pub title: String,
    /// Read or write.
    pub class: Class,
    /// Size of each operation.
    pub block: Bytes,
    /// In ascending depth.
    pub points: Vec<CurvePoint>,
    /// Highest IOPS on the curve.
    pub max_iops: f64,
    /// Smallest depth that reaches 90 % of the highest IOPS.
    pub knee_depth: u32,
    /// Largest depth whose p99 is at most three times that of the smallest depth; absent without enough samples.
    pub p99_depth: Option<u32>,
    /// Whether the curve was seen to flatten (the largest depth brought less than 10 % over the best before).
    pub saturated: bool,
    /// Why deeper queues were not measured, if so.
    pub stopped: Option<String>,
}

/// One depth of a curve.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Operations in flight, all threads.
    pub depth: u32,
    /// Id of the measurement.
    pub measurement: String,
    /// Operations.
    pub n: u64,
    /// Operations per second.
    pub iops: Estimate,
    /// Mean latency.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile; absent with fewer than 300 operations.
    pub p99_ns: Option<u64>,
}

/// Commits while idle, under a flood, and under a flood with the dirty limit lowered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FloodStory {
    /// In the order they ran; times share one clock with the samples.
    pub phases: Vec<FloodPhase>,
    /// About one a second over all phases.
    pub samples: Vec<FloodSample>,
    /// Idle against flood against rescue, one for each number of threads.
    pub effects: Vec<FloodEffect>,
    /// Whether dirty pages came to nine tenths of the background limit, from which on the kernel writes them by itself.
    pub provoked: bool,
    /// Why not, or why there is no rescue phase.
    pub remarks: Vec<String>,
}

/// What happens in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// Commits alone.
    Idle,
    /// The flood alone, while dirty pages build up.
    BuildUp,
    /// Commits under the flood with the machine's own limits.
    Flood,
    /// Commits under the flood with a lower dirty limit.
    Rescue,
    /// Flood stopped; write-back drains.
    Drain,
}

/// A stretch of the timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FloodPhase {
    /// What happens.
    pub kind: PhaseKind,
    /// For people: `flood, vm.dirty_bytes = 15 MB`.
    pub label: String,
    /// Committing threads; 0 where none.
    pub threads: u32,
    /// vm.dirty_bytes in force where weir set it.
    pub dirty_bytes: Option<Bytes>,
    /// Start, on the samples' clock.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// The commits measured in it.
    pub measurement: Option<String>,
    /// Mean rate of the flood in it.
    pub flood_bytes_per_second: Option<f64>,
    /// Whether the flood was ended because commits were still stuck behind it long after their time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// One sample of the timeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FloodSample {
    /// When, since the first phase began.
    pub at_ns: u64,
    /// Dirty pages of the machine, in bytes.
    pub dirty_bytes: u64,
    /// Pages under write-back, in bytes.
    pub writeback_bytes: u64,
    /// Rate of the flood's write(2) calls since the last sample; 0 without a flood.
    pub flood_bytes_per_second: f64,
    /// Rate the device wrote at since the last sample, where it can be seen.
    pub device_bytes_per_second: Option<f64>,
    /// Commits per second since the last sample; absent where none were tried.
    pub commit_iops: Option<f64>,
    /// Age of the oldest commit in flight; absent where none were tried.
    pub oldest_ns: Option<u64>,
}

/// Idle against flood against rescue at one number of threads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FloodEffect {
    /// Committing threads.
    pub threads: u32,
    /// Measurement ids and rates.
    pub idle: EffectSide,
    /// Under the flood, the machine's own limits.
    pub flood: EffectSide,
    /// Under the flood with each lowered limit tried, in ascending dirty_bytes.
    pub rescues: Vec<EffectSide>,
}

/// One side of the comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EffectSide {
    /// Id of the measurement.
    pub measurement: String,
    /// vm.dirty_bytes where weir set it.
    pub dirty_bytes: Option<Bytes>,
    /// Commits per second.
    pub iops: Estimate,
    /// Commits that stand behind it.
    pub n: u64,
    /// Mean latency, of the commits that finished.
    pub mean_ns: f64,
    /// 99th percentile, with at least 300 commits.
    pub p99_ns: Option<u64>,
    /// Longest commit, or the age of the oldest unfinished one if that is longer.
    pub worst_ns: u64,
    /// Whether the longest would have taken longer, had the flood not been ended for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Rate of the flood's write(2) calls beside it; absent when idle.
    pub flood_bytes_per_second: Option<f64>,
    /// What the device wrote meanwhile, commits and flood together; absent where not seen.
    pub device_bytes_per_second: Option<f64>,
}

/// Where the mean time of a step's commits went. The parts are means of the device's requests while the step ran; what
/// a commit does at the same time as its writes or its flush makes them overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommitStages {
    /// Id of the measurement.
    pub measurement: String,
    /// Its title.
    pub title: String,
    /// Commits.
    pub commits: u64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Synchronous writes on the device per commit, the file system's own included; copies that a RAID makes left out.
    pub writes_per_commit: f64,
    /// Flushes per commit; group commit shares them.
    pub flushes_per_commit: f64,
    /// Its writes between request and driver: waiting in the queue.
    pub queue_ns: f64,
    /// Its writes in driver and device.
    pub device_ns: f64,
    /// A flush, the wait for another's flush included.
    pub flush_ns: f64,
    /// The rest: page cache, file system and journal, throttling before the queue, processors.
    pub elsewhere_ns: f64,
}

impl CommitStages {
    /// Queue, device, flush, elsewhere as shares of their sum.
    pub fn shares(&self) -> [f64; 4] {
        let parts = [self.queue_ns, self.device_ns, self.flush_ns, self.elsewhere_ns];
        let sum: f64 = parts.iter().sum();
        parts.map(|part| if sum > 0.0 { part / sum } else { 0.0 })
    }
}

/// A bar that the user stated or a product has, and whether it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BarResult {
    /// As typed: `commit-p99=5ms`.
    pub bar: String,
    /// Whether it was met; absent when it could not be measured.
    pub met: Option<bool>,
    /// The sentence, with evidence.
    pub statement: Statement,
    /// Where the bar comes from; absent where the user stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}
