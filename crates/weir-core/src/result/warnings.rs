//! What a reader of a result must know before believing it: each note has a stable key and says what it means.

use crate::result::record::{JobRecord, Note, Record};
use crate::result::run_result::{
    JobResult, LATE_SHARE_MAX, LatenessResult, Regime, Stall, SteadyResult, WarmupResult,
};
use crate::stats::warmup::Warmup;
use crate::units::{Nanos, grouped, per_second, significant};
use crate::workload::spec::{Data, SyncMode};

/// An operation this old is a stall worth a sentence, whatever the device.
const STALL_NS: u64 = 1_000_000_000;
/// A warm-up is worth a sentence when its rate differs by more than this share.
const WARMUP_SHARE: f64 = 0.05;
/// CPU of other processes and kernel workers, as a share of the machine, that is worth a sentence.
const FOREIGN_CPU_SHARE: f64 = 0.20;

fn note(key: &str, text: String) -> Note {
    Note { key: key.to_string(), text }
}

/// Notes on the whole run: first what was noticed of it, then what the figures themselves say.
pub fn of_run(record: &Record, jobs: &[JobResult]) -> Vec<Note> {
    let mut notes = record.notes.clone();
    // A job's own error is among its notes.
    let told = |why: &String| record.jobs.iter().any(|job| job.error.as_ref() == Some(why));
    if let Some(why) = record.ended_early.as_ref().filter(|why| !told(why)) {
        notes.push(note(
            "ended-early",
            format!("the run ended early ({why}); figures cover what was measured until then"),
        ));
    }
    if jobs.iter().all(|job| job.total.operations == 0) {
        notes.push(note("no-operations", "not a single operation finished".to_string()));
    }
    notes
}

/// Notes on a job: first what engine and runner noticed, then what the figures themselves say.
pub fn of_job(job: &JobRecord, result: &JobResult) -> Vec<Note> {
    let mut notes = job.notes.clone();
    let found = [
        errors(job, result),
        used_up(job, result),
        verify(result),
        little(result),
        depth(job, &notes),
        busy(result),
        stall(result),
        kept_late(job, result),
        warmup(result.warmup),
        regimes(&result.regimes),
        steady(result.steady, job.job.is_open_loop(), "IOPS"),
        samples(result),
        data(job),
        not_durable(job),
    ];
    notes.extend(found.into_iter().flatten());
    notes
}

fn errors(job: &JobRecord, result: &JobResult) -> Option<Note> {
    let failed: u64 = result.classes.values().map(|c| c.errors).sum();
    match (&job.error, failed) {
        (Some(error), _) => Some(note("io-error", format!("an I/O error ended the job: {error}"))),
        (None, 1..) => Some(note("io-error", format!("{failed} operations failed"))),
        (None, 0) => None,
    }
}

/// A job whose operations were all over before counting began.
fn used_up(job: &JobRecord, result: &JobResult) -> Option<Note> {
    let (limit, warmup) = (job.job.operations, job.job.warmup);
    (result.total.operations == 0 && job.error.is_none() && limit > 0 && warmup.0 > 0).then(|| {
        let text = format!(
            "nothing was measured: the {} requested operations ended within the warm-up of {warmup}; request \
             more of them, or a shorter warm-up",
            grouped(limit)
        );
        note("used-up-by-warm-up", text)
    })
}

fn verify(result: &JobResult) -> Option<Note> {
    let verify = result.verify.as_ref()?;
    let bad = verify.stale + verify.torn + verify.misplaced;
    (bad > 0).then(|| {
        let (stale, torn, misplaced) = (verify.stale, verify.torn, verify.misplaced);
        let text = format!(
            "verification found wrong data in {bad} of {} blocks: {stale} stale, {torn} torn, {misplaced} misplaced",
            verify.checked
        );
        note("wrong-data", text)
    })
}

