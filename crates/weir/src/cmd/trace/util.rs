//! `weir trace util`.

use crate::cli::trace::util::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    anyhow::bail!("not built yet")
}
