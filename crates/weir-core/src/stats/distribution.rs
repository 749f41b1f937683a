//! The distribution of many durations in little memory: exact while they are few, bucketed when they are many.
//!
//! A trace has hundreds of these (device × class × size × stage), most of them small. The first [`EXACT`] values are
//! kept as they are, so that quantiles of short recordings are exact; then values are counted in log-linear
//! buckets of 1/128 of their value (0.8 %), over the powers of two between the least and the greatest.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::buckets;

/// How many values are kept as they are.
pub const EXACT: usize = 2048;
/// log2 of the buckets per power of two.
const PRECISION_BITS: u32 = 7;

/// Durations in nanoseconds; see the module's text. Count, sum, minimum and maximum are always exact, except where
/// buckets came from outside ([`Distribution::add_bucket`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Distribution {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    values_ns: Vec<u64>,
    /// Values are counted in buckets, no longer kept.
    is_bucketed: bool,
    /// The first bucket kept, and the counts from there on, in whole powers of two.
    first: usize,
    counts: Vec<u64>,
}

/// Durations with their figures, so that several can count them with one look at each.
#[derive(Debug, Clone, Copy)]
pub struct Durations<'a> {
    /// The durations.
    pub values_ns: &'a [u64],
    /// Their sum.
    pub sum_ns: u128,
    /// The smallest; of any value where there is none.
    pub min_ns: u64,
    /// The largest, likewise.
    pub max_ns: u64,
}

impl<'a> From<&'a [u64]> for Durations<'a> {
    fn from(values_ns: &'a [u64]) -> Self {
        let fold =
            |(min, max, sum): (u64, u64, u128), &ns: &u64| (min.min(ns), max.max(ns), sum + u128::from(ns));
        let (min_ns, max_ns, sum_ns) = values_ns.iter().fold((u64::MAX, 0, 0), fold);
        Durations { values_ns, sum_ns, min_ns, max_ns }
    }
}

/// The stored form: the values while they are few, then `[lowest value of the bucket, count]`.
#[derive(Serialize, Deserialize)]
struct Stored {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values_ns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    buckets: Vec<(u64, u64)>,
}

impl From<Distribution> for Stored {
    fn from(d: Distribution) -> Self {
        let buckets = d.bucketed().map(|(low, _, n)| (low, n)).collect();
        Stored {
            count: d.count,
            sum_ns: d.sum_ns,
            min_ns: d.min_ns,
            max_ns: d.max_ns,
            values_ns: d.values_ns,
            buckets,
        }
    }
}

impl From<Stored> for Distribution {
    fn from(s: Stored) -> Self {
        let mut d = Distribution::default();
        for value_ns in s.values_ns {
            d.record(value_ns);
        }
        for (low_ns, n) in s.buckets {
            d.add_bucket(low_ns, low_ns, n);
        }
        Distribution { count: s.count, sum_ns: s.sum_ns, min_ns: s.min_ns, max_ns: s.max_ns, ..d }
    }
}

