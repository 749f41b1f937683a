//! Quantiles that say whether enough samples stand behind them.

use serde::{Deserialize, Serialize};

use crate::stats::Histogram;

/// A quantile of latencies, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantile {
    /// Enough samples.
    Value {
        /// The quantile, in nanoseconds.
        ns: u64,
        /// Lower end of its 95 % interval.
        low_ns: u64,
        /// Upper end of its 95 % interval.
        high_ns: u64,
    },
    /// Too few samples to say.
    Insufficient {
        /// Samples there are.
        have: u64,
        /// Samples it takes.
        need: u64,
    },
}

impl Quantile {
    /// The value in nanoseconds, if there were enough samples.
    pub fn ns(self) -> Option<u64> {
        match self {
            Quantile::Value { ns, .. } => Some(ns),
            Quantile::Insufficient { .. } => None,
        }
    }
}

/// Samples it takes for quantile `q`: three must be expected beyond it, so 300 for a p99 and 3,000 for a p99.9.
/// With three expected, the chance that none lies beyond is e^-3, 5 %.
pub fn needed(q: f64) -> u64 {
    // The small share taken off keeps 3/(1-0.99) at 300, whatever the rounding of 1-0.99.
    (3.0 / (1.0 - q.clamp(0.0, 0.999_999_999)) * (1.0 - 1e-9)).ceil() as u64
}

/// Quantile `q` (0..1) of a histogram with a 95 % interval from order statistics: the ranks
/// n·q ± 1.96·√(n·q·(1−q)) (Conover, Practical Nonparametric Statistics, 3.2). The interval takes samples as
/// independent; successive I/Os are not, so the truth is rather wider. Comparisons therefore use
/// [`crate::stats::bootstrap`] over whole intervals instead.
pub fn quantile(histogram: &Histogram, q: f64) -> Quantile {
    let (have, need) = (histogram.count(), needed(q));
    let spread = 1.96 * (have as f64 * q * (1.0 - q)).sqrt();
    let middle = have as f64 * q;
    let at = |rank: f64| histogram.value_at_rank(rank.max(1.0) as u64);
    match (histogram.quantile(q), at((middle - spread).floor()), at((middle + spread).ceil() + 1.0)) {
        (Some(ns), Some(low_ns), Some(high_ns)) if have >= need => Quantile::Value { ns, low_ns, high_ns },
        _ => Quantile::Insufficient { have, need },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::{Random, simulate};

    #[test]
    fn sufficiency_follows_the_rule() {
        for (q, need) in [(0.5, 6), (0.9, 30), (0.95, 60), (0.99, 300), (0.999, 3_000), (0.9999, 30_000)] {
            assert_eq!(needed(q), need, "{q}");
            let mut h = Histogram::new();
            (1..need).for_each(|v| h.record(v));
            assert_eq!(quantile(&h, q), Quantile::Insufficient { have: need - 1, need }, "{q}");
            h.record(need);
            assert!(quantile(&h, q).ns().is_some(), "{q}");
        }
        assert_eq!(quantile(&Histogram::new(), 0.5), Quantile::Insufficient { have: 0, need: 6 });
    }

    #[test]
    fn interval_of_a_median_has_the_textbook_ranks() {
        // n = 100: ranks 40 and 61, as in the tables for the sign test.
        let mut h = Histogram::new();
        (1..=100u64).for_each(|v| h.record(v));
        assert_eq!(quantile(&h, 0.5), Quantile::Value { ns: 50, low_ns: 40, high_ns: 61 });
    }

    #[test]
    fn interval_covers_the_truth_as_often_as_it_says() {
        let mut random = Random::new(7);
        let truth = -(0.01f64.ln()) * 1e6; // p99 of an exponential with mean 1 ms
        let covered = (0..400)
            .filter(|_| {
                let mut h = Histogram::new();
                (0..2_000).for_each(|_| h.record((-simulate::uniform(&mut random).ln() * 1e6) as u64));
                match quantile(&h, 0.99) {
                    Quantile::Value { low_ns, high_ns, .. } => {
                        (low_ns as f64..=high_ns as f64).contains(&truth)
                    }
                    Quantile::Insufficient { .. } => false,
                }
            })
            .count();
        assert!((370..=397).contains(&covered), "{covered} of 400");
    }
}
