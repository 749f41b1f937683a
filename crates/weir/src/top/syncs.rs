//! Syncs of all processes, interval by interval.

use std::time::Instant;

use weir_blocktrace::fsync::{Analyst, Anatomy, Sampling, SlowSync};
use weir_core::units::Nanos;
use weir_kernel::Error;
use weir_kernel::fsync::{FsyncSession, Options};
use weir_top::Syncs;

pub use weir_kernel::fsync::Storage;

/// Waits at least this long always have their stack taken.
const STACK_EVERY_NS: u64 = 1_000_000;

/// Programs that follow syncs.
pub struct Watched<'a> {
    session: FsyncSession<'a>,
    analyst: Analyst,
    since: Instant,
}

/// An interval.
pub struct Followed {
    /// All of them.
    pub all: Syncs,
    /// By process, those that waited longest first.
    pub processes: Vec<Anatomy>,
    /// Those that took long.
    pub slow: Vec<SlowSync>,
    /// How many, or what of them, was not seen.
    pub lost: u64,
}

impl<'a> Watched<'a> {
    /// Begins now.
    pub fn start(storage: &'a mut Storage, slow: Nanos) -> Result<Watched<'a>, Error> {
        let options = Options { stack_every_ns: STACK_EVERY_NS, ..Options::default() };
        let session = FsyncSession::start(storage, &options)?;
        let sampling = Sampling { stack_every_ns: STACK_EVERY_NS, slow_ns: Some(slow.0) };
        Ok(Watched { session, analyst: Analyst::new(sampling), since: Instant::now() })
    }

    /// Sentences: what is not known here.
    pub fn remarks(&self) -> Vec<String> {
        let remark = |(what, why): &(&'static str, String)| format!("not known of syncs: {what} ({why})");
        self.session.unknown().iter().map(remark).collect()
    }

    /// Takes in what has piled up.
    pub fn drain(&mut self) -> anyhow::Result<()> {
        Ok(self.session.drain(&mut self.analyst)?)
    }

    /// What happened since the last call.
    pub fn take(&mut self) -> anyhow::Result<Followed> {
        self.session.tick(&mut self.analyst, false)?;
        let elapsed = self.since.elapsed();
        self.since = Instant::now();
        let report = self.analyst.report(elapsed.as_nanos() as u64);
        let slow = self.analyst.slow();
        self.analyst.forget();
        Ok(Followed {
            all: Syncs {
                per_second: report.all.syncs as f64 / elapsed.as_secs_f64().max(1e-9),
                under_way: self.analyst.still_waiting().count,
                anatomy: report.all,
            },
            processes: report.processes,
            slow,
            lost: report.losses.sum(),
        })
    }
}
