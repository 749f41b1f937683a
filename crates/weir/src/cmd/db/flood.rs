//! `weir db flood`.

use crate::cli::db::flood::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
