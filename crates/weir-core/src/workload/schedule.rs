//! When operations of an open loop are meant to start.

use crate::workload::rng::Rng;
use crate::workload::spec::{Arrival, Rate};

/// Intended start times, in ns since the start of the run, without drift and without rounding of gaps.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// A closed loop: every time is 0.
    Closed,
    /// Equal distances.
    Constant {
        /// The next start, in units of 2^-64 ns.
        next: u128,
        /// The distance, in the same unit: its rounding error amounts to less than 1 ns in 10^15 operations.
        gap: u128,
    },
    /// Exponential distances: each is kept in full, only the sum is cut to whole ns.
    Poisson {
        /// The latest start in ns, still with its fraction.
        latest_ns: f64,
        /// Mean distance in ns.
        gap_ns: f64,
        /// Source of the distances, apart from that of the offsets.
        rng: Rng,
    },
}

impl Schedule {
    /// The schedule of a rate; `None` is a closed loop.
    pub fn new(rate: Option<Rate>, seed: u64) -> Self {
        let Some(Rate { iops, arrival }) = rate else {
            return Schedule::Closed;
        };
        let gap_ns = 1e9 / iops;
        match arrival {
            Arrival::Constant => Schedule::Constant { next: 0, gap: (gap_ns * 2f64.powi(64)) as u128 },
            Arrival::Poisson => {
                Schedule::Poisson { latest_ns: 0.0, gap_ns, rng: Rng::new(seed, 0x7469_6d65) }
            }
        }
    }

    /// Whether times are given at all.
    pub fn is_open(&self) -> bool {
        !matches!(self, Schedule::Closed)
    }

    /// The next intended start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match self {
            Schedule::Closed => 0,
            Schedule::Constant { next, gap } => {
                let at_ns = u64::try_from(*next >> 64).unwrap_or(u64::MAX);
                *next = next.saturating_add(*gap);
                at_ns
            }
            Schedule::Poisson { latest_ns, gap_ns, rng } => {
                *latest_ns -= *gap_ns * (1.0 - rng.unit()).ln();
                *latest_ns as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_rates_are_exact() {
        for iops in [1.0, 3.0, 1000.0, 400_000.0, 1_234_567.8] {
            let mut schedule = Schedule::new(Some(Rate { iops, arrival: Arrival::Constant }), 1);
            for i in 0..1_000_000u64 {
                let exact = i as f64 * 1e9 / iops;
                let at_ns = schedule.next_ns() as f64;
                assert!(
                    at_ns <= exact + 0.1 && at_ns > exact - 1.1,
                    "{iops}/s: operation {i} at {at_ns}, not {exact}"
                );
            }
        }
    }

    #[test]
    fn poisson_is_exact_in_the_mean_and_exponential() {
        const N: usize = 4_000_000;
        for iops in [200_000.0, 400_000.0, 2_000_000.0] {
            let mut schedule = Schedule::new(Some(Rate { iops, arrival: Arrival::Poisson }), 5);
            let (mut before, mut over_mean) = (0, 0);
            for _ in 0..N {
                let at_ns = schedule.next_ns();
                over_mean += usize::from((at_ns - before) as f64 > 1e9 / iops);
                before = at_ns;
            }
            let rate = N as f64 * 1e9 / before as f64;
            // The standard error of the mean of N gaps is 1/sqrt(N) = 0.05 %.
            assert!((rate / iops - 1.0).abs() < 2e-3, "{iops}/s asked, {rate}/s given");
            // Gaps are cut to whole ns, so that the share beyond the mean is e^-1 within the cut.
            let share = over_mean as f64 / N as f64;
            assert!((share - (-1f64).exp()).abs() < 2e-3, "{iops}/s: {share} of gaps above the mean");
        }
    }
}
