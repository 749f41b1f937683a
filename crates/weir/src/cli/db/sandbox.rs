//! `weir db sandbox`.

/// Options of `sandbox`.
#[derive(Debug, clap::Args)]
pub struct Args {}
