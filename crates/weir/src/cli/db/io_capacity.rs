//! `weir db io-capacity`.

use super::experiment::ExperimentArgs;

const EXAMPLES: &str = "\
Examples:
  weir db io-capacity --mysql --threads 8 --time 30
      on a live server, by SET GLOBAL, and restored
  weir db io-capacity write_only --mysql --grid 200,1000,4000
  weir db io-capacity --sandbox mariadb --dir /data --memory 64M \\
      --tables 4 --table-size 100000

Before each trial the transactions run until the server flushes at its own pace under the value tried, a minute at most; \
--warmup says a time instead. innodb_io_capacity_max is set to twice the value tried, or left if it is above that. weir journals both before it changes them and restores them in every case, at the latest by `weir knobs rollback`.";

/// Options of `io-capacity`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Values to try, beside the baseline
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "100,200,400,1000,2000,5000,10000", value_parser = clap::value_parser!(i64).range(100..))]
    pub grid: Vec<i64>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: ExperimentArgs,
}
