//! A latency histogram over all of `u64` nanoseconds: no upper clamp, at least three significant digits.
//!
//! Log-linear buckets as in HdrHistogram (G. Tene). Those of a [`Histogram`]: values below 2048 ns have a bucket each; above,
//! every power of two is cut into 1024 buckets, so a bucket is never wider than 1/1024 of its value.

use serde::{Deserialize, Serialize};

use super::buckets;

/// log2 of the buckets per power of two of a [`Histogram`].
pub const PRECISION_BITS: u32 = 10;
/// Number of its buckets: they cover all of `u64`.
pub const BUCKETS: usize = Histogram::BUCKETS;

/// Durations at three significant digits, for results.
pub type Histogram = LogHistogram<PRECISION_BITS>;
/// Durations at 3 %, for many short stretches: a fraction of the memory to make, add up and forget.
pub type CoarseHistogram = LogHistogram<5>;

/// The bucket a value falls into.
#[inline(always)]
pub fn bucket_of(value: u64) -> usize {
    buckets::bucket_of::<PRECISION_BITS>(value)
}

/// The smallest value of a bucket.
pub fn bucket_low(bucket: usize) -> u64 {
    buckets::bounds::<PRECISION_BITS>(bucket).0
}

/// The largest value of a bucket.
pub fn bucket_high(bucket: usize) -> u64 {
    buckets::bounds::<PRECISION_BITS>(bucket).1
}

/// Counts of values by bucket, `2^BITS` to a power of two, with exact count, sum, minimum and maximum; kept only over the
/// powers of two in which values fell. Serialises sparsely, and reads what was written at another precision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct LogHistogram<const BITS: u32> {
    /// The bucket of the first count.
    first: usize,
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The stored form: `[first bucket − previous bucket, count]` would save little; plain pairs stay readable.
#[derive(Serialize, Deserialize)]
struct Sparse {
    /// log2 of the buckets per power of two, for readers of the record.
    precision_bits: u32,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: Vec<(u32, u64)>,
}

impl<const BITS: u32> From<LogHistogram<BITS>> for Sparse {
    fn from(h: LogHistogram<BITS>) -> Self {
        let buckets = h.nonzero().map(|(bucket, n)| (bucket as u32, n)).collect();
        Sparse {
            precision_bits: BITS,
            count: h.count,
            sum_ns: h.sum,
            min_ns: h.min().unwrap_or(0),
            max_ns: h.max,
            buckets,
        }
    }
}

impl<const BITS: u32> TryFrom<Sparse> for LogHistogram<BITS> {
    type Error = String;

    fn try_from(s: Sparse) -> Result<Self, String> {
        if s.precision_bits > 32 {
            return Err(format!("precision_bits are {}, more than 32", s.precision_bits));
        }
        let total = s.buckets.iter().try_fold(0_u64, |total, (_, n)| total.checked_add(*n));
        if total.is_none() {
            return Err("its buckets hold more values than can be counted".to_string());
        }
        if s.min_ns > s.max_ns {
            return Err(format!("min_ns {} is above max_ns {}", s.min_ns, s.max_ns));
        }
        let mut h = Self::new();
        for (bucket, n) in s.buckets {
            let bucket = bucket as usize;
            if s.precision_bits == BITS {
                h.add_bucket(bucket, n);
            } else if let Some((low, high)) = buckets::bounds_at(s.precision_bits, bucket) {
                h.add_bucket(buckets::bucket_of::<BITS>(low + (high - low) / 2), n);
            }
        }
        if h.count > 0 {
            h.set_exact(s.sum_ns, s.min_ns, s.max_ns);
        }
        Ok(h)
    }
}

impl<const BITS: u32> Default for LogHistogram<BITS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BITS: u32> LogHistogram<BITS> {
    /// Number of buckets that cover all of `u64`.
    pub const BUCKETS: usize = ((64 - BITS as usize - 1) << BITS) + (2 << BITS);

