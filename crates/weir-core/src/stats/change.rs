//! Change points: where a series moves to another level, as when burst credit or a fast cache is used up.
//!
//! Binary segmentation (Vostrikova 1981) by cumulative sums, with single stalls drawn in so that they weigh little;
//! each split must pass a permutation test, and the levels on both sides must differ enough to matter to anybody.

use std::ops::Range;

use crate::stats::random::Random;

/// Fewest intervals of a regime.
pub const REGIME_MIN: usize = 5;
/// Neighbouring regimes' medians differ at least by this factor; smaller drifts are noise to a database.
pub const LEVEL_RATIO_MIN: f64 = 1.10;
/// Permutations per test: with 199, a split stands at p <= 0.01 when at most one beats it.
const PERMUTATIONS: usize = 199;
const P_MAX: f64 = 0.01;

/// The regimes of a series, in order and without gaps; a single one where nothing changes. `seed` drives the
/// permutations.
pub fn regimes(series: &[f64], seed: u64) -> Vec<Range<usize>> {
    if series.is_empty() {
        return Vec::new();
    }
    let mut random = Random::new(seed);
    let mut found = Vec::new();
    let mut open: Vec<Range<usize>> = std::iter::once(0..series.len()).collect();
    while let Some(range) = open.pop() {
        match split(&series[range.clone()], &mut random) {
            Some(at) => {
                open.push(range.start + at..range.end);
                open.push(range.start..range.start + at);
            }
            None => found.push(range),
        }
    }
    merge_alike(series, found)
}

/// The best split of a piece, if it passes the test.
fn split(piece: &[f64], random: &mut Random) -> Option<usize> {
    if piece.len() < 2 * REGIME_MIN {
        return None;
    }
    let mut centred = clipped(piece);
    let (at, strength) = strongest(&centred);
    let mut beaten = 0;
    for _ in 0..PERMUTATIONS {
        random.shuffle(&mut centred);
        beaten += usize::from(strongest(&centred).1 >= strength);
    }
    let p = (beaten + 1) as f64 / (PERMUTATIONS + 1) as f64;
    (strength > 1e-9 && p <= P_MAX).then_some(at)
}

/// Values minus their mean, after the few largest and smallest, which cannot be a regime, were drawn in to the next.
fn clipped(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[REGIME_MIN - 1], sorted[sorted.len() - REGIME_MIN]);
    let clipped = values.iter().map(|v| v.max(low).min(high));
    let mean = clipped.clone().sum::<f64>() / values.len() as f64;
    clipped.map(|v| v - mean).collect()
}

/// Where the standardised cumulative sum of centred values is largest, and how large.
fn strongest(centred: &[f64]) -> (usize, f64) {
    let n = centred.len();
    let (mut sum, mut at, mut most) = (0.0, 0, 0.0);
    for (i, value) in centred.iter().enumerate() {
        sum += value;
        let k = i + 1;
        if k < REGIME_MIN || n - k < REGIME_MIN {
            continue;
        }
        let strength = f64::abs(sum) / ((k * (n - k)) as f64).sqrt();
        if strength > most {
            (at, most) = (k, strength);
        }
    }
    (at, most)
}

/// Joins neighbours, the most alike first, until every two differ by [`LEVEL_RATIO_MIN`].
fn merge_alike(series: &[f64], mut regimes: Vec<Range<usize>>) -> Vec<Range<usize>> {
    loop {
        let closest = regimes
            .windows(2)
            .map(|pair| level_ratio(&series[pair[0].clone()], &series[pair[1].clone()]))
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match closest {
            Some((i, ratio)) if ratio < LEVEL_RATIO_MIN => {
                let next = regimes.remove(i + 1);
                regimes[i].end = next.end;
            }
            _ => return regimes,
        }
    }
}

/// Larger median over smaller.
fn level_ratio(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (median(a), median(b));
    if a == b { 1.0 } else { a.max(b) / a.min(b).max(f64::MIN_POSITIVE) }
}

/// The median of a series; 0 for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::simulate;

    fn check(name: &str, levels: &[(usize, f64)], noise: f64, expected: &[usize]) {
        let mut random = Random::new(11);
        let series: Vec<f64> = levels
            .iter()
            .flat_map(|(n, mean)| simulate::series(&mut random, *n, *mean, noise, 0.0))
            .collect();
        let starts: Vec<usize> = regimes(&series, 1).iter().skip(1).map(|r| r.start).collect();
        let close = starts.len() == expected.len()
            && starts.iter().zip(expected).all(|(found, truth)| found.abs_diff(*truth) <= 1);
        assert!(close, "{name}: {starts:?}, expected {expected:?}");
    }

    #[test]
    fn finds_the_regimes_that_are_there() {
        check("one level", &[(60, 1000.0)], 0.05, &[]);
        check("burst credit used up", &[(40, 3000.0), (50, 600.0)], 0.05, &[40]);
        check("a dip and back", &[(30, 1000.0), (20, 200.0), (30, 1000.0)], 0.05, &[30, 50]);
        check("three steps down", &[(20, 900.0), (20, 600.0), (20, 300.0)], 0.03, &[20, 40]);
        check("a real but small drift", &[(60, 1000.0), (60, 1040.0)], 0.01, &[]);
        check("too short to say", &[(4, 1000.0), (4, 10.0)], 0.01, &[]);
        check("constant", &[(50, 70.0)], 0.0, &[]);
    }

    #[test]
    fn one_stalled_second_is_no_regime() {
        let mut series = simulate::series(&mut Random::new(5), 60, 1000.0, 0.03, 0.0);
        series[30] = 0.0;
        assert_eq!(regimes(&series, 1), vec![0..60]);
        assert!(regimes(&[], 1).is_empty());
    }

    #[test]
    fn noise_alone_rarely_splits() {
        let mut random = Random::new(9);
        let split = (0..200)
            .filter(|seed| regimes(&simulate::series(&mut random, 60, 1000.0, 0.3, 0.0), *seed).len() > 1)
            .count();
        assert!(split <= 8, "{split} of 200 series without change were split");
    }
}
