//! `weir trace live`: a source of figures, a sampler that cuts them into intervals, and somebody who shows them.

mod json;
mod kernel;
mod sampler;
mod show;
mod source;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use weir_blocktrace::Source;
use weir_core::units::Nanos;
use weir_io::runner::Stop;

use self::sampler::Sampler;
use self::show::Show;
use self::source::Wanted;
use crate::cli::trace::live::Args;
use crate::devices::named;
use crate::failure::{Lacking, Outcome, Usage};
use crate::signals::stop_on_signals;

/// Shortest time between refreshes: below it the view costs more than what it watches.
const INTERVAL_MIN: Nanos = Nanos(100_000_000);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    if args.interval < INTERVAL_MIN {
        let what = format!("--interval {} is too short", args.interval);
        return Err(Usage { what, hint: Some(format!("the shortest is {INTERVAL_MIN}")) }.into());
    }
    let devices = named(&[args.devices.as_slice(), &args.device].concat())?;
    let stop = stop_on_signals()?;
    let wanted = Wanted::of(&args, &devices)?;
    let opened = source::open(args.source, &wanted)?;
    let about = opened.about(&args);
    let mut sampler = Sampler::new(devices, opened.watch)?;
    let mut show = if args.json {
        Show::json(about)
    } else if std::io::stdout().is_terminal() {
        Show::screen(about)?
    } else {
        Show::lines(about)
    };
    watch(&args, &mut sampler, &mut show, &stop)?;
    let whole = sampler.whole();
    show.end(&whole)?;
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// Until the time is up, the user ends it or a signal does.
fn watch(args: &Args, sampler: &mut Sampler, show: &mut Show, stop: &Stop) -> anyhow::Result<()> {
    let begun = Instant::now();
    let interval = Duration::from_nanos(args.interval.0);
    let end = args.duration.map(|duration| begun + Duration::from_nanos(duration.0));
    let mut next = begun + interval;
    loop {
        let until = end.map_or(next, |end| next.min(end));
        let goes_on = show.wait(until, stop, || sampler.drain())?;
        let taken = sampler.take()?;
        show.interval(&taken)?;
        if !goes_on || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        // An interval that was missed is not made up for: the next frame holds what happened in both.
        while next <= Instant::now() {
            next += interval;
        }
    }
}

/// What a source needs that is not there, with the way out.
fn lacking(source: Source, why: &str) -> anyhow::Error {
    let what = format!("the source {} cannot be used here: {why}", source.name());
    let hint = match source {
        Source::Bpf => "run it as root, or let --source auto take the best there is",
        Source::Tracefs => "run it as root, or use --source diskstats, which needs no privilege",
        Source::Diskstats => "/proc/diskstats must be readable",
    };
    Lacking { what, hint: Some(hint.to_string()) }.into()
}
