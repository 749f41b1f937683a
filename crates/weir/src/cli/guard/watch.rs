//! What can be typed after `weir guard watch`.

/// Arguments of `weir guard watch`.
#[derive(Debug, clap::Args)]
pub struct Args {}
