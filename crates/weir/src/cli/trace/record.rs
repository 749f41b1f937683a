//! What can be typed after `weir trace record`.

/// Arguments of `weir trace record`.
#[derive(Debug, clap::Args)]
pub struct Args {}
