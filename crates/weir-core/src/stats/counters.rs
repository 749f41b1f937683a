//! Latencies counted while others look: a writer adds to atomic counters, a reader takes [`Totals`] of several writers
//! at any moment, and the difference of two totals is what happened between them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Histogram;
use super::histogram::{BUCKETS, bucket_of};

/// Latencies, an amount (bytes, rows) and failures of one sort. On cache lines of its own.
#[repr(align(128))]
pub struct Counters {
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    amount: AtomicU64,
    errors: AtomicU64,
}

impl Counters {
    /// Counters over [`BUCKETS`] zeros, which the caller allocates: in one piece that is zero already, so that the
    /// kernel backs only the pages that latencies really fall into.
    pub fn over(zeros: Box<[AtomicU64]>) -> Counters {
        assert_eq!(zeros.len(), BUCKETS, "one counter a bucket");
        Counters {
            counts: zeros,
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            amount: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Counts one that finished. Only one thread may write to these counters: plain loads and stores cost no more
    /// than ordinary memory.
    #[inline(always)]
    pub fn record(&self, latency_ns: u64, amount: u64) {
        let add = |counter: &AtomicU64, n: u64| counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
        add(&self.counts[bucket_of(latency_ns)], 1);
        add(&self.sum_ns, latency_ns);
        add(&self.amount, amount);
        if latency_ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(latency_ns, Relaxed);
        }
        if latency_ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(latency_ns, Relaxed);
        }
    }

    /// Counts one that finished, where several threads write.
    #[inline]
    pub fn record_shared(&self, latency_ns: u64, amount: u64) {
        self.counts[bucket_of(latency_ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(latency_ns, Relaxed);
        if amount > 0 {
            self.amount.fetch_add(amount, Relaxed);
        }
        if latency_ns < self.min_ns.load(Relaxed) {
            self.min_ns.fetch_min(latency_ns, Relaxed);
        }
        if latency_ns > self.max_ns.load(Relaxed) {
            self.max_ns.fetch_max(latency_ns, Relaxed);
        }
    }

    /// Counts one that failed.
    pub fn record_error(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    /// The extremes so far; `None` if nothing was counted.
    pub fn extremes(&self) -> Option<(u64, u64)> {
        let (min_ns, max_ns) = (self.min_ns.load(Relaxed), self.max_ns.load(Relaxed));
        (min_ns <= max_ns).then_some((min_ns, max_ns))
    }

    /// Count and sum so far.
    pub fn count_and_sum(&self) -> (u64, u64) {
        let Some((min_ns, max_ns)) = self.extremes() else { return (0, 0) };
        let used = &self.counts[bucket_of(min_ns)..=bucket_of(max_ns)];
        (used.iter().map(|count| count.load(Relaxed)).sum(), self.sum_ns.load(Relaxed))
    }

    /// Adds what was counted so far to `total`.
    pub fn add_to(&self, total: &mut Totals) {
        let max = self.max_ns.load(Relaxed);
        total.errors += self.errors.load(Relaxed);
        if max == 0 && self.min_ns.load(Relaxed) == u64::MAX {
            return;
        }
        let min = self.min_ns.load(Relaxed).min(max);
        let last = bucket_of(max);
        total.grow(last);
        for bucket in bucket_of(min)..=last {
            total.counts[bucket] += self.counts[bucket].load(Relaxed);
        }
        total.sum_ns += u128::from(self.sum_ns.load(Relaxed));
        total.amount += self.amount.load(Relaxed);
        total.min_ns = total.min_ns.min(min);
        total.max_ns = total.max_ns.max(max);
    }
}

/// Sums over counters at one moment: what has been counted since the start.
#[derive(Debug, Clone)]
pub struct Totals {
    /// By bucket; as long as the largest latency needs.
    counts: Vec<u64>,
    /// Sum of latencies.
    sum_ns: u128,
    /// Smallest.
    min_ns: u64,
    /// Largest.
    max_ns: u64,
    /// Bytes moved, rows touched: whatever the counters count beside latencies.
    pub amount: u64,
    /// Failures.
    pub errors: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Totals { counts: Vec::new(), sum_ns: 0, min_ns: u64::MAX, max_ns: 0, amount: 0, errors: 0 }
    }
}

impl Totals {
    fn grow(&mut self, bucket: usize) {
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The latencies and the amount counted between `earlier` and now. Sum and amount are exact; minimum and maximum
    /// are exact if nothing was counted before, else within a bucket (0.1 %).
    pub fn since(&self, earlier: &Totals) -> (Histogram, u64) {
        let mut histogram = Histogram::new();
        for (bucket, count) in self.counts.iter().enumerate() {
            histogram.add_bucket(bucket, count - earlier.counts.get(bucket).copied().unwrap_or(0));
        }
        if let (Some(low), Some(high)) = (histogram.min(), histogram.max()) {
            let fresh = earlier.sum_ns == 0;
            let min = if fresh { self.min_ns } else { low.max(self.min_ns) };
            let max = if fresh { self.max_ns } else { high.min(self.max_ns) };
            // A reader between two stores of a writer may see a sum a hair behind the counts: never negative.
            histogram.set_exact(self.sum_ns.saturating_sub(earlier.sum_ns), min, max.max(min));
        }
        (histogram, self.amount.saturating_sub(earlier.amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        Counters::over((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }

    fn total(all: &[Counters]) -> Totals {
        let mut total = Totals::default();
        all.iter().for_each(|counters| counters.add_to(&mut total));
        total
    }

    #[test]
    fn totals_equal_what_was_recorded_and_intervals_are_differences() {
        for record in [Counters::record, Counters::record_shared] {
            let all = [counters(), counters()];
            record(&all[0], 1_000, 4096);
            record(&all[1], 9_000_000, 4096);
            all[1].record_error();
            let first = total(&all);
            let (histogram, amount) = first.since(&Totals::default());
            assert_eq!(
                (histogram.count(), histogram.min(), histogram.max()),
                (2, Some(1_000), Some(9_000_000))
            );
            assert_eq!((histogram.sum(), amount, first.errors), (9_001_000, 8192, 1));
            assert_eq!((all[0].count_and_sum(), all[0].extremes()), ((1, 1_000), Some((1_000, 1_000))));

            record(&all[0], 50_000, 512);
            let (interval, amount) = total(&all).since(&first);
            assert_eq!((interval.count(), interval.sum(), amount), (1, 50_000, 512));
            assert!(interval.max().unwrap() - 50_000 < 50);
        }
        assert_eq!(total(&[counters()]).since(&Totals::default()).0.count(), 0);
    }
}
