//! Ratios with what is needed to cut an interval of any level from them: resamples, corrected for bias and skewness
//! (BCa: Efron 1987), widened for few units as Hesterberg (2015) advises. Of fewer than twenty units resamples know no
//! shape: there the interval is Student's, on logarithms.

use crate::stats::bootstrap::{RESAMPLES, Side, UNITS_MIN, block_length, log_ratio, resample};
pub use crate::stats::estimate::{ALPHA, Estimate};
use crate::stats::random::Random;

/// Units from which on resamples know the shape of the distribution. Below, it is taken as normal: Student's interval.
const SHAPE_MIN: usize = 20;

/// The mean of the log ratios of pairs of trials, each pair one unit. `None` with fewer than [`UNITS_MIN`].
pub fn paired(logs: &[f64], seed: u64) -> Option<Estimate> {
    let (n, point) = (logs.len(), mean(logs));
    if n < UNITS_MIN || !point.is_finite() {
        return None;
    }
    if n < SHAPE_MIN {
        let deviation = (variance(logs) / (n - 1) as f64).sqrt();
        return Some(Estimate::normal(point, deviation, (n - 1) as f64));
    }
    let mut random = Random::new(seed);
    let draws = (0..RESAMPLES).map(|_| drawn_mean(logs, &mut random)).collect();
    let influences: Vec<f64> = logs.iter().map(|log| log - point).collect();
    Some(Estimate::expanded(point, draws, n as f64).corrected(&influences))
}

/// The difference of the mean logs of two sets of trials that are no pairs. `None` with fewer than [`UNITS_MIN`] in
/// either.
pub fn unpaired(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    let point = mean(b) - mean(a);
    if a.len().min(b.len()) < UNITS_MIN || !point.is_finite() {
        return None;
    }
    if a.len().min(b.len()) < SHAPE_MIN {
        // Welch (1947).
        let part = |logs: &[f64]| (variance(logs) / (logs.len() - 1) as f64, (logs.len() - 1) as f64);
        let ((of_a, df_a), (of_b, df_b)) = (part(a), part(b));
        let whole = (of_a + of_b).max(f64::MIN_POSITIVE);
        let freedom = whole.powi(2) / (of_a.powi(2) / df_a + of_b.powi(2) / df_b).max(f64::MIN_POSITIVE);
        return Some(Estimate::normal(point, (of_a + of_b).sqrt(), freedom.min(df_a + df_b).max(1.0)));
    }
    let mut random = Random::new(seed);
    let draws = (0..RESAMPLES).map(|_| drawn_mean(b, &mut random) - drawn_mean(a, &mut random)).collect();
    let away = |logs: &[f64], sign: f64| {
        let (mean, n) = (mean(logs), logs.len() as f64);
        logs.iter().map(|log| sign * (log - mean) / n).collect::<Vec<f64>>()
    };
    let influences = [away(a, -1.0), away(b, 1.0)].concat();
    Some(Estimate::expanded(point, draws, a.len().min(b.len()) as f64).corrected(&influences))
}

/// What is known of the spread of like comparisons: the variance of their pairs' log ratios, and how much weight that
/// has against a comparison's own, in degrees of freedom.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kin {
    /// Typical variance between pairs.
    pub variance: f64,
    /// Degrees of freedom; 0: nothing is known but the comparison itself.
    pub freedom: f64,
}

impl Kin {
    /// Most weight that the others have.
    const FREEDOM_MAX: f64 = 4.0;

