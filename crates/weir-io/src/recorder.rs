//! What worker threads write and the sampler reads, without locks: each counter has one writer, so a plain load and
//! store suffice, and the hot path pays no more than for ordinary memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use weir_core::result::record::{Class, ThreadClass, ThreadRecord};
use weir_core::stats::Histogram;
use weir_core::stats::histogram::{BUCKETS, bucket_of};

/// Latencies and bytes of one class in one thread. On cache lines of its own.
#[repr(align(128))]
pub struct ClassCounters {
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

impl ClassCounters {
    fn new() -> Self {
        // Zeroed in one piece, so that the kernel backs only the pages that latencies really fall into.
        let zeros = vec![0u64; BUCKETS].into_boxed_slice();
        // SAFETY: AtomicU64 has the size, alignment and representation of u64.
        let counts = unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU64]) };
        ClassCounters {
            counts,
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Counts one finished operation. Only the owning thread calls this.
    #[inline(always)]
    pub fn record(&self, latency_ns: u64, bytes: u64) {
        let add = |counter: &AtomicU64, n: u64| counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
        add(&self.counts[bucket_of(latency_ns)], 1);
        add(&self.sum_ns, latency_ns);
        add(&self.bytes, bytes);
        if latency_ns < self.min_ns.load(Relaxed) {
            self.min_ns.store(latency_ns, Relaxed);
        }
        if latency_ns > self.max_ns.load(Relaxed) {
            self.max_ns.store(latency_ns, Relaxed);
        }
    }

    /// Counts one failed operation. Only the owning thread calls this.
    pub fn record_error(&self) {
        self.errors.store(self.errors.load(Relaxed) + 1, Relaxed);
    }

    /// Count, sum and extremes so far; `None` if nothing was counted.
    fn summary(&self) -> Option<ThreadClass> {
        let (min_ns, max_ns) = (self.min_ns.load(Relaxed), self.max_ns.load(Relaxed));
        if min_ns > max_ns {
            return None;
        }
        let used = &self.counts[bucket_of(min_ns)..=bucket_of(max_ns)];
        let count = used.iter().map(|count| count.load(Relaxed)).sum();
        Some(ThreadClass { count, sum_ns: self.sum_ns.load(Relaxed), min_ns, max_ns })
    }

    /// Adds what was counted so far to `total`.
    fn add_to(&self, total: &mut Totals) {
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
        total.bytes += self.bytes.load(Relaxed);
        total.min_ns = total.min_ns.min(min);
        total.max_ns = total.max_ns.max(max);
    }
}

/// One thread's counters and its operations in flight.
pub struct ThreadCounters {
    classes: [ClassCounters; 4],
    /// Intended start of the operation in each slot, ns on the monotonic clock; 0: free.
    pub started_ns: Box<[AtomicU64]>,
    /// Operations in flight.
    pub in_flight: AtomicU32,
    /// Integral of operations in flight over time, in operation-nanoseconds.
    pub in_flight_integral: AtomicU64,
    /// Most operations in flight at once.
    pub in_flight_max: AtomicU32,
    /// Operations finished.
    pub operations: AtomicU64,
    /// First start and last completion, ns on the monotonic clock.
    pub first_ns: AtomicU64,
    /// Last completion.
    pub last_ns: AtomicU64,
    /// Open loop: finished past the deadline.
    pub late: AtomicU64,
    /// Open loop: operations taken whose time had come.
    pub intended: AtomicU64,
    /// Open loop: due and in hand when the run ended.
    pub not_started: AtomicU64,
    /// Open loop: longest distance from intended to real start.
    pub start_delay_max_ns: AtomicU64,
}

impl ThreadCounters {
    /// Counters for a thread with `slots` operations in flight at most.
    pub fn new(slots: u32) -> Self {
        ThreadCounters {
            classes: std::array::from_fn(|_| ClassCounters::new()),
            started_ns: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            in_flight: AtomicU32::new(0),
            in_flight_integral: AtomicU64::new(0),
            in_flight_max: AtomicU32::new(0),
            operations: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            late: AtomicU64::new(0),
            intended: AtomicU64::new(0),
            not_started: AtomicU64::new(0),
            start_delay_max_ns: AtomicU64::new(0),
        }
    }

    /// The counters of a class.
    #[inline(always)]
    pub fn class(&self, class: Class) -> &ClassCounters {
        &self.classes[class as usize]
    }

    /// Age in ns of the oldest operation in flight at `now_ns`; 0 if none is.
    pub fn oldest_ns(&self, now_ns: u64) -> u64 {
        let started = self.started_ns.iter().map(|s| s.load(Relaxed)).filter(|s| *s > 0).min();
        started.map_or(0, |start| now_ns.saturating_sub(start))
    }

    /// What was counted so far.
    pub fn record(&self) -> ThreadRecord {
        let classes = Class::ALL.into_iter().filter_map(|class| Some((class, self.class(class).summary()?)));
        ThreadRecord {
            operations: self.operations.load(Relaxed),
            busy_ns: self.last_ns.load(Relaxed).saturating_sub(self.first_ns.load(Relaxed)),
            classes: classes.collect(),
        }
    }

    /// Adds one class of this thread to `total`.
    pub fn add_class_to(&self, class: Class, total: &mut Totals) {
        self.class(class).add_to(total);
    }
}

/// Sums over threads at one moment: what has been counted since the start.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// By bucket; as long as the largest latency needs.
    pub counts: Vec<u64>,
    /// Sum of latencies.
    pub sum_ns: u128,
    /// Smallest.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
}

impl Totals {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Totals { min_ns: u64::MAX, ..Totals::default() }
    }

    fn grow(&mut self, bucket: usize) {
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
    }

    /// The latencies counted between `earlier` and now. Sum and bytes are exact; minimum and maximum are exact if
    /// nothing was counted before, else within a bucket (0.1 %).
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
        (histogram, self.bytes.saturating_sub(earlier.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_equal_what_was_recorded_and_intervals_are_differences() {
        let counters = [ThreadCounters::new(1), ThreadCounters::new(1)];
        let total = |class| {
            let mut total = Totals::new();
            counters.iter().for_each(|c| c.add_class_to(class, &mut total));
            total
        };
        counters[0].class(Class::Read).record(1_000, 4096);
        counters[1].class(Class::Read).record(9_000_000, 4096);
        let first = total(Class::Read);
        let (histogram, bytes) = first.since(&Totals::new());
        assert_eq!((histogram.count(), histogram.min(), histogram.max()), (2, Some(1_000), Some(9_000_000)));
        assert_eq!((histogram.sum(), bytes), (9_001_000, 8192));

        counters[0].class(Class::Read).record(50_000, 512);
        let (interval, bytes) = total(Class::Read).since(&first);
        assert_eq!((interval.count(), interval.sum(), bytes), (1, 50_000, 512));
        assert!(interval.max().unwrap() - 50_000 < 50);
        assert_eq!(total(Class::Sync).since(&Totals::new()).0.count(), 0);
    }

    #[test]
    fn the_oldest_operation_in_flight_has_an_age() {
        let counters = ThreadCounters::new(3);
        assert_eq!(counters.oldest_ns(500), 0);
        counters.started_ns[1].store(100, Relaxed);
        counters.started_ns[2].store(300, Relaxed);
        assert_eq!(counters.oldest_ns(500), 400);
    }
}
