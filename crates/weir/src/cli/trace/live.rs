//! What can be typed after `weir trace live`.

/// Arguments of `weir trace live`.
#[derive(Debug, clap::Args)]
pub struct Args {}
