//! Coarse histograms of intervals, pooled over any choice of them: the quantile of a round, a regime or a resample.

use std::collections::BTreeMap;

/// Rows of coarse histograms on one grid.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// (low, high) of each bucket in ns, ascending.
    edges: Vec<(u64, u64)>,
    /// Each interval's non-empty buckets: index into `edges`, count.
    rows: Vec<Vec<(usize, u64)>>,
}

impl Pool {
    /// Takes one coarse histogram, as `(low, high, count)`, per interval.
    pub fn new<'a>(rows: impl IntoIterator<Item = &'a [(u64, u64, u64)]>) -> Pool {
        let rows: Vec<&[(u64, u64, u64)]> = rows.into_iter().collect();
        let grid: BTreeMap<u64, u64> = rows.iter().flat_map(|r| r.iter()).map(|b| (b.0, b.1)).collect();
        let edges: Vec<(u64, u64)> = grid.into_iter().collect();
        let index = |low: u64| edges.partition_point(|edge| edge.0 < low);
        let rows = rows.iter().map(|r| r.iter().map(|b| (index(b.0), b.2)).collect()).collect();
        Pool { edges, rows }
    }

    /// The same samples in fewer rows: each the sum of `size` neighbours, a shorter rest at the end.
    pub fn grouped(&self, size: usize) -> Pool {
        let rows = self.rows.chunks(size.max(1)).map(|rows| {
            let mut sum: BTreeMap<usize, u64> = BTreeMap::new();
            rows.iter().flatten().for_each(|(bucket, n)| *sum.entry(*bucket).or_default() += n);
            sum.into_iter().collect()
        });
        Pool { edges: self.edges.clone(), rows: rows.collect() }
    }

    /// Samples in the chosen intervals.
    pub fn count(&self, chosen: impl IntoIterator<Item = usize>) -> u64 {
        self.sum(chosen).into_iter().fold(0, u64::saturating_add)
    }

    /// Quantiles `qs` (0..1) of all samples in the chosen intervals, in ns, interpolated within a bucket; `None`
    /// without samples. An interval may be chosen more than once.
    pub fn quantiles<const N: usize>(
        &self,
        chosen: impl IntoIterator<Item = usize>,
        qs: [f64; N],
    ) -> Option<[f64; N]> {
        let counts = self.sum(chosen);
        let total = counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        (total > 0).then(|| qs.map(|q| self.interpolate(&counts, q * total as f64)))
    }

    fn sum(&self, chosen: impl IntoIterator<Item = usize>) -> Vec<u64> {
        let mut counts = vec![0_u64; self.edges.len()];
        for row in chosen.into_iter().filter_map(|i| self.rows.get(i)) {
            for (bucket, n) in row {
                counts[*bucket] = counts[*bucket].saturating_add(*n);
            }
        }
        counts
    }

    fn interpolate(&self, counts: &[u64], rank: f64) -> f64 {
        let mut seen = 0.0;
        for ((low, high), n) in self.edges.iter().zip(counts).filter(|(_, n)| **n > 0) {
            if seen + *n as f64 >= rank {
                return *low as f64 + (*high - *low) as f64 * ((rank - seen) / *n as f64).clamp(0.0, 1.0);
            }
            seen += *n as f64;
        }
        self.edges.last().map_or(0.0, |edge| edge.1 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Histogram;

    #[test]
    fn pooled_quantiles_follow_the_exact_ones() {
        let (mut fast, mut slow, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for v in 0..10_000u64 {
            fast.record(100_000 + v * 10);
            slow.record(1_000_000 + v * 900);
            both.record(100_000 + v * 10);
            both.record(1_000_000 + v * 900);
        }
        let (fast, slow) = (fast.coarse(3), slow.coarse(3));
        let pool = Pool::new([&fast[..], &slow[..], &[][..]]);
        assert_eq!((pool.count([0, 1]), pool.count([2]), pool.count([0, 0, 1])), (20_000, 0, 30_000));
        for q in [0.1, 0.25, 0.75, 0.9, 0.99] {
            let [pooled] = pool.quantiles([0, 1], [q]).unwrap();
            let exact = both.quantile(q).unwrap() as f64;
            assert!((pooled / exact - 1.0).abs() < 0.04, "{q}: {pooled} against {exact}");
        }
        assert_eq!(pool.quantiles([2], [0.5]), None);
        let pairs = pool.grouped(2);
        assert_eq!((pairs.count([0]), pairs.count([1]), pairs.count([2])), (20_000, 0, 0));
        assert_eq!(pairs.quantiles([0], [0.9]), pool.quantiles([0, 1], [0.9]));
    }
}
