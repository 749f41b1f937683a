//! `weir results`.

use crate::cli::results::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let _ = (args, command);
    anyhow::bail!("weir results is not there yet")
}
