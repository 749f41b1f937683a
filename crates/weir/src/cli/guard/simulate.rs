//! What can be typed after `weir guard simulate`.

/// Arguments of `weir guard simulate`.
#[derive(Debug, clap::Args)]
pub struct Args {}
