//! From record to result. Pure: the same record gives the same result, on any machine, years later.

use std::ops::Range;

use crate::result::record::{
    Class, ClassRecord, CpuRecord, FloodRecord, Interval, JobRecord, Lateness, Record,
};
use crate::result::run_result::{
    ClassResult, CpuResult, FloodResult, JobResult, LatencyResult, LatenessResult, Regime, RunResult, SCHEMA,
    START_IS_LATE_NS, Stall, StartDelayResult, SteadyResult, Total, WarmupResult,
};
use crate::result::series::{Series, per_second};
use crate::result::warnings;
use crate::stats::Histogram;
use crate::stats::quantile::{needed, quantile};
use crate::stats::steady::{self, ROUNDS};
use crate::stats::{change, little, warmup};

/// The kernel counts the machine's CPU time in steps of 10 ms on each processor: over less than this, steps are all
/// one sees.
const MACHINE_CPU_MIN_NS: u64 = 500_000_000;

/// Seed of the permutation tests; fixed, so that a record always gives the same result.
const SEED: u64 = 0x7765_6972;

/// Derives the result of a run from its record.
pub fn derive(record: &Record) -> RunResult {
    let jobs: Vec<JobResult> = record.jobs.iter().map(job_result).collect();
    RunResult {
        schema: SCHEMA.to_string(),
        id: record.id.clone(),
        record_path: None,
        kind: record.kind.clone(),
        started_at: record.started_at.clone(),
        notes: warnings::of_run(record, &jobs),
        jobs,
        floods: record.floods.iter().map(flood_result).collect(),
        ended_early: record.ended_early.clone(),
    }
}

fn flood_result(flood: &FloodRecord) -> FloodResult {
    FloodResult {
        spec: flood.spec.clone(),
        bytes: flood.bytes,
        bytes_per_second: per_second(flood.bytes, flood.elapsed_ns),
        ended: flood.ended.clone(),
    }
}

fn job_result(job: &JobRecord) -> JobResult {
    let headline = headline(job);
    let series = headline.map(|class| Series::of(job, class)).unwrap_or_default();
    let Stability { warmup, steady, regimes } = stability(&series, job.job.is_open_loop());
    let total = total(job);
    let mut result = JobResult {
        name: job.job.name.clone(),
        elapsed_ns: job.elapsed_ns,
        classes: job.classes.iter().map(|(class, c)| (*class, class_result(c, job.elapsed_ns))).collect(),
        headline,
        warmup,
        steady,
        regimes,
        little: little_check(job),
        cpu: cpu_result(&job.cpu, job.elapsed_ns, total.operations),
        total,
        lateness: lateness_result(job.lateness.as_ref(), job.job.late_after.0),
        stall: stall(&job.intervals),
        final_sync: job.final_sync.clone(),
        verify: job.verify.clone(),
        error: job.error.clone(),
        notes: Vec::new(),
    };
    result.notes = warnings::of_job(job, &result);
    result
}

/// Derives one class; `elapsed_ns` is the measured time of its job.
pub fn class_result(class: &ClassRecord, elapsed_ns: u64) -> ClassResult {
    let latency = &class.latency;
    ClassResult {
        count: latency.count(),
        errors: class.errors,
        bytes: class.bytes,
        iops: per_second(latency.count(), elapsed_ns),
        bytes_per_second: per_second(class.bytes, elapsed_ns),
        latency: LatencyResult::of(latency),
    }
}

/// Commits are what a database waits for; without them, the class with most operations speaks for the job.
pub fn headline(job: &JobRecord) -> Option<Class> {
    let counted = |class: Class| job.classes.get(&class).map_or(0, |c| c.latency.count());
    // In a replay, a commit is a write of a file system's journal among others.
    if counted(Class::Commit) > 0 && job.job.replay.is_none() {
        return Some(Class::Commit);
    }
    // max_by_key prefers the last of equals: reads before writes before syncs.
    let known = |class: &Class| counted(*class) > 0 && *class != Class::Commit;
    Class::ALL.into_iter().rev().filter(known).max_by_key(|c| counted(*c))
}

/// A commit is counted by the write and the sync it consists of, so it adds nothing of its own, unless the kernel
/// did both in one call (RWF_DSYNC) and no other class knows of it.
fn plain_classes(job: &JobRecord) -> impl Iterator<Item = &ClassRecord> {
    let parts_known = job.classes.contains_key(&Class::Write);
    job.classes.iter().filter(move |(class, _)| **class != Class::Commit || !parts_known).map(|(_, c)| c)
}

fn total(job: &JobRecord) -> Total {
    let operations = plain_classes(job).map(|c| c.latency.count()).sum();
    let bytes = plain_classes(job).map(|c| c.bytes).sum();
    Total {
        operations,
        iops: per_second(operations, job.elapsed_ns),
        bytes,
        bytes_per_second: per_second(bytes, job.elapsed_ns),
    }
}

/// How a run went on from second to second.
pub struct Stability {
    /// Leading intervals that differ.
    pub warmup: WarmupResult,
    /// Whether it was steady after them.
    pub steady: SteadyResult,
    /// Spans of different throughput.
    pub regimes: Vec<Regime>,
}

