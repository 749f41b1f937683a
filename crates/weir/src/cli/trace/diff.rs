//! What can be typed after `weir trace diff`.

/// Arguments of `weir trace diff`.
#[derive(Debug, clap::Args)]
pub struct Args {}
