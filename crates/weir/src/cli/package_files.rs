//! What can be typed after `weir package-files`.

use std::path::PathBuf;

/// Arguments of `weir package-files`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to print, as the list names it
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that bin/weir is in
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    pub prefix: PathBuf,
}