fn little(result: &JobResult) -> Option<Note> {
    let little = result.little.filter(|l| !l.holds)?;
    let text = format!(
        "Little's law does not hold: throughput x mean latency is {}, but {} operations were in flight on average \
         ({:+.0} %); do not trust these latencies",
        significant(little.rate_times_latency),
        significant(little.in_flight_mean),
        little.deviation * 100.0
    );
    Some(note("little-violated", text))
}

/// Depth that never came about, where the engine has not said so itself.
fn depth(job: &JobRecord, known: &[Note]) -> Option<Note> {
    let asked = f64::from(job.job.depth) * f64::from(job.job.threads);
    let mean = job.engine.in_flight_mean;
    let short = !job.job.is_open_loop() && job.job.depth > 1 && mean > 0.0 && mean < asked / 2.0;
    if !short || known.iter().any(|n| n.key == "depth-without-effect") {
        return None;
    }
    let text = format!(
        "depth without effect: {asked:.0} operations in flight were asked for, {} were reached on average",
        significant(mean)
    );
    Some(note("depth-without-effect", text))
}

fn busy(result: &JobResult) -> Option<Note> {
    let cpu = result.cpu;
    let foreign = cpu.machine_busy - cpu.process_busy;
    let share = foreign / f64::from(cpu.processors.max(1));
    (share > FOREIGN_CPU_SHARE).then(|| {
        let text = format!(
            "the machine was busy with something else too: {} of {} processors went to other processes and kernel \
             workers; latencies may include waiting for a CPU",
            significant(foreign),
            cpu.processors
        );
        note("busy-machine", text)
    })
}

/// A stall as seen from outside, while it lasted; `what` is what had been waiting.
pub fn stall_seen(stall: Option<Stall>, what: &str) -> Option<Note> {
    let seen = stall.filter(|s| s.oldest_ns >= STALL_NS)?;
    let (at, oldest) = (Nanos(seen.at_ns), Nanos(seen.oldest_ns));
    Some(note("stall", format!("a stall: {at} into the run {what} had been waiting for {oldest}")))
}

fn stall(result: &JobResult) -> Option<Note> {
    if let Some(seen) = stall_seen(result.stall, "an operation") {
        return Some(seen);
    }
    let (class, slowest) = result.classes.iter().max_by_key(|(_, c)| c.latency.max_ns)?;
    let text = || format!("a stall: the slowest {} took {}", class.name(), Nanos(slowest.latency.max_ns));
    (slowest.latency.max_ns >= STALL_NS).then(|| note("stall", text()))
}

/// What was recorded may have taken as long as it likes: of a replay, only starts can be late.
fn kept_late(job: &JobRecord, result: &JobResult) -> Option<Note> {
    match (&job.job.replay, result.lateness) {
        (Some(_), Some(lateness)) => replay_late(&lateness),
        (_, lateness) => late(lateness, "operations"),
    }
}

/// A replay whose starts were late, or did not come about, and whether target or machine was the reason.
fn replay_late(lateness: &LatenessResult) -> Option<Note> {
    let starts = lateness.start_delay?;
    let p99 = starts.p99.ns().unwrap_or(starts.max_ns);
    let not_started = lateness.not_started as f64 > LATE_SHARE_MAX * lateness.intended as f64;
    if p99 <= starts.late_after_ns && !not_started {
        return None;
    }
    let mut text = format!(
        "the machine could not keep to the recording's times: {:.1} % of {} operations started more than {} late, p99 \
         {}, the latest {}",
        starts.late_share * 100.0,
        grouped(lateness.intended),
        Nanos(starts.late_after_ns),
        Nanos(p99),
        Nanos(starts.max_ns)
    );
    if lateness.waited_for_depth > 0 {
        text += &format!(
            "; {} of them because the target had as many in flight as --depth allows",
            grouped(lateness.waited_for_depth)
        );
    }
    if lateness.not_started > 0 {
        text += &format!("; {} had not started at the end", grouped(lateness.not_started));
    }
    Some(note("replay-late", text))
}

