//! What can be typed after `weir trace read`.

/// Arguments of `weir trace read`.
#[derive(Debug, clap::Args)]
pub struct Args {}
