//! `weir db doctor`.

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {}
