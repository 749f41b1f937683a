//! What the rows of a question mean. Rules only: rows in, conclusions out.

mod change;
mod slow;
mod windows;

pub use change::{Change, change};
pub use slow::{Cause, Figure, Slow, slow};
pub use windows::{AtLoad, Window};

use serde::{Deserialize, Serialize};

/// A device whose tail grows, as the rows of the question say.
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
    /// Whether the whole distribution moved, not the tail alone.
    pub fn is_whole(&self) -> bool {
        self.third_p50_ns as f64 >= 1.3 * self.first_p50_ns as f64
    }
}

/// A device near its model's curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Near {
    /// Model.
    pub model: String,
    /// Host.
    pub host: String,
    /// Device.
    pub device: String,
    /// `read` or `write`.
    pub class: String,
    /// Its load: reads and writes a second, a power of two.
    pub load: i64,
    /// The load at which its model slows down.
    pub knee: i64,
    /// 99th percentile of the model at the lowest load, ns.
    pub base_ns: i64,
    /// And at the device's load.
    pub at_load_ns: i64,
}

impl Near {
    /// Whether it is beyond the knee: not near, but there.
    pub fn is_beyond(&self) -> bool {
        self.load >= self.knee
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
