//! What can be typed after `weir bench`.

/// Arguments of `weir bench`.
#[derive(Debug, clap::Args)]
pub struct Args {}
