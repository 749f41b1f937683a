//! `weir db io-capacity`.

use crate::cli::db::io_capacity::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
