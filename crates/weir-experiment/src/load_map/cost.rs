//! What an operation costs a device: a read takes a part of its time, a write another, and both together more than their
//! sum where they disturb each other.
//!
//! A load of `r` reads and `w` writes a second uses `r/R + w/W + k·sqrt(r/R · w/W)` of a device whose edges are `R` reads
//! alone and `W` writes alone. `k` is the interference: 0 where operations share the device like tickets of one budget (a
//! limit of operations, as iocost's linear model has it: Documentation/admin-guide/cgroup-v2.rst, io.cost.model), above
//! where flash or heads switch between reading and writing at a price, below where each has a part of its own.

use super::{Ask, Seen};

/// A fitted device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// Reads a second, alone.
    pub reads: f64,
    /// Writes a second, alone.
    pub writes: f64,
    /// Interference; 0: none.
    pub interference: f64,
    /// Largest share by which the model misses a measured edge.
    pub error: f64,
    /// Edge points behind it.
    pub points: usize,
}

impl CostModel {
    /// Fits the edge points; nothing without both ends.
    pub fn fit(seen: &[Seen]) -> Option<CostModel> {
        let edges: Vec<&Seen> = seen.iter().filter(|s| matches!(s.ask, Ask::Edge { .. })).collect();
        let alone = |share: f64, rate: fn(&Seen) -> f64| {
            let found = edges.iter().find(|s| s.ask == Ask::Edge { share }).map(|s| rate(s));
            found.filter(|rate| *rate > 0.0)
        };
        let (reads, writes) = (alone(0.0, |s| s.reads)?, alone(1.0, |s| s.writes)?);
        // On the edge the whole is used: 1 − x − y = k·sqrt(xy), a line through 0 in k.
        let (mut above, mut below) = (0.0, 0.0);
        for s in &edges {
            let (x, y) = (s.reads / reads, s.writes / writes);
            let root = (x * y).max(0.0).sqrt();
            above += root * (1.0 - x - y);
            below += root * root;
        }
        let interference = if below > 1e-9 { above / below } else { 0.0 };
        let model = CostModel { reads, writes, interference, error: 0.0, points: edges.len() };
        let miss = |s: &&Seen| {
            let rate = s.reads + s.writes;
            if rate > 0.0 { (model.edge(s.writes / rate) / rate - 1.0).abs() } else { 1.0 }
        };
        let error = edges.iter().map(miss).fold(0.0, f64::max);
        Some(CostModel { error, ..model })
    }

    /// Part of the device that a load uses: 1 is the edge.
    pub fn used(&self, reads: f64, writes: f64) -> f64 {
        let (x, y) = (reads / self.reads, writes / self.writes);
        x + y + self.interference * (x * y).max(0.0).sqrt()
    }

    /// Operations a second at the edge, with this share of writes. The model is linear in the rate.
    pub fn edge(&self, share: f64) -> f64 {
        1.0 / self.used(1.0 - share, share).max(f64::MIN_POSITIVE)
    }
}
