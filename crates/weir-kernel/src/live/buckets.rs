//! The programs' buckets of durations (`bpf/buckets.h`): 3.1 % wide.

const OCTAVE_BITS: u32 = 5;
const FIRST_EXPONENT: u32 = 8;
const LAST_EXPONENT: u32 = 33;
/// How many there are.
pub const BUCKETS: usize = ((LAST_EXPONENT - FIRST_EXPONENT + 2) << OCTAVE_BITS) as usize;

/// Lowest and highest duration of a bucket, ns.
pub fn bounds(bucket: u32) -> (u64, u64) {
    let (octave, slot) = (bucket >> OCTAVE_BITS, u64::from(bucket & ((1 << OCTAVE_BITS) - 1)));
    if octave == 0 {
        let width_ns = 1 << (FIRST_EXPONENT - OCTAVE_BITS);
        return (slot * width_ns, (slot + 1) * width_ns - 1);
    }
    let shift = octave - 1 + FIRST_EXPONENT - OCTAVE_BITS;
    let low_ns = ((1 << OCTAVE_BITS) + slot) << shift;
    let is_last = bucket as usize == BUCKETS - 1;
    (low_ns, if is_last { u64::MAX } else { low_ns + (1 << shift) - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_and_are_narrow() {
        for bucket in 1..BUCKETS as u32 {
            let ((_, before), (low_ns, high_ns)) = (bounds(bucket - 1), bounds(bucket));
            assert_eq!(before + 1, low_ns, "{bucket}");
            let is_last = bucket as usize == BUCKETS - 1;
            assert!(is_last || low_ns < 256 || (high_ns - low_ns + 1) * 32 <= low_ns, "{low_ns}..={high_ns}");
        }
    }
}
