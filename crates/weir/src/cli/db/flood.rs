//! `weir db flood`.

use std::path::PathBuf;

use super::experiment::ExperimentArgs;

const EXAMPLES: &str = "\
Examples:
  weir db flood commit --sandbox mariadb --dir /data --threads 4
      on a server of its own
  weir db flood commit --mysql --flood-dir /var/lib/mysql-files
      beside a live server, who will feel it
  weir db flood --sandbox postgres --dir /data --no-guard

Transactions alone, beside a bulk copy into the same file system, and beside one while weir guard holds the latency of \
syncs (as root). That guard has the default settings, whatever /etc/weir/guard.toml says; a guard that runs already has to \
be stopped first. The copy is bounded, and its file is removed.";

/// Options of `flood`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The bulk writer, as weir bench's --flood has it
    #[arg(long, value_name = "FLOOD", default_value = "dd", help_heading = "Flood")]
    pub flood: String,
    /// Where it writes: a folder on the device of the data [default: the throw-away server's --dir]
    #[arg(long, value_name = "DIR", help_heading = "Flood")]
    pub flood_dir: Option<PathBuf>,
    /// Leave the guard out
    #[arg(long, help_heading = "Flood")]
    pub no_guard: bool,
    /// What all experiments share.
    #[command(flatten)]
    pub common: ExperimentArgs,
}
