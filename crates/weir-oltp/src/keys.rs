//! Which rows are asked for.

use weir_core::workload::distribution::Sampler;
use weir_core::workload::permute::Permutation;
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::Distribution;

/// The popular keys are the same ones whatever the seed of a run: what an earlier run has brought into the server's
/// memory is what the next one asks for, and `k`, drawn likewise when tables are filled, has the same popular values.
const SCATTER_SEED: u64 = 0x6b65_7973;

/// Draws keys `1..=n`.
#[derive(Debug, Clone)]
pub struct Keys {
    first: u64,
    sampler: Sampler,
    scatter: Option<Permutation>,
}

impl Keys {
    /// Keys `1..=n` of a distribution; `n` must be at least 1. Popular keys are scattered over the range where the
    /// distribution scatters.
    pub fn new(distribution: Distribution, n: u64) -> Keys {
        Keys::within(distribution, 1, n)
    }

    /// Keys `first..first + n`.
    pub fn within(distribution: Distribution, first: u64, n: u64) -> Keys {
        let sampler = Sampler::new(distribution, n);
        let scatter = sampler.scatters().then(|| Permutation::new(n, SCATTER_SEED));
        Keys { first, sampler, scatter }
    }

    /// The next key.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        let rank = self.sampler.sample(rng);
        let place = self.scatter.as_ref().map_or(rank, |scatter| scatter.apply(rank));
        (self.first + place) as i64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn counts(distribution: Distribution, seed: u64) -> BTreeMap<i64, u32> {
        let (keys, mut rng) = (Keys::new(distribution, 1000), Rng::new(seed, 0));
        (0..100_000).fold(BTreeMap::new(), |mut counts, _| {
            *counts.entry(keys.draw(&mut rng)).or_default() += 1;
            counts
        })
    }

    /// Share of draws that go to the ten most popular keys.
    fn top_share(counts: &BTreeMap<i64, u32>) -> f64 {
        let mut all: Vec<u32> = counts.values().copied().collect();
        all.sort_unstable();
        f64::from(all.iter().rev().take(10).sum::<u32>()) / 100_000.0
    }

    #[test]
    fn distributions_act_stay_inside_and_scatter() {
        for (distribution, low, high) in [
            (Distribution::Uniform, 0.0, 0.02),
            (Distribution::Zipf(1.2), 0.5, 0.8),
            (Distribution::Pareto(0.2), 0.3, 0.6),
            (Distribution::Hot { blocks: 0.01, accesses: 0.75 }, 0.7, 0.8),
        ] {
            let counts = counts(distribution, 1);
            assert!(counts.keys().all(|key| (1..=1000).contains(key)), "{distribution:?}");
            let share = top_share(&counts);
            assert!((low..high).contains(&share), "{distribution:?}: {share}");
        }
        let zipf = counts(Distribution::Zipf(1.2), 1);
        let mut popular: Vec<(u32, i64)> = zipf.iter().map(|(key, count)| (*count, *key)).collect();
        popular.sort_unstable();
        let spread: Vec<i64> = popular.iter().rev().take(10).map(|(_, key)| *key).collect();
        let (min, max) = (spread.iter().min().unwrap(), spread.iter().max().unwrap());
        assert!(max - min > 500, "the popular keys lie together: {spread:?}");
    }

    #[test]
    fn the_popular_keys_do_not_depend_on_the_seed() {
        let most = |seed| {
            let all = counts(Distribution::Zipf(1.2), seed);
            all.into_iter().max_by_key(|(_, count)| *count).unwrap().0
        };
        assert_eq!(most(1), most(2));
    }
}
