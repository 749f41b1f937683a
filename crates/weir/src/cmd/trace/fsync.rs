//! `weir trace fsync`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write, stderr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Map, Value};
use weir_blocktrace::fsync::{Analyst, Report, Sampling, SlowSync};
use weir_core::target::TargetFacts;
use weir_core::units::Nanos;
use weir_host::Host;
use weir_io::runner::Stop;
use weir_kernel::Error;
use weir_kernel::fsync::{FsyncSession, Options, Storage};
use weir_report::text;
use weir_report::trace::{folded, perfetto};

use crate::cli::trace::fsync::Args;
use crate::clock::Moment;
use crate::failure::{Lacking, Outcome, Usage};
use crate::output::{create, print, print_exact};
use crate::signals::stop_on_signals;

/// Without a command and without --duration.
const DURATION: Nanos = Nanos(10_000_000_000);
/// How often the programs' ring is emptied.
const DRAIN: Duration = Duration::from_millis(50);
/// How often syncs under way are looked at.
const TICK: Duration = Duration::from_secs(1);
/// The kernel cuts names here.
const COMM_MAX: usize = 15;
/// Slow syncs in one JSON object.
const SLOW_MAX: usize = 10_000;
const INTERVAL_MIN: Nanos = Nanos(100_000_000);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    check(&args)?;
    let files = Files::create(&args)?;
    let stop = stop_on_signals()?;
    let mut storage = Storage::default();
    let session = FsyncSession::start(&mut storage, &options(&args)).map_err(explain)?;
    for (what, why) in session.unknown() {
        say!("weir: not known here: {what} ({why})");
    }
    let sampling = Sampling { stack_every_ns: args.stack_every.0, slow_ns: args.slow.map(|slow| slow.0) };
    let child = start(&args.command)?;
    let mut analyst = Analyst::new(sampling);
    if files.perfetto.is_some() {
        analyst.keep_log();
    }
    let memory = files.perfetto.is_some().then(Memory::default);
    let mut watch = Watch { session, analyst, begun: Instant::now(), child, memory };
    let whole = watch.run(&args, &stop)?;
    watch.write(files, &whole)?;
    watch.end_child(&stop)?;
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// A trace under way.
struct Watch<'a> {
    session: FsyncSession<'a>,
    analyst: Analyst,
    begun: Instant,
    child: Option<Child>,
    /// Where a trace for Perfetto wants it.
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

/// Files for results beside the report.
struct Files<'a> {
    folded: Option<(&'a Path, File)>,
    perfetto: Option<(&'a Path, File)>,
}

impl Files<'_> {
    /// Made before anything is traced: a place that cannot be written to is told at once.
    fn create(args: &Args) -> anyhow::Result<Files<'_>> {
        Ok(Files {
            folded: made(args.folded.as_deref(), "--folded")?,
            perfetto: made(args.perfetto.as_deref(), "--perfetto")?,
        })
    }
}

fn made<'a>(path: Option<&'a Path>, option: &str) -> anyhow::Result<Option<(&'a Path, File)>> {
    path.map(|path| Ok((path, create(path, option)?))).transpose()
}

