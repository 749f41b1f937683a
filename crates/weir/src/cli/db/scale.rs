//! `weir db scale`.

use super::experiment::ExperimentArgs;

const EXAMPLES: &str = "\
Examples:
  weir db scale --mysql
      1, 2, 4 … 64 connections, 10 s each, three times
  weir db scale read_only --postgres --ladder 1,4,16,64,256 --time 20
  weir db scale --sandbox postgres --dir /data --tables 10
      on a server of its own that goes away again

Says at how many connections the rate is highest, how few do nearly as well, and which scalability law it follows.";

/// Options of `scale`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Numbers of connections
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,32,64", value_parser = clap::value_parser!(u32).range(1..))]
    pub ladder: Vec<u32>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: ExperimentArgs,
}
