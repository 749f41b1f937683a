//! What can be typed after `weir trace fsync`.

/// Arguments of `weir trace fsync`.
#[derive(Debug, clap::Args)]
pub struct Args {}
