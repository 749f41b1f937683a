//! What the rows of a question mean. Rules only: rows in, conclusions out.

mod change;
mod compared;
mod slow;
mod windows;

pub use change::{Change, change};
pub use compared::{NotCompared, Subject, Why, not_compared};
pub use slow::{Cause, Figure, Slow, slow};
pub use windows::{AtLoad, Window};

use serde::{Deserialize, Serialize};

/// How a device's tail grew, as the rows of the question say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Host.
    pub host: String,
    /// Device.
    pub device: String,
    /// `read` or `write`.
    pub what: String,
    /// The load at which it is compared with itself.
    pub load: i64,
    /// 99th percentile of the first third, ns.
    pub first_ns: i64,
    /// Of the second.
    pub second_ns: i64,
    /// Of the third.
    pub third_ns: i64,
    /// Median of the first third, ns.
    pub first_p50_ns: i64,
    /// Of the third.
    pub third_p50_ns: i64,
    /// The third's percentile over the first's.
    pub growth: f64,
    /// The median of that over all devices.
    pub usual: f64,
    /// How many those are.
    pub devices: i64,
}

impl Tail {
    /// Whether it grows, from third to third, and by more than is usual.
    pub fn has_grown(&self) -> bool {
        let grows = self.second_ns >= self.first_ns && self.third_ns >= self.second_ns;
        grows && self.growth >= 1.3 && self.growth >= 1.3 * self.usual
    }

    /// Whether the whole distribution moved, not the tail alone.
    pub fn is_whole(&self) -> bool {
        self.third_p50_ns as f64 >= 1.3 * self.first_p50_ns as f64
    }
}

/// A device on its model's curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Near {
    /// Model; empty where it is not known, and the curve is the device's own.
    pub model: String,
    /// Host.
    pub host: String,
    /// Device.
    pub device: String,
    /// `read` or `write`.
    pub class: String,
    /// Its load: reads and writes a second, a power of two.
    pub load: i64,
    /// The load at which its model slows down; none where it does at no load that was seen.
    pub knee: Option<i64>,
    /// 99th percentile of the model at the lowest load, ns.
    pub base_ns: i64,
    /// And at the device's load.
    pub at_load_ns: i64,
}

impl Near {
    /// Whether it is within a factor of two of the knee, or beyond it. Beyond one, a device that is fast at its own load is not.
    pub fn is_near(&self) -> bool {
        let is_slow = self.at_load_ns >= 3 * self.base_ns;
        self.knee.is_some_and(|knee| self.load * 2 >= knee && (self.load < knee || is_slow))
    }

    /// Whether it is beyond the knee: not near, but there.
    pub fn is_beyond(&self) -> bool {
        self.is_near() && self.knee.is_some_and(|knee| self.load >= knee)
    }
}

/// A fact in which one differs from most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drifted {
    /// The model that the peers have in common; `hosts` for facts of hosts.
    pub peers: String,
    /// What.
    pub name: String,
    /// Whose.
    pub host: String,
    /// Device; empty for the host.
    pub device: String,
    /// The value.
    pub value: String,
    /// What most have.
    pub usual: String,
    /// How many have that.
    pub usual_n: i64,
    /// Of how many.
    pub total: i64,
}

/// Latency of a stage over devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// read, write, sync_write, flush; sync for whole syncs.
    pub class: String,
    /// g2d, d2c, g2c; whole for syncs.
    pub stage: String,
    /// Devices; hosts for syncs.
    pub devices: i64,
    /// Requests or syncs.
    pub requests: i64,
    /// Median of the devices' medians, ns.
    pub p50_ns: f64,
    /// The least 99th percentile of a device, ns.
    pub p99_least_ns: i64,
    /// Their median.
    pub p99_ns: f64,
    /// The largest.
    pub p99_most_ns: i64,
    /// Whose that is.
    pub slowest_host: String,
    /// Whose that is.
    pub slowest_device: String,
}

impl Latency {
    /// How often the median is in the largest.
    pub fn spread(&self) -> f64 {
        self.p99_most_ns as f64 / self.p99_ns.max(1.0)
    }
}
