//! What can be typed after `weir report`.

use std::path::PathBuf;

/// Arguments of `weir report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RUN is the beginning of an id, its last four digits, `last`, `last~1` (the one before), or a file.
The page needs nothing else: no network, no script; it can be mailed, attached and printed.

Examples:
  weir report
  weir report last~1 -o before.html
  weir report 0f1e -o - | gzip > run.html.gz")]
pub struct Args {
    /// Which run
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The file to write; `-` is standard output [default: weir-KIND-ID.html in the current folder]
    #[arg(long, short = 'o', visible_alias = "out", value_name = "FILE")]
    pub output: Option<PathBuf>,
}
