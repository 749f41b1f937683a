//! The waits of syncs, of processes that run or of a command that is started for it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use weir_blocktrace::fsync::{Analyst, Log, Report, Sampling, SlowSync, StillWaiting};
use weir_core::target::TargetFacts;
use weir_core::units::Nanos;
use weir_host::Host;
use weir_io::runner::Stop;
use weir_kernel::Error;
use weir_kernel::fsync::{FsyncSession, Options, Storage};
use weir_report::trace::perfetto::Counters;

use super::command::{Beside, Prints, code_of};
use crate::clock::Moment;
use crate::failure::Lacking;

/// How often the programs' ring is emptied.
const DRAIN: Duration = Duration::from_millis(50);
/// How often syncs under way are read.
const TICK: Duration = Duration::from_secs(1);

/// Whose syncs are followed, and how.
pub struct Request {
    /// Of this process.
    pub pid: Option<u32>,
    /// Of threads with this name.
    pub comm: Option<String>,
    /// Of a group of cgroup v2 and the groups below it.
    pub cgroup: Option<PathBuf>,
    /// Of this command, which is started; empty: none.
    pub command: Vec<String>,
    /// Waits of this length always have their stack taken.
    pub stack_every: Nanos,
    /// Syncs of this length are told one by one.
    pub slow: Option<Nanos>,
    /// End after this long.
    pub duration: Option<Nanos>,
    /// Report so often, and on the whole at the end.
    pub interval: Option<Nanos>,
    /// Keep single syncs and requests for the end.
    pub log: bool,
}

/// A report, and what is known beside it.
pub struct Telling<'a> {
    /// On the whole time, not an interval.
    pub whole: bool,
    /// The figures.
    pub report: &'a Report,
    /// Syncs that have not returned.
    pub still_waiting: StillWaiting,
    /// Since the start.
    pub elapsed_ns: u64,
    /// How the programs are hooked in.
    pub hooks: &'static str,
    /// What this kernel does not tell, and why.
    pub unknown: &'a [(&'static str, String)],
}

/// Where slow syncs and reports go.
pub trait View {
    /// Syncs that were slow, since the last call.
    ///
    /// # Errors
    /// When they cannot be shown.
    fn slow(&mut self, fresh: Vec<SlowSync>) -> anyhow::Result<()>;

    /// A report of an interval, or of the whole.
    ///
    /// # Errors
    /// When it cannot be shown.
    fn report(&mut self, telling: &Telling<'_>) -> anyhow::Result<()>;

    /// The end, with the log if one was asked for.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end(&mut self, whole: &Report, log: Option<(Log, Counters)>) -> anyhow::Result<()>;
}

/// Follows syncs until the time is up, the command ends or a signal comes; reports on the way and at the end. The exit code of
/// the command, if there was one.
///
/// # Errors
/// When the kernel refuses the programs, the command cannot be started, or the view fails.
pub fn follow(request: &Request, view: &mut impl View, stop: &Stop) -> anyhow::Result<Option<u8>> {
    let mut storage = Storage::default();
    let session = FsyncSession::start(&mut storage, &options(request)).map_err(explain)?;
    for (what, why) in session.unknown() {
        say!("weir: not known here: {what} ({why})");
    }
    let sampling =
        Sampling { stack_every_ns: request.stack_every.0, slow_ns: request.slow.map(|slow| slow.0) };
    let child = Beside::start(&request.command, Prints::ToStderr)?;
    let mut analyst = Analyst::new(sampling);
    if request.log {
        analyst.keep_log();
    }
    let memory = request.log.then(Memory::default);
    let mut watch = Watch { session, analyst, begun: Instant::now(), child, memory };
    let told = watch.run(request, view, stop).and_then(|whole| view.end(&whole, watch.log()));
    let child = watch.child.take();
    // No program stays in the kernel for a command that goes on; and nobody else waits for that one.
    drop(watch);
    if let (Err(error), Some(_)) = (&told, &child) {
        say!("weir: {error}; waits for the command");
    }
    let code = child.map(|child| end(child, stop)).transpose();
    told.and(code)
}

/// A trace under way.
struct Watch<'a> {
    session: FsyncSession<'a>,
    analyst: Analyst,
    begun: Instant,
    child: Option<Beside>,
    /// Kept beside a log.
    memory: Option<Memory>,
}

