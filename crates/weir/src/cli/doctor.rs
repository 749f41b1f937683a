//! What can be typed after `weir doctor`.

/// Arguments of `weir doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {}
