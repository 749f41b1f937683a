//! `weir db disk-vs-ram`.

use std::path::PathBuf;

use super::experiment::ExperimentArgs;

const EXAMPLES: &str = "\
Examples:
  weir db disk-vs-ram --sandbox mariadb --dir /data --threads 8 --tables 10
  weir db disk-vs-ram commit --sandbox postgres --dir /data --ram /dev/shm

A server of weir's own is made on the disk and filled, its data are copied to memory, and the same transactions run on \
both, in pairs. What is gained there is the most that a faster disk could give.";

/// Options of `disk-vs-ram`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A folder in memory
    #[arg(long, value_name = "DIR", default_value = "/dev/shm", help_heading = "Throw-away server")]
    pub ram: PathBuf,
    /// What all experiments share.
    #[command(flatten)]
    pub common: ExperimentArgs,
}
