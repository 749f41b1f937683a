//! A job's intervals as series: what the statistics of a run work on.

use std::ops::Range;

use crate::result::record::{Class, Interval, IntervalClass, JobRecord};
use crate::stats::pool::Pool;

/// Intervals shorter than this share of the median are left out: the stub at the end of a run. (One may be long: a tick that came late.)
const STUB: f64 = 0.5;

/// One class of a job, interval by interval. The intervals in which nothing finished are there too, as zeros.
#[derive(Default)]
pub struct Series {
    /// Start of each interval, ns.
    pub start_ns: Vec<u64>,
    /// Length of each, ns.
    pub len_ns: Vec<u64>,
    /// Operations finished in each.
    pub count: Vec<u64>,
    /// Bytes moved in each.
    pub bytes: Vec<u64>,
    /// Latencies of each.
    pub latencies: Pool,
}

impl Series {
    /// The series of a class.
    pub fn of(job: &JobRecord, class: Class) -> Series {
        Series::of_intervals(&job.intervals, class)
    }

    /// The series of one class or kind in a run's intervals.
    pub fn of_intervals<K: Ord>(intervals: &[Interval<K>], class: K) -> Series {
        let whole = whole(intervals);
        let nothing = IntervalClass::default();
        let cells: Vec<&IntervalClass> =
            whole.iter().map(|i| i.classes.get(&class).unwrap_or(&nothing)).collect();
        Series {
            start_ns: whole.iter().map(|i| i.start_ns).collect(),
            len_ns: whole.iter().map(|i| i.len_ns).collect(),
            count: cells.iter().map(|c| c.count).collect(),
            bytes: cells.iter().map(|c| c.bytes).collect(),
            latencies: Pool::new(cells.iter().map(|c| c.kept())),
        }
    }

    /// The same in at most `units` intervals of nearly equal length: sums of neighbours.
    pub fn in_at_most(self, units: usize) -> Series {
        let size = self.len().div_ceil(units.max(1)).max(1);
        let sums = |values: &[u64]| values.chunks(size).map(|v| v.iter().sum()).collect();
        Series {
            start_ns: self.start_ns.iter().step_by(size).copied().collect(),
            len_ns: sums(&self.len_ns),
            count: sums(&self.count),
            bytes: sums(&self.bytes),
            latencies: self.latencies.grouped(size),
        }
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.len_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len_ns.is_empty()
    }

    /// Operations per second in each interval.
    pub fn rates(&self) -> Vec<f64> {
        (0..self.len()).map(|i| per_second(self.count[i], self.len_ns[i])).collect()
    }

    /// Operations per second over the chosen intervals together.
    pub fn rate(&self, chosen: impl IntoIterator<Item = usize> + Clone) -> f64 {
        let len = chosen.clone().into_iter().map(|i| self.len_ns[i]).sum();
        per_second(chosen.into_iter().map(|i| self.count[i]).sum(), len)
    }

    /// Bytes per second over a span of intervals.
    pub fn byte_rate(&self, span: Range<usize>) -> f64 {
        per_second(span.clone().map(|i| self.bytes[i]).sum(), span.map(|i| self.len_ns[i]).sum())
    }

    /// End of an interval, since the start of measuring.
    pub fn end_ns(&self, interval: usize) -> u64 {
        self.start_ns[interval] + self.len_ns[interval]
    }
}

/// The intervals of a series: those that are no stub.
pub fn whole<'a, K: 'a>(intervals: impl IntoIterator<Item = &'a Interval<K>>) -> Vec<&'a Interval<K>> {
    let mut intervals: Vec<&Interval<K>> = intervals.into_iter().collect();
    let mut lengths: Vec<u64> = intervals.iter().map(|i| i.len_ns).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0) as f64;
    intervals.retain(|i| i.len_ns as f64 >= median * STUB && i.len_ns > 0);
    intervals
}

/// A count over a time as a rate; 0 for no time.
pub fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was stopped for a moment: its tick came late, and all seconds count as before.
    #[test]
    fn a_long_interval_makes_no_other_a_stub() {
        let interval = |len_ms: u64| Interval {
            start_ns: 0,
            len_ns: len_ms * 1_000_000,
            classes: [(0, IntervalClass { count: len_ms, ..IntervalClass::default() })].into(),
            oldest_ns: 0,
            in_flight: 0,
        };
        let series = |lengths: &[u64]| {
            let intervals: Vec<Interval<u8>> = lengths.iter().map(|len_ms| interval(*len_ms)).collect();
            Series::of_intervals(&intervals, 0).count
        };
        let late = [999, 1001, 2003, 1000, 998, 35_000, 1000];
        assert_eq!(series(&late), late);
        assert_eq!(series(&[1000, 1000, 1000, 400]), [1000, 1000, 1000]);
        assert_eq!((series(&[300]), series(&[])), (vec![300], vec![]));
    }
}
