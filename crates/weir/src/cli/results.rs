//! What can be typed after `weir results`.

/// Arguments of `weir results`.
#[derive(Debug, clap::Args)]
pub struct Args {}
