//! `weir db explain`.

use std::path::PathBuf;

use weir_core::units::{Bytes, Nanos};
use weir_db::sandbox::Flavour;
use weir_oltp::Script;
use weir_oltp::limits::Change;

use super::workload::WorkloadArgs;
use crate::cli::bench::word;
use crate::output::Format;

const EXAMPLES: &str = "\
Starts a throw-away server, fills its tables, runs the transactions, says what limits them, and puts that to the test:
short runs in turns, with and without a change. A server of yours is never touched; `weir db run` says what limits it.

Changes: flush-off (commits answered before the log is on the device), half-processors (the server on half of them), \
twice-threads, half-threads, in-memory (the same data in --memory-dir).

Examples:
  weir db explain mariadb --dir /data/try --tables 4 --threads 8
  weir db explain postgres commit --dir /data/try --change flush-off,in-memory
  weir db explain mariadb point_select --dir /data/try \\
      --table-size 1000000 --memory 16M";

/// Options of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Whose server: mysql, mariadb or postgres
    #[arg(value_name = "SERVER")]
    pub flavour: Flavour,
    /// What a transaction does [default: read_write]
    #[arg(value_name = "SCRIPT", value_parser = word::<Script>)]
    pub script: Option<Script>,
    /// The folder for the server's data: one that does not exist, or is empty
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub dir: PathBuf,
    /// A tree with a server that is not installed, as `weir db sandbox` has it
    #[arg(long, value_name = "TREE", help_heading = "Server")]
    pub root: Option<PathBuf>,
    /// A variable of the server; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = "Server")]
    pub set: Vec<(String, String)>,
    /// Size of its buffer pool
    #[arg(long, value_name = "SIZE", default_value = "128M", help_heading = "Server")]
    pub memory: Bytes,
    /// What a transaction is, and how many connections ask.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Changes to try [default: all]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = word::<Change>, help_heading = "Tests")]
    pub change: Vec<Change>,
    /// Runs with each change, each beside one without [default: as many as fit the budget, at most 10]
    #[arg(long, value_name = "N", help_heading = "Tests")]
    pub pairs: Option<u32>,
    /// Time for all of these runs
    #[arg(long, value_name = "TIME", default_value = "4m", conflicts_with = "pairs", help_heading = "Tests")]
    pub budget: Nanos,
    /// Length of each of these runs
    #[arg(long, value_name = "TIME", default_value = "6s", help_heading = "Tests")]
    pub trial: Nanos,
    /// A folder in memory for the copy of the data
    #[arg(long, value_name = "DIR", default_value = "/dev/shm", help_heading = "Tests")]
    pub memory_dir: PathBuf,
    /// Report the limit and try no changes
    #[arg(long, conflicts_with = "change", help_heading = "Tests")]
    pub no_tests: bool,
    /// Load no programs into the kernel
    #[arg(long)]
    pub no_trace: bool,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable is given as NAME=VALUE")?;
    Ok((name.to_string(), value.to_string()))
}