    /// The geometric mean of the variances of comparisons of `pairs` pairs each, corrected for what logarithms of
    /// so few squares lack.
    pub fn of(comparisons: &[&[f64]], pairs: usize) -> Kin {
        let spreads: Vec<f64> = comparisons
            .iter()
            .filter(|logs| logs.len() == pairs && pairs > 1)
            .map(|logs| variance(logs) * pairs as f64 / (pairs - 1) as f64)
            .filter(|spread| *spread > 0.0)
            .collect();
        if spreads.len() < 2 {
            return Kin::default();
        }
        let freedom = (pairs - 1) as f64;
        // Abramowitz and Stegun 6.3.18, two terms: within 4 % from one degree of freedom on.
        let lacking = 1.0 / freedom + 1.0 / (3.0 * freedom.powi(2));
        let log = spreads.iter().map(|spread| spread.ln()).sum::<f64>() / spreads.len() as f64;
        Kin {
            variance: (log + lacking).exp(),
            freedom: ((spreads.len() - 1) as f64 * freedom).min(Kin::FREEDOM_MAX),
        }
    }
}

/// For pairs of trials too few to be units themselves: the mean of their log ratios `logs`, with the seconds within
/// trials as units. Blocks of seconds never reach from one trial into the next. The difference of trials
/// beyond that comes from the spread of `logs`, moderated by that of like comparisons (Smyth 2004). `None` with fewer
/// than two pairs, or [`UNITS_MIN`] seconds in any trial.
pub fn clustered(logs: &[f64], trials: &[(Side<'_>, Side<'_>)], kin: Kin, seed: u64) -> Option<Estimate> {
    let n = logs.len();
    let fewest = trials.iter().map(|(a, b)| a.series.len().min(b.series.len())).min()?;
    if n < 2 || n != trials.len() || fewest < UNITS_MIN {
        return None;
    }
    let point = mean(logs);
    let mut random = Random::new(seed);
    let mut pairs: Vec<Resampler<'_>> = trials.iter().map(|(a, b)| Resampler::new(a, b)).collect();
    let mut draw = || pairs.iter_mut().map(|pair| pair.draw(&mut random)).sum::<Option<f64>>();
    let mut draws: Vec<f64> = (0..RESAMPLES).filter_map(|_| draw()).map(|sum| sum / n as f64).collect();
    if !point.is_finite() || draws.len() < RESAMPLES / 2 {
        return None;
    }
    let centre = mean(&draws);
    draws.iter_mut().for_each(|draw| *draw += point - centre);
    let blocks: usize = pairs.iter().map(Resampler::blocks).sum();
    Some(Estimate::expanded(point, draws, blocks as f64).spread_over(logs, kin))
}

impl Estimate {
    /// Widened by what trials differ beyond the seconds within them, which are what was drawn.
    fn spread_over(self, logs: &[f64], kin: Kin) -> Estimate {
        let trials = logs.len() as f64;
        let drawn = variance(&self.draws);
        let squares = trials * variance(logs) + kin.freedom * kin.variance;
        let freedom = trials - 1.0 + kin.freedom;
        let between = squares / freedom / trials;
        let whole = between.max(drawn * self.widen.powi(2));
        if drawn > 0.0 {
            Estimate { widen: (whole / drawn).sqrt(), freedom, ..self }
        } else {
            Estimate::normal(self.point, whole.sqrt(), freedom)
        }
    }
}

/// A pair of trials that is drawn from again and again.
struct Resampler<'a> {
    sides: [&'a Side<'a>; 2],
    block: [usize; 2],
    chosen: [Vec<usize>; 2],
}

impl<'a> Resampler<'a> {
    fn new(a: &'a Side<'a>, b: &'a Side<'a>) -> Self {
        let block = [a, b].map(|side| block_length(side.series));
        Resampler { sides: [a, b], block, chosen: [Vec::new(), Vec::new()] }
    }

    fn draw(&mut self, random: &mut Random) -> Option<f64> {
        for ((side, block), chosen) in self.sides.iter().zip(self.block).zip(&mut self.chosen) {
            resample(chosen, side.series.len(), block, random);
        }
        log_ratio(self.sides[0], &self.chosen[0], self.sides[1], &self.chosen[1])
    }

    /// Blocks of the side that has fewer.
    fn blocks(&self) -> usize {
        let of = |side: usize| self.sides[side].series.len() / self.block[side];
        of(0).min(of(1))
    }
}

