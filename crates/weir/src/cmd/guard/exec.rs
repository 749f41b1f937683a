//! `weir guard exec`: a bulk command in a cgroup of its own.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use weir_cli::signals::hand_on;
use weir_host::Host;

use crate::cli::guard::exec::Args;
use crate::failure::{Lacking, Outcome};
use crate::guard::exec::{Place, Watch};
use crate::progress::Progress;

/// Whether the command has ended is asked this often; what it does is looked at every so many times.
const ASK_EVERY: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let host = Host::live();
    // Before the command is there, so that no signal ends this process and leaves it alone.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?;
    let place = Place::find(&host, args.slice.as_deref());
    place.lacks().iter().for_each(|lack| say!("weir: {lack}"));
    let name = args.command[0].clone();
    let mut child = place
        .command(&args.command)
        .spawn()
        .map_err(|error| Lacking { what: format!("cannot start {name}: {error}"), hint: None })?;
    let mut watch = Watch::begin(&host, child.id(), &name, place.tells_late());
    let status = wait(&mut child, &mut signals, (!args.quiet).then_some(&mut watch))?;
    if !args.quiet {
        watch.last_words().iter().for_each(|line| say!("weir: {line}"));
    }
    if let Some(left) = place.remove() {
        say!("weir: {left}");
    }
    Ok(outcome(status))
}

/// Waits for the end, passing signals on and showing what it does.
fn wait(
    child: &mut Child,
    signals: &mut Signals,
    mut watch: Option<&mut Watch>,
) -> anyhow::Result<ExitStatus> {
    let (mut progress, mut looked) = (Progress::new(), Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            progress.clear();
            return Ok(status);
        }
        signals.pending().filter(|signal| is_to_be_passed(*signal)).for_each(|signal| hand_on(child, signal));
        if let Some(watch) = watch.as_mut().filter(|_| looked.elapsed() >= LOOK_EVERY) {
            looked = Instant::now();
            let line = watch.sample();
            watch.lacks().iter().for_each(|lack| say!("weir: {lack}"));
            if let Some(line) = line {
                progress.show(&line);
            }
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// A terminal sends its own to the command as well.
fn is_to_be_passed(signal: i32) -> bool {
    !(matches!(signal, SIGINT | SIGQUIT) && std::io::stdin().is_terminal())
}

fn outcome(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(0), _) => Outcome::Done,
        (Some(code), _) => Outcome::Code(code as u8),
        (None, signal) => Outcome::Interrupted(signal.unwrap_or(0) as u8),
    }
}
