//! `weir db warmup`.

use crate::cli::db::workload::WarmupArgs;
use crate::failure::Outcome;

/// Runs the command.
pub fn run(_args: WarmupArgs, _command: &[String]) -> anyhow::Result<Outcome> {
    super::not_yet()
}
