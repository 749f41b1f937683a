//! A job's intervals as series: what the statistics of a run work on.

use std::ops::Range;

use crate::result::record::{Class, Interval, IntervalClass, JobRecord};
use crate::stats::pool::Pool;

/// Intervals shorter than this share of the longest are left out: the stub at the end of a run.
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
        let longest = intervals.iter().map(|i| i.len_ns).max().unwrap_or(0);
        let whole: Vec<&Interval<K>> =
            intervals.iter().filter(|i| i.len_ns as f64 >= longest as f64 * STUB && i.len_ns > 0).collect();
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

/// A count over a time as a rate; 0 for no time.
pub fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}
