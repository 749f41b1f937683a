//! Intervals of ratios by moving-block bootstrap (Künsch 1989): blocks of neighbouring intervals are drawn together,
//! so that their dependence stays in the resamples.
//!
//! The block length follows Carlstein (1986) for a first-order autoregression with the series' own lag-1
//! correlation. The percentiles are widened as Hesterberg (2015) advises for few observations ("expanded
//! percentile interval"): the plain ones cover too seldom below some forty blocks.

pub use crate::stats::estimate::{ALPHA, Estimate, RatioInterval};
use crate::stats::random::Random;

/// Resamples.
pub const RESAMPLES: usize = 2_000;
/// Fewest units on either side that give an interval.
pub const UNITS_MIN: usize = 5;

/// One side of a comparison: a number of units (intervals, trials) in order of time, a series that shows their
/// dependence, and the statistic of any choice of them.
pub struct Side<'a> {
    /// One value per unit; its length is the number of units.
    pub series: &'a [f64],
    /// The statistic (positive) of the chosen units; `None` where it does not exist.
    pub statistic: &'a dyn Fn(&[usize]) -> Option<f64>,
}

/// Interval of the ratio of B's statistic over A's, both resampled on their own. `None` with fewer than
/// [`UNITS_MIN`] units, or where a statistic is missing or not positive.
pub fn ratio_unpaired(a: &Side<'_>, b: &Side<'_>, seed: u64) -> Option<RatioInterval> {
    Some(estimate_unpaired(a, b, seed)?.interval(ALPHA))
}

/// What [`ratio_unpaired`] cuts its interval from.
pub fn estimate_unpaired(a: &Side<'_>, b: &Side<'_>, seed: u64) -> Option<Estimate> {
    let (block_a, block_b) = (block_length(a.series), block_length(b.series));
    let mut random = Random::new(seed);
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    let mut draw = || {
        resample(&mut of_a, a.series.len(), block_a, &mut random);
        resample(&mut of_b, b.series.len(), block_b, &mut random);
        log_ratio(a, &of_a, b, &of_b)
    };
    let blocks = (a.series.len() / block_a).min(b.series.len() / block_b);
    estimate(a, b, blocks, &mut draw)
}

/// As [`ratio_unpaired`] for units that belong together, the i-th of A with the i-th of B (trials run in turn, say):
/// both sides are drawn with the same choice, so that what they share cancels. Surplus units are left out.
pub fn ratio_paired(a: &Side<'_>, b: &Side<'_>, seed: u64) -> Option<RatioInterval> {
    let n = a.series.len().min(b.series.len());
    let difference: Vec<f64> = a.series.iter().zip(b.series).map(|(a, b)| b - a).collect();
    let block = block_length(&difference);
    let (mut random, mut chosen) = (Random::new(seed), Vec::new());
    let a = Side { series: &a.series[..n], ..*a };
    let b = Side { series: &b.series[..n], ..*b };
    let mut draw = || {
        resample(&mut chosen, n, block, &mut random);
        log_ratio(&a, &chosen, &b, &chosen)
    };
    Some(estimate(&a, &b, n / block, &mut draw)?.interval(ALPHA))
}

/// Interval of mean(b) / mean(a), unpaired.
pub fn ratio_of_means(a: &[f64], b: &[f64], seed: u64) -> Option<RatioInterval> {
    let (of_a, of_b) = (mean_of(a), mean_of(b));
    ratio_unpaired(&Side { series: a, statistic: &of_a }, &Side { series: b, statistic: &of_b }, seed)
}

/// Interval of mean(b) / mean(a), paired.
pub fn ratio_of_means_paired(a: &[f64], b: &[f64], seed: u64) -> Option<RatioInterval> {
    let (of_a, of_b) = (mean_of(a), mean_of(b));
    ratio_paired(&Side { series: a, statistic: &of_a }, &Side { series: b, statistic: &of_b }, seed)
}

fn mean_of(values: &[f64]) -> impl Fn(&[usize]) -> Option<f64> + '_ {
    |chosen| {
        (!chosen.is_empty()).then(|| chosen.iter().map(|i| values[*i]).sum::<f64>() / chosen.len() as f64)
    }
}

