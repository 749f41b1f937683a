//! What an operation costs a device: a read takes a part of its time, a write another.
//!
//! A load of `r` reads and `w` writes a second uses `x = r/R` and `y = w/W` of a device whose edges are `R` reads alone
//! and `W` writes alone. Two shapes are fitted to the measured edge, and the one that misses less is kept:
//!
//! - **one budget**: `x + y + k·sqrt(x·y)`. `k` is the interference: 0 where operations share the device like tickets
//!   (a limit of operations, as iocost's linear model has it: Documentation/admin-guide/cgroup-v2.rst, io.cost.model),
//!   above where flash or heads switch between reading and writing at a price, below where each has a part of its own.
//! - **a limit each**: `max(x, y)`, as where reads and writes are limited apart (a cgroup's io.max, some volumes).

use serde::{Deserialize, Serialize};

use super::{Ask, Seen};

/// A fitted device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostModel {
    /// Reads a second, alone.
    pub reads: f64,
    /// Writes a second, alone.
    pub writes: f64,
    /// How both share the device.
    pub sharing: Sharing,
    /// Largest share by which the model misses a measured edge.
    pub error: f64,
    /// The same of a model without interference, which is what iocost and Seastar compute with.
    pub error_linear: f64,
    /// Shares of writes whose edge was measured.
    pub points: usize,
}

/// How reads and writes share a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum Sharing {
    /// One budget, with this interference; 0: none.
    OneBudget {
        /// `k` of the formula.
        interference: f64,
    },
    /// A limit each.
    LimitEach,
}

/// Interference below which one budget would have an edge without end.
const INTERFERENCE_MIN: f64 = -1.9;

impl CostModel {
    /// Fits the edge points; nothing without both ends and a mixture. Repeated ends count as their mean.
    pub fn fit(seen: &[Seen]) -> Option<CostModel> {
        let edges: Vec<&Seen> = seen.iter().filter(|s| matches!(s.ask, Ask::Edge { .. })).collect();
        let (reads, writes) = (alone(&edges, 0.0, |s| s.reads)?, alone(&edges, 1.0, |s| s.writes)?);
        let points = shares(&edges);
        if points <= 2 {
            return None;
        }
        let of = |sharing: Sharing| {
            let model = CostModel { reads, writes, sharing, error: 0.0, error_linear: 0.0, points: 0 };
            CostModel { error: model.worst(&edges), ..model }
        };
        let one = of(Sharing::OneBudget { interference: interference(&edges, reads, writes) });
        let each = of(Sharing::LimitEach);
        let linear = of(Sharing::OneBudget { interference: 0.0 });
        let best = if each.error < one.error { each } else { one };
        Some(CostModel { error_linear: linear.error, points, ..best })
    }

    /// Part of the device that a load uses: 1 is the edge.
    pub fn used(&self, reads: f64, writes: f64) -> f64 {
        let (x, y) = (reads / self.reads, writes / self.writes);
        match self.sharing {
            Sharing::OneBudget { interference } => x + y + interference * (x * y).max(0.0).sqrt(),
            Sharing::LimitEach => x.max(y),
        }
    }

    /// Operations a second at the edge, with this share of writes. Both shapes are linear in the rate.
    pub fn edge(&self, share: f64) -> f64 {
        1.0 / self.used(1.0 - share, share).max(f64::MIN_POSITIVE)
    }

    fn worst(&self, edges: &[&Seen]) -> f64 {
        let miss = |s: &&Seen| {
            let rate = s.reads + s.writes;
            if rate > 0.0 { (self.edge(s.writes / rate) / rate - 1.0).abs() } else { 1.0 }
        };
        edges.iter().map(miss).fold(0.0, f64::max)
    }
}

/// The mean rate of one end.
fn alone(edges: &[&Seen], share: f64, rate: fn(&Seen) -> f64) -> Option<f64> {
    let found: Vec<f64> = edges.iter().filter(|s| s.ask == Ask::Edge { share }).map(|s| rate(s)).collect();
    let mean = found.iter().sum::<f64>() / found.len().max(1) as f64;
    (mean > 0.0).then_some(mean)
}

/// On the edge the whole is used: 1 − x − y = k·sqrt(xy), a line through 0 in k.
fn interference(edges: &[&Seen], reads: f64, writes: f64) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    for s in edges {
        let (x, y) = (s.reads / reads, s.writes / writes);
        let root = (x * y).max(0.0).sqrt();
        above += root * (1.0 - x - y);
        below += root * root;
    }
    if below > 1e-9 { (above / below).max(INTERFERENCE_MIN) } else { 0.0 }
}

fn shares(edges: &[&Seen]) -> usize {
    let mut shares: Vec<f64> = edges.iter().map(|s| s.ask.share()).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    shares.len()
}
