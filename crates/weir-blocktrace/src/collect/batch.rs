//! Values that wait to be counted, so that what counts them is fetched once for many.

use weir_core::stats::Distribution;

/// Values that wait.
const BATCH: usize = 128;

/// What counts values.
pub trait Counts: Default {
    /// Counts all of them.
    fn record_all(&mut self, values: &[u64]);
    /// Adds all of `other`.
    fn merge(&mut self, other: &Self);
}

/// Counts that are filled in batches.
#[derive(Debug)]
pub struct Batched<C> {
    waiting: usize,
    values: [u64; BATCH],
    counted: C,
}

impl<C: Counts> Default for Batched<C> {
    fn default() -> Self {
        Batched { waiting: 0, values: [0; BATCH], counted: C::default() }
    }
}

impl<C: Counts> Batched<C> {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.values[self.waiting] = value;
        self.waiting += 1;
        if self.waiting == BATCH {
            self.flush();
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Batched<C>) {
        self.flush();
        self.counted.merge(&other.finish());
    }

    /// The counts.
    pub fn finish(mut self) -> C {
        self.flush();
        self.counted
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.counted.record_all(&self.values[..self.waiting]);
        self.waiting = 0;
    }
}

impl Counts for Distribution {
    fn record_all(&mut self, values: &[u64]) {
        self.record_all(values);
    }

    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}
