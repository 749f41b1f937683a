//! `weir bench`.

use crate::cli::bench::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let _ = (args, command);
    anyhow::bail!("weir bench is not there yet")
}
