//! `weir trace live`.

use crate::cli::trace::live::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    anyhow::bail!("not built yet")
}
