//! `weir db flood`.

/// Options of `flood`.
#[derive(Debug, clap::Args)]
pub struct Args {}
