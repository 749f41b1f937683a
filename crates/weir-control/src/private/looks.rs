//! What was written in the last seconds.

use std::collections::VecDeque;

/// Time and bytes of each look.
#[derive(Debug, Clone, Default)]
pub(super) struct Looks(VecDeque<(u64, u64)>);

impl Looks {
    /// Takes in a look, and forgets those without which so much time is left. How much there is.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64, over_ns: u64) -> u64 {
        self.0.push_back((elapsed_ns, bytes));
        let mut held: u64 = self.0.iter().map(|look| look.0).sum();
        while let Some(first) = self.0.front().filter(|look| held >= over_ns + look.0) {
            held -= first.0;
            self.0.pop_front();
        }
        held
    }

    /// Bytes of the last look.
    pub fn last(&self) -> u64 {
        self.0.back().map_or(0, |look| look.1)
    }

    /// Bytes a second.
    pub fn per_second(&self) -> f64 {
        let (elapsed_ns, bytes) = self.0.iter().fold((0, 0), |sum, look| (sum.0 + look.0, sum.1 + look.1));
        bytes as f64 / (elapsed_ns as f64 / 1e9).max(1e-3)
    }
}
