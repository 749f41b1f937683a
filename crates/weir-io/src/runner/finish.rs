//! After the last operation: the final sync, and the record of what was measured.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::result::record::{
    Class, ClassRecord, CpuRecord, FinalSync, JobRecord, Lateness, Note, VerifyRecord,
};
use weir_core::stats::Histogram;
use weir_core::stats::counters::Totals;
use weir_core::units::Bytes;
use weir_core::workload::spec::SyncMode;

use super::job::RunningJob;
use super::readback::read_back;
use super::sampler::{start_delays, totals};
use super::seen::Scalars;
use crate::stop::Stop;
use crate::sys::clock::now_ns;
use crate::sys::file;
use crate::sys::usage::processors_online;

/// A share of steps finished inside the submitting call above which depth had no effect.
const INLINE_SHARE: f64 = 0.9;

/// Joins the threads and writes the record.
pub fn record(mut job: RunningJob, stop: &Stop) -> JobRecord {
    job.join();
    let last_ns = job.counters.iter().map(|c| c.last_ns.load(Relaxed)).max().unwrap_or(0);
    let elapsed_ns = elapsed_ns(&job, last_ns);
    let final_sync = final_sync(&job);
    let mut error = job.shared.failure.lock().unwrap_or_else(|e| e.into_inner()).clone();
    if let Some(failed) = final_sync.as_ref().and_then(|sync| sync.error.clone()) {
        error.get_or_insert(failed);
    }
    let classes = classes(&job);
    let mut notes = notes(&job);
    notes.extend(served_from_cache(&job, &classes));
    let verify = verify(&job, stop, &mut notes, &mut error);
    JobRecord {
        elapsed_ns,
        classes,
        threads: job.counters.iter().map(|c| c.record()).collect(),
        lateness: lateness(&job, last_ns),
        cpu: cpu(&job),
        notes,
        engine: engine(&job, elapsed_ns),
        verify,
        intervals: job.seen.intervals.take(),
        final_sync,
        error,
        job: job.shared.job.clone(),
        flood_ages_ns: Vec::new(),
    }
}

/// Measured time: to the last completion, or to the end of the time asked for where an open loop had nothing to do then.
fn elapsed_ns(job: &RunningJob, last_ns: u64) -> u64 {
    let lasted = job.shared.job.is_open_loop() && has_lasted(job);
    let end = if lasted { last_ns.max(job.deadline_ns) } else { last_ns };
    // An operation that is stuck has no completion, but took its time.
    let end = if job.seen.abandoned { end.max(job.seen.last_ns) } else { end };
    end.saturating_sub(job.measure_from_ns).max(1)
}

fn classes(job: &RunningJob) -> BTreeMap<Class, ClassRecord> {
    let nothing = Totals::default();
    let mut classes = BTreeMap::new();
    for (class, total) in totals(job) {
        let base = job.seen.base.get(&class).unwrap_or(&nothing);
        let (latency, bytes) = total.since(base);
        let errors = total.errors - base.errors;
        if latency.count() > 0 || errors > 0 {
            classes.insert(class, ClassRecord { bytes, errors, latency });
        }
    }
    classes
}

/// Syncs every file once, as the job asks.
fn final_sync(job: &RunningJob) -> Option<FinalSync> {
    let spec = &job.shared.job;
    if !spec.sync.at_end || !spec.writes() || job.files.is_empty() || job.seen.abandoned {
        return None;
    }
    let data_only = spec.sync.mode != SyncMode::Fsync;
    let mut result = FinalSync { files: job.files.len() as u32, ..FinalSync::default() };
    let start = now_ns();
    for (opened, place) in job.files.iter().zip(&job.shared.places) {
        if let Err(error) = file::sync(opened, data_only) {
            result.error.get_or_insert(format!("final sync of {}: {error}", place.path().display()));
        }
    }
    result.total_ns = now_ns() - start;
    Some(result)
}

/// How the schedule was kept, counting what was due and never started.
fn lateness(job: &RunningJob, last_ns: u64) -> Option<Lateness> {
    if !job.shared.job.is_open_loop() {
        return None;
    }
    let sums = Scalars::of(job);
    // A run that lasted its time was due everything up to its end; one that ended before, up to its last completion.
    // Threads that are stuck were at work, too.
    let lasted = has_lasted(job) || job.seen.abandoned;
    let end_ns = if lasted { job.deadline_ns } else { last_ns.min(job.deadline_ns) };
    let in_hand: u64 = job.counters.iter().map(|c| c.not_started.load(Relaxed)).sum();
    let start_delay = start_delays(job).since(&job.seen.base_start_delays).0;
    let not_started = in_hand + due_but_not_taken(job, end_ns.saturating_sub(job.epoch_ns));
    Some(Lateness {
        intended: sums.intended - job.seen.base_scalars.intended + not_started,
        late: sums.late - job.seen.base_scalars.late + not_started,
        not_started,
        start_delay_max_ns: start_delay.max().unwrap_or(0),
        start_delay: Some(start_delay),
        waited_for_depth: sums.waited_for_depth - job.seen.base_scalars.waited_for_depth,
    })
}

/// Whether the job was at work until its time was up: a failure, a limit of operations or the end of a recording may have
/// ended it before.
fn has_lasted(job: &RunningJob) -> bool {
    job.ends.iter().any(|end| end.lasted) && job.shared.failure.lock().is_ok_and(|failure| failure.is_none())
}

