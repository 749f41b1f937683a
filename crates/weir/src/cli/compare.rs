//! What can be typed after `weir compare`.

use clap::ValueEnum;

/// Arguments of `weir compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
RUN is the beginning of an id, its last four digits, `last`, `last~1` (the one before), or a file.

The ratio B/A stands with a 95 % interval. Where the interval covers 1, the data show no difference: run \
longer, or alternate the two settings several times.

Examples:
  weir compare last~1 last
  weir compare 0f1e 77ab --format json | jq '.jobs[0].effects'")]
pub struct Args {
    /// The run to compare with (A)
    #[arg(value_name = "A")]
    pub a: String,
    /// The run in question (B)
    #[arg(value_name = "B")]
    pub b: String,
    /// How
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Seed of the resamples: the same seed gives the same intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The shapes of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A report for people
    Text,
    /// JSON
    Json,
}
