//! `weir trace fsync`: what was typed as a request, and its reports as text or JSON.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Map, Value};
use weir_blocktrace::fsync::{Log, Report, SlowSync, StillWaiting};
use weir_cli::signals::stop_on_signals;
use weir_core::units::Nanos;
use weir_fs::Output;
use weir_report::text;
use weir_report::trace::folded;
use weir_report::trace::perfetto::{self, Counters};

use super::outcome;
use crate::cli::trace::fsync::Args;
use crate::failure::{Outcome, Usage};
use crate::kernel_traces::fsync::{Request, Telling, View, follow};
use crate::output::{create, place, print, print_exact};

/// Without a command and without --duration.
const DURATION: Nanos = Nanos(10_000_000_000);
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
    let in_intervals = args.interval.is_some();
    let mut told = Told { as_json: args.json, in_intervals, slow: Vec::new(), files };
    let code = follow(&request(&args), &mut told, &stop)?;
    Ok(outcome(&stop, code))
}

/// Prints what a trace tells.
struct Told<'a> {
    as_json: bool,
    in_intervals: bool,
    /// Slow syncs of the interval, for JSON.
    slow: Vec<SlowSync>,
    files: Files<'a>,
}

/// Files for results beside the report.
struct Files<'a> {
    folded: Option<(&'a Path, BufWriter<Output>)>,
    perfetto: Option<(&'a Path, BufWriter<Output>)>,
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

fn made<'a>(path: Option<&'a Path>, option: &str) -> anyhow::Result<Option<(&'a Path, BufWriter<Output>)>> {
    path.map(|path| Ok((path, BufWriter::new(create(path, option)?)))).transpose()
}

impl View for Told<'_> {
    fn slow(&mut self, fresh: Vec<SlowSync>) -> anyhow::Result<()> {
        if !self.as_json {
            return fresh.iter().try_for_each(|slow| print(&text::trace_fsync_slow(slow)));
        }
        let left = SLOW_MAX - self.slow.len().min(SLOW_MAX);
        self.slow.extend(fresh.into_iter().take(left));
        Ok(())
    }

    fn report(&mut self, told: &Telling<'_>) -> anyhow::Result<()> {
        if self.as_json {
            return self.json(told);
        }
        let title = match (self.in_intervals, told.whole) {
            (false, _) => String::new(),
            (true, true) => "the whole time\n".to_string(),
            (true, false) => format!("until {}\n", Nanos(told.elapsed_ns / 100_000_000 * 100_000_000)),
        };
        let gap = if told.whole { "" } else { "\n" };
        print(&format!("{title}{}{gap}", text::trace_fsync(told.report, told.still_waiting)))
    }

    fn end(&mut self, whole: &Report, log: Option<(Log, Counters)>) -> anyhow::Result<()> {
        if let Some((path, mut file)) = self.files.folded.take() {
            let written = file.write_all(folded(whole).as_bytes()).and_then(|()| place(file));
            written.with_context(|| format!("cannot write {}", path.display()))?;
            say!("wrote {}", path.display());
        }
        let Some(((path, file), (log, beside))) = self.files.perfetto.take().zip(log) else { return Ok(()) };
        let written = perfetto::syncs(file, &log, &beside).and_then(place);
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
}

impl Told<'_> {
    fn json(&mut self, told: &Telling<'_>) -> anyhow::Result<()> {
        let kind = if told.whole { "whole" } else { "interval" };
        let mut object = json(kind, told.report, told.still_waiting, &self.slow)?;
        self.slow.clear();
        object.insert("hooks".to_string(), told.hooks.into());
        let unknown = told.unknown.iter().map(|(what, _)| Value::from(*what)).collect();
        object.insert("unknown".to_string(), Value::Array(unknown));
        let text = if self.in_intervals {
            serde_json::to_string(&object)?
        } else {
            serde_json::to_string_pretty(&object)?
        };
        print_exact(&(text + "\n"))
    }
}

fn json(
    kind: &str,
    report: &Report,
    still: StillWaiting,
    slow: &[SlowSync],
) -> anyhow::Result<Map<String, Value>> {
    let mut object = Map::new();
    object.insert("type".to_string(), kind.into());
    object.insert("at".to_string(), Timestamp::now().to_string().into());
    object.insert("still_waiting".to_string(), still.count.into());
    object.insert("oldest_waiting_ns".to_string(), still.oldest_ns.into());
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

fn request(args: &Args) -> Request {
    Request {
        pid: args.pid,
        comm: args.comm.clone(),
        cgroup: args.cgroup.clone(),
        command: args.command.clone(),
        stack_every: args.stack_every,
        slow: args.slow,
        duration: args.duration.or(args.command.is_empty().then_some(DURATION)),
        interval: args.interval,
        log: args.perfetto.is_some(),
    }
}
