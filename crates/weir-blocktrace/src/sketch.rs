//! Counts of values in buckets an eighth of a power of two wide: small enough to keep hundreds of slices of time.

use serde::{Deserialize, Serialize};

use weir_core::stats::{Distribution, Durations, buckets};

/// log2 of the buckets per power of two.
const PRECISION_BITS: u32 = 3;

/// Buckets of at most 12.5 % of their value, kept only over the range where values fell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    first: u16,
    counts: Vec<u32>,
}

impl Sketch {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = buckets::bucket_of::<PRECISION_BITS>(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first as usize)) {
            Some(count) => *count = count.saturating_add(1),
            None => self.widen(bucket, 1),
        }
    }

    /// Counts many values.
    pub fn record_all(&mut self, values: &[u64]) {
        values.iter().for_each(|&value| self.record(value));
    }

    /// Counts durations together with a distribution, which finds their buckets for both.
    pub(super) fn record_with(&mut self, distribution: &mut Distribution, durations: &Durations<'_>) {
        if durations.values_ns.is_empty() {
            return;
        }
        let ends = [durations.min_ns, durations.max_ns].map(buckets::bucket_of::<PRECISION_BITS>);
        let [least, most] = ends;
        if least == most {
            let n = u32::try_from(durations.values_ns.len()).unwrap_or(u32::MAX);
            distribution.record_known(durations);
            return self.add(durations.min_ns, n);
        }
        for bucket in ends {
            if bucket.wrapping_sub(self.first as usize) >= self.counts.len() {
                self.widen(bucket, 0);
            }
        }
        let (first, counts) = (self.first as usize, &mut self.counts[..]);
        distribution.record_and(durations, |bucket, n| {
            let bucket = Distribution::coarser::<PRECISION_BITS>(bucket);
            if let Some(count) = counts.get_mut(bucket.wrapping_sub(first)) {
                *count = count.saturating_add(n as u32);
            }
        });
    }

    /// Counts `n` values that are alike.
    pub fn add(&mut self, value: u64, n: u32) {
        let bucket = buckets::bucket_of::<PRECISION_BITS>(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first as usize)) {
            Some(count) => *count = count.saturating_add(n),
            None => self.widen(bucket, n),
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&n| u64::from(n)).sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Lowest value, highest value and count of each bucket that has any, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let all = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        all.map(|(at, &n)| {
            let (low, high) = buckets::bounds::<PRECISION_BITS>(self.first as usize + at);
            (low, high, u64::from(n))
        })
    }

    /// The value of a rank (from 0) in ascending order, to within its bucket: the bucket's middle. 0 if empty.
    pub fn at_rank(&self, rank: u64) -> u64 {
        let (mut passed, mut middle) = (0, 0);
        for (low, high, n) in self.buckets() {
            middle = low + (high - low) / 2;
            passed += n;
            if passed > rank {
                break;
            }
        }
        middle
    }

    /// The value of rank ⌊q·n⌋, to within its bucket. 0 if empty.
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.at_rank((quantile * self.count() as f64) as u64)
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Sketch) {
        for (at, &n) in other.counts.iter().enumerate().filter(|&(_, &n)| n > 0) {
            let bucket = other.first as usize + at;
            match self.counts.get_mut(bucket.wrapping_sub(self.first as usize)) {
                Some(count) => *count = count.saturating_add(n),
                None => self.widen(bucket, n),
            }
        }
    }

    /// Counts in a bucket outside the range.
    #[cold]
    fn widen(&mut self, bucket: usize, n: u32) {
        let first = buckets::widen::<PRECISION_BITS, _>(self.first as usize, &mut self.counts, bucket);
        self.first = first as u16;
        self.counts[bucket - first] = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_counts_survive_any_order_and_merging() {
        let values: Vec<u64> =
            (0..64).flat_map(|e| [1_u64 << e, (3_u64 << e) >> 1, u64::MAX >> e]).chain([0]).collect();
        for &value in &values {
            let (low, high) = buckets::bounds::<PRECISION_BITS>(buckets::bucket_of::<PRECISION_BITS>(value));
            assert!(low <= value && value <= high, "{value} in {low}..={high}");
            assert!((high - low) as f64 <= low as f64 / 8.0, "{low}..={high}");
        }
        let of = |values: &[u64]| {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&v| sketch.record(v));
            sketch
        };
        let reversed: Vec<u64> = values.iter().rev().copied().collect();
        assert_eq!(of(&values), of(&reversed));
        // First while the distribution keeps its values, then once it does not.
        let mut distribution = Distribution::default();
        for is_exact in [true, false] {
            let mut at_once = Sketch::default();
            let (some, others) = values.split_at(values.len() / 2);
            let mut count = |values: &[u64]| at_once.record_with(&mut distribution, &Durations::from(values));
            some.chunks(3).chain(others.chunks(1)).for_each(&mut count);
            count(&[]);
            assert_eq!(at_once, of(&values));
            assert_eq!(distribution.is_exact(), is_exact);
            (0..3000).for_each(|value| distribution.record(value));
        }
        let mut merged = of(&values[..50]);
        merged.merge(&of(&values[50..]));
        assert_eq!(merged, of(&values));
        assert_eq!(merged.count(), values.len() as u64);
        let stored = serde_json::to_string(&merged).unwrap();
        assert_eq!(serde_json::from_str::<Sketch>(&stored).unwrap(), merged);
    }

    #[test]
    fn quantiles_are_close() {
        let mut sketch = Sketch::default();
        (1..=10_000).for_each(|v| sketch.record(v));
        for quantile in [0.01, 0.5, 0.99] {
            let expected = quantile * 10_000.0;
            let got = sketch.quantile(quantile) as f64;
            assert!((got - expected).abs() <= expected * 0.07 + 1.0, "{quantile}: {got}");
        }
        assert_eq!(Sketch::default().quantile(0.5), 0);
    }
}
