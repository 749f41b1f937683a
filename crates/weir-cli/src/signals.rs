//! SIGINT, SIGTERM and SIGHUP ask a run to stop: it keeps what it measured, cleans up and reports.

use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weir_core::stop::Stop;

/// A command that still runs so long after a signal has not heard of it. A terminal's Ctrl-C, and a signal to a group of processes,
/// reach it beside weir; heard twice, the signal would end some commands at once, weir's own too.
const UNHEARD: Duration = Duration::from_secs(5);

/// A signal so soon after the first repeats it. GNU timeout sends its signal to its command, and then to their group, so that the command
/// gets it twice. Nobody presses Ctrl-C twice so fast.
const TWICE: Duration = Duration::from_millis(200);

/// A signal of which a command beside weir may not have heard.
#[derive(Debug, Default)]
pub struct Unheard(Option<Instant>);

impl Unheard {
    /// That signal, once the command has had the time to hear of it by itself.
    pub fn signal(&mut self, stop: &Stop) -> Option<u8> {
        let signal = stop.requested()?;
        (self.0.get_or_insert_with(Instant::now).elapsed() > UNHEARD).then_some(signal)
    }
}

/// Tells a command that has not been waited for of a signal.
pub fn hand_on(child: &Child, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // One that has ended since needs it no more.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}

static FIRST: AtomicU8 = AtomicU8::new(0);

/// The signal that asked this process to stop, if one has.
pub fn received() -> Option<u8> {
    Some(FIRST.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// A stop request that the signals raise. A later one, after 200 ms, ends the process at once.
///
/// # Errors
/// Where signals cannot be handled, or no thread can be started.
pub fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::default();
    raise_on_signals(&stop)?;
    Ok(stop)
}

/// The same with a request that exists already. Until then signals end the process, as they do by default.
///
/// # Errors
/// Where signals cannot be handled, or no thread can be started.
pub fn raise_on_signals(stop: &Stop) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let raised = stop.clone();
    std::thread::Builder::new().name("signals".to_string()).spawn(move || {
        let mut first = None::<Instant>;
        for signal in signals.forever() {
            if first.is_some_and(|first| first.elapsed() < TWICE) {
                continue;
            }
            first.get_or_insert_with(Instant::now);
            if raised.requested().is_some() {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            FIRST.store(signal as u8, Ordering::Relaxed);
            raised.request(signal as u8);
        }
    })?;
    Ok(())
}
