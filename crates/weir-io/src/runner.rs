//! Runs jobs: threads that take operations from a stream and hand them to an engine, and a sampler that watches.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use weir_core::result::record::{Class, Interval, JobRecord};
use weir_core::stats::Histogram;
use weir_core::workload::{Job, OpSource};

use crate::IoError;

/// A job ready to run.
pub struct JobPlan {
    /// What was asked for.
    pub job: Job,
    /// The operations it means.
    pub source: Box<dyn OpSource>,
    /// The files or the device it uses, existing and large enough (see `files`).
    pub paths: Vec<PathBuf>,
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
}

/// Is told what happens while a run is under way: progress, intermediate reports.
pub trait Observer {
    /// Once per tick and job, from the sampler's thread.
    fn tick(&mut self, tick: &Tick<'_>);

    /// All threads of a job are about to start.
    fn started(&mut self, _job: &Job) {}
}

/// Observes nothing.
pub struct Silent;

impl Observer for Silent {
    fn tick(&mut self, _tick: &Tick<'_>) {}
}

/// A request to stop, shared with signal handlers: runs end early, keep what they measured and clean up.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Asks everything that holds a clone to stop.
    pub fn request(&self, signal: u8) {
        let _ = self.0.compare_exchange(0, signal.max(1), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The signal that asked, if any (1 where it was no signal).
    pub fn requested(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// How a run is carried out; what is measured is in the jobs.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Length of an interval and distance between ticks.
    pub tick_ns: u64,
    /// End even while operations are stuck, this long after the time limit (sysbench's `--forced-shutdown`).
    pub abandon_after_ns: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { tick_ns: 1_000_000_000, abandon_after_ns: None }
    }
}

/// Runs jobs side by side and returns a record for each, in order. A job that meets an I/O error ends and says so
/// in its record; what was measured so far is kept. `Err` means that nothing was measured.
pub fn run(
    jobs: Vec<JobPlan>,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<Vec<JobRecord>, IoError> {
    let _ = (jobs, options, observer, stop);
    Err(IoError::environment("the runner is not there yet"))
}
