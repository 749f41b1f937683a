//! Statistics of latencies and rates: histograms, quantiles that know when they are worth nothing, intervals.

pub mod histogram;

pub use histogram::Histogram;
