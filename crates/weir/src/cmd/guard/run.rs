//! `weir guard run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use weir_io::runner::Stop;

use crate::cli::guard::run::Args;
use crate::failure::{Lacking, Outcome};
use crate::guard;
use crate::guard::settings::{Format, print as as_file};
use crate::inputs;
use crate::output::{print, print_exact};

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let settings = inputs::guard::settings(&args)?;
    if args.print_config {
        print_exact(&as_file(&settings))?;
        return Ok(Outcome::Done);
    }
    let begun = guard::begin(&settings, command)?;
    let (stop, rearm) = on_signals(begun.is_service)?;
    let mut control_loop = begun.control_loop;
    let mut end_ns = None;
    control_loop.run(
        |now| {
            let end_ns = *end_ns.get_or_insert_with(|| settings.duration.map(|time| now.boot_ns + time.0));
            stop.requested().is_none() && end_ns.is_none_or(|end_ns| now.boot_ns < end_ns)
        },
        || rearm.swap(false, Ordering::Relaxed),
    );
    let (state, not_put_back) = control_loop.end();
    match settings.format {
        Format::Json => print_exact(&(serde_json::to_string(&state)? + "\n"))?,
        Format::Text => print(&super::status::text(&state))?,
    }
    if !not_put_back.is_empty() {
        let what = format!("a limit could not be put back: {}", not_put_back.join("; "));
        let hint = "`weir knobs rollback --all` tries again".to_string();
        return Err(Lacking { what, hint: Some(hint) }.into());
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// Requests to end, and to guard again. A service manager means the latter by SIGHUP; a terminal that is gone, the
/// former.
fn on_signals(is_service: bool) -> std::io::Result<(Stop, Arc<AtomicBool>)> {
    let (stop, rearm) = (Stop::default(), Arc::new(AtomicBool::new(false)));
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1])?;
    let (raised, asked) = (stop.clone(), rearm.clone());
    std::thread::Builder::new().name("signals".to_string()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => asked.store(true, Ordering::Relaxed),
                SIGHUP if is_service => asked.store(true, Ordering::Relaxed),
                // Impatience must not leave limits behind: the end is under way, and a guardian stands by.
                other => raised.request(other as u8),
            }
        }
    })?;
    Ok((stop, rearm))
}
