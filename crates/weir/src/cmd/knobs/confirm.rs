//! The wait for a confirmation at a terminal. The guardian, not this process, takes the change back in time: the
//! terminal may be gone by then.

use std::io::{self, IsTerminal};
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush};
use signal_hook::consts::SIGINT;
use weir_cli::signals::stop_on_signals;
use weir_core::printable;
use weir_core::stop::Stop;
use weir_host::knob::{Applied, Until};

use crate::change_journal::failed;
use crate::failure::{Lacking, Outcome};
use crate::output::print;

/// How often keyboard, signals and the journal are looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Whether this is the first process of a PID namespace, such as a container's: when it ends, the kernel kills all others there
/// (pid_namespaces(7)), the guardian too.
pub fn is_first() -> bool {
    process::id() == 1
}

/// Waits at a terminal until the change is kept, taken back, or its time is over; returns at once where nobody sits, unless the guardian
/// would end with this process.
pub fn wait(applied: Applied, time: Duration) -> anyhow::Result<Outcome> {
    let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !at_terminal && !is_first() {
        return Ok(Outcome::Done);
    }
    let (stop, end) = (stop_on_signals()?, Instant::now() + time);
    if at_terminal { ask(applied, &stop, end) } else { stay(applied, &stop, end) }
}

fn ask(applied: Applied, stop: &Stop, end: Instant) -> anyhow::Result<Outcome> {
    // What was typed or pasted before the question is no answer to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    say!("Enter keeps it, Ctrl-C takes it back now");
    let keyboard = lines();
    loop {
        count_down(end);
        let entered = match keyboard.recv_timeout(LOOK) {
            Ok(line) if line == "\n" => true,
            Ok(line) => {
                clear();
                say!("expected Enter alone, got `{}`", line.trim_end());
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            // The terminal is gone: the guardian goes on alone.
            Err(RecvTimeoutError::Disconnected) if is_first() => return stay(applied, stop, end),
            Err(RecvTimeoutError::Disconnected) => return Ok(Outcome::Done),
        };
        if let Some(signal) = stop.requested() {
            clear();
            return interrupted(applied, signal);
        }
        if entered {
            clear();
            return keep(&applied);
        }
        if !waits(&applied) {
            clear();
            return became(&applied, end);
        }
    }
}

/// Waits for the guardian where nobody sits.
fn stay(applied: Applied, stop: &Stop, end: Instant) -> anyhow::Result<Outcome> {
    while waits(&applied) {
        if let Some(signal) = stop.requested() {
            return interrupted(applied, signal);
        }
        thread::sleep(LOOK);
    }
    became(&applied, end)
}

fn waits(applied: &Applied) -> bool {
    matches!(applied.until(), Some(Until::Deadline(_)))
}

/// What became of a change that waits no more.
fn became(applied: &Applied, end: Instant) -> anyhow::Result<Outcome> {
    match applied.until() {
        Some(Until::Rollback) => print("kept\n")?,
        // The guardian is at it, or done.
        _ if Instant::now() >= end => return over(applied),
        _ => print("taken back meanwhile\n")?,
    }
    Ok(Outcome::Done)
}

/// Each line entered; the sender goes with the terminal.
fn lines() -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        while io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0)
            && sender.send(std::mem::take(&mut line)).is_ok()
        {}
    });
    receiver
}

fn count_down(end: Instant) {
    let left = end.saturating_duration_since(Instant::now()).as_secs_f64().ceil() as u64;
    write_over(&format!("goes back in {}:{:02} ", left / 60, left % 60));
}

fn clear() {
    write_over("");
}

/// Replaces the line of the countdown.
fn write_over(text: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("\r\x1b[K{}", printable::line(text)).as_bytes());
}

fn keep(applied: &Applied) -> anyhow::Result<Outcome> {
    for sentence in applied.confirm().map_err(failed)? {
        print(&format!("{sentence}\n"))?;
    }
    Ok(Outcome::Done)
}

/// Ctrl-C takes back; any other signal leaves it to the guardian, as a lost terminal does, where that outlives this process.
fn interrupted(applied: Applied, signal: u8) -> anyhow::Result<Outcome> {
    if i32::from(signal) == SIGINT || is_first() {
        for sentence in applied.restore().map_err(failed)? {
            print(&format!("{sentence}\n"))?;
        }
    }
    Ok(Outcome::Interrupted(signal))
}

/// Waits for the guardian, which may still lead limits up in steps.
fn over(applied: &Applied) -> anyhow::Result<Outcome> {
    let patience = Duration::from_secs(if is_first() { 3600 } else { 30 });
    let end = Instant::now() + patience;
    while applied.until().is_some() && Instant::now() < end {
        thread::sleep(LOOK);
    }
    if applied.until().is_some() {
        let what = "not confirmed, but not all of it is restored yet".to_string();
        let hint =
            "its guardian tries again for an hour; `weir knobs journal` shows what is left".to_string();
        return Err(Lacking { what, hint: Some(hint) }.into());
    }
    print("not confirmed: taken back\n")?;
    Ok(Outcome::Done)
}
