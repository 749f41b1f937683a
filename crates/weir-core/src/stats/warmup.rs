//! Where the warm-up ends: MSER-5 (White 1997; Spratt 1998), the cut that leaves the mean of the rest most certain.

use serde::{Deserialize, Serialize};

/// Intervals per batch.
pub const BATCH: usize = 5;
/// Fewest intervals that say anything: four batches.
pub const NEEDED: usize = 4 * BATCH;

/// What the rule says of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warmup {
    /// The first `intervals` are best left out; 0 where there is no warm-up.
    Cut {
        /// Leading intervals to leave out.
        intervals: usize,
    },
    /// The best cut lies past the middle: the run never settled.
    NeverSettled,
    /// Fewer than [`NEEDED`] intervals.
    TooShort,
}

impl Warmup {
    /// Leading intervals to leave out; none where the rule gives no answer.
    pub fn intervals(self) -> usize {
        match self {
            Warmup::Cut { intervals } => intervals,
            Warmup::NeverSettled | Warmup::TooShort => 0,
        }
    }
}

/// Applies MSER-5 to a series of interval values (a rate, say). Means of batches of five are cut at every
/// d in the first half; the answer minimises the squared deviations of the rest over the square of their number.
pub fn mser5(series: &[f64]) -> Warmup {
    if series.len() < NEEDED {
        return Warmup::TooShort;
    }
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let last = batches.len() / 2;
    let (mut best, mut cut) = (f64::INFINITY, 0);
    for d in 0..=last {
        let error = standard_error_squared(&batches[d..]);
        if error < best {
            (best, cut) = (error, d);
        }
    }
    if cut == last { Warmup::NeverSettled } else { Warmup::Cut { intervals: cut * BATCH } }
}

fn standard_error_squared(rest: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let mean = rest.iter().sum::<f64>() / n;
    rest.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::{Random, simulate};

    #[test]
    fn cuts_what_differs_at_the_start() {
        let mut random = Random::new(3);
        let mut noisy = |n, mean| simulate::series(&mut random, n, mean, 0.02, 0.0);
        let flat = noisy(60, 1000.0);
        let cold: Vec<f64> = noisy(13, 300.0).into_iter().chain(noisy(60, 1000.0)).collect();
        let falling: Vec<f64> = (0..60).map(|i| 1000.0 - 10.0 * i as f64).collect();
        let cases = [
            ("constant", vec![5.0; 40], Warmup::Cut { intervals: 0 }),
            ("falling throughout", falling, Warmup::NeverSettled),
            ("19 intervals", vec![1.0; 19], Warmup::TooShort),
        ];
        for (name, series, expected) in cases {
            assert_eq!(mser5(&series), expected, "{name}");
        }
        // Noise moves the cut to later batches now and then, never into the warm-up.
        assert!((13..35).contains(&mser5(&cold).intervals()), "{:?}", mser5(&cold));
        assert!(mser5(&flat).intervals() <= 25, "{:?}", mser5(&flat));
    }
}
