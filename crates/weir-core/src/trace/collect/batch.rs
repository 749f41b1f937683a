//! Durations that wait to be counted, so that a distribution's memory is fetched once for many.

use crate::stats::Distribution;

/// Durations that wait.
const BATCH: usize = 128;

/// A distribution that is filled in batches.
#[derive(Debug)]
pub struct Batched {
    waiting: usize,
    values_ns: [u64; BATCH],
    counted: Distribution,
}

impl Default for Batched {
    fn default() -> Self {
        Batched { waiting: 0, values_ns: [0; BATCH], counted: Distribution::default() }
    }
}

impl Batched {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.values_ns[self.waiting] = ns;
        self.waiting += 1;
        if self.waiting == BATCH {
            self.flush();
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Batched) {
        self.flush();
        self.counted.merge(&other.finish());
    }

    /// The distribution.
    pub fn finish(mut self) -> Distribution {
        self.flush();
        self.counted
    }

    fn flush(&mut self) {
        self.counted.record_all(&self.values_ns[..self.waiting]);
        self.waiting = 0;
    }
}
