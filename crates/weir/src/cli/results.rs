//! What can be typed after `weir results`.

use std::path::PathBuf;

use clap::Subcommand;

use crate::output::Format;

/// Arguments of `weir results`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs are kept in $WEIR_STORE, else $XDG_STATE_HOME/weir/runs, else ~/.local/state/weir/runs.
RUN is the beginning of an id, its last four digits, `last`, `last~1` (the one before), or a file.

Examples:
  weir results list
  weir results show last~1
  weir results show 0f1e --format csv > intervals.csv
  weir results export last --format fio-json | jq '.jobs[0].read.iops'")]
pub struct Args {
    /// What to do; without it, list.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do with stored runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List stored runs, newest last
    List {
        /// Show the newest N only; 0 shows all
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// As JSON of schema weir.runs/1
        #[arg(long)]
        json: bool,
    },
    /// Show the report of a run, derived again from its record
    Show {
        /// Which run
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// How
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Write a run to a file or standard output
    Export {
        /// Which run
        #[arg(value_name = "RUN", default_value = "last")]
        run: String,
        /// How
        #[arg(long, value_enum, default_value_t = Format::Record)]
        format: Format,
        /// The file; it must not exist yet [default: standard output]
        #[arg(long, short = 'o', visible_alias = "out", value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove runs from the store
    Rm {
        /// Which runs
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
    },
}
