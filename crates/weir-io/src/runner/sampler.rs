//! Watches running jobs: once a tick it takes the difference of the counters, keeps it as an interval, and tells
//! the observer. It also ends jobs when their time is up or the user asks.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use weir_core::result::intervals::between;
use weir_core::result::record::{Class, Interval};
use weir_core::stats::counters::Totals;

use super::job::RunningJob;
use super::seen::{Scalars, Used};
use super::{Observer, RunOptions, Tick};
use crate::stop::Stop;
use crate::sys::clock::{now_ns, sleep_until_ns};
use crate::sys::usage::of_process;

/// Between ticks the sampler wakes this often to see whether a job has ended or should.
const LOOK_NS: u64 = 20_000_000;

impl Scalars {
    /// The sums now.
    pub fn of(job: &RunningJob) -> Scalars {
        let mut sums = Scalars::default();
        for counters in &job.counters {
            sums.in_flight_integral += counters.in_flight_integral.load(Relaxed);
            sums.intended += counters.intended.load(Relaxed);
            sums.late += counters.late.load(Relaxed);
            sums.waited_for_depth += counters.waited_for_depth.load(Relaxed);
        }
        sums
    }
}

/// How far behind its time each operation started so far.
pub fn start_delays(job: &RunningJob) -> Totals {
    let mut total = Totals::default();
    job.counters.iter().filter_map(|c| c.start_delays.as_ref()).for_each(|delays| delays.add_to(&mut total));
    total
}

/// Sums over the threads of a job, by class.
pub fn totals(job: &RunningJob) -> BTreeMap<Class, Totals> {
    Class::ALL
        .into_iter()
        .map(|class| {
            let mut total = Totals::default();
            job.counters.iter().for_each(|counters| counters.add_class_to(class, &mut total));
            (class, total)
        })
        .collect()
}

/// Watches until every job has ended.
pub fn watch(
    jobs: &mut [RunningJob],
    first_index: usize,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) {
    for job in jobs.iter_mut() {
        job.seen.last_ns = job.epoch_ns;
        job.seen.next_tick_ns = job.epoch_ns + options.tick_ns;
    }
    while jobs.iter().any(|job| !job.seen.ended) {
        let now = now_ns();
        for (index, job) in jobs.iter_mut().enumerate().filter(|(_, job)| !job.seen.ended) {
            look_at(job, first_index + index, now, options, observer, stop);
        }
        let next = jobs.iter().filter(|j| !j.seen.ended).map(|j| next_event_ns(j, now)).min();
        sleep_until_ns(next.unwrap_or(0));
    }
}

fn next_event_ns(job: &RunningJob, now: u64) -> u64 {
    let tick = job.seen.next_tick_ns;
    let start = if job.seen.measuring { u64::MAX } else { job.measure_from_ns };
    tick.min(start).min(job.deadline_ns.max(now + 1_000_000)).min(now + LOOK_NS)
}

fn look_at(
    job: &mut RunningJob,
    index: usize,
    now: u64,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) {
    if now >= job.deadline_ns || stop.requested().is_some() {
        job.shared.halt.store(true, Relaxed);
    }
    if !job.seen.measuring && now >= job.measure_from_ns {
        begin_measuring(job, now, options);
        observer.measuring(&job.shared.job);
    }
    let ended = job.all_ended();
    let abandoned =
        options.abandon_after_ns.is_some_and(|grace| now >= job.deadline_ns.saturating_add(grace));
    if now >= job.seen.next_tick_ns || ended || abandoned {
        tick(job, index, now, options, observer);
    }
    if ended || abandoned {
        if !job.seen.measuring {
            begin_measuring(job, now, options);
        }
        job.seen.abandoned = abandoned && !ended;
        job.seen.end_used = used(options);
        job.seen.ended = true;
    }
}

fn used(options: &RunOptions) -> Used {
    Used { process: of_process(), machine_busy_ns: options.surroundings.machine_busy_ns() }
}

/// Everything counted before this moment is warm-up.
fn begin_measuring(job: &mut RunningJob, now: u64, options: &RunOptions) {
    job.seen.measuring = true;
    job.seen.base_used = used(options);
    if job.shared.job.ramp.0 + job.shared.job.warmup.0 == 0 {
        return;
    }
    job.seen.base = totals(job);
    job.seen.base_scalars = Scalars::of(job);
    job.seen.base_start_delays = start_delays(job);
    job.counters.iter().for_each(|counters| counters.restart_in_flight_max());
    job.seen.last = job.seen.base.clone();
    job.measure_from_ns = now;
    job.seen.last_ns = now;
    job.seen.next_tick_ns = now + options.tick_ns;
}

fn tick(job: &mut RunningJob, index: usize, now: u64, options: &RunOptions, observer: &mut dyn Observer) {
    let current = totals(job);
    let (classes, latencies) = between(&job.seen.last, &current);
    let interval = Interval {
        classes,
        start_ns: job.seen.last_ns.saturating_sub(job.measure_from_ns),
        // A job can end before its epoch, which lies a moment ahead of the start.
        len_ns: now.saturating_sub(job.seen.last_ns),
        oldest_ns: job.counters.iter().map(|c| c.oldest_ns(now)).max().unwrap_or(0),
        in_flight: job.counters.iter().map(|c| c.in_flight.load(Relaxed)).sum(),
    };
    if job.shared.job.engine == weir_core::workload::spec::EngineKind::IoUring {
        job.seen.ring_workers_max = job.seen.ring_workers_max.max(options.surroundings.ring_workers());
    }
    let at_ns = now as i64 - job.measure_from_ns as i64;
    let threads = || job.counters.iter().map(|c| c.record()).collect();
    observer.tick(&Tick {
        job_index: index,
        job: &job.shared.job,
        at_ns,
        interval: &interval,
        latencies: &latencies,
        threads: &threads,
    });
    if job.seen.measuring {
        job.seen.intervals.keep(interval, options.tick_ns);
    }
    job.seen.last = current;
    job.seen.last_ns = now;
    // Ticks stay on their grid: a late one does not delay the next.
    while job.seen.next_tick_ns <= now {
        job.seen.next_tick_ns += options.tick_ns.max(1);
    }
}
