//! SIGINT, SIGTERM and SIGHUP ask a run to stop: it keeps what it measured, cleans up and reports.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weir_core::stop::Stop;

static FIRST: AtomicU8 = AtomicU8::new(0);

/// The signal that asked this process to stop, if one has.
pub fn received() -> Option<u8> {
    Some(FIRST.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// A stop request that the signals raise. A second one ends the process at once.
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
        for signal in signals.forever() {
            if raised.requested().is_some() {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            FIRST.store(signal as u8, Ordering::Relaxed);
            raised.request(signal as u8);
        }
    })?;
    Ok(())
}
