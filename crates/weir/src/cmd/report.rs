//! `weir report`.

use crate::cli::report::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let _ = (args, command);
    anyhow::bail!("weir report is not there yet")
}
