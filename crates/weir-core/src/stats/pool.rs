//! Latencies of intervals, pooled over any choice of them: the quantile of a round, a regime or a resample.

use std::collections::BTreeMap;

/// Quantiles that an interval knows exactly.
pub const EXACT: [f64; 3] = [0.5, 0.95, 0.99];
/// A coarse bucket is an eighth of an octave wide: halved so often, less than a millionth of its latency.
const HALVINGS: u32 = 17;

/// What an interval keeps of its latencies.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// (low, high, count) of each bucket that is not empty, ascending.
    pub coarse: &'a [(u64, u64, u64)],
    /// Its quantiles [`EXACT`]: in a bucket as wide as a run's latencies, the place of most of them.
    pub exact_ns: [u64; 3],
}

/// Intervals on one grid of coarse buckets.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// (low, high) of each bucket in ns, ascending.
    edges: Vec<(u64, u64)>,
    rows: Vec<Row>,
}

/// One interval.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Its non-empty buckets: index into the edges, count.
    counts: Vec<(usize, u64)>,
    /// The same, each bucket cut where an exact quantile lies in it.
    pieces: Vec<Piece>,
}

/// Samples between two latencies, as if evenly spread.
#[derive(Debug, Clone, Copy)]
struct Piece {
    bucket: usize,
    low: f64,
    high: f64,
    n: f64,
}

impl Piece {
    /// How many of them took at most so long.
    fn within(&self, ns: f64) -> f64 {
        if ns >= self.high { self.n } else { self.n * ((ns - self.low) / (self.high - self.low)).max(0.0) }
    }
}

impl Row {
    fn new(edges: &[(u64, u64)], counts: Vec<(usize, u64)>, exact_ns: [f64; 3]) -> Row {
        let total: f64 = counts.iter().map(|(_, n)| *n as f64).sum();
        let (mut pieces, mut before) = (Vec::with_capacity(counts.len() + EXACT.len()), 0.0);
        for (bucket, n) in &counts {
            let (bucket, n) = (*bucket, *n as f64);
            let (mut low, high) = (edges[bucket].0 as f64, edges[bucket].1 as f64);
            let mut taken = 0.0;
            for (quantile, ns) in EXACT.into_iter().zip(exact_ns) {
                let rank = quantile * total - before;
                if rank > taken && rank <= n && (low..=high).contains(&ns) {
                    pieces.push(Piece { bucket, low, high: ns, n: rank - taken });
                    (low, taken) = (ns, rank);
                }
            }
            if taken < n {
                pieces.push(Piece { bucket, low, high, n: n - taken });
            }
            before += n;
        }
        Row { counts, pieces }
    }

    /// The pieces of a bucket.
    fn pieces(&self, bucket: usize) -> impl Iterator<Item = &Piece> {
        let first = self.pieces.partition_point(|piece| piece.bucket < bucket);
        self.pieces[first..].iter().take_while(move |piece| piece.bucket == bucket)
    }
}

impl Pool {
    /// Takes what each interval keeps.
    pub fn new<'a>(intervals: impl IntoIterator<Item = Kept<'a>>) -> Pool {
        let kept: Vec<Kept<'a>> = intervals.into_iter().collect();
        let all = kept.iter().flat_map(|kept| kept.coarse);
        let grid: BTreeMap<u64, u64> = all.map(|bucket| (bucket.0, bucket.1)).collect();
        let edges: Vec<(u64, u64)> = grid.into_iter().collect();
        let index = |low: u64| edges.partition_point(|edge| edge.0 < low);
        let row = |kept: &Kept<'_>| {
            let mut counts: Vec<(usize, u64)> =
                kept.coarse.iter().map(|bucket| (index(bucket.0), bucket.2)).collect();
            // As they were written; a file may say anything.
            counts.sort_unstable();
            Row::new(&edges, counts, kept.exact_ns.map(|ns| ns as f64))
        };
        let rows = kept.iter().map(row).collect();
        Pool { edges, rows }
    }

    /// The same samples in fewer rows: each the sum of `size` neighbours, a shorter rest at the end.
    pub fn grouped(&self, size: usize) -> Pool {
        let size = size.max(1);
        let row = |first: usize| {
            let all = first..(first + size).min(self.rows.len());
            let counts = self.sum(all.clone()).into_iter().enumerate().filter(|(_, n)| *n > 0).collect();
            Row::new(&self.edges, counts, self.quantiles(all, EXACT).unwrap_or_default())
        };
        let rows = (0..self.rows.len()).step_by(size).map(row).collect();
        Pool { edges: self.edges.clone(), rows }
    }

    /// Samples in the chosen intervals.
    pub fn count(&self, chosen: impl IntoIterator<Item = usize>) -> u64 {
        self.sum(chosen).into_iter().fold(0, u64::saturating_add)
    }

    /// Quantiles `qs` (0..1) of all samples in the chosen intervals, in ns; `None` without samples. An interval may be
    /// chosen more than once.
    pub fn quantiles<const N: usize>(
        &self,
        chosen: impl IntoIterator<Item = usize>,
        qs: [f64; N],
    ) -> Option<[f64; N]> {
        let chosen: Vec<usize> = chosen.into_iter().collect();
        let counts = self.sum(chosen.iter().copied());
        let total = counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        (total > 0).then(|| qs.map(|q| self.interpolate(&chosen, &counts, q * total as f64)))
    }

    fn sum(&self, chosen: impl IntoIterator<Item = usize>) -> Vec<u64> {
        let mut counts = vec![0_u64; self.edges.len()];
        for row in chosen.into_iter().filter_map(|i| self.rows.get(i)) {
            for (bucket, n) in &row.counts {
                counts[*bucket] = counts[*bucket].saturating_add(*n);
            }
        }
        counts
    }

    /// The latency that so many samples did not exceed: its bucket, and its place there by the pieces of all rows.
    fn interpolate(&self, chosen: &[usize], counts: &[u64], rank: f64) -> f64 {
        let mut seen = 0.0;
        for (bucket, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            if seen + *n as f64 >= rank {
                let rows = chosen.iter().filter_map(|i| self.rows.get(*i));
                let pieces: Vec<Piece> = rows.flat_map(|row| row.pieces(bucket)).copied().collect();
                return place(&pieces, self.edges[bucket], rank - seen);
            }
            seen += *n as f64;
        }
        self.edges.last().map_or(0.0, |edge| edge.1 as f64)
    }
}

