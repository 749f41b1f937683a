//! `weir db disk-vs-ram`.

use crate::cli::db::disk_vs_ram::Args;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
