//! `weir db io-capacity`.

/// Options of `io-capacity`.
#[derive(Debug, clap::Args)]
pub struct Args {}
