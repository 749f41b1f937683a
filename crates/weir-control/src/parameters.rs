//! What the guard is to hold.

use serde::{Deserialize, Serialize};

use weir_core::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The latency that syncs are to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyTarget {
    /// The 99th percentile, absolute.
    Absolute(Nanos),
    /// The 99th percentile, as a multiple of what it is at the same concurrency while no bulk writer runs.
    TimesIdle(f64),
}

/// What the guard is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The tail.
    pub p99: LatencyTarget,
    /// The share of their undisturbed rate that syncs keep at the same concurrency, 0 to 1.
    pub keep: f64,
}

impl Default for Target {
    fn default() -> Target {
        Target { p99: LatencyTarget::TimesIdle(5.0), keep: 0.93 }
    }
}

/// What is to be held, and how often it is looked at. The constants of the law are in `law/constants.rs`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// What is to be held.
    pub target: Target,
    /// Time between samples.
    pub look_ns: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { target: Target::default(), look_ns: SECOND / 10 }
    }
}
