//! Seeded randomness: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
//! 47(4), 2021), seeded through SplitMix64. The same seed gives the same numbers on every machine and in every version: a
//! job file with its seed is the workload.

use crate::stats::random::{Random, mix64};

/// A seeded generator. Not for cryptography.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator for one purpose: different `purpose`s of one seed are independent of each other.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut seeds = Random::new(mix64(seed) ^ mix64(purpose.wrapping_add(0x5851_f42d_4c95_7f2d)));
        let state = std::array::from_fn(|_| seeds.next_u64());
        Rng { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..n` by multiply and shift (Lemire, ACM TOMACS 29(1), 2019, without the rejection step: the
    /// bias is below `n / 2^64`, far below what any run can see).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