    /// An empty histogram; it grows to the buckets it has seen.
    pub fn new() -> Self {
        LogHistogram { first: 0, counts: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value `n` times.
    pub fn record_many(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.count_in(buckets::bucket_of::<BITS>(value), n);
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts `n` values of a bucket, taking sum, minimum and maximum from the bucket's middle and edges
    /// until [`LogHistogram::set_exact`] supplies the true ones. Buckets past the last are ignored.
    pub fn add_bucket(&mut self, bucket: usize, n: u64) {
        if n == 0 || bucket >= Self::BUCKETS {
            return;
        }
        self.count_in(bucket, n);
        self.count += n;
        let (low, high) = buckets::bounds::<BITS>(bucket);
        self.sum += u128::from(low + (high - low) / 2) * u128::from(n);
        self.min = self.min.min(low);
        self.max = self.max.max(high);
    }

    /// Replaces the estimates of [`LogHistogram::add_bucket`] by exact figures.
    pub fn set_exact(&mut self, sum: u128, min: u64, max: u64) {
        self.sum = sum;
        self.min = min;
        self.max = max;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for end in [other.first, other.first + other.counts.len() - 1] {
            self.count_in(end, 0);
        }
        for (mine, theirs) in self.counts[other.first - self.first..].iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    #[inline]
    fn count_in(&mut self, bucket: usize, n: u64) {
        buckets::count::<BITS>(&mut self.first, &mut self.counts, bucket, n);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of all values, in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The exact largest value.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The exact mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value at or below which a fraction `q` in 0..=1 of all values lie: the upper edge of its bucket,
    /// within the exact minimum and maximum. It never says whether enough values stand behind it; see
    /// [`crate::stats`] for quantiles that do.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.value_at_rank((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64)
    }

    /// The `rank`-th smallest value (from 1; kept within 1..=count): the upper edge of its bucket, within the
    /// exact minimum and maximum.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = rank.clamp(1, self.count);
        let mut seen = 0;
        for (bucket, n) in self.nonzero() {
            seen = n.saturating_add(seen);
            if seen >= rank {
                return Some(buckets::bounds::<BITS>(bucket).1.max(self.min).min(self.max));
            }
        }
        Some(self.max)
    }

    /// How many values are certainly above `value` (the bucket that holds `value` counts as not above).
    pub fn count_above(&self, value: u64) -> u64 {
        let above =
            self.counts.iter().skip((buckets::bucket_of::<BITS>(value) + 1).saturating_sub(self.first));
        above.fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Non-empty buckets with their counts, in ascending order.
    pub fn nonzero(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().zip(self.first..).filter(|(n, _)| **n > 0).map(|(n, bucket)| (bucket, *n))
    }

    /// Non-empty buckets by their upper edge, in ascending order.
    pub fn edges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.nonzero().map(|(bucket, n)| (buckets::bounds::<BITS>(bucket).1, n))
    }

    /// Non-empty buckets as `(low, high, count)` of `1 << bits` buckets per power of two: a coarser view for plots.
    pub fn coarse(&self, bits: u32) -> Vec<(u64, u64, u64)> {
        let step = 1usize << BITS.saturating_sub(bits);
        let mut out: Vec<(u64, u64, u64)> = Vec::new();
        for (bucket, n) in self.nonzero() {
            let first = bucket / step * step;
            let (low, _) = buckets::bounds::<BITS>(first);
            let (_, high) = buckets::bounds::<BITS>((first + step - 1).min(Self::BUCKETS - 1));
            match out.last_mut() {
                Some(last) if last.0 == low => last.2 += n,
                _ => out.push((low, high, n)),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_value_within_three_digits() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        let mut value = 0u64;
        loop {
            let bucket = bucket_of(value);
            let (low, high) = (bucket_low(bucket), bucket_high(bucket));
            assert!(low <= value && value <= high, "{value} in {low}..={high}");
            assert!((high - low) as f64 <= low as f64 / 1024.0, "{value}: {low}..={high} is too wide");
            match value.checked_add(value / 700 + 1) {
                Some(next) => value = next,
                None => break,
            }
        }
    }

    #[test]
    fn quantiles_of_a_known_sequence() {
        let mut h = Histogram::new();
        (1..=1000u64).for_each(|v| h.record(v));
        assert_eq!(h.quantile(0.5), Some(500));
        assert_eq!(h.quantile(0.99), Some(990));
        assert_eq!(h.quantile(1.0), Some(1000));
        assert_eq!(h.mean(), Some(500.5));
        assert_eq!(h.count_above(990), 10);
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    #[test]
    fn serialises_sparsely_and_back() {
        let mut h = Histogram::new();
        [3, 5_000_000_000_000, 17, 17].iter().for_each(|v| h.record(*v));
        let text = serde_json::to_string(&h).unwrap();
        assert!(text.len() < 200, "{text}");
        let back: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!((back.count(), back.sum(), back.min(), back.max()), (4, h.sum(), Some(3), h.max()));
        assert_eq!(back.quantile(0.5), h.quantile(0.5));
    }

    #[test]
    fn what_was_written_at_another_precision_is_read() {
        let mut fine = Histogram::new();
        [3, 1_000_000, 1_000_001, 5_000_000_000_000, u64::MAX].iter().for_each(|v| fine.record(*v));
        let mut coarse = CoarseHistogram::new();
        coarse.merge(&serde_json::from_str(&serde_json::to_string(&fine).unwrap()).unwrap());
        assert_eq!((coarse.count(), coarse.sum(), coarse.min()), (5, fine.sum(), Some(3)));
        assert!((coarse.quantile(0.5).unwrap() as f64 / 1e6 - 1.0).abs() < 0.032);
        let back: Histogram = serde_json::from_str(&serde_json::to_string(&coarse).unwrap()).unwrap();
        assert_eq!((back.count(), back.max()), (5, Some(u64::MAX)));
        let strange = serde_json::to_string(&fine).unwrap().replace(":10,", ":99,");
        assert!(serde_json::from_str::<Histogram>(&strange).is_err(), "{strange}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let text = |min: &str, max: &str, sum: &str, buckets: &str| {
            format!(
                r#"{{"precision_bits":10,"count":1,"sum_ns":{sum},"min_ns":{min},"max_ns":{max},"buckets":[{buckets}]}}"#
            )
        };
        let most = u64::MAX.to_string();
        for (text, good) in [
            (text("5", "5", "5", "[5,1]"), true),
            (text("0", "0", "0", ""), true),
            (text("9", "5", "5", "[5,1]"), false),
            (text("5", "6", "9", &format!("[5,{most}],[6,1]")), false),
            (text("5", "5", "5", "[4294967295,1]"), true),
        ] {
            let read = serde_json::from_str::<Histogram>(&text);
            assert_eq!(read.is_ok(), good, "{text}: {read:?}");
            let Ok(mut histogram) = read else { continue };
            histogram.merge(&histogram.clone());
            assert!((0..=10).all(|q| histogram.quantile(f64::from(q) / 10.0).is_none_or(|value| value == 5)));
        }
        let full = text("5", "5", "5", &format!("[5,{most}]"));
        let mut histogram: Histogram = serde_json::from_str(&full).unwrap();
        histogram.merge(&histogram.clone());
        assert_eq!((histogram.count(), histogram.quantile(0.5)), (u64::MAX, Some(5)));
    }

    proptest::proptest! {
        /// Whatever figures a stored histogram has, it is refused, or answers every question.
        #[test]
        fn any_figures_are_refused_or_answer(
            bits in 0_u32..40,
            (least, most) in (proptest::prelude::any::<u64>(), proptest::prelude::any::<u64>()),
            sum in proptest::prelude::any::<u64>(),
            buckets in proptest::collection::vec((proptest::prelude::any::<u32>(), proptest::prelude::any::<u64>()), 0..6),
        ) {
            let stored = Sparse {
                precision_bits: if bits < 36 { PRECISION_BITS } else { bits },
                count: sum,
                sum_ns: u128::from(sum) << (bits % 64),
                min_ns: least,
                max_ns: most,
                buckets: buckets.iter().map(|(bucket, n)| (bucket % 60_000, n >> (bits % 64))).collect(),
            };
            let text = serde_json::to_string(&stored).unwrap();
            let told = crate::stats::claims::histogram_bytes(text.as_bytes());
            let Ok(mut histogram) = serde_json::from_str::<Histogram>(&text) else { return Ok(()) };
            let takes = histogram.counts.len() as u64 * 8;
            // Where its figures are too large nothing is told: it is refused for that.
            let fits = told.map_or(true, |most_bytes| takes <= most_bytes.max(8 << PRECISION_BITS));
            assert!(fits || stored.precision_bits != PRECISION_BITS, "{text}");
            histogram.merge(&histogram.clone());
            let (low, high) = (histogram.min(), histogram.max());
            for q in [0.0, 0.5, 0.999, 1.0] {
                let value = histogram.quantile(q);
                assert!(value.is_none() || (low <= value && value <= high), "{text}: {value:?}");
            }
            histogram.count_above(least);
            histogram.coarse(3);
            histogram.mean();
        }
    }

    #[test]
    fn merge_equals_recording_together() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for v in [1u64, 100, 10_000, 123_456_789] {
            a.record(v);
            both.record(v);
        }
        for v in [7u64, 99_999_999_999] {
            b.record(v);
            both.record(v);
        }
        a.merge(&b);
        assert_eq!(
            (a.count(), a.sum(), a.min(), a.max()),
            (both.count(), both.sum(), both.min(), both.max())
        );
        assert_eq!(a.quantile(0.9), both.quantile(0.9));
    }
}