impl Distribution {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.min_ns = if self.count == 0 { value_ns } else { self.min_ns.min(value_ns) };
        self.max_ns = self.max_ns.max(value_ns);
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        if !self.is_bucketed {
            if self.values_ns.len() < EXACT {
                self.values_ns.push(value_ns);
                return;
            }
            self.spill();
        }
        self.count_in_bucket(value_ns, 1);
    }

    /// Counts many durations at once, faster than one by one.
    pub fn record_all(&mut self, values_ns: &[u64]) {
        self.record_known(&Durations::from(values_ns));
    }

    /// The same, where their sum and extremes are known already.
    pub fn record_known(&mut self, durations: &Durations<'_>) {
        self.record_and(durations, |_, _| {});
    }

    /// The same, and tells `of_bucket` how many of them fell into which bucket: what counts in [`Distribution::coarser`]
    /// ones need not look at them again.
    #[inline]
    pub fn record_and(&mut self, durations: &Durations<'_>, mut of_bucket: impl FnMut(usize, u64)) {
        let values_ns = durations.values_ns;
        if values_ns.is_empty() {
            return;
        }
        if !self.is_bucketed {
            if self.values_ns.len() + values_ns.len() > EXACT {
                self.spill();
            } else {
                self.values_ns.extend_from_slice(values_ns);
                let buckets = values_ns.iter().map(|&ns| buckets::bucket_of::<PRECISION_BITS>(ns));
                buckets.for_each(|bucket| of_bucket(bucket, 1));
            }
        }
        if self.is_bucketed {
            self.count_in_buckets(durations, of_bucket);
        }
        self.min_ns = if self.count == 0 { durations.min_ns } else { self.min_ns.min(durations.min_ns) };
        self.max_ns = self.max_ns.max(durations.max_ns);
        self.count += values_ns.len() as u64;
        self.sum_ns += durations.sum_ns;
    }

    /// The bucket of `2^BITS` to a power of two in which one of a distribution's lies.
    #[inline(always)]
    pub fn coarser<const BITS: u32>(bucket: usize) -> usize {
        buckets::coarser::<PRECISION_BITS, BITS>(bucket)
    }

    /// Counts `n` durations between `low_ns` and `high_ns` that were counted elsewhere: sum, minimum and maximum are
    /// taken from the bounds until [`Distribution::set_exact`] says better.
    pub fn add_bucket(&mut self, low_ns: u64, high_ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        let middle_ns = low_ns + (high_ns - low_ns) / 2;
        self.spill();
        self.min_ns = if self.count == 0 { low_ns } else { self.min_ns.min(low_ns) };
        self.max_ns = self.max_ns.max(high_ns);
        self.count += n;
        self.sum_ns += u128::from(middle_ns) * u128::from(n);
        self.count_in_bucket(middle_ns, n);
    }

    /// Replaces the estimates of [`Distribution::add_bucket`] by exact figures.
    pub fn set_exact(&mut self, sum_ns: u128, min_ns: u64, max_ns: u64) {
        self.sum_ns = sum_ns;
        self.min_ns = min_ns;
        self.max_ns = max_ns;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        if !other.is_bucketed {
            for &value_ns in &other.values_ns {
                self.record(value_ns);
            }
            return;
        }
        self.spill();
        for (low_ns, high_ns, n) in other.bucketed() {
            self.count_in_bucket(low_ns + (high_ns - low_ns) / 2, n);
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    /// What was counted since an earlier state of this same distribution. Count and sum are exact; minimum and maximum
    /// are the bounds of the buckets where values are not kept, but for a maximum that is a new one.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let mut since = Distribution::default();
        if self.is_exact() && earlier.is_exact() {
            self.values_ns.iter().skip(earlier.values_ns.len()).for_each(|&value_ns| since.record(value_ns));
            return since;
        }
        let before: HashMap<u64, u64> =
            earlier.buckets().into_iter().map(|(low_ns, _, n)| (low_ns, n)).collect();
        for (low_ns, high_ns, n) in self.bucketed() {
            let n = n.saturating_sub(before.get(&low_ns).copied().unwrap_or(0));
            // Counted from buckets of others' bounds, a distribution's extremes may lie outside of its own buckets.
            let within = |ns: u64| ns.max(self.min_ns).min(self.max_ns);
            since.add_bucket(within(low_ns), within(high_ns), n);
        }
        since.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        if since.count > 0 && self.max_ns > earlier.max_ns {
            since.max_ns = self.max_ns;
        }
        since
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of all durations, ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Arithmetic mean, ns; 0 where nothing was counted.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The smallest duration, ns; 0 where nothing was counted.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The largest duration, ns; 0 where nothing was counted.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Whether quantiles are exact rather than to within a bucket.
    pub fn is_exact(&self) -> bool {
        !self.is_bucketed
    }

    /// The value at each of `quantiles` (0 to 1, ascending), ns: the value of rank ⌊q·n⌋ of the sorted values
    /// (the last for q = 1), from buckets their middle within the exact minimum and maximum. Zeros if empty.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let mut found = [0; N];
        if self.count == 0 {
            return found;
        }
        let mut sorted;
        let mut steps: Box<dyn Iterator<Item = (u64, u64)>> = if self.is_exact() {
            sorted = self.values_ns.clone();
            sorted.sort_unstable();
            Box::new(sorted.iter().map(|&value_ns| (value_ns, 1)))
        } else {
            Box::new(self.bucketed().map(|(low_ns, high_ns, n)| (low_ns + (high_ns - low_ns) / 2, n)))
        };
        let (mut value_ns, mut passed) = (0, 0);
        for (slot, quantile) in found.iter_mut().zip(quantiles) {
            let rank = ((quantile * self.count as f64) as u64).min(self.count - 1);
            while passed <= rank {
                let Some((next_ns, n)) = steps.next() else { break };
                value_ns = next_ns;
                passed += n;
            }
            *slot = value_ns.max(self.min_ns).min(self.max_ns);
        }
        found
    }

    /// One quantile; see [`Distribution::quantiles`].
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.quantiles([quantile])[0]
    }

    /// Lowest value, highest value and count of every step in ascending order, for plots and comparisons: values kept
    /// exactly come bucketed too.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        if !self.is_exact() {
            return self.bucketed().collect();
        }
        let mut copy = self.clone();
        copy.spill();
        copy.bucketed().collect()
    }

    /// From kept values to buckets.
    fn spill(&mut self) {
        self.is_bucketed = true;
        for value_ns in std::mem::take(&mut self.values_ns) {
            self.count_in_bucket(value_ns, 1);
        }
    }

    #[inline]
    fn count_in_buckets(&mut self, durations: &Durations<'_>, mut of_bucket: impl FnMut(usize, u64)) {
        let ends = [durations.min_ns, durations.max_ns].map(buckets::bucket_of::<PRECISION_BITS>);
        let [least, most] = ends;
        for bucket in ends {
            buckets::count::<PRECISION_BITS>(&mut self.first, &mut self.counts, bucket, 0);
        }
        if least == most {
            let n = durations.values_ns.len() as u64;
            self.counts[least - self.first] += n;
            return of_bucket(least, n);
        }
        let (first, counts) = (self.first, &mut self.counts[..]);
        for &value_ns in durations.values_ns {
            let bucket = buckets::bucket_of::<PRECISION_BITS>(value_ns);
            if let Some(count) = counts.get_mut(bucket.wrapping_sub(first)) {
                *count += 1;
            }
            of_bucket(bucket, 1);
        }
    }

    #[inline]
    fn count_in_bucket(&mut self, value_ns: u64, n: u64) {
        let bucket = buckets::bucket_of::<PRECISION_BITS>(value_ns);
        buckets::count::<PRECISION_BITS>(&mut self.first, &mut self.counts, bucket, n);
    }

    fn bucketed(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let all = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        all.map(|(at, &n)| {
            let (low_ns, high_ns) = buckets::bounds::<PRECISION_BITS>(self.first + at);
            (low_ns, high_ns, n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values_ns: impl IntoIterator<Item = u64>) -> Distribution {
        let mut d = Distribution::default();
        values_ns.into_iter().for_each(|value_ns| d.record(value_ns));
        d
    }

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for exponent in 0..64 {
            for value_ns in
                [1_u64 << exponent, (1 << exponent) + (1_u64 << exponent) / 3, u64::MAX >> exponent]
            {
                let (low_ns, high_ns) =
                    buckets::bounds::<PRECISION_BITS>(buckets::bucket_of::<PRECISION_BITS>(value_ns));
                assert!(low_ns <= value_ns && value_ns <= high_ns, "{value_ns} in {low_ns}..={high_ns}");
                assert!((high_ns - low_ns) as f64 <= low_ns as f64 / 128.0, "{low_ns}..={high_ns}");
            }
        }
    }

    #[test]
    fn few_values_are_exact_and_many_are_close() {
        let few = of([5, 1, 9, 3]);
        assert_eq!(few.quantiles([0.0, 0.5, 1.0]), [1, 5, 9]);
        let many = of((1..=100_000).rev());
        assert!(!many.is_exact());
        let mut at_once = Distribution::default();
        (1..=100_000)
            .rev()
            .collect::<Vec<_>>()
            .chunks(300)
            .for_each(|values_ns| at_once.record_all(values_ns));
        assert_eq!(at_once, many);
        assert_eq!(
            (many.count(), many.sum_ns(), many.min_ns(), many.max_ns()),
            (100_000, 5_000_050_000, 1, 100_000)
        );
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let expected = quantile * 100_000.0;
            let got = many.quantile(quantile) as f64;
            assert!((got - expected).abs() <= expected / 200.0 + 1.0, "{quantile}: {got}");
        }
    }

    #[test]
    fn merging_and_storing_keep_everything() {
        for (a, b) in [(3, 4), (3, 5000), (5000, 3), (5000, 6000), (0, 5000)] {
            let all = of((0..a).chain(10..10 + b));
            let mut merged = of(0..a);
            merged.merge(&of(10..10 + b));
            assert_eq!(merged.buckets(), all.buckets(), "{a} and {b}");
            assert_eq!(
                (merged.count(), merged.min_ns(), merged.max_ns()),
                (all.count(), all.min_ns(), all.max_ns())
            );
            let stored = serde_json::to_string(&merged).unwrap();
            assert_eq!(serde_json::from_str::<Distribution>(&stored).unwrap(), merged, "{a} and {b}");
        }
    }

    #[test]
    fn the_difference_of_two_states_is_what_came_between() {
        for (a, b) in [(0, 0), (0, 10), (10, 0), (10, 100), (10, 5000), (3000, 10), (3000, 4000)] {
            let earlier = of((0..a).map(|v| v * 1000));
            let mut later = earlier.clone();
            (0..b).for_each(|v| later.record(v * 700 + 5));
            let (since, expected) = (later.since(&earlier), of((0..b).map(|v| v * 700 + 5)));
            assert_eq!((since.count(), since.sum_ns()), (expected.count(), expected.sum_ns()), "{a} and {b}");
            assert_eq!(since.buckets(), expected.buckets(), "{a} and {b}");
            let mut foreign = later.clone();
            foreign.set_exact(0, later.max_ns() + 5000, later.max_ns() + 6000);
            assert_eq!(foreign.since(&earlier).count(), expected.count());
            let close = |x: u64, y: u64| x.abs_diff(y) as f64 <= y as f64 / 100.0 + 1.0;
            assert!(
                close(since.min_ns(), expected.min_ns()) && close(since.max_ns(), expected.max_ns()),
                "{a}, {b}"
            );
        }
    }
}