/// An open loop that was not kept; `what` is what was due.
pub fn late(lateness: Option<LatenessResult>, what: &str) -> Option<Note> {
    // An operation that was due and never started counts as late, so a few that the end of the run cut off are below the bar.
    let late = lateness.filter(|l| l.late_share > LATE_SHARE_MAX)?;
    let text = format!(
        "the schedule was not kept: {:.1} % of {what} finished more than {} after their intended start, \
         {} had not started at the end",
        late.late_share * 100.0,
        Nanos(late.late_after_ns),
        grouped(late.not_started)
    );
    Some(note("late", text))
}

/// A beginning that differs from the rest.
pub fn warmup(warmup: WarmupResult) -> Option<Note> {
    match warmup.rule {
        Warmup::NeverSettled => Some(note(
            "never-settled",
            "throughput was still moving in the second half; run longer".to_string(),
        )),
        Warmup::Cut { .. } if (warmup.rate_ratio - 1.0).abs() > WARMUP_SHARE => {
            let text = format!(
                "the first {} ran at {:.0} % of the later rate and are in these figures; repeat with a warm-up to \
                 leave them out",
                Nanos(warmup.cut_ns),
                warmup.rate_ratio * 100.0
            );
            Some(note("warm-up", text))
        }
        Warmup::Cut { .. } | Warmup::TooShort => None,
    }
}

/// Throughput that changed level.
pub fn regimes(regimes: &[Regime]) -> Option<Note> {
    if regimes.len() < 2 {
        return None;
    }
    let spans: Vec<String> = regimes
        .iter()
        .map(|r| {
            format!("{:.0}-{:.0} s: {}/s", r.start_ns as f64 / 1e9, r.end_ns as f64 / 1e9, per_second(r.iops))
        })
        .collect();
    let text = format!("throughput changed level, so one mean describes none of them: {}", spans.join(", "));
    Some(note("regimes", text))
}

/// No steady state; `rate` is the unit of throughput.
pub fn steady(steady: SteadyResult, open_loop: bool, rate: &str) -> Option<Note> {
    let SteadyResult::Judged { iops, p99, holds: false } = steady else { return None };
    let moved = |name: &str, s: crate::stats::steady::Steady| {
        format!(
            "{name} ranged over {:.0} % of its mean with a slope of {:+.0} %",
            s.range * 100.0,
            s.slope * 100.0
        )
    };
    let mut what = Vec::new();
    what.extend((!iops.holds && !open_loop).then(|| moved(rate, iops)));
    what.extend(p99.filter(|p| !p.holds).map(|p| moved("p99", p)));
    let text = format!("no steady state: over five rounds {} (limits 20 % and 10 %)", what.join(", "));
    Some(note("unsteady", text))
}

fn samples(result: &JobResult) -> Option<Note> {
    let mut short = Vec::new();
    for (class, c) in result.classes.iter().filter(|(_, c)| c.count > 0) {
        if let Some((name, have, need)) = c.latency.too_few() {
            short.push(format!("{} {name} needs {} (has {})", class.name(), grouped(need), grouped(have)));
        }
    }
    let text = || format!("too few samples for high percentiles: {}; run longer", short.join(", "));
    (!short.is_empty()).then(|| note("insufficient-samples", text()))
}

fn data(job: &JobRecord) -> Option<Note> {
    let text = "zeros were written: storage that compresses, deduplicates or allocates thinly looks faster than it is";
    (job.job.writes() && job.job.data == Data::Zero).then(|| note("zero-data", text.to_string()))
}

fn not_durable(job: &JobRecord) -> Option<Note> {
    let text = "sync_file_range makes nothing durable: neither metadata nor the device's cache are flushed";
    (job.job.sync.every > 0 && job.job.sync.mode == SyncMode::SyncFileRange)
        .then(|| note("not-durable", text.to_string()))
}
