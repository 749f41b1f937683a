//! From a job's record to a measurement: rate with its interval, latency with sufficiency, distribution.

use super::doctor::{Estimate, LatencySummary, Measurement};
use super::map;
use super::mean_interval::half_width;
use super::notes::{StepKind, StepNote};
use super::products::{title_of, transaction_of};
use super::sustained::{Part, course, fall};
use weir_core::result::record::{Class, ClassRecord, Interval, JobRecord};
use weir_core::result::series;
use weir_core::stats::Histogram;
use weir_core::units::Bytes;

/// Buckets per power of two in plots, as log2.
const PLOT_BITS: u32 = 3;

/// The class a step reports: the one a database waits for.
fn class_of(step: &StepNote, record: &JobRecord) -> Class {
    match step.kind {
        StepKind::ReadDepth | StepKind::SequentialRead => Class::Read,
        StepKind::Layout | StepKind::WriteDepth | StepKind::SequentialWrite => Class::Write,
        // O_DSYNC has no separate sync: the write itself is the commit.
        StepKind::Commit(_) | StepKind::Flood(_) if record.classes.contains_key(&Class::Write) => {
            if record.classes.contains_key(&Class::Commit) { Class::Commit } else { Class::Write }
        }
        StepKind::Commit(_) | StepKind::Flood(_) => Class::Commit,
        StepKind::Product if record.job.writes() => Class::Commit,
        StepKind::Product => Class::Read,
        StepKind::Sustained(_, Part::Reads) => Class::Read,
        StepKind::Sustained(..) => Class::Write,
        StepKind::Map(map::Part::Commits | map::Part::CommitsAgain) => Class::Commit,
        // Of a mixture, the operations that there are more of name it.
        StepKind::Map(_) if map::share(record) < 0.5 => Class::Read,
        StepKind::Map(_) => Class::Write,
    }
}

/// The classes whose operations a step counts: those of its own, of a map's mixture both.
fn classes_of(step: &StepNote, class: Class) -> Vec<Class> {
    match (step.kind, class) {
        (StepKind::Map(_), Class::Read | Class::Write) => vec![Class::Read, Class::Write],
        _ => vec![class],
    }
}

/// Derives what a step measured from its job's record.
pub fn measure(step: &StepNote, record: &JobRecord) -> Measurement {
    let class = class_of(step, record);
    let classes = classes_of(step, class);
    let mut totals = ClassRecord::default();
    for done in classes.iter().filter_map(|class| record.classes.get(class)) {
        totals.bytes += done.bytes;
        totals.latency.merge(&done.latency);
    }
    let (bytes, counted_ns) = counted(step, record, class, &totals);
    let seconds = counted_ns as f64 / 1e9;
    Measurement {
        id: step.id.clone(),
        title: title(step, record),
        class: if matches!(step.kind, StepKind::Commit(_) | StepKind::Flood(_)) {
            Class::Commit
        } else {
            class
        },
        block: Bytes(record.job.block.largest()),
        depth: record.job.depth,
        threads: record.job.threads,
        engine: record.engine.name.clone(),
        direct: record.job.direct,
        iops: rate(totals.latency.count(), counted_ns, &record.intervals, &classes),
        bytes_per_second: if seconds > 0.0 { bytes / seconds } else { 0.0 },
        latency: summarise(&totals.latency),
        distribution: totals.latency.coarse(PLOT_BITS),
        sync_p50_ns: record.classes.get(&Class::Sync).and_then(|c| sufficient(&c.latency, 0.5)),
        utilization: step.utilization,
        cpu_busy: cpu_busy(record),
        oldest_ns_max: record.intervals.iter().map(|i| i.oldest_ns).max().unwrap_or(0),
        elapsed_ns: record.elapsed_ns,
        little_ratio: little(record),
        sync: record
            .classes
            .get(&Class::Sync)
            .filter(|_| step.kind == StepKind::Product)
            .map(|c| summarise(&c.latency)),
        fall: fall_of(step, record),
        notes: record.notes.iter().map(|n| n.text.clone()).collect(),
        error: record.error.clone(),
    }
}

/// Bytes, and the time that they and the operations of a class took. Transactions of several writes count whole, and follow
/// one another: one that the warm-up or the step's end cuts has written its bytes long before its sync ends. Their size is that
/// of the record's own writes. A stall at the end that is no transaction's (of older records) counts as time.
fn counted(step: &StepNote, record: &JobRecord, class: Class, totals: &ClassRecord) -> (f64, u64) {
    let of = |class: Class| record.classes.get(&class);
    let whole = transaction_of(&step.id).filter(|t| step.kind == StepKind::Product && !t.is_single());
    let in_full = |latency: &&Histogram| {
        let longest_ns = u128::from(latency.max().unwrap_or(0));
        longest_ns > 0 && u128::from(record.elapsed_ns) <= latency.sum() + longest_ns
    };
    let done = of(Class::Commit).map(|done| &done.latency).filter(in_full);
    let writes = of(Class::Write).filter(|writes| writes.latency.count() > 0);
    match whole.zip(done).zip(writes) {
        Some(((transaction, done), writes)) => {
            let operations = done.count() as f64 * f64::from(transaction.operations());
            (operations * writes.bytes as f64 / writes.latency.count() as f64, done.sum() as u64)
        }
        None => {
            let written = of(Class::Write).filter(|_| class == Class::Commit).unwrap_or(totals);
            (written.bytes as f64, record.elapsed_ns)
        }
    }
}

