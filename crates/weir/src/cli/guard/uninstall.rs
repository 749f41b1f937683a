//! What can be typed after `weir guard uninstall`.

use std::path::PathBuf;

use clap::ValueHint;

/// Arguments of `weir guard uninstall`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder used in place of / at the install
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}