/// Judges the series of the headline.
pub fn stability(series: &Series, open_loop: bool) -> Stability {
    if series.is_empty() {
        return Stability { warmup: no_warmup(), steady: SteadyResult::TooShort, regimes: Vec::new() };
    }
    let rates = series.rates();
    let rule = warmup::mser5(&rates);
    let cut = rule.intervals();
    let (before, after) = (series.rate(0..cut), series.rate(cut..series.len()));
    let warmup = WarmupResult {
        rule,
        cut_ns: if cut > 0 { series.end_ns(cut - 1) } else { 0 },
        rate_ratio: if cut > 0 && after > 0.0 { before / after } else { 1.0 },
    };
    let regimes = change::regimes(&rates, SEED).into_iter().map(|span| regime(series, span)).collect();
    Stability { warmup, steady: steady_result(series, cut, open_loop), regimes }
}

fn no_warmup() -> WarmupResult {
    WarmupResult { rule: warmup::Warmup::TooShort, cut_ns: 0, rate_ratio: 1.0 }
}

/// In an open loop the rate is the schedule's, not the storage's: p99 alone is judged.
fn steady_result(series: &Series, cut: usize, open_loop: bool) -> SteadyResult {
    let rounds = steady::rounds(series.len() - cut).map(|rounds| rounds.map(|r| r.start + cut..r.end + cut));
    let iops = rounds.as_ref().and_then(|r| steady::judge(&r.clone().map(|round| series.rate(round))));
    let (Some(rounds), Some(iops)) = (rounds, iops) else { return SteadyResult::TooShort };
    let p99 = p99_of_rounds(series, &rounds).and_then(|p99| steady::judge(&p99));
    if open_loop && p99.is_none() {
        return SteadyResult::TooShort;
    }
    SteadyResult::Judged { iops, p99, holds: (open_loop || iops.holds) && p99.is_none_or(|p| p.holds) }
}

fn p99_of_rounds(series: &Series, rounds: &[Range<usize>; ROUNDS]) -> Option<[f64; ROUNDS]> {
    let mut p99 = [0.0; ROUNDS];
    for (value, round) in p99.iter_mut().zip(rounds) {
        *value = pooled_quantile(series, round.clone(), 0.99)?;
    }
    Some(p99)
}

/// A quantile over a span of intervals, if enough samples stand behind it.
fn pooled_quantile(series: &Series, span: Range<usize>, q: f64) -> Option<f64> {
    if series.latencies.count(span.clone()) < needed(q) {
        return None;
    }
    series.latencies.quantiles(span, [q]).map(|[value]| value)
}

fn regime(series: &Series, span: Range<usize>) -> Regime {
    Regime {
        start_ns: series.start_ns[span.start],
        end_ns: series.end_ns(span.end - 1),
        iops: series.rate(span.clone()),
        bytes_per_second: series.byte_rate(span.clone()),
        p50_ns: pooled_quantile(series, span.clone(), 0.5).map(|v| v as u64),
        p99_ns: pooled_quantile(series, span, 0.99).map(|v| v as u64),
    }
}

/// In an open loop latency counts from the intended start, when the operation may not be in flight yet: the law
/// then speaks of a queue that nobody measured, so it is left out.
fn little_check(job: &JobRecord) -> Option<little::Little> {
    if job.job.is_open_loop() {
        return None;
    }
    let latency_sum_ns = plain_classes(job).map(|c| c.latency.sum()).sum();
    little::check(job.engine.in_flight_mean, latency_sum_ns, job.elapsed_ns)
}

/// CPU time of a run that took `elapsed_ns` and finished so many operations.
pub fn cpu_result(cpu: &CpuRecord, elapsed_ns: u64, operations: u64) -> CpuResult {
    let process = cpu.process_user_ns + cpu.process_system_ns;
    let machine = match elapsed_ns {
        ..MACHINE_CPU_MIN_NS => 0,
        // Counted by ticks, it may fall short of what the process alone has used.
        _ if cpu.machine_busy_ns > 0 => cpu.machine_busy_ns.max(process),
        _ => 0,
    };
    let per = |ns: u64, by: u64| if by == 0 { 0.0 } else { ns as f64 / by as f64 };
    CpuResult {
        process_ns_per_operation: per(process, operations),
        machine_ns_per_operation: per(machine, operations),
        process_busy: per(process, elapsed_ns),
        machine_busy: per(machine, elapsed_ns),
        processors: cpu.processors,
    }
}

/// How a schedule was kept, where there was one.
pub fn lateness_result(lateness: Option<&Lateness>, late_after_ns: u64) -> Option<LatenessResult> {
    lateness.map(|lateness| LatenessResult {
        intended: lateness.intended,
        late: lateness.late,
        late_share: lateness.late as f64 / lateness.intended.max(1) as f64,
        late_after_ns,
        not_started: lateness.not_started,
        start_delay_max_ns: lateness.start_delay_max_ns,
        start_delay: lateness.start_delay.as_ref().filter(|delays| delays.count() > 0).map(start_delay),
        waited_for_depth: lateness.waited_for_depth,
    })
}

fn start_delay(delays: &Histogram) -> StartDelayResult {
    StartDelayResult {
        p50: quantile(delays, 0.5),
        p99: quantile(delays, 0.99),
        max_ns: delays.max().unwrap_or(0),
        late_share: delays.count_above(START_IS_LATE_NS) as f64 / delays.count().max(1) as f64,
        late_after_ns: START_IS_LATE_NS,
    }
}

/// The longest wait seen at the end of an interval.
pub fn stall<K>(intervals: &[Interval<K>]) -> Option<Stall> {
    let oldest = intervals.iter().max_by_key(|i| i.oldest_ns)?;
    Some(Stall { oldest_ns: oldest.oldest_ns, at_ns: oldest.start_ns + oldest.len_ns })
}
