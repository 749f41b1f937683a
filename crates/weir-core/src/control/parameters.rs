//! What the guard is to hold, and with which constants it goes about it.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

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

/// Constants of the law. None of them is a property of one machine: times are of the kernel's write-back or of
/// statistics, everything else is a ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// What is to be held.
    pub target: Target,
    /// Time between samples.
    pub look_ns: u64,
    /// Time between decisions to raise, and the shortest window they stand on.
    pub decide_ns: u64,
    /// The longest window.
    pub window_ns: u64,
    /// Silence of the sensor until the limit is frozen.
    pub silence_freeze_ns: u64,
    /// Silence of the sensor until the saved limit is put back.
    pub silence_release_ns: u64,
    /// Without a sync for so long, bulk writers get the saved limit back.
    pub release_after_ns: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        const SECOND: u64 = 1_000_000_000;
        Parameters {
            target: Target::default(),
            look_ns: SECOND / 10,
            decide_ns: SECOND,
            window_ns: 5 * SECOND,
            silence_freeze_ns: 10 * SECOND,
            silence_release_ns: 60 * SECOND,
            release_after_ns: 5 * SECOND,
        }
    }
}
