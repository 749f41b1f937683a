//! Runs jobs: threads that take operations from a stream and hand them to an engine, and a sampler that watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::result::record::{Class, Interval, JobRecord, ThreadRecord};
use weir_core::stats::Histogram;
use weir_core::workload::{Job, OpSource};

use self::job::RunningJob;
pub use crate::stop::{Stop, pause};

use crate::IoError;
use crate::place::Place;
use crate::sys::clock::now_ns;

mod finish;
mod job;
mod readback;
mod sampler;
mod seen;

/// Time between the signal to start and the first operation, so that all threads are awake by then.
const START_DELAY_NS: u64 = 1_000_000;

/// A job ready to run.
pub struct JobPlan {
    /// What was asked for.
    pub job: Job,
    /// The operations it means.
    pub source: Box<dyn OpSource>,
    /// The files or the device it uses, existing and large enough (see `files`).
    pub places: Vec<Place>,
}

/// What an observer sees once a tick, per job.
pub struct Tick<'a> {
    /// Index of the job in the call to [`run`].
    pub job_index: usize,
    /// The job.
    pub job: &'a Job,
    /// Time since the start of measuring, in ns; negative while warming up.
    pub at_ns: i64,
    /// What happened since the last tick.
    pub interval: &'a Interval,
    /// Exact latencies of the operations finished since the last tick.
    pub latencies: &'a BTreeMap<Class, Histogram>,
    /// Computes each thread's part since the start, for observers that ask.
    pub threads: &'a dyn Fn() -> Vec<ThreadRecord>,
}

/// Is told what happens while a run is under way: progress, intermediate reports.
pub trait Observer {
    /// Once per tick and job, from the sampler's thread.
    fn tick(&mut self, tick: &Tick<'_>);

    /// All threads of a job are about to start.
    fn started(&mut self, _job: &Job) {}

    /// Warming up is over: what a job does from now on counts.
    fn measuring(&mut self, _job: &Job) {}
}

/// Observes nothing.
pub struct Silent;

impl Observer for Silent {
    fn tick(&mut self, _tick: &Tick<'_>) {}
}

/// What the runner wants to know of the machine; the crate that reads /proc provides it.
pub trait Surroundings: Send + Sync {
    /// Time all processors have spent on anything but idling, in ns.
    fn machine_busy_ns(&self) -> Option<u64>;
    /// Kernel threads that work for this process's rings (`iou-wrk`).
    fn ring_workers(&self) -> usize;
}

/// Knows nothing of the machine.
pub struct Unseen;

impl Surroundings for Unseen {
    fn machine_busy_ns(&self) -> Option<u64> {
        None
    }
    fn ring_workers(&self) -> usize {
        0
    }
}

/// How a run is carried out; what is measured is in the jobs.
#[derive(Clone)]
pub struct RunOptions {
    /// Length of an interval and distance between ticks.
    pub tick_ns: u64,
    /// End even while operations are stuck, this long after the time limit (sysbench's `--forced-shutdown`).
    pub abandon_after_ns: Option<u64>,
    /// The machine around the run.
    pub surroundings: Arc<dyn Surroundings>,
    /// Measure how long handing operations to the kernel takes, where that is a call of its own (libaio, io_uring).
    pub time_submits: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            tick_ns: 1_000_000_000,
            abandon_after_ns: None,
            surroundings: Arc::new(Unseen),
            time_submits: false,
        }
    }
}

/// Runs jobs and returns a record for each, in order: side by side, but a job that is to follow the previous ones
/// waits for them. A job that meets an I/O error ends and says so in its record; what was measured so far is kept.
/// `Err` means that nothing was measured.
pub fn run(
    jobs: Vec<JobPlan>,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<Vec<JobRecord>, IoError> {
    let mut records: Vec<JobRecord> = Vec::with_capacity(jobs.len());
    for group in in_sequence(jobs) {
        if !records.is_empty() && stop.requested().is_some() {
            break;
        }
        match run_group(group, records.len(), options, observer, stop) {
            Ok(more) => records.extend(more),
            Err(error) if records.is_empty() => return Err(error),
            Err(error) => {
                // What earlier jobs measured is worth more than this failure's own exit.
                if let Some(last) = records.last_mut() {
                    last.error.get_or_insert(format!("the next job did not start: {error}"));
                }
                break;
            }
        }
    }
    Ok(records)
}

/// Groups of jobs that run side by side, in order.
fn in_sequence(jobs: Vec<JobPlan>) -> Vec<Vec<JobPlan>> {
    let mut groups: Vec<Vec<JobPlan>> = Vec::new();
    for plan in jobs {
        match groups.last_mut() {
            Some(group) if !plan.job.after_previous => group.push(plan),
            _ => groups.push(vec![plan]),
        }
    }
    groups
}

fn run_group(
    plans: Vec<JobPlan>,
    first_index: usize,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<Vec<JobRecord>, IoError> {
    let mut jobs = Vec::with_capacity(plans.len());
    for plan in plans {
        jobs.push(RunningJob::launch(plan, options)?);
    }
    jobs.iter_mut().try_for_each(RunningJob::wait_until_ready)?;
    for job in &jobs {
        observer.started(&job.shared.job);
    }
    let epoch_ns = now_ns() + START_DELAY_NS;
    for job in &mut jobs {
        job.go(epoch_ns);
    }
    sampler::watch(&mut jobs, first_index, options, observer, stop);
    Ok(jobs.into_iter().map(|job| finish::record(job, stop)).collect())
}
