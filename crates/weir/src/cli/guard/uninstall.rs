//! What can be typed after `weir guard uninstall`.

/// Arguments of `weir guard uninstall`.
#[derive(Debug, clap::Args)]
pub struct Args {}
