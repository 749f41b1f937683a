//! What worker threads write and the sampler reads, without locks: each counter has one writer, so a plain load and
//! store suffice, and the hot path pays no more than for ordinary memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use weir_core::result::record::{Class, ThreadClass, ThreadRecord};
use weir_core::stats::counters::{Counters, Totals};
use weir_core::stats::histogram::BUCKETS;

/// Zeros for [`Counters::over`].
fn zeros() -> Box<[AtomicU64]> {
    let zeros = vec![0u64; BUCKETS].into_boxed_slice();
    // SAFETY: AtomicU64 has the size, alignment and representation of u64.
    unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU64]) }
}

/// Count, sum and extremes so far; `None` if nothing was counted.
fn summary(counters: &Counters) -> Option<ThreadClass> {
    let (min_ns, max_ns) = counters.extremes()?;
    let (count, sum_ns) = counters.count_and_sum();
    Some(ThreadClass { count, sum_ns, min_ns, max_ns })
}

/// One thread's counters and its operations in flight.
pub struct ThreadCounters {
    classes: [Counters; 4],
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
    /// Open loop: due and taken when the run ended.
    pub not_started: AtomicU64,
    /// Open loop: distances from intended to real start.
    pub start_delays: Option<Counters>,
    /// Open loop: starts that were late because as many operations as the depth allows were in flight.
    pub waited_for_depth: AtomicU64,
}

impl ThreadCounters {
    /// Counters for a thread with `slots` operations in flight at most.
    pub fn new(slots: u32, open_loop: bool) -> Self {
        ThreadCounters {
            classes: std::array::from_fn(|_| Counters::over(zeros())),
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
            start_delays: open_loop.then(|| Counters::over(zeros())),
            waited_for_depth: AtomicU64::new(0),
        }
    }

    /// The counters of a class.
    #[inline(always)]
    pub fn class(&self, class: Class) -> &Counters {
        &self.classes[class as usize]
    }

    /// Age in ns of the oldest operation in flight at `now_ns`; 0 if none is.
    pub fn oldest_ns(&self, now_ns: u64) -> u64 {
        let started = self.started_ns.iter().map(|s| s.load(Relaxed)).filter(|s| *s > 0).min();
        started.map_or(0, |start| now_ns.saturating_sub(start))
    }

    /// Forgets how many were in flight at most so far. The thread compares with each of its own counts, so that what this
    /// hides of one is seen again at the next.
    pub fn restart_in_flight_max(&self) {
        self.in_flight_max.store(self.in_flight.load(Relaxed), Relaxed);
    }

    /// What was counted so far.
    pub fn record(&self) -> ThreadRecord {
        let classes = Class::ALL.into_iter().filter_map(|class| Some((class, summary(self.class(class))?)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_operation_in_flight_has_an_age() {
        let counters = ThreadCounters::new(3, false);
        assert_eq!(counters.oldest_ns(500), 0);
        counters.started_ns[1].store(100, Relaxed);
        counters.started_ns[2].store(300, Relaxed);
        assert_eq!(counters.oldest_ns(500), 400);
    }
}
