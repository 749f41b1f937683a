//! `weir db disk-vs-ram`.

/// Options of `disk-vs-ram`.
#[derive(Debug, clap::Args)]
pub struct Args {}