/// Dirty pages from tick to tick.
#[derive(Default)]
struct Memory {
    points: Vec<(u64, u64, u64)>,
}

impl Memory {
    fn take(&mut self) {
        let (host, none) = (Host::live(), TargetFacts::default());
        let sample = host.sample(&none);
        let memory = sample.since(&sample).memory;
        self.points.push((Moment::now().awake_ns, memory.dirty_bytes, memory.writeback_bytes));
    }
}

impl Watch<'_> {
    fn run(&mut self, request: &Request, view: &mut impl View, stop: &Stop) -> anyhow::Result<Report> {
        let end = request.duration.map(|duration| self.begun + Duration::from_nanos(duration.0));
        let interval = request.interval.map(|interval| Duration::from_nanos(interval.0));
        let (mut tick, mut since) = (self.begun + TICK, self.begun);
        loop {
            let now = Instant::now();
            let over =
                end.is_some_and(|end| now >= end) || stop.requested().is_some() || self.child_ended()?;
            let interval_over = interval.is_some_and(|interval| now >= since + interval);
            if over || interval_over || now >= tick {
                self.session.tick(&mut self.analyst, over).map_err(explain)?;
                self.memory.iter_mut().for_each(Memory::take);
                tick = now + TICK;
            } else {
                self.session.drain(&mut self.analyst).map_err(explain)?;
            }
            view.slow(self.analyst.slow())?;
            if interval_over || (over && interval.is_some()) {
                let report = self.analyst.report(nanos(since.elapsed()));
                self.tell(view, false, &report)?;
                self.analyst.next_interval();
                since = now;
            }
            if over {
                let report = self.analyst.whole(nanos(self.begun.elapsed()));
                self.tell(view, true, &report)?;
                return Ok(report);
            }
            std::thread::sleep(DRAIN);
        }
    }

    fn tell(&self, view: &mut impl View, whole: bool, report: &Report) -> anyhow::Result<()> {
        view.report(&Telling {
            whole,
            report,
            still_waiting: self.analyst.still_waiting(),
            elapsed_ns: nanos(self.begun.elapsed()),
            hooks: self.session.brackets().name(),
            unknown: self.session.unknown(),
        })
    }

    /// Single syncs and requests, and what was read beside them.
    fn log(&mut self) -> Option<(Log, Counters)> {
        let memory = self.memory.take()?.points;
        let wall_ns = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0);
        let devices = Host::live().devices().into_iter().map(|device| (device.number, device.name));
        let wall_clock = Some((Moment::now().awake_ns, wall_ns));
        Some((self.analyst.take_log(), Counters { memory, wall_clock, devices: devices.collect() }))
    }

    fn child_ended(&mut self) -> anyhow::Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        Ok(child.ended().context("cannot wait for the command")?.is_some())
    }
}

/// The end of the duration lets the command finish.
fn end(command: Beside, stop: &Stop) -> anyhow::Result<u8> {
    let status = command.wait(stop)?;
    if !status.success() {
        say!("weir: the command ended with {status}");
    }
    Ok(code_of(status))
}

fn options(request: &Request) -> Options {
    Options {
        pid: request.pid,
        comm: request.comm.clone(),
        cgroup: request.cgroup.clone(),
        // The command does not exist yet; weir itself syncs nothing.
        descendants_of: (!request.command.is_empty()).then(std::process::id),
        stack_every_ns: request.stack_every.0,
        ring_bytes: None,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What the machine lacks, in words.
fn explain(error: Error) -> anyhow::Error {
    let probed = weir_kernel::probe::report();
    let hint = if matches!(error, Error::Denied { .. }) {
        "run it as root".to_string()
    } else if let Some(mode) = &probed.lockdown {
        format!("the kernel is locked down ({mode}), which forbids programs that read its memory")
    } else {
        "it needs root (CAP_SYS_ADMIN) and a kernel with CONFIG_DEBUG_INFO_BTF; weir trace live shows what the devices do"
            .to_string()
    };
    Lacking { what: error.to_string(), hint: Some(hint) }.into()
}
