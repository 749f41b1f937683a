//! A small deterministic generator for resampling and permutation: the same seed gives the same interval. Written here,
//! because stored runs are derived again by later versions, and a crate may change its sequences.

/// The finalizer of SplitMix64: a bijection of 64 bits in which every input bit moves about half of the output bits.
pub fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix64(self.0)
    }

    /// A number below `n` (0 for `n` = 0), by multiplication: the bias is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Uniform in 0..1, never 0 or 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts a slice into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(any(test, feature = "samples"))]
pub mod simulate {
    //! Synthetic series for the tests of this folder.

    use super::Random;

    /// Uniform in 0..1, never 0.
    pub fn uniform(random: &mut Random) -> f64 {
        random.uniform()
    }

    /// Standard normal (Box and Muller).
    pub fn normal(random: &mut Random) -> f64 {
        random.normal()
    }

    /// `n` values around `mean` with relative noise `noise` and autocorrelation `rho` at lag 1.
    pub fn series(random: &mut Random, n: usize, mean: f64, noise: f64, rho: f64) -> Vec<f64> {
        let mut state = normal(random);
        (0..n)
            .map(|_| {
                state = rho * state + (1.0 - rho * rho).sqrt() * normal(random);
                mean * (1.0 + noise * state)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_and_even_shares() {
        // First outputs for seed 1234567, as in the reference implementation's test vectors.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
        let mut shares = [0u32; 7];
        (0..70_000).for_each(|_| shares[random.below(7)] += 1);
        assert!(shares.iter().all(|n| (9_600..10_400).contains(n)), "{shares:?}");
        assert_eq!(random.below(0), 0);
    }
}
