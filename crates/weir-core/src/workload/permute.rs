//! A seeded bijection of block numbers, which scatters the popular blocks of a skewed distribution over the range.

use crate::workload::rng::Rng;

/// A bijection of `0..n` that needs no memory. It permutes the next power of two by odd multiplications and
/// xor-shifts, each of which is invertible, and walks the cycle until it is back inside the range (Black and Rogaway,
/// "Ciphers with arbitrary finite domains", CT-RSA 2002): fewer than two steps on average.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    multipliers: [u64; 3],
    summand: u64,
}

impl Permutation {
    /// The bijection of `0..n` that belongs to a seed; `n` must be at least 1.
    pub fn new(n: u64, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x7065_726d);
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(1);
        let mask = u64::MAX >> (64 - bits);
        let multipliers = std::array::from_fn(|_| rng.next_u64() | 1);
        Permutation { n, mask, shift: bits / 2 + 1, multipliers, summand: rng.next_u64() }
    }

    /// Where block `index` (below `n`) goes.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.step(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn step(&self, value: u64) -> u64 {
        let mut value = value.wrapping_add(self.summand) & self.mask;
        for multiplier in self.multipliers {
            value = value.wrapping_mul(multiplier) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_is_hit_exactly_once(n in 1u64..5000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut hit = vec![false; n as usize];
            for index in 0..n {
                let to = permutation.apply(index) as usize;
                prop_assert!(to < n as usize && !hit[to], "{index} -> {to}");
                hit[to] = true;
            }
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let n = 1_000_003;
        let permutation = Permutation::new(n, 7);
        let in_tenths = (0..1000).fold([0u32; 10], |mut tenths, index| {
            tenths[(permutation.apply(index) * 10 / n) as usize] += 1;
            tenths
        });
        assert!(in_tenths.iter().all(|&count| (50..=150).contains(&count)), "{in_tenths:?}");
    }
}
