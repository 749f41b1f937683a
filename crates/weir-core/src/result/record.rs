//! The raw record of a run: histograms, intervals and conditions, before any conclusion. Versioned JSON; the
//! schema is described in `docs/reference/record.md`.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::stats::Histogram;
use crate::stats::pool::Kept;
use crate::workload::Job;

/// Value of [`Record::schema`] that this version writes.
pub const SCHEMA: &str = "weir.record/1";

/// One execution of one or more jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// Name in the store: time and a random part; sorts by time.
    pub id: String,
    /// Version of weir that made it.
    pub weir_version: String,
    /// The exact command, argument by argument.
    pub command: Vec<String>,
    /// What kind of run: `bench`, `fileio`, `doctor`.
    pub kind: String,
    /// Start, RFC 3339 with offset.
    pub started_at: String,
    /// Kernel, device stack, settings and other load; documented with the host reader that fills it.
    pub conditions: Value,
    /// Each job's measurement, in the order given.
    pub jobs: Vec<JobRecord>,
    /// Floods that ran beside the jobs.
    pub floods: Vec<FloodRecord>,
    /// What was noticed of the whole run; absent in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Why the run ended early, if it did: `SIGINT`, an I/O error, …
    pub ended_early: Option<String>,
    /// What only its kind of run has, as read from the store; `null` where that is kept in a type of its own
    /// ([`Record::with_extra`]).
    #[serde(default)]
    pub extra: Value,
}

/// A record whose `extra` is kept apart, as the store holds both.
#[derive(Debug, Serialize)]
pub struct WithExtra<'a, E> {
    schema: &'a str,
    id: &'a str,
    weir_version: &'a str,
    command: &'a [String],
    kind: &'a str,
    started_at: &'a str,
    conditions: &'a Value,
    jobs: &'a [JobRecord],
    floods: &'a [FloodRecord],
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
    ended_early: Option<&'a str>,
    extra: &'a E,
}

impl<E> WithExtra<'_, E> {
    /// The record's name in the store.
    pub fn id(&self) -> &str {
        self.id
    }
}

impl Record {
    /// The record with this as its `extra`, borrowed: a tree of JSON beside the typed value would hold it twice.
    pub fn with_extra<'a, E>(&'a self, extra: &'a E) -> WithExtra<'a, E> {
        // Named one by one, so that no field added later is forgotten.
        let Record {
            schema,
            id,
            weir_version,
            command,
            kind,
            started_at,
            conditions,
            jobs,
            floods,
            notes,
            ended_early,
            extra: _,
        } = self;
        WithExtra {
            schema,
            id,
            weir_version,
            command,
            kind,
            started_at,
            conditions,
            jobs,
            floods,
            notes,
            ended_early: ended_early.as_deref(),
            extra,
        }
    }
}

/// The operation classes whose latencies are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Reads.
    Read,
    /// Writes, without any sync that follows.
    Write,
    /// fsync, fdatasync, msync, sync_file_range.
    Sync,
    /// A write together with the sync that makes it durable: what a database waits for.
    Commit,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Class; 4] = [Class::Read, Class::Write, Class::Sync, Class::Commit];

    /// The name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Sync => "sync",
            Class::Commit => "commit",
        }
    }
}

/// What one job measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct JobRecord {
    /// The job as it ran, defaults filled in.
    pub job: Job,
    /// Which engine it was and what of it the kernel granted.
    pub engine: EngineRecord,
    /// Measured time (after warm-up, before the final sync).
    pub elapsed_ns: u64,
    /// Everything measured, by class; classes without operations are absent.
    pub classes: BTreeMap<Class, ClassRecord>,
    /// Consecutive intervals (1 s; longer in very long runs, so that memory stays bounded).
    pub intervals: Vec<Interval>,
    /// Each thread's share.
    pub threads: Vec<ThreadRecord>,
    /// Syncs at the end of the run, apart from throughput; absent if none were asked for.
    pub final_sync: Option<FinalSync>,
    /// Open loop only.
    pub lateness: Option<Lateness>,
    /// CPU time while measuring.
    pub cpu: CpuRecord,
    /// What the engine or runner noticed: depth without effect, punting, errors…
    pub notes: Vec<Note>,
    /// The first I/O error, if any ended the job.
    pub error: Option<String>,
    /// Verification, where asked for.
    pub verify: Option<VerifyRecord>,
    /// Age of each of the record's floods when measuring began, in their order; empty where there were none, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flood_ages_ns: Vec<u64>,
}

/// Totals of one class.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ClassRecord {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Latency from intended start to completion.
    pub latency: Histogram,
}

/// An engine and what became of its options.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EngineRecord {
    /// psync, libaio, io_uring, mmap or null.
    pub name: String,
    /// Options that took effect: `fixed-buffers`, `DEFER_TASKRUN`, …
    pub granted: Vec<String>,
    /// Options that were tried and refused, with the kernel's answer.
    pub refused: Vec<String>,
    /// Most completions one call waits for.
    pub batch: u32,
    /// Most operations seen in flight at once, per thread.
    pub in_flight_max: u32,
    /// Time-weighted mean of operations in flight, all threads, measured independently of the latencies.
    pub in_flight_mean: f64,
    /// How long handing each step to the kernel took, warm-up included; only where that was asked for. With libaio as
    /// sysbench does it: one step a call, and who fills the depth waits for any completion. No latency of the storage,
    /// though sysbench prints it as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submits: Option<Histogram>,
}

