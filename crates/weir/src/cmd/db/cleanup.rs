//! `weir db cleanup`.

use crate::cli::db::workload::CleanupArgs;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: CleanupArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
