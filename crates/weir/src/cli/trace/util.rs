//! What can be typed after `weir trace util`.

/// Arguments of `weir trace util`.
#[derive(Debug, clap::Args)]
pub struct Args {}