/// Operations still in the stream whose time lay before the end.
fn due_but_not_taken(job: &RunningJob, end_ns: u64) -> u64 {
    let Ok(mut source) = job.shared.source.lock() else { return 0 };
    let (mut count, mut batch) = (0, Vec::with_capacity(256));
    loop {
        batch.clear();
        source.fill(&mut batch, 256);
        let due = batch.iter().filter(|op| op.at_ns < end_ns).count();
        count += due as u64;
        if due < 256 {
            return count;
        }
    }
}

fn cpu(job: &RunningJob) -> CpuRecord {
    let (base, end) = (job.seen.base_used, job.seen.end_used);
    let machine = end.machine_busy_ns.zip(base.machine_busy_ns);
    CpuRecord {
        process_user_ns: end.process.user_ns.saturating_sub(base.process.user_ns),
        process_system_ns: end.process.system_ns.saturating_sub(base.process.system_ns),
        machine_busy_ns: machine.map_or(0, |(end, base)| end.saturating_sub(base)),
        processors: processors_online(),
        allowed: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
    }
}

fn engine(job: &RunningJob, elapsed_ns: u64) -> weir_core::result::record::EngineRecord {
    let mut engine = job.engine.clone();
    let integral = Scalars::of(job).in_flight_integral - job.seen.base_scalars.in_flight_integral;
    engine.in_flight_mean = integral as f64 / elapsed_ns as f64;
    engine.submits = submits(job);
    engine.in_flight_max = job.counters.iter().map(|c| c.in_flight_max.load(Relaxed)).max().unwrap_or(0);
    engine
}

/// The threads' submitting together.
fn submits(job: &RunningJob) -> Option<Histogram> {
    let mut timed = job.ends.iter().filter_map(|end| end.submits.as_ref());
    let mut all = timed.next()?.clone();
    timed.for_each(|more| all.merge(more));
    Some(all)
}

fn notes(job: &RunningJob) -> Vec<Note> {
    let mut notes = job.notes.clone();
    let mut note = |key: &str, text: String| notes.push(Note { key: key.to_string(), text });
    let spec = &job.shared.job;
    let (inline, looked_at) = job.ends.iter().fold((0, 0), |a, end| (a.0 + end.inline.0, a.1 + end.inline.1));
    let share = inline as f64 / looked_at.max(1) as f64;
    if spec.depth > 1 && looked_at > 0 && share >= INLINE_SHARE {
        note(
            "depth-without-effect",
            format!(
                "depth {} had no effect on the device: {:.0} % of the sampled operations had finished when \
                 the \
                 submitting call returned, so the kernel ran them one after another (buffered I/O served from the \
                 page cache does that)",
                spec.depth,
                share * 100.0
            ),
        );
    }
    if job.seen.ring_workers_max > 0 {
        note(
            "punted-to-workers",
            format!(
                "the kernel handed operations to {} (iou-wrk): the file system could not take them without blocking; \
                 their CPU time counts for this process",
                worker_threads(job.seen.ring_workers_max)
            ),
        );
    }
    if job.seen.abandoned {
        let stuck: u32 = job.counters.iter().map(|c| c.in_flight.load(Relaxed)).sum();
        note("abandoned", format!("{stuck} operations were stuck past the time limit and were left behind"));
    }
    notes
}

fn worker_threads(n: usize) -> String {
    format!("{n} worker thread{}", if n == 1 { "" } else { "s" })
}

/// Buffered reads of which the kernel passed few on to the storage. Other jobs of this process read there too, so the share
/// may be lower still. What was never written is not in the storage; that has a note of its own.
fn served_from_cache(job: &RunningJob, classes: &BTreeMap<Class, ClassRecord>) -> Option<Note> {
    let read = classes.get(&Class::Read).map_or(0, |class| class.bytes);
    let (base, end) = (job.seen.base_used.process, job.seen.end_used.process);
    let fetched = end.read_bytes.saturating_sub(base.read_bytes);
    let written = job.notes.iter().all(|note| note.key != "unwritten-extents");
    let cached = !job.shared.job.direct && !job.files.is_empty() && written && fetched < read / 2;
    (cached && job.files.iter().all(file::counts_reads)).then(|| {
        let text = format!(
            "reads were served from memory: the job read {}, and the kernel fetched {} from the storage meanwhile; for \
             the storage's own figures use O_DIRECT, or more data than memory holds",
            Bytes(read),
            Bytes(fetched)
        );
        Note { key: "served-from-cache".to_string(), text }
    })
}

/// What the threads found, and what reading everything back finds.
fn verify(
    job: &RunningJob,
    stop: &Stop,
    notes: &mut Vec<Note>,
    error: &mut Option<String>,
) -> Option<VerifyRecord> {
    if !job.shared.job.verify {
        return None;
    }
    let mut total = VerifyRecord::default();
    for end in &job.ends {
        total.checked += end.verify.checked;
        total.unwritten += end.verify.unwritten;
        total.skipped += end.verify.skipped;
        total.stale += end.verify.stale;
        total.torn += end.verify.torn;
        total.misplaced += end.verify.misplaced;
        total.examples.extend_from_slice(&end.verify.examples);
    }
    if error.is_none() && !job.seen.abandoned {
        match read_back(job, stop, &mut total) {
            Ok(true) => {}
            Ok(false) => notes.push(Note {
                key: "not-read-back".to_string(),
                text: "a signal came: not all blocks that were written were read back".to_string(),
            }),
            Err(failure) => *error = Some(failure),
        }
    }
    total.examples.truncate(8);
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::worker_threads;

    #[test]
    fn one_thread_is_none_of_several() {
        assert_eq!(
            [0, 1, 2].map(worker_threads),
            ["0 worker threads", "1 worker thread", "2 worker threads"]
        );
    }
}
