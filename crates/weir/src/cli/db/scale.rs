//! `weir db scale`.

/// Options of `scale`.
#[derive(Debug, clap::Args)]
pub struct Args {}
