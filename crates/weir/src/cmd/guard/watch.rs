//! `weir guard watch`: what a running guard says once a second, on a screen, as lines, or as JSON.

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use weir_cli::signals::stop_on_signals;
use weir_control::State;
use weir_io::runner::Stop;
use weir_report::text::guard_watch::{self, Courses};

use crate::cli::guard::watch::Args;
use crate::failure::Outcome;
use crate::guard::socket;
use crate::output::{print, print_exact};
use crate::terminal::{Terminal, ends};

/// How often keys and signals are looked at.
const SLICE: Duration = Duration::from_millis(100);

const ENDED: &str = "the guard has ended";

/// What comes from the guard: `None` when it has ended.
type Told = anyhow::Result<Option<State>>;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let stop = stop_on_signals()?;
    let told = listen()?;
    let end = args.duration.map(|duration| Instant::now() + Duration::from_nanos(duration.0));
    if args.json {
        each(&told, &stop, end, |state| print_exact(&(serde_json::to_string(state)? + "\n")))?;
    } else if std::io::stdout().is_terminal() {
        on_screen(&told, &stop, end)?;
    } else {
        let mut told_until = 0;
        each(&told, &stop, end, |state| {
            let since = std::mem::replace(&mut told_until, state.at_ms);
            print(&guard_watch::lines(state, since))
        })?;
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// The guard is waited for in a thread of its own, so that a key or a signal need not wait for it.
fn listen() -> anyhow::Result<Receiver<Told>> {
    let mut client = socket::stream()?;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let told = client.next();
            let goes_on = matches!(told, Ok(Some(_)));
            if send.send(told).is_err() || !goes_on {
                return;
            }
        }
    });
    Ok(receive)
}

fn is_over(stop: &Stop, end: Option<Instant>) -> bool {
    stop.requested().is_some() || end.is_some_and(|end| Instant::now() >= end)
}

/// Shows state after state until the guard, the time, a signal or an error ends it.
fn each(
    told: &Receiver<Told>,
    stop: &Stop,
    end: Option<Instant>,
    mut show: impl FnMut(&State) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    while !is_over(stop, end) {
        match told.recv_timeout(SLICE) {
            Ok(told) => match told? {
                Some(state) => show(&state)?,
                None => {
                    say!("{ENDED}");
                    return Ok(());
                }
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

/// A screen that is drawn anew when a state comes or the terminal changes its size; the last state stays as lines.
fn on_screen(told: &Receiver<Told>, stop: &Stop, end: Option<Instant>) -> anyhow::Result<()> {
    let terminal = Terminal::enter()?;
    let (mut courses, mut last, mut size) = (Courses::default(), None::<State>, terminal.size());
    let draw = |last: &Option<State>, courses: &Courses, size: (usize, usize)| match last {
        Some(state) => terminal.draw(&guard_watch::screen(state, courses, size.0, size.1), size.0),
        None => Ok(()),
    };
    let ending = loop {
        if ends(terminal.key(Instant::now() + SLICE)) || is_over(stop, end) {
            break Ok(false);
        }
        let news = match told.try_recv() {
            Ok(Ok(Some(state))) => {
                courses.push(&state);
                last = Some(state);
                true
            }
            Ok(Ok(None)) => break Ok(true),
            Ok(Err(error)) => break Err(error),
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => break Ok(false),
        };
        let now = terminal.size();
        if news || now != size {
            size = now;
            draw(&last, &courses, size)?;
        }
    };
    drop(terminal);
    if let Some(state) = last {
        print(&guard_watch::lines(&state, 0))?;
    }
    // Said on the other screen it would be lost.
    if ending? {
        say!("{ENDED}");
    }
    Ok(())
}
