//! What can be typed after `weir guard install`.

/// Arguments of `weir guard install`.
#[derive(Debug, clap::Args)]
pub struct Args {}
