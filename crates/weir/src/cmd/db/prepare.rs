//! `weir db prepare`.

use crate::cli::db::workload::PrepareArgs;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: PrepareArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
