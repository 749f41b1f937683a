//! Which block comes next: samplers of ranks, 0 being the most popular block.

use std::f64::consts::TAU;

use crate::workload::rng::Rng;
use crate::workload::spec::Distribution;

/// Draws ranks in `0..n`; set-up and each sample take constant time and no memory, whatever `n`.
#[derive(Debug, Clone)]
pub enum Sampler {
    /// Every rank alike.
    Uniform {
        /// Number of ranks.
        n: u64,
    },
    /// Rank k (from 1) with a weight of k^-theta.
    Zipf(Zipf),
    /// Self-similar: `n * u^exponent`, so that a share h of the ranks gets a share 1-h of the samples at every scale
    /// (Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994).
    Pareto {
        /// Number of ranks.
        n: f64,
        /// ln h / ln (1-h).
        exponent: f64,
    },
    /// Normal around the middle, cut off at the ends.
    Gaussian {
        /// Number of ranks.
        n: f64,
        /// Standard deviation, in ranks.
        deviation: f64,
    },
    /// The first `hot` ranks get a share of the samples, the others the rest.
    Hot {
        /// Number of ranks.
        n: u64,
        /// How many of them are hot.
        hot: u64,
        /// Share of the samples that go to them.
        accesses: f64,
    },
}

impl Sampler {
    /// A sampler of `0..n`; `n` must be at least 1 and the parameters those that [`crate::workload::validate`] admits.
    pub fn new(distribution: Distribution, n: u64) -> Self {
        match distribution {
            Distribution::Uniform => Sampler::Uniform { n },
            Distribution::Zipf(theta) => Sampler::Zipf(Zipf::new(n, theta)),
            Distribution::Pareto(h) => Sampler::Pareto { n: n as f64, exponent: h.ln() / (1.0 - h).ln() },
            Distribution::Gaussian(share) => Sampler::Gaussian { n: n as f64, deviation: share * n as f64 },
            Distribution::Hot { blocks, accesses } => {
                let hot = ((n as f64 * blocks).round() as u64).clamp(1, n);
                // With no cold rank left, all samples are hot ones.
                Sampler::Hot { n, hot, accesses: if hot == n { 1.0 } else { accesses } }
            }
        }
    }

    /// Whether popular ranks are to be scattered over the range: not where all are alike, nor where the middle of
    /// the range is meant.
    pub fn scatters(&self) -> bool {
        !matches!(self, Sampler::Uniform { .. } | Sampler::Gaussian { .. })
    }

    /// The next rank.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform { n } => rng.below(*n),
            Sampler::Zipf(zipf) => zipf.sample(rng),
            Sampler::Pareto { n, exponent } => below(n * rng.unit().powf(*exponent), *n),
            Sampler::Gaussian { n, deviation } => gaussian(*n, *deviation, rng),
            Sampler::Hot { n, hot, accesses } => {
                if rng.unit() < *accesses {
                    rng.below(*hot)
                } else {
                    hot + rng.below(n - hot)
                }
            }
        }
    }
}

/// `value` as a rank below `n`, against the last rounding.
fn below(value: f64, n: f64) -> u64 {
    (value as u64).min(n as u64 - 1)
}

/// Box and Muller's transform; samples outside the range are drawn again.
fn gaussian(n: f64, deviation: f64, rng: &mut Rng) -> u64 {
    loop {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        let value = n / 2.0 + deviation * radius * (TAU * rng.unit()).cos();
        if (0.0..n).contains(&value) {
            return below(value, n);
        }
    }
}

/// Zipf's distribution by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3), 1996. Exact for every theta > 0, 1 included; the integral
/// of x^-theta is written with expm1 and ln_1p so that it stays exact near theta = 1.
#[derive(Debug, Clone)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// H(1.5) - 1 and H(n + 0.5): the range that is inverted.
    h_first: f64,
    h_last: f64,
    /// Below this distance from the rounded rank a sample is accepted without a further look.
    squeeze: f64,
}

impl Zipf {
    /// A sampler of `0..n` with exponent `theta` > 0.
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Zipf { n: n as f64, theta, h_first: 0.0, h_last: 0.0, squeeze: 0.0 };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.h_last = zipf.integral(n as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// x^-theta.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// H(x), the integral of t^-theta from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over_x((1.0 - self.theta) * log) * log
    }