/// Where between two latencies so many of the pieces' samples are reached.
fn place(pieces: &[Piece], (low, high): (u64, u64), rank: f64) -> f64 {
    let (mut low, mut high) = (low as f64, high as f64);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        let within: f64 = pieces.iter().map(|piece| piece.within(middle)).sum();
        if within < rank { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Histogram;

    type Coarse = (Vec<(u64, u64, u64)>, [u64; 3]);

    fn coarse(histogram: &Histogram) -> Coarse {
        (histogram.coarse(3), EXACT.map(|q| histogram.quantile(q).unwrap()))
    }

    fn kept((coarse, exact_ns): &Coarse) -> Kept<'_> {
        Kept { coarse, exact_ns: *exact_ns }
    }

    #[test]
    fn pooled_quantiles_follow_the_exact_ones() {
        let (mut fast, mut slow, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for v in 0..10_000u64 {
            fast.record(100_000 + v * 10);
            slow.record(1_000_000 + v * 900);
            both.record(100_000 + v * 10);
            both.record(1_000_000 + v * 900);
        }
        let (fast, slow) = (coarse(&fast), coarse(&slow));
        let pool = Pool::new([kept(&fast), kept(&slow), Kept { coarse: &[], exact_ns: [0; 3] }]);
        assert_eq!((pool.count([0, 1]), pool.count([2]), pool.count([0, 0, 1])), (20_000, 0, 30_000));
        for q in [0.1, 0.25, 0.75, 0.9, 0.99] {
            let [pooled] = pool.quantiles([0, 1], [q]).unwrap();
            let exact = both.quantile(q).unwrap() as f64;
            assert!((pooled / exact - 1.0).abs() < 0.04, "{q}: {pooled} against {exact}");
        }
        assert_eq!(pool.quantiles([2], [0.5]), None);
        let pairs = pool.grouped(2);
        assert_eq!((pairs.count([0]), pairs.count([1]), pairs.count([2])), (20_000, 0, 0));
        for q in [0.5, 0.9, 0.99] {
            let [[of_pairs], [of_rows]] =
                [pairs.quantiles([0], [q]), pool.quantiles([0, 1], [q])].map(Option::unwrap);
            assert!((of_pairs / of_rows - 1.0).abs() < 0.01, "{q}: {of_pairs} and {of_rows}");
        }
    }

    /// Latencies that all lie in one coarse bucket, which is a tenth wide: the pool's quantile is not lost in it.
    #[test]
    fn a_quantile_is_not_lost_in_its_bucket() {
        let at = |median: u64| {
            let mut histogram = Histogram::new();
            (0..1000).for_each(|v| histogram.record(median - 500 + v));
            coarse(&histogram)
        };
        let rows = [at(84_000), at(84_800), at(85_600)];
        assert_eq!(rows.iter().map(|row| row.0.len()).max(), Some(1), "one bucket");
        let pool = Pool::new(rows.iter().map(kept));
        for (chosen, median) in
            [(&[0][..], 84_000.0), (&[1], 84_800.0), (&[0, 1, 2], 84_800.0), (&[2, 2, 0], 85_500.0)]
        {
            let [found] = pool.quantiles(chosen.iter().copied(), [0.5]).unwrap();
            assert!((found / median - 1.0_f64).abs() < 0.015, "{chosen:?}: {found} instead of {median}");
        }
    }
}
