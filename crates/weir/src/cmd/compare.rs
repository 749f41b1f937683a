//! `weir compare`.

use crate::cli::compare::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let _ = (args, command);
    anyhow::bail!("weir compare is not there yet")
}