    /// The x with H(x) = `value`.
    fn inverse(&self, value: f64) -> f64 {
        // Rounding can push the argument past the pole of ln_1p.
        let t = (value * (1.0 - self.theta)).max(-1.0);
        (ln_1p_over_x(t) * value).exp()
    }

    /// The next rank, from 0.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_last + rng.unit() * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.n);
            if rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// (e^x - 1) / x, continued through 0.
fn expm1_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, continued through 0.
fn ln_1p_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: usize = 200_000;

    fn counts(distribution: Distribution, n: u64) -> Vec<u64> {
        let sampler = Sampler::new(distribution, n);
        let mut rng = Rng::new(42, 1);
        let mut counts = vec![0; n as usize];
        for _ in 0..SAMPLES {
            counts[sampler.sample(&mut rng) as usize] += 1;
        }
        counts
    }

    /// Chi-square of counts against weights; the statistic is about n, with a standard deviation of sqrt(2n).
    fn check_weights(name: &str, counts: &[u64], weights: &[f64]) {
        let sum: f64 = weights.iter().sum();
        let statistic: f64 = counts
            .iter()
            .zip(weights)
            .map(|(&count, weight)| {
                let expected = SAMPLES as f64 * weight / sum;
                (count as f64 - expected).powi(2) / expected
            })
            .sum();
        let n = counts.len() as f64;
        let bound = n + 5.0 * (2.0 * n).sqrt();
        assert!(statistic < bound, "{name}: chi-square {statistic} over {n} ranks, bound {bound}");
    }

    #[test]
    fn weights_are_those_of_theory() {
        let n = 100;
        check_weights("uniform", &counts(Distribution::Uniform, n), &vec![1.0; n as usize]);
        for theta in [0.1, 0.5, 0.99, 1.0, 1.000_001, 1.2, 2.0] {
            let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
            check_weights(&format!("zipf {theta}"), &counts(Distribution::Zipf(theta), n), &weights);
        }
        for h in [0.1f64, 0.2, 0.4] {
            let below = |k: u64| (k as f64 / n as f64).powf((1.0 - h).ln() / h.ln());
            let weights: Vec<f64> = (0..n).map(|k| below(k + 1) - below(k)).collect();
            check_weights(&format!("pareto {h}"), &counts(Distribution::Pareto(h), n), &weights);
        }
        let hot = counts(Distribution::Hot { blocks: 0.1, accesses: 0.8 }, n);
        let weights: Vec<f64> = (0..n).map(|k| if k < 10 { 8.0 } else { 2.0 / 9.0 }).collect();
        check_weights("hot", &hot, &weights);
    }

    #[test]
    fn gaussian_has_its_mean_and_deviation() {
        let counts = counts(Distribution::Gaussian(0.1), 10_000);
        let total = SAMPLES as f64;
        let mean = counts.iter().enumerate().map(|(i, &c)| i as f64 * c as f64).sum::<f64>() / total;
        let square =
            counts.iter().enumerate().map(|(i, &c)| (i as f64 - mean).powi(2) * c as f64).sum::<f64>();
        let deviation = (square / total).sqrt();
        assert!((mean - 5000.0).abs() < 15.0, "mean {mean}");
        assert!((deviation - 1000.0).abs() < 10.0, "deviation {deviation}");
    }

    #[test]
    fn huge_ranges_and_tiny_ones_stay_inside() {
        let mut rng = Rng::new(3, 3);
        for n in [1, 2, 3, 1 << 40] {
            for distribution in [
                Distribution::Uniform,
                Distribution::Zipf(1.0),
                Distribution::Zipf(5.0),
                Distribution::Pareto(0.01),
                Distribution::Gaussian(1.0),
                Distribution::Hot { blocks: 0.5, accesses: 0.0 },
            ] {
                let sampler = Sampler::new(distribution, n);
                for _ in 0..1000 {
                    assert!(sampler.sample(&mut rng) < n, "{distribution:?} over {n}");
                }
            }
        }
    }
}