/// One interval of a run; `K` is what latencies are distinguished by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Ord + Serialize", deserialize = "K: Ord + Deserialize<'de>"))]
pub struct Interval<K = Class> {
    /// Start, since the start of measuring.
    pub start_ns: u64,
    /// Length.
    pub len_ns: u64,
    /// What finished in it, by class.
    pub classes: BTreeMap<K, IntervalClass>,
    /// Age of the oldest operation in flight at the end of the interval: a stall shows while it happens.
    pub oldest_ns: u64,
    /// Operations in flight at the end of the interval.
    pub in_flight: u32,
}

impl<K> Default for Interval<K> {
    fn default() -> Self {
        Interval { start_ns: 0, len_ns: 0, classes: BTreeMap::new(), oldest_ns: 0, in_flight: 0 }
    }
}

/// What one class did in one interval.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct IntervalClass {
    /// Operations finished.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Coarse distribution for heat maps: (low, high, count), 8 buckets per power of two.
    #[serde(deserialize_with = "upright")]
    pub coarse: Vec<(u64, u64, u64)>,
}

impl IntervalClass {
    /// What is known of the latencies.
    pub fn kept(&self) -> Kept<'_> {
        Kept { coarse: &self.coarse, exact_ns: [self.p50_ns, self.p95_ns, self.p99_ns] }
    }
}

/// Buckets that end where they begin or later: what is computed of others is nonsense, or no number.
fn upright<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u64, u64, u64)>, D::Error> {
    let buckets = Vec::<(u64, u64, u64)>::deserialize(from)?;
    match buckets.iter().find(|(low, high, _)| low > high) {
        Some((low, high, _)) => Err(D::Error::custom(format!("a bucket from {low} to {high}"))),
        None => Ok(buckets),
    }
}

/// One thread's share of a job.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Operations finished, warm-up included (a commit counts as its write and its sync).
    pub operations: u64,
    /// Time between the thread's first start and last completion.
    pub busy_ns: u64,
    /// What it finished, by class; warm-up included, as above.
    #[serde(default)]
    pub classes: BTreeMap<Class, ThreadClass>,
}

/// What one thread did of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadClass {
    /// Operations finished.
    pub count: u64,
    /// Sum of their latencies.
    pub sum_ns: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// The syncs at the end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalSync {
    /// Files synced.
    pub files: u32,
    /// Time for all of them.
    pub total_ns: u64,
    /// The first failure.
    pub error: Option<String>,
}

/// How an open loop kept its schedule.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Operations whose intended start lay inside the run.
    pub intended: u64,
    /// Of these, finished later than [`Job::late_after`] after their intended start, or not at all.
    pub late: u64,
    /// Operations that were due but had not started when the run ended.
    pub not_started: u64,
    /// Longest distance from intended to real start.
    pub start_delay_max_ns: u64,
    /// Distances from intended to real start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay: Option<Histogram>,
    /// Starts that were late because as many operations as the depth allows were in flight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_for_depth: u64,
}

/// CPU time while measuring.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CpuRecord {
    /// This process, user.
    pub process_user_ns: u64,
    /// This process, system.
    pub process_system_ns: u64,
    /// The whole machine, all modes but idle and iowait: kernel workers and other processes included.
    pub machine_busy_ns: u64,
    /// Processors online. In records without [`CpuRecord::allowed`]: those that this process may use.
    pub processors: u32,
    /// Processors that this process may use, by its affinity and its cgroup's quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<u32>,
}

impl CpuRecord {
    /// Share of all processors that was busy.
    pub fn machine_share(&self, elapsed_ns: u64) -> f64 {
        share(self.machine_busy_ns, elapsed_ns, self.processors)
    }

    /// Processors that this process may use.
    pub fn usable(&self) -> u32 {
        self.allowed.unwrap_or(self.processors).min(self.processors)
    }

    /// This process's share of so many threads' processors, of which it has no more than it may use.
    pub fn process_share(&self, elapsed_ns: u64, threads: u32) -> f64 {
        share(self.process_user_ns + self.process_system_ns, elapsed_ns, threads.min(self.usable()))
    }
}

fn share(busy_ns: u64, elapsed_ns: u64, processors: u32) -> f64 {
    busy_ns as f64 / elapsed_ns.max(1) as f64 / f64::from(processors.max(1))
}

/// Something a reader of the result must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Stable key, such as `depth-without-effect`.
    pub key: String,
    /// The sentence.
    pub text: String,
}

/// What verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyRecord {
    /// Blocks checked.
    pub checked: u64,
    /// Blocks never written by this run, which cannot be checked.
    pub unwritten: u64,
    /// Writes left out because another write of the same block was in flight, and which of the two would last could
    /// not have been told.
    #[serde(default)]
    pub skipped: u64,
    /// Older generation than was last written.
    pub stale: u64,
    /// Checksum does not match the content.
    pub torn: u64,
    /// Content belongs to another offset or file.
    pub misplaced: u64,
    /// The first few findings: file, offset and what was wrong.
    pub examples: Vec<String>,
}

/// A bulk writer that ran beside the jobs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FloodRecord {
    /// As typed.
    pub spec: String,
    /// Bytes handed to the page cache.
    pub bytes: u64,
    /// Time it ran.
    pub elapsed_ns: u64,
    /// Rate in each interval, bytes per second.
    pub bytes_per_second: Vec<f64>,
    /// Why it ended: `stopped`, `size reached`, an error.
    pub ended: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
