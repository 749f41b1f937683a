//! `weir doctor`.

use crate::cli::doctor::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let _ = (args, command);
    anyhow::bail!("weir doctor is not there yet")
}
