//! The intervals of a run as they come in, kept so that memory does not grow with its length.

use std::collections::BTreeMap;

use super::record::{Interval, IntervalClass};
use crate::stats::Histogram;
use crate::stats::counters::Totals;
use crate::stats::histogram::bucket_of;
use crate::stats::pool::{EXACT, Pool};

/// More intervals than this are merged in pairs.
const INTERVALS_MAX: usize = 3600;
/// log2 of the buckets per power of two that an interval keeps for heat maps.
const COARSE_BITS: u32 = 3;

/// Finished intervals; `K` is what latencies are distinguished by.
#[derive(Debug)]
pub struct Intervals<K> {
    list: Vec<Interval<K>>,
    /// Ticks per interval (0 counts as 1), and how many the last one holds.
    width: u64,
    joined: u64,
}

impl<K> Default for Intervals<K> {
    fn default() -> Self {
        Intervals { list: Vec::new(), width: 0, joined: 0 }
    }
}

impl<K: Ord> Intervals<K> {
    /// Keeps an interval. Past the limit all are merged in pairs, and from then on new ones join the last until it is
    /// as long as the rest.
    pub fn keep(&mut self, interval: Interval<K>, tick_ns: u64) {
        // The rest after the last full tick says little on its own.
        let is_rest = interval.len_ns < tick_ns / 2;
        match self.list.last_mut() {
            Some(last) if self.joined < self.width || is_rest => {
                merge(last, interval);
                self.joined += 1;
            }
            _ => {
                self.list.push(interval);
                self.joined = 1;
            }
        }
        if self.list.len() > INTERVALS_MAX {
            self.list = pairs(std::mem::take(&mut self.list));
            self.width = self.width.max(1) * 2;
            self.joined = self.width / 2;
        }
    }

    /// All of them, in order.
    pub fn take(&mut self) -> Vec<Interval<K>> {
        std::mem::take(&mut self.list)
    }
}

/// What happened between two looks, by class: as an interval keeps it, and in full. Classes in which nothing finished
/// are absent.
pub fn between<K: Ord + Copy>(
    before: &BTreeMap<K, Totals>,
    now: &BTreeMap<K, Totals>,
) -> (BTreeMap<K, IntervalClass>, BTreeMap<K, Histogram>) {
    let nothing = Totals::default();
    let (mut kept, mut full) = (BTreeMap::new(), BTreeMap::new());
    for (class, total) in now {
        let (histogram, amount) = total.since(before.get(class).unwrap_or(&nothing));
        if histogram.count() > 0 {
            kept.insert(*class, summary(&histogram, amount));
            full.insert(*class, histogram);
        }
    }
    (kept, full)
}

/// What an interval keeps of a class. `bytes` is what the class counts beside latencies.
fn summary(histogram: &Histogram, bytes: u64) -> IntervalClass {
    let quantile = |q| histogram.quantile(q).unwrap_or(0);
    IntervalClass {
        count: histogram.count(),
        bytes,
        mean_ns: histogram.mean().unwrap_or(0.0),
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        max_ns: histogram.max().unwrap_or(0),
        coarse: histogram.coarse(COARSE_BITS),
    }
}

/// Every two intervals as one.
fn pairs<K: Ord>(intervals: Vec<Interval<K>>) -> Vec<Interval<K>> {
    let mut out = Vec::with_capacity(intervals.len() / 2 + 1);
    let mut rest = intervals.into_iter();
    while let Some(mut first) = rest.next() {
        if let Some(second) = rest.next() {
            merge(&mut first, second);
        }
        out.push(first);
    }
    out
}

fn merge<K: Ord>(first: &mut Interval<K>, second: Interval<K>) {
    first.len_ns += second.len_ns;
    first.oldest_ns = first.oldest_ns.max(second.oldest_ns);
    first.in_flight = second.in_flight;
    for (class, more) in second.classes {
        let mine = first.classes.entry(class).or_default();
        let count = mine.count + more.count;
        mine.mean_ns =
            (mine.mean_ns * mine.count as f64 + more.mean_ns * more.count as f64) / count.max(1) as f64;
        let exact = Pool::new([mine.kept(), more.kept()]).quantiles([0, 1], EXACT).unwrap_or_default();
        let mut both = Histogram::new();
        for (low, high, n) in mine.coarse.iter().chain(&more.coarse) {
            both.add_bucket(bucket_of(low + (high - low) / 2), *n);
        }
        [mine.p50_ns, mine.p95_ns, mine.p99_ns] = exact.map(|ns| ns as u64);
        mine.max_ns = mine.max_ns.max(more.max_ns);
        mine.count = count;
        mine.bytes += more.bytes;
        mine.coarse = both.coarse(COARSE_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 1_000_000_000;

    fn interval(index: u64, len_ns: u64) -> Interval<u8> {
        let mut histogram = Histogram::new();
        (1..=10).for_each(|n| histogram.record(n * 1000 * (index % 7 + 1)));
        Interval {
            start_ns: index * TICK_NS,
            len_ns,
            classes: [(0, summary(&histogram, 10))].into(),
            oldest_ns: index,
            in_flight: 1,
        }
    }

    #[test]
    fn a_long_run_keeps_everything_in_fewer_and_longer_intervals() {
        for ticks in [10, 3600, 3601, 10_000] {
            let mut all = Intervals::default();
            (0..ticks).for_each(|index| all.keep(interval(index, TICK_NS), TICK_NS));
            let list = all.take();
            assert!(list.len() <= INTERVALS_MAX, "{ticks}: {}", list.len());
            assert_eq!(list.iter().map(|i| i.classes[&0].count).sum::<u64>(), ticks * 10);
            assert_eq!(list.iter().map(|i| i.len_ns).sum::<u64>(), ticks * TICK_NS);
            assert!(list.windows(2).all(|two| two[0].start_ns + two[0].len_ns == two[1].start_ns));
            assert_eq!(list.iter().map(|i| i.oldest_ns).max(), Some(ticks - 1));
        }
    }

    #[test]
    fn a_short_rest_joins_the_last_interval() {
        let mut all = Intervals::default();
        all.keep(interval(0, TICK_NS), TICK_NS);
        all.keep(interval(1, TICK_NS / 3), TICK_NS);
        let list = all.take();
        assert_eq!((list.len(), list[0].classes[&0].count, list[0].classes[&0].bytes), (1, 20, 20));
    }
}
