//! `weir recorder run`.

use weir_cli::signals::stop_on_signals;

use crate::cli::recorder::RunArgs;
use crate::devices;
use crate::failure::{Lacking, Outcome};
use crate::inputs::recorder::settings as settings_of;
use crate::recorder;

/// Runs the command.
pub fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let settings = settings_of(args)?;
    let numbers = devices::named(&settings.devices)?.iter().map(|device| device.number).collect::<Vec<_>>();
    let stop = stop_on_signals()?;
    let done = recorder::run(&settings, &numbers, &stop)?;
    say!("weir: {} intervals recorded, {} lost", done.written, done.lost);
    if done.lost > 0 || !done.flushed {
        let what = format!("{} intervals are not in the archive", done.lost);
        let hint = "put the archive on another disk with --dir".to_string();
        return Err(Lacking { what, hint: Some(hint) }.into());
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}