impl Watch<'_> {
    /// Until the time is up, the command ends or a signal comes; reports on the way and at the end.
    fn run(&mut self, args: &Args, stop: &Stop) -> anyhow::Result<Report> {
        let duration = args.duration.or(self.child.is_none().then_some(DURATION));
        let end = duration.map(|duration| self.begun + Duration::from_nanos(duration.0));
        let interval = args.interval.map(|interval| Duration::from_nanos(interval.0));
        let (mut tick, mut since) = (self.begun + TICK, self.begun);
        let mut slow = Vec::new();
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
            let fresh = self.analyst.slow();
            if args.json {
                slow.extend(fresh.into_iter().take(SLOW_MAX - slow.len().min(SLOW_MAX)));
            } else {
                fresh.iter().try_for_each(|slow| print(&text::trace_fsync_slow(slow)))?;
            }
            if interval_over || (over && interval.is_some()) {
                let report = self.analyst.report(nanos(since.elapsed()), self.session.losses());
                self.show(args, "interval", &report, &slow)?;
                slow.clear();
                self.analyst.next_interval();
                since = now;
            }
            if over {
                let report = self.analyst.whole(nanos(self.begun.elapsed()), self.session.losses());
                self.show(args, "whole", &report, &slow)?;
                return Ok(report);
            }
            std::thread::sleep(DRAIN);
        }
    }

    fn show(&self, args: &Args, kind: &str, report: &Report, slow: &[SlowSync]) -> anyhow::Result<()> {
        let still = self.analyst.still_waiting();
        if args.json {
            let mut object = json(kind, report, still, slow)?;
            object.insert("hooks".to_string(), self.session.brackets().name().into());
            let unknown = self.session.unknown().iter().map(|(what, _)| Value::from(*what)).collect();
            object.insert("unknown".to_string(), Value::Array(unknown));
            let text = if args.interval.is_some() {
                serde_json::to_string(&object)?
            } else {
                serde_json::to_string_pretty(&object)?
            };
            return print_exact(&(text + "\n"));
        }
        let title = match (args.interval, kind) {
            (None, _) => String::new(),
            (Some(_), "whole") => "the whole time\n".to_string(),
            (Some(_), _) => {
                format!("until {}\n", Nanos(nanos(self.begun.elapsed()) / 100_000_000 * 100_000_000))
            }
        };
        let gap = if kind == "interval" { "\n" } else { "" };
        print(&format!("{title}{}{gap}", text::trace_fsync(report, still)))
    }

    /// Writes the files that were asked for.
    fn write(&mut self, files: Files<'_>, whole: &Report) -> anyhow::Result<()> {
        if let Some((path, mut file)) = files.folded {
            let written = file.write_all(folded(whole).as_bytes());
            written.with_context(|| format!("cannot write {}", path.display()))?;
            say!("wrote {}", path.display());
        }
        let Some((path, file)) = files.perfetto else { return Ok(()) };
        let log = self.analyst.take_log();
        let now = Moment::now().awake_ns;
        let wall_ns = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0);
        let devices = Host::live().devices().into_iter().map(|device| (device.number, device.name));
        let beside = perfetto::Counters {
            memory: self.memory.take().unwrap_or_default().points,
            wall_clock: Some((now, wall_ns)),
            devices: devices.collect::<HashMap<_, _>>(),
        };
        let written = perfetto::syncs(BufWriter::new(file), &log, &beside);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        if log.left_out > 0 {
            say!(
                "note: {} syncs and requests are not in {}: it holds the first ones",
                log.left_out,
                path.display()
            );
        }
        say!("wrote {} ({} syncs, {} requests)", path.display(), log.syncs.len(), log.ios.len());
        Ok(())
    }

    fn child_ended(&mut self) -> anyhow::Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        Ok(child.try_wait().context("cannot wait for the command")?.is_some())
    }

    /// A signal ends the command too; the end of --duration lets it finish.
    fn end_child(&mut self, stop: &Stop) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        if stop.requested().is_some() {
            let _ = child.kill();
        }
        let status = child.wait().context("cannot wait for the command")?;
        if !status.success() {
            say!("weir: the command ended with {status}");
        }
        Ok(())
    }
}

fn json(kind: &str, report: &Report, still: usize, slow: &[SlowSync]) -> anyhow::Result<Map<String, Value>> {
    let mut object = Map::new();
    object.insert("type".to_string(), kind.into());
    object.insert("at".to_string(), Timestamp::now().to_string().into());
    object.insert("still_waiting".to_string(), still.into());
    if let Value::Object(figures) = serde_json::to_value(report)? {
        object.extend(figures);
    }
    object.insert("slow".to_string(), serde_json::to_value(slow)?);
    Ok(object)
}

fn check(args: &Args) -> anyhow::Result<()> {
    let complain = |what: String, hint: &str| Err(Usage { what, hint: Some(hint.to_string()) }.into());
    if let Some(comm) = args.comm.as_ref().filter(|comm| comm.len() > COMM_MAX || comm.is_empty()) {
        let hint = "the kernel keeps 15 characters of a name; /proc/PID/comm shows them";
        return complain(format!("--comm `{comm}`: no thread has such a name"), hint);
    }
    if let Some(interval) = args.interval.filter(|interval| *interval < INTERVAL_MIN) {
        return complain(format!("--interval {interval} is too short"), "the shortest is 100 ms");
    }
    Ok(())
}

fn options(args: &Args) -> Options {
    Options {
        pid: args.pid,
        comm: args.comm.clone(),
        cgroup: args.cgroup.clone(),
        // The command does not exist yet; weir itself syncs nothing.
        descendants_of: (!args.command.is_empty()).then(std::process::id),
        stack_every_ns: args.stack_every.0,
    }
}

/// Starts the command, if there is one; stdout is for the report alone.
fn start(command: &[String]) -> anyhow::Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::from(stderr()))
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    Ok(Some(child))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What the machine lacks, in words.
fn explain(error: Error) -> anyhow::Error {
    let probed = weir_kernel::probe::report();
    let hint = if !probed.lacking.is_empty() {
        format!("missing: {}; run it as root", probed.lacking.join(", "))
    } else if let Some(mode) = &probed.lockdown {
        format!("the kernel is locked down ({mode}), which forbids programs that read its memory")
    } else {
        "it needs root (CAP_SYS_ADMIN) and a kernel with CONFIG_DEBUG_INFO_BTF; weir trace live shows what the devices do"
            .to_string()
    };
    Lacking { what: error.to_string(), hint: Some(hint) }.into()
}
