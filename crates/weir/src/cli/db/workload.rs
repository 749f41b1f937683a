//! `weir db prepare`, `run`, `warmup` and `cleanup`.

/// Options of `prepare`.
#[derive(Debug, clap::Args)]
pub struct PrepareArgs {}

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {}

/// Options of `warmup`.
#[derive(Debug, clap::Args)]
pub struct WarmupArgs {}

/// Options of `cleanup`.
#[derive(Debug, clap::Args)]
pub struct CleanupArgs {}
