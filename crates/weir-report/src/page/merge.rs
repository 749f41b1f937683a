//! Fewer, longer intervals, so that the page of an hour or of ten jobs stays as small as that of a minute.

use std::collections::BTreeMap;

use weir_core::result::record::{Interval, IntervalClass};

/// Intervals that all jobs of a page show together.
const INTERVALS_MOST: usize = 180;
/// Intervals that one job shows at most, and how few it makes do with.
const OF_ONE_JOB: (usize, usize) = (12, 180);

/// How many neighbouring intervals become one, on a page with so many jobs.
pub fn together(intervals: usize, jobs: usize) -> usize {
    let (least, most) = OF_ONE_JOB;
    intervals.div_ceil((INTERVALS_MOST / jobs.max(1)).clamp(least, most)).max(1)
}

/// Puts neighbours together, `together` at a time. Counts add up, the longest wait stays; quantiles come from the
/// pooled coarse distribution (within a bucket of 1/8 octave).
pub fn merged<K: Ord + Copy>(intervals: &[Interval<K>], together: usize) -> Vec<Interval<K>> {
    if together <= 1 {
        return intervals.to_vec();
    }
    intervals.chunks(together).filter_map(merge).collect()
}

fn merge<K: Ord + Copy>(chunk: &[Interval<K>]) -> Option<Interval<K>> {
    let (first, last) = (chunk.first()?, chunk.last()?);
    let mut parts: BTreeMap<K, Vec<&IntervalClass>> = BTreeMap::new();
    for (class, part) in chunk.iter().flat_map(|i| &i.classes) {
        parts.entry(*class).or_default().push(part);
    }
    Some(Interval {
        start_ns: first.start_ns,
        len_ns: (last.start_ns + last.len_ns).saturating_sub(first.start_ns),
        classes: parts.into_iter().map(|(class, parts)| (class, merge_class(&parts))).collect(),
        oldest_ns: chunk.iter().map(|i| i.oldest_ns).max().unwrap_or(0),
        in_flight: last.in_flight,
    })
}

fn merge_class(parts: &[&IntervalClass]) -> IntervalClass {
    let count: u64 = parts.iter().map(|p| p.count).sum();
    let sum_ns: f64 = parts.iter().map(|p| p.mean_ns * p.count as f64).sum();
    let mut pooled: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (low, high, n) in parts.iter().flat_map(|p| &p.coarse) {
        pooled.entry(*low).or_insert((*high, 0)).1 += n;
    }
    let max_ns = parts.iter().map(|p| p.max_ns).max().unwrap_or(0);
    let quantile = |q: f64| {
        let mut left = (q * count as f64).ceil() as u64;
        let reached = pooled.values().find(|(_, n)| {
            left = left.saturating_sub(*n);
            left == 0
        });
        reached.map_or(max_ns, |(high, _)| (*high).min(max_ns))
    };
    IntervalClass {
        count,
        bytes: parts.iter().map(|p| p.bytes).sum(),
        mean_ns: sum_ns / count.max(1) as f64,
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        max_ns,
        coarse: pooled.iter().map(|(low, (high, n))| (*low, *high, *n)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::result::record::Class;

    #[test]
    fn neighbours_add_up_and_keep_the_worst() {
        let part = |p50: u64, n: u64| IntervalClass {
            count: n,
            bytes: n * 10,
            mean_ns: p50 as f64,
            max_ns: p50 * 2,
            coarse: vec![(p50, p50 + 9, n)],
            ..IntervalClass::default()
        };
        let second = |i: u64, p50, n| Interval {
            start_ns: i * 100,
            len_ns: 100,
            classes: [(Class::Read, part(p50, n))].into(),
            oldest_ns: 50 - i,
            ..Interval::default()
        };
        let out = merged(&[second(0, 1_000, 30), second(1, 9_000, 10), second(2, 5_000, 1)], 2);
        assert_eq!(out.len(), 2);
        let class = &out[0].classes[&Class::Read];
        assert_eq!((out[0].start_ns, out[0].len_ns, out[0].oldest_ns), (0, 200, 50));
        assert_eq!((class.count, class.bytes, class.mean_ns, class.max_ns), (40, 400, 3_000.0, 18_000));
        assert_eq!((class.p50_ns, class.p99_ns, class.coarse.len()), (1_009, 9_009, 2));
        assert_eq!(out[1].classes[&Class::Read].count, 1);
    }

    #[test]
    fn pages_share_a_number_of_intervals() {
        for (intervals, jobs, want) in
            [(60, 1, 1), (180, 1, 1), (181, 1, 2), (3_600, 1, 20), (180, 10, 10), (0, 1, 1)]
        {
            assert_eq!(together(intervals, jobs), want, "{intervals} {jobs}");
        }
    }
}
