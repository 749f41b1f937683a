//! Rows that are drawn: percentiles of a device beside those of its peers, by window of time and by load.

use serde::{Deserialize, Serialize};

/// A device in a window of time, at the load that most of its requests of that window had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Model, firmware and scheduler.
    pub peers: String,
    /// Host.
    pub host: String,
    /// Device; empty for syncs of the host.
    pub device: String,
    /// `write d2c` and such, or `sync`.
    pub what: String,
    /// Begin of the window, s since 1970.
    pub ts: i64,
    /// The load: requests a second, a power of two.
    pub load: i64,
    /// Requests in the window at that load.
    pub requests: i64,
    /// Devices of the same kind with a figure at that load, itself among them.
    pub peers_n: i64,
    /// Its median, ns.
    pub p50_ns: f64,
    /// Its 99th percentile.
    pub p99_ns: f64,
    /// Median of the peers' medians.
    pub peers_p50_ns: f64,
    /// Median of the peers' 99th percentiles.
    pub peers_p99_ns: f64,
    /// Lower quartile of those.
    pub peers_low_ns: f64,
    /// Upper quartile.
    pub peers_high_ns: f64,
    /// 99th percentile over its peers'.
    pub ratio: f64,
    /// Devices of which no rows are given.
    pub others: i64,
    /// The largest ratio of any of them; 0 where there are none.
    pub others_most: f64,
}

/// A device at a load, over all of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AtLoad {
    /// Model, firmware and scheduler.
    pub peers: String,
    /// Host.
    pub host: String,
    /// Device; empty for syncs of the host.
    pub device: String,
    /// `write d2c` and such, or `sync`.
    pub what: String,
    /// The load: requests a second, a power of two.
    pub load: i64,
    /// Its requests at that load.
    pub requests: i64,
    /// Devices of the same kind with a figure at that load, itself among them.
    pub peers_n: i64,
    /// Its median, ns.
    pub p50_ns: f64,
    /// Its 99th percentile.
    pub p99_ns: f64,
    /// Median of the peers' 99th percentiles.
    pub peers_p99_ns: f64,
    /// Lower quartile of those.
    pub peers_low_ns: f64,
    /// Upper quartile.
    pub peers_high_ns: f64,
}
