//! `weir trace live`: a source of figures, a sampler that cuts them into intervals, and somebody who shows them.

mod json;
mod show;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use weir_blocktrace::Source;
use weir_core::target::Layer;
use weir_core::units::Nanos;
use weir_io::runner::Stop;

use self::show::Show;
use crate::cli::trace::live::{Args, Choice};
use crate::devices::named;
use crate::failure::{Outcome, Usage};
use crate::live::{self, Sampler, Wanted};
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
    let opened = live::open(source(args.source), &wanted(&args, &devices)?)?;
    let about = opened.about(args.interval, args.slow);
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

/// None is the best there is.
fn source(choice: Choice) -> Option<Source> {
    match choice {
        Choice::Auto => None,
        Choice::Bpf => Some(Source::Bpf),
        Choice::Tracefs => Some(Source::Tracefs),
        Choice::Diskstats => Some(Source::Diskstats),
    }
}

fn wanted<'a>(args: &Args, devices: &'a [Layer]) -> anyhow::Result<Wanted<'a>> {
    let cgroup = args.cgroup.as_deref().map(cgroup_id).transpose()?;
    Ok(Wanted { devices, pids: args.pid.clone(), cgroup, slow: args.slow, detail: args.detail })
}

/// The id of a cgroup is the inode number of its folder (kernfs).
fn cgroup_id(path: &std::path::Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let below = std::path::Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").unwrap_or(path));
    let unified = std::path::Path::new("/sys/fs/cgroup/unified").join(path.strip_prefix("/").unwrap_or(path));
    let candidates = [path.to_path_buf(), below, unified];
    let found = candidates.iter().find(|path| path.join("cgroup.procs").exists());
    let id = found.and_then(|path| std::fs::metadata(path).ok()).map(|meta| meta.ino());
    id.ok_or_else(|| {
        let what = format!("{} is not a cgroup", path.display());
        Usage { what, hint: Some("give its folder under /sys/fs/cgroup".to_string()) }.into()
    })
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
