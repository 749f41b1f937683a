//! `weir db run`.

use crate::cli::db::workload::RunArgs;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: RunArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