/// The logarithm of the ratio of two sides, each by the seconds chosen of it; `None` where it has none.
pub fn log_ratio(a: &Side<'_>, of_a: &[usize], b: &Side<'_>, of_b: &[usize]) -> Option<f64> {
    let ratio = (b.statistic)(of_b)? / (a.statistic)(of_a)?;
    (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
}

fn estimate(
    a: &Side<'_>,
    b: &Side<'_>,
    blocks: usize,
    draw: &mut dyn FnMut() -> Option<f64>,
) -> Option<Estimate> {
    let (n_a, n_b) = (a.series.len(), b.series.len());
    if n_a.min(n_b) < UNITS_MIN {
        return None;
    }
    let all = |n: usize| (0..n).collect::<Vec<usize>>();
    let point = log_ratio(a, &all(n_a), b, &all(n_b))?;
    let draws: Vec<f64> = (0..RESAMPLES).filter_map(|_| draw()).collect();
    (draws.len() >= RESAMPLES / 2).then(|| Estimate::expanded(point, draws, blocks.max(3) as f64))
}

/// Fills `chosen` with blocks of neighbours until there are `n`.
pub fn resample(chosen: &mut Vec<usize>, n: usize, block: usize, random: &mut Random) {
    chosen.clear();
    while chosen.len() < n {
        let start = random.below(n - block + 1);
        let take = block.min(n - chosen.len());
        chosen.extend(start..start + take);
    }
}

/// Carlstein's block length, 1 for a series without visible autocorrelation, at most a quarter of the series.
pub fn block_length(series: &[f64]) -> usize {
    let n = series.len();
    let rho = lag_one_correlation(series);
    if n < 2 * UNITS_MIN || rho <= 1.0 / (n as f64).sqrt() {
        return 1;
    }
    let rho = rho.min(0.97);
    let length = (6f64.sqrt() * rho / (1.0 - rho * rho)).powf(2.0 / 3.0) * (n as f64).cbrt();
    (length.round() as usize).clamp(1, n / 4)
}

fn lag_one_correlation(series: &[f64]) -> f64 {
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    let variance: f64 = series.iter().map(|v| (v - mean).powi(2)).sum();
    let covariance: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::simulate;

    /// How many of 200 intervals of a true ratio cover it.
    fn covering(n: usize, rho: f64, truth: f64, paired: bool) -> usize {
        let mut random = Random::new(42);
        (0..200)
            .filter(|seed| {
                let a = simulate::series(&mut random, n, 1000.0, 0.1, rho);
                let b: Vec<f64> = if paired {
                    a.iter().map(|a| a * truth * (1.0 + 0.02 * simulate::normal(&mut random))).collect()
                } else {
                    simulate::series(&mut random, n, 1000.0 * truth, 0.1, rho)
                };
                let of = if paired { ratio_of_means_paired } else { ratio_of_means };
                of(&a, &b, *seed).is_some_and(|i| i.low <= truth && truth <= i.high)
            })
            .count()
    }

    #[test]
    fn intervals_cover_the_truth_in_95_of_100_cases() {
        // 95 % of 200 is 190, its standard deviation 3.
        for (n, rho, truth, paired, least) in [
            (30, 0.0, 1.0, false, 183),
            (10, 0.0, 1.0, false, 183),
            (60, 0.0, 1.25, false, 183),
            (20, 0.0, 1.0, true, 183),
            (60, 0.5, 1.0, false, 178),
            (120, 0.7, 1.0, false, 178),
        ] {
            let covered = covering(n, rho, truth, paired);
            assert!((least..=199).contains(&covered), "{n} {rho} {truth} {paired}: {covered} of 200");
        }
    }

    #[test]
    fn a_real_difference_is_seen_and_repeats_with_its_seed() {
        let mut random = Random::new(1);
        let a = simulate::series(&mut random, 30, 1000.0, 0.05, 0.0);
        let b = simulate::series(&mut random, 30, 1300.0, 0.05, 0.0);
        let interval = ratio_of_means(&a, &b, 5).unwrap();
        assert!(!interval.covers_one() && interval.low > 1.2 && interval.high < 1.4, "{interval:?}");
        assert_eq!(ratio_of_means(&a, &b, 5), Some(interval));
        assert_eq!(ratio_of_means(&a[..4], &b, 5), None);
        assert_eq!(ratio_of_means(&[0.0; 10], &b, 5), None);
        let same = ratio_of_means(&[7.0; 10], &[7.0; 10], 5).unwrap();
        assert!(same.covers_one() && same.low == same.high, "{same:?}");
    }

    #[test]
    fn pairs_cancel_what_they_share() {
        let mut random = Random::new(2);
        // A drifting machine moves both sides; B is 5 % faster throughout.
        let a: Vec<f64> = (0..20).map(|i| 1000.0 + 40.0 * i as f64).collect();
        let b: Vec<f64> = a.iter().map(|a| a * (1.05 + 0.01 * simulate::normal(&mut random))).collect();
        let (paired, unpaired) =
            (ratio_of_means_paired(&a, &b, 1).unwrap(), ratio_of_means(&a, &b, 1).unwrap());
        assert!(!paired.covers_one() && unpaired.covers_one(), "{paired:?} {unpaired:?}");
    }
}
