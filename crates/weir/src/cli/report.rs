//! What can be typed after `weir report`.

/// Arguments of `weir report`.
#[derive(Debug, clap::Args)]
pub struct Args {}
