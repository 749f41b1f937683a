//! Log-linear buckets as in HdrHistogram (G. Tene), `2^BITS` to a power of two: values below that have a bucket
//! each, and above no bucket is wider than `1/2^BITS` of its value. Every histogram here counts in these.

/// The bucket a value falls into.
#[inline(always)]
pub fn bucket_of<const BITS: u32>(value: u64) -> usize {
    let exponent = 63 - (value | 1 << BITS).leading_zeros();
    let shift = exponent - BITS;
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The bucket, of `2^TO` to a power of two, in which one of `2^FROM` to a power of two lies.
#[inline(always)]
pub fn coarser<const FROM: u32, const TO: u32>(bucket: usize) -> usize {
    if bucket >> FROM == 0 {
        return bucket_of::<TO>(bucket as u64);
    }
    let bits = FROM - TO;
    ((bits as usize) << TO) + (bucket >> bits)
}

/// Lowest and highest value of a bucket that [`bucket_of`] can give.
pub fn bounds<const BITS: u32>(bucket: usize) -> (u64, u64) {
    bounds_at(BITS, bucket).unwrap_or((u64::MAX, u64::MAX))
}

/// The same of `2^bits` buckets to a power of two, at most 2^32; `None` of one beyond the last.
pub fn bounds_at(bits: u32, bucket: usize) -> Option<(u64, u64)> {
    let (octave, slot) = (bucket >> bits, bucket & ((1 << bits) - 1));
    if octave == 0 {
        return Some((slot as u64, slot as u64));
    }
    let shift = octave as u32 - 1;
    let low = (shift + bits < 64).then(|| ((1_u64 << bits) + slot as u64) << shift)?;
    Some((low, low + ((1_u64 << shift) - 1)))
}

/// Counts in one bucket of counts that are kept from bucket `first` on, which are widened where they do not hold it.
#[inline(always)]
pub fn count<const BITS: u32>(first: &mut usize, counts: &mut Vec<u64>, bucket: usize, n: u64) {
    match counts.get_mut(bucket.wrapping_sub(*first)) {
        Some(count) => *count += n,
        None => {
            *first = widen::<BITS, _>(*first, counts, bucket);
            counts[bucket - *first] += n;
        }
    }
}

/// Widens counts kept from bucket `first` on so that they hold `bucket` too, by whole powers of two so that it happens
/// seldom; returns what is the first bucket now.
#[cold]
pub fn widen<const BITS: u32, N: Clone + Default>(first: usize, counts: &mut Vec<N>, bucket: usize) -> usize {
    let per_octave = 1 << BITS;
    let octave = bucket - bucket % per_octave;
    if counts.is_empty() {
        counts.resize(per_octave, N::default());
        return octave;
    }
    if octave < first {
        counts.splice(0..0, std::iter::repeat_n(N::default(), first - octave));
        return octave;
    }
    counts.resize(counts.len().max(octave + per_octave - first), N::default());
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const BITS: u32>() {
        for exponent in 0..64 {
            for value in [1_u64 << exponent, (1 << exponent) + (1_u64 << exponent) / 3, u64::MAX >> exponent]
            {
                let bucket = bucket_of::<BITS>(value);
                let (low, high) = bounds::<BITS>(bucket);
                assert!(low <= value && value <= high, "{value} in {low}..={high}");
                assert!((high - low) as f64 <= low as f64 / f64::from(1 << BITS), "{low}..={high}");
                assert!(high == u64::MAX || bucket_of::<BITS>(high + 1) == bucket + 1, "{low}..={high}");
                assert_eq!(coarser::<BITS, 2>(bucket), bucket_of::<2>(value), "{value}");
                assert_eq!(bounds_at(BITS, bucket), Some((low, high)));
            }
        }
    }

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_join_and_are_narrow() {
        check::<3>();
        check::<7>();
        check::<10>();
    }
}