fn drawn_mean(values: &[f64], random: &mut Random) -> f64 {
    let n = values.len();
    (0..n).map(|_| values[random.below(n)]).sum::<f64>() / n as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean squared deviation, the sum over n.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::estimate::RatioInterval;
    use crate::stats::random::simulate;

    /// Of 200 experiments, those whose interval at `alpha` covers the truth.
    fn covering(
        alpha: f64,
        truth: f64,
        mut experiment: impl FnMut(&mut Random, u64) -> Option<Estimate>,
    ) -> usize {
        let mut random = Random::new(77);
        let covers = |i: RatioInterval| i.low <= truth && truth <= i.high;
        (0..200)
            .filter(|seed| experiment(&mut random, *seed).is_some_and(|found| covers(found.interval(alpha))))
            .count()
    }

    fn logs(random: &mut Random, n: usize, mean: f64, noise: f64) -> Vec<f64> {
        (0..n).map(|_| mean + noise * simulate::normal(random)).collect()
    }

    #[test]
    fn intervals_of_pairs_cover_the_truth_as_often_as_they_say() {
        // 95 % of 200 is 190, its standard deviation 3.
        for (n, alpha, least, most) in [
            (5, 0.05, 181, 199),
            (10, 0.05, 181, 199),
            (20, 0.05, 181, 199),
            (5, 0.005, 195, 200),
            (10, 0.005, 195, 200),
        ] {
            let covered =
                covering(alpha, 1.1, |random, seed| paired(&logs(random, n, 1.1f64.ln(), 0.1), seed));
            assert!((least..=most).contains(&covered), "{n} pairs at {alpha}: {covered} of 200");
        }
        for n in [5, 12] {
            let covered = covering(0.05, 1.1, |random, seed| {
                let (a, b) = (logs(random, n, 0.0, 0.1), logs(random, n + 3, 1.1f64.ln(), 0.05));
                unpaired(&a, &b, seed)
            });
            assert!((181..=199).contains(&covered), "{n} unpaired: {covered} of 200");
        }
    }

    #[test]
    fn skewed_noise_is_covered_too() {
        // Stalls: one trial in eight takes half as long again. Fifteen trials may have one or none, and then know
        // nothing of them: some 90 % are covered, not 95.
        let truth = (-1.5f64.ln() / 8.0).exp();
        let covered = covering(0.05, truth, |random, seed| {
            let stall = |random: &mut Random| if random.below(8) == 0 { -1.5f64.ln() } else { 0.0 };
            let logs: Vec<f64> = (0..15).map(|_| stall(random) + 0.03 * simulate::normal(random)).collect();
            paired(&logs, seed)
        });
        assert!((170..=198).contains(&covered), "{covered} of 200");
    }

    /// `n` pairs of trials of 10 s each; `between` is what trials differ from each other, `within` what seconds do.
    fn seconds(random: &mut Random, n: usize, between: f64, within: f64, rho: f64) -> Vec<[Vec<f64>; 2]> {
        let mut trial = |mean: f64| {
            let mean = mean * (between * simulate::normal(random)).exp();
            simulate::series(random, 10, mean, within, rho)
        };
        (0..n).map(|_| [trial(1000.0), trial(1100.0)]).collect()
    }

    fn log_ratio_of_means([a, b]: &[Vec<f64>; 2]) -> f64 {
        (mean(b) / mean(a)).ln()
    }

    fn of_seconds(pairs: &[[Vec<f64>; 2]], kin: Kin, seed: u64) -> Option<Estimate> {
        let logs: Vec<f64> = pairs.iter().map(log_ratio_of_means).collect();
        let drawn = |values: &[f64], chosen: &[usize]| {
            Some(chosen.iter().map(|i| values[*i]).sum::<f64>() / chosen.len() as f64)
        };
        let statistics: Vec<_> = pairs
            .iter()
            .map(|[a, b]| {
                (move |chosen: &[usize]| drawn(a, chosen), move |chosen: &[usize]| drawn(b, chosen))
            })
            .collect();
        let trials: Vec<_> = pairs
            .iter()
            .zip(&statistics)
            .map(|([a, b], (of_a, of_b))| {
                (Side { series: a, statistic: of_a }, Side { series: b, statistic: of_b })
            })
            .collect();
        clustered(&logs, &trials, kin, seed)
    }

    /// Log ratios of six more comparisons like it.
    fn kin(random: &mut Random, n: usize, between: f64, within: f64, rho: f64) -> Kin {
        let others: Vec<Vec<f64>> = (0..6)
            .map(|_| seconds(random, n, between, within, rho).iter().map(log_ratio_of_means).collect())
            .collect();
        Kin::of(&others.iter().map(Vec::as_slice).collect::<Vec<_>>(), n)
    }

    #[test]
    fn seconds_within_few_trials_do_not_hide_what_trials_differ() {
        // 95 % of 200 is 190, its standard deviation 3.
        for (n, between, within, rho, with_kin) in [
            (3, 0.0, 0.05, 0.0, false),
            (3, 0.02, 0.05, 0.0, true),
            (3, 0.05, 0.05, 0.5, true),
            (3, 0.1, 0.02, 0.0, false),
            (2, 0.05, 0.05, 0.0, true),
            (4, 0.1, 0.05, 0.0, true),
        ] {
            let covered = covering(0.05, 1.1, |random, seed| {
                let kin = if with_kin { kin(random, n, between, within, rho) } else { Kin::default() };
                of_seconds(&seconds(random, n, between, within, rho), kin, seed)
            });
            assert!(
                (183..=200).contains(&covered),
                "{n} {between} {within} {rho} {with_kin}: {covered} of 200"
            );
        }
    }

    #[test]
    fn too_few_units_give_nothing_and_no_noise_gives_a_point() {
        assert!(paired(&[0.1; 4], 1).is_none() && unpaired(&[0.1; 5], &[0.1; 4], 1).is_none());
        let certain = paired(&[0.0; 5], 1).unwrap();
        assert_eq!((certain.p(), certain.interval(0.05).covers_one()), (1.0, true));
        let certain = paired(&[0.1; 5], 1).unwrap();
        assert!(certain.p() < 1e-6 && !certain.interval(0.001).covers_one(), "{}", certain.p());
        assert_eq!(paired(&[f64::NEG_INFINITY, 0.0, 0.0, 0.0, 0.0], 1).map(|found| found.ratio()), None);
        let single = seconds(&mut Random::new(1), 1, 0.0, 0.05, 0.0);
        assert!(of_seconds(&single, Kin::default(), 1).is_none());
    }

    #[test]
    fn a_p_value_is_the_level_whose_interval_ends_at_one() {
        let mut random = Random::new(5);
        for n in [5, 8, 20] {
            for mean in [0.02, -0.05, 0.2] {
                let found = paired(&logs(&mut random, n, mean, 0.05), 9).unwrap();
                let p = found.p();
                assert!(found.interval((p * 0.9).min(1.0)).covers_one(), "{n} {mean}: {p}");
                assert!(p > 0.9 || !found.interval(p * 1.1).covers_one(), "{n} {mean}: {p}");
            }
        }
    }

    #[test]
    fn what_is_detectable_is_detected_in_four_of_five() {
        let mut random = Random::new(8);
        let least = |random: &mut Random| paired(&logs(random, 10, 0.0, 0.05), 1).unwrap().detectable(0.05);
        let shift = (0..50).map(|_| least(&mut random).ln()).sum::<f64>() / 50.0;
        let found = (0..200)
            .filter(|seed| paired(&logs(&mut random, 10, shift, 0.05), *seed).unwrap().p() < 0.05)
            .count();
        assert!((145..=180).contains(&found), "{found} of 200");
    }
}
