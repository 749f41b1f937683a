//! `weir trace live`: the live view of the block layer on a screen, as lines, or as JSON.

mod json;
mod show;

use std::io::IsTerminal;

use weir_blocktrace::Source;
use weir_core::units::Nanos;

use self::show::Show;
use crate::cli::trace::live::{Args, Choice};
use crate::devices::named;
use crate::failure::{Outcome, Usage};
use crate::live::{Request, Watching};
use weir_cli::signals::stop_on_signals;

/// Shortest time between refreshes: below it the view costs more than what it watches.
const INTERVAL_MIN: Nanos = Nanos(100_000_000);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    if args.interval < INTERVAL_MIN {
        let what = format!("--interval {} is too short", args.interval);
        return Err(Usage { what, hint: Some(format!("the shortest is {INTERVAL_MIN}")) }.into());
    }
    let as_json = args.json;
    let request = request(args)?;
    let stop = stop_on_signals()?;
    let live = Watching::start(request)?;
    let about = live.about();
    let mut show = if as_json {
        Show::json(about)
    } else if std::io::stdout().is_terminal() {
        Show::screen(about)?
    } else {
        Show::lines(about)
    };
    let whole = live.run(&mut show, &stop)?;
    show.end(&whole)?;
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

fn request(args: Args) -> anyhow::Result<Request> {
    Ok(Request {
        devices: named(&[args.devices, args.device].concat())?,
        pids: args.pid,
        cgroup: args.cgroup,
        slow: args.slow,
        detail: args.detail,
        source: match args.source {
            Choice::Auto => None,
            Choice::Bpf => Some(Source::Bpf),
            Choice::Tracefs => Some(Source::Tracefs),
            Choice::Diskstats => Some(Source::Diskstats),
        },
        interval: args.interval,
        duration: args.duration,
    })
}