/// In flight, from which on a step is limited by the storage and not by who asks.
const SATURATING: u64 = 8;

/// A fall of the rate within a step that saturates the storage and does nothing else.
fn fall_of(step: &StepNote, record: &JobRecord) -> Option<fall::Fall> {
    let in_flight = u64::from(record.job.depth) * u64::from(record.job.threads);
    let fits = match step.kind {
        StepKind::ReadDepth | StepKind::WriteDepth => in_flight >= SATURATING,
        StepKind::Layout | StepKind::SequentialRead | StepKind::SequentialWrite => true,
        _ => false,
    };
    fits.then(|| fall::find(&course::of_record(record), &fall::SHORT)).flatten()
}

/// For people: what was done, at which size and concurrency.
fn title(step: &StepNote, record: &JobRecord) -> String {
    let job = &record.job;
    let block = Bytes(job.block.largest());
    let threads = if job.threads == 1 { "1 thread".to_string() } else { format!("{} threads", job.threads) };
    let in_flight = u64::from(job.depth) * u64::from(job.threads);
    match step.kind {
        StepKind::Layout => format!("writing the test file, {block}, O_DIRECT"),
        StepKind::ReadDepth => format!("random reads {block}, O_DIRECT, {in_flight} in flight"),
        StepKind::WriteDepth => format!("random writes {block}, O_DIRECT, {in_flight} in flight"),
        StepKind::SequentialRead => format!("sequential reads {block}, O_DIRECT, {in_flight} in flight"),
        StepKind::SequentialWrite => format!("sequential writes {block}, O_DIRECT, {in_flight} in flight"),
        StepKind::Commit(path) => format!("commits {block} ({}), {threads}", path.title()),
        StepKind::Flood(_) => format!("commits {block} (write + fsync), {threads}, {}", job.name),
        StepKind::Product => title_of(&step.id).unwrap_or(&step.id).to_string(),
        StepKind::Map(part) => map::title::of_step(part, record),
        StepKind::Sustained(_, part) => {
            let order = if block.0 < 256 << 10 { "random" } else { "sequential" };
            let when = match part {
                Part::Drain => "",
                Part::Other => ", right after",
                Part::Reads => " of what was written, right after",
                Part::Again => ", after an idle time",
            };
            let what = if part == Part::Reads { "reads" } else { "writes" };
            format!("{order} {what} {block}, O_DIRECT, {in_flight} in flight{when}")
        }
    }
}

/// Total over time, with a 95 % interval over the run's intervals (Student's t; batch means as in Law and Kelton,
/// Simulation Modeling and Analysis, 9.5.3). The stub at its end is left out.
fn rate(count: u64, elapsed_ns: u64, intervals: &[Interval], classes: &[Class]) -> Estimate {
    let mean = if elapsed_ns > 0 { count as f64 * 1e9 / elapsed_ns as f64 } else { 0.0 };
    let interval_ns = intervals.first().map_or(0, |i| i.len_ns);
    let done =
        |i: &Interval| classes.iter().filter_map(|class| i.classes.get(class)).map(|c| c.count).sum::<u64>();
    let rates: Vec<f64> =
        series::whole(intervals).into_iter().map(|i| series::per_second(done(i), i.len_ns)).collect();
    let half = half_width(&rates).unwrap_or(0.0);
    Estimate {
        mean,
        low: (mean - half).max(0.0),
        high: mean + half,
        intervals: rates.len() as u32,
        interval_ns,
    }
}

/// A quantile, if at least three operations are expected beyond it.
pub fn sufficient(latency: &Histogram, q: f64) -> Option<u64> {
    let needed = 3.0 / (1.0 - q) * (1.0 - 1e-9);
    latency.quantile(q).filter(|_| latency.count() as f64 >= needed)
}

fn summarise(latency: &Histogram) -> LatencySummary {
    LatencySummary {
        n: latency.count(),
        mean_ns: latency.mean().unwrap_or(0.0),
        p50_ns: sufficient(latency, 0.5),
        p95_ns: sufficient(latency, 0.95),
        p99_ns: sufficient(latency, 0.99),
        p999_ns: sufficient(latency, 0.999),
        max_ns: latency.max().unwrap_or(0),
    }
}

/// Share of all processors that was busy, kernel workers and other processes included; or of those that weir may use, if
/// that is more.
fn cpu_busy(record: &JobRecord) -> Option<f64> {
    let JobRecord { cpu, elapsed_ns, .. } = record;
    let own = cpu.allowed.map_or(0.0, |allowed| cpu.process_share(*elapsed_ns, allowed));
    (*elapsed_ns > 0 && cpu.processors > 0).then(|| cpu.machine_share(*elapsed_ns).max(own))
}

/// Little's law: the latencies' sum over the time, against what was in flight. A commit contains its write and its
/// sync, so those two are not counted again. In open loop, latencies hold the wait before the start, and it does not apply.
fn little(record: &JobRecord) -> Option<f64> {
    if record.job.is_open_loop() {
        return None;
    }
    let has_commits = record.classes.contains_key(&Class::Commit);
    let sum: f64 = record
        .classes
        .iter()
        .filter(|(class, _)| !has_commits || **class == Class::Commit)
        .map(|(_, totals)| totals.latency.sum() as f64)
        .sum();
    let in_flight = record.engine.in_flight_mean;
    (in_flight > 0.0 && record.elapsed_ns > 0).then(|| sum / record.elapsed_ns as f64 / in_flight)
}
