//! What can be typed after `weir guard run`.

/// Arguments of `weir guard run`.
#[derive(Debug, clap::Args)]
pub struct Args {}
