//! What can be typed after `weir compare`.

/// Arguments of `weir compare`.
#[derive(Debug, clap::Args)]
pub struct Args {}
