//! `weir top`.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use jiff::Zoned;
use weir_blocktrace::Source;
use weir_cli::signals::stop_on_signals;
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_io::runner::Stop;
use weir_top::{About, Look, Model, Sample, Samples};

use crate::cli::top::{Args, Choice, Size};
use crate::devices::named;
use crate::failure::{Lacking, Outcome, Usage};
use crate::inputs::recorder::dir;
use crate::output::print_exact;
use crate::recorder::archive::{self, Archive};
use crate::settings::recorder::stretch;
use crate::top::{self, Machine, Recorded, Storage, Wishes};

/// Below it the screen costs more than what it watches.
const INTERVAL_MIN: Nanos = Nanos(100_000_000);
/// Samples that are kept: some 20 KiB each on a busy machine.
const SAMPLES_MAX: u64 = 3600;
/// Of a frame that goes to no terminal.
const SIZE: Size = Size(100, 40);
/// How often what has piled up is taken in.
const DRAIN: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    check(&args)?;
    let devices = named(&args.devices)?;
    let at_ms = args.at.as_deref().map(|at| stretch(at, None, &Zoned::now())).transpose()?.map(|(at, _)| at);
    let mut recorded = recorded(&args, &devices)?;
    if let (Some(at_ms), true, Some(recorded)) = (at_ms, args.once, &mut recorded) {
        return once_recorded(&args, at_ms, recorded);
    }
    let stop = stop_on_signals()?;
    let source = match args.source {
        Choice::Auto => None,
        Choice::Bpf => Some(Source::Bpf),
        Choice::Diskstats => Some(Source::Diskstats),
    };
    let wishes =
        Wishes { devices, source, syncs: !args.no_syncs, interval: args.interval, slow: args.slow, recorded };
    let mut storage = Storage::default();
    let mut machine = Machine::start(wishes, &mut storage)?;
    let kept = (args.keep.0 / args.interval.0).clamp(1, SAMPLES_MAX) as usize;
    let mut model = Model::new(machine.about().clone(), kept);
    if let Some(at_ms) = at_ms
        && !model.begin_at(at_ms, &mut machine)
    {
        return Err(nothing_recorded(&args));
    }
    if args.once {
        once(&args, &mut machine, &mut model, &stop)?;
    } else {
        top::run(&mut machine, &mut model, Look::terminal(has_colours()), &stop)?;
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// The archive to step back into: the one that was named, or meant by --at, has to be there; any other may be.
fn recorded(args: &Args, devices: &[Layer]) -> anyhow::Result<Option<Recorded>> {
    let names = devices.iter().map(|device| device.name.clone()).collect();
    let archive = dir(args.dir.clone()).and_then(|dir| Archive::to_read(&dir));
    match archive {
        Ok(archive) => Ok(Some(Recorded::new(archive, names, args.slow))),
        Err(why) if args.at.is_some() || args.dir.is_some() => Err(why),
        Err(_) => Ok(None),
    }
}

/// The frame of a time, from the archive alone.
fn once_recorded(args: &Args, at_ms: i64, recorded: &mut Recorded) -> anyhow::Result<Outcome> {
    let about = About {
        host: archive::About::here().host,
        source: "the recorder".to_string(),
        remarks: Vec::new(),
        interval_ns: args.interval.0,
        slow_ns: args.slow.0,
    };
    let mut model = Model::new(about, 1);
    if !model.begin_at(at_ms, recorded) {
        return Err(nothing_recorded(args));
    }
    let now = Zoned::now();
    if let Some(remark) = model.history.shown().and_then(|shown| other_time(at_ms, shown, &now)) {
        say!("weir: {remark}");
    }
    let Size(columns, rows) = args.size.or_else(of_terminal).unwrap_or(SIZE);
    print_exact(&weir_top::text(&model, columns, rows))?;
    Ok(Outcome::Done)
}

/// What is to be said where the interval that is shown is not of the time that was asked for. Half of one between two is no gap.
fn other_time(at_ms: i64, shown: &Sample, now: &Zoned) -> Option<String> {
    let (begin_ms, end_ms) = (shown.begin_ms(), shown.at_ms);
    let usual_ms = (end_ms - begin_ms) / 2;
    let which = match at_ms {
        _ if at_ms < begin_ms - usual_ms => "first after it",
        _ if at_ms > end_ms + usual_ms => "last before it",
        _ => return None,
    };
    let [at, begin] = [at_ms, begin_ms].map(|ms| archive::wall_clock(ms, now).unwrap_or("?".to_string()));
    Some(format!("nothing was recorded at {at}: the frame is of {begin} to {}, the {which}", shown.clock))
}

fn nothing_recorded(args: &Args) -> anyhow::Error {
    let what =
        format!("the archive has nothing of {} or another time", args.at.as_deref().unwrap_or_default());
    Lacking { what, hint: Some("`weir recorder list` shows what it has".to_string()) }.into()
}

fn check(args: &Args) -> anyhow::Result<()> {
    if args.interval < INTERVAL_MIN {
        let what = format!("--interval {} is too short", args.interval);
        return Err(Usage { what, hint: Some(format!("the shortest is {INTERVAL_MIN}")) }.into());
    }
    if !args.once && !std::io::stdout().is_terminal() {
        let what = "standard output is not a terminal".to_string();
        return Err(Usage { what, hint: Some("use --once to print a frame as text".to_string()) }.into());
    }
    Ok(())
}

/// As <https://no-color.org> has it.
fn has_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// One frame, after one interval.
fn once(args: &Args, machine: &mut Machine<'_>, model: &mut Model, stop: &Stop) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_nanos(args.interval.0);
    while Instant::now() < end && stop.requested().is_none() {
        std::thread::sleep(DRAIN.min(end.saturating_duration_since(Instant::now())));
        machine.drain()?;
    }
    if let Some(sample) = machine.take()? {
        model.push(sample);
    }
    model.about.remarks.iter().for_each(|remark| say!("weir: {remark}"));
    let Size(columns, rows) = args.size.or_else(of_terminal).unwrap_or(SIZE);
    print_exact(&weir_top::text(model, columns, rows))
}

fn of_terminal() -> Option<Size> {
    let (columns, rows) = weir_cli::terminal_size()?;
    Some(Size(columns.try_into().ok()?, rows.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_blocktrace::{Cost, Frame};
    use weir_core::target::MemoryLoad;

    use super::*;

    #[test]
    fn a_frame_of_another_time_than_asked_for_says_so() {
        const BEGIN_MS: i64 = 1_764_040_200_000;
        let frame = Frame {
            at_ns: 0,
            length_ns: 10_000_000_000,
            devices: Vec::new(),
            memory: MemoryLoad::default(),
            lost: BTreeMap::new(),
            cost: Cost::default(),
        };
        let shown = Sample {
            clock: "03:10:10".to_string(),
            at_ms: BEGIN_MS + 10_000,
            is_recorded: true,
            frame,
            pressure: BTreeMap::new(),
            processes: Vec::new(),
            syncs: None,
            slow: Vec::new(),
        };
        let now = jiff::Timestamp::from_millisecond(BEGIN_MS).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
        for (after_ms, expected) in [
            (0, None),
            (10_000, None),
            (-4_000, None),
            (14_000, None),
            (-600_000, Some("03:00:00: the frame is of 03:10:00 to 03:10:10, the first after it")),
            (600_000, Some("03:20:00: the frame is of 03:10:00 to 03:10:10, the last before it")),
        ] {
            let said = other_time(BEGIN_MS + after_ms, &shown, &now);
            let expected = expected.map(|rest| format!("nothing was recorded at {rest}"));
            assert_eq!(said, expected, "after {after_ms} ms");
        }
    }
}
