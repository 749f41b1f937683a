//! What an experiment is to improve, and what must not get worse.

use serde::{Deserialize, Serialize};

use crate::experiment::measures::Metric;

/// `max rate`, `min p99`, `max bulk with p99 <= 10ms`, `max 0.7*rate + 0.3*bulk`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Figures with their weights, positive and summing to 1. A score is the weighted sum of the logarithms of each
    /// figure's ratio to the machine as found, turned so that more is better: units cancel, and 0 is "as found".
    pub weights: Vec<(Metric, f64)>,
    /// What must hold for an arm to be eligible at all.
    pub bounds: Vec<Bound>,
    /// Figures that may not be worse than as found by more than this share (0.1: a tenth), beside the goal.
    pub guardrails: Vec<(Metric, f64)>,
}

/// A limit on one figure, in its own unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The figure.
    pub metric: Metric,
    /// Whether it may not exceed `value` (else: may not fall below).
    pub at_most: bool,
    /// The limit: ns for latencies, bytes per second for bulk.
    pub value: f64,
}
