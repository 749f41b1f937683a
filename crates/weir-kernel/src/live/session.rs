//! A running session.

use super::control::Settings;
use super::overhead::{Sampler, monotonic_ns, process_ns};
use super::programs::{DEFAULT, FULL, Programs};
use super::ring::Ring;
use super::unseen::{Seen, Unseen, counted};
use super::{
    Detail, IssueStamp, Losses, Options, Overhead, Slow, Snapshot, StartStamp, Unit, cgroups, in_flight,
    stamps,
};
use crate::Error;

/// Programs attached to the kernel; they go away when this is dropped.
pub struct StageSession {
    // Dropped before the programs whose ring it reads.
    ring: Option<Ring>,
    programs: Programs,
    options: Options,
    start_stamp: StartStamp,
    issue_stamp: IssueStamp,
    sampler: Sampler,
    /// None where the programs shall not count everything.
    unseen: Option<Unseen>,
    /// How long issues were not watched, and since when they are not.
    unwatched_ns: u64,
    unwatched_from_ns: Option<u64>,
    started_ns: u64,
    process_before_ns: u64,
}

impl StageSession {
    /// Loads and attaches the programs the options need.
    ///
    /// # Errors
    /// What is missing: privilege, kernel support, or what the kernel refused.
    pub fn start(options: &Options) -> Result<StageSession, Error> {
        let process_before_ns = process_ns();
        let detail = options.needed();
        let (start_stamp, issue_stamp) = match detail {
            Detail::Default => stamps::of_this_kernel(options),
            Detail::Full => (StartStamp::Exact, IssueStamp::Program),
        };
        let issue_is_stamped = issue_stamp == IssueStamp::Request;
        let level = options.cgroup.map(cgroups::level_of).transpose()?.unwrap_or(0);
        let settings = Settings::new(options, issue_is_stamped, level, &stamps::kernel())?;
        let kind = if detail == Detail::Full { &FULL } else { &DEFAULT };
        let mut programs =
            Programs::load(kind, settings, if issue_is_stamped { &["on_issue"] } else { &[] })?;
        let ring = options.slow_ns.map(|_| slow_ring(&programs)).transpose()?;
        let started_ns = monotonic_ns();
        programs.begin(started_ns)?;
        let counts_all = options.pids.is_empty() && options.cgroup.is_none();
        let unseen = counts_all.then(|| Unseen::since(counted(&options.devices)));
        Ok(StageSession {
            ring,
            programs,
            options: options.clone(),
            start_stamp,
            issue_stamp,
            sampler: Sampler::default(),
            unseen,
            unwatched_ns: 0,
            unwatched_from_ns: None,
            started_ns,
            process_before_ns,
        })
    }

    /// All that was counted since the start. The first ones take 2 ms, in which the programs' cost is sampled.
    pub fn snapshot(&mut self) -> Snapshot {
        let programs = &self.programs;
        self.sampler.sample(|| programs.figures(), || programs.figures_at_completion());
        // Before the tables: what they lack then was missed.
        let counted = self.unseen.as_ref().map(|_| counted(&self.options.devices));
        let control = self.programs.control();
        let cells = self.programs.cells(control.cells);
        let seen = Seen { ios: cells.ios_by_device(), for_others: cells.for_others_by_device() };
        let unseen = self.unseen.as_mut().zip(counted).map_or(0, |(unseen, counted)| {
            unseen.so_far(&counted, &seen, control.losses().cells, || self::counted(&self.options.devices))
        });
        Snapshot {
            taken_ns: monotonic_ns(),
            started_ns: self.started_ns,
            table: cells.table(),
            unit: self.unit(),
            estimated: seen.for_others,
            issues_unwatched_ns: self.unwatched_ns + self.unwatched_for_ns(monotonic_ns()),
            losses: Losses { skipped: self.programs.figures().skipped, unseen, ..control.losses() },
            overhead: Overhead {
                completions: cells.ios(),
                ns_per_completion: self.sampler.ns_per_completion(),
                process_ns: process_ns() - self.process_before_ns,
                memory_bytes: self.programs.memory_bytes(),
            },
            in_flight: in_flight::by_device(&self.options.devices),
            start_stamp: self.start_stamp,
            issue_stamp: self.issue_stamp,
        }
    }

    /// Whether the issue of requests is watched, by which time before it and after it are told apart. Who watches for one of `each` parts
    /// of the time says so: what is seen then stands for the rest. Nothing changes where requests tell their issue themselves, and in
    /// full detail.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn watch_issues(&mut self, each: u32, are_watched: bool) -> Result<(), Error> {
        // Programs come and go at once, but the kernel may let who asks for it wait.
        let now_ns = monotonic_ns();
        if self.programs.watch_issues(each, are_watched, now_ns)? {
            self.unwatched_ns += self.unwatched_for_ns(now_ns);
            self.unwatched_from_ns = (!are_watched).then_some(now_ns);
        }
        Ok(())
    }

    fn unwatched_for_ns(&self, now_ns: u64) -> u64 {
        self.unwatched_from_ns.map_or(0, |from_ns| now_ns.saturating_sub(from_ns))
    }

    /// The slow requests since the last call, in order of completion.
    pub fn slow(&mut self) -> Vec<Slow> {
        self.ring.as_mut().map(Ring::take).unwrap_or_default()
    }

    /// What the counts of the tables are.
    pub fn unit(&self) -> Unit {
        match self.options.needed() {
            Detail::Default => Unit::Request,
            Detail::Full => Unit::Piece,
        }
    }

    /// How many tracepoints the session hooks.
    pub fn hooks(&self) -> usize {
        self.programs.hooks()
    }
}

fn slow_ring(programs: &Programs) -> Result<Ring, Error> {
    let map = programs.map("slow_requests")?;
    Ring::new(&map).map_err(|source| Error::Program { action: "read", program: "slow_requests", source })
}
