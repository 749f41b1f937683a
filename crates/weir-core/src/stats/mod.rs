//! Statistics of latencies and rates: histograms, quantiles that know when they are worth nothing, warm-up,
//! steady state, regimes, intervals of ratios and what many of them may claim together.
//!
//! The unit of analysis is an interval (a second) or a trial, never a single I/O: successive I/Os depend on each
//! other, so counting them as independent would make every difference look certain.

pub mod bca;
pub mod bootstrap;
pub mod buckets;
pub mod change;
pub mod claims;
pub mod counters;
pub mod distribution;
pub mod estimate;
pub mod histogram;
pub mod holm;
pub mod little;
pub mod pool;
pub mod quantile;
pub mod random;
pub mod steady;
pub mod student;
pub mod warmup;
pub mod wilcoxon;

pub use distribution::{Distribution, Durations};
pub use histogram::{CoarseHistogram, Histogram};
pub use quantile::Quantile;
