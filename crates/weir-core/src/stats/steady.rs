//! Steady state as in SNIA's Solid State Storage Performance Test Specification: over five rounds,
//! the range stays within 20 % of the mean, and the fitted line moves by no more than 10 % of it.

use serde::{Deserialize, Serialize};

/// Rounds in the window.
pub const ROUNDS: usize = 5;
/// Largest range, as a share of the mean.
pub const RANGE_MAX: f64 = 0.20;
/// Largest excursion of the fitted line, as a share of the mean.
pub const SLOPE_MAX: f64 = 0.10;

/// How steady five rounds were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// (largest - smallest) / mean.
    pub range: f64,
    /// Excursion of the least-squares line over the window, signed, as a share of the mean.
    pub slope: f64,
    /// Whether both lie within their limits.
    pub holds: bool,
}

/// Judges the values of [`ROUNDS`] rounds; `None` where their mean is not positive.
pub fn judge(rounds: &[f64; ROUNDS]) -> Option<Steady> {
    let mean = rounds.iter().sum::<f64>() / ROUNDS as f64;
    if mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let largest = rounds.iter().copied().fold(f64::MIN, f64::max);
    let smallest = rounds.iter().copied().fold(f64::MAX, f64::min);
    let middle = (ROUNDS - 1) as f64 / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (i, value) in rounds.iter().enumerate() {
        products += (i as f64 - middle) * value;
        squares += (i as f64 - middle).powi(2);
    }
    let range = (largest - smallest) / mean;
    let slope = products / squares * (ROUNDS - 1) as f64 / mean;
    Some(Steady { range, slope, holds: range <= RANGE_MAX && slope.abs() <= SLOPE_MAX })
}

/// Cuts `len` intervals into [`ROUNDS`] rounds of equal length; the oldest ones that do not fit are left out.
/// `None` below one interval a round.
pub fn rounds(len: usize) -> Option<[std::ops::Range<usize>; ROUNDS]> {
    let each = len / ROUNDS;
    let first = len - each * ROUNDS;
    (each > 0).then(|| std::array::from_fn(|i| first + i * each..first + (i + 1) * each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_specification() {
        let cases = [
            ("flat", [100.0, 100.0, 100.0, 100.0, 100.0], (0.0, 0.0, true)),
            ("range just within", [100.0, 110.0, 90.0, 100.0, 100.0], (0.20, -0.04, true)),
            ("range beyond", [100.0, 111.0, 90.0, 100.0, 99.0], (0.21, -0.052, false)),
            ("slope just within", [95.0, 97.5, 100.0, 102.5, 105.0], (0.10, 0.10, true)),
            ("slope beyond", [94.0, 97.0, 100.0, 103.0, 106.0], (0.12, 0.12, false)),
        ];
        for (name, rounds, (range, slope, holds)) in cases {
            let steady = judge(&rounds).unwrap();
            assert!((steady.range - range).abs() < 1e-9, "{name}: {steady:?}");
            assert!((steady.slope - slope).abs() < 1e-9, "{name}: {steady:?}");
            assert_eq!(steady.holds, holds, "{name}: {steady:?}");
        }
        assert_eq!(judge(&[0.0; 5]), None);
    }

    #[test]
    fn rounds_are_equal_and_end_at_the_end() {
        assert_eq!(rounds(4), None);
        assert_eq!(rounds(5).unwrap()[0], 0..1);
        let twelve = rounds(12).unwrap();
        assert_eq!((twelve[0].clone(), twelve[4].clone()), (2..4, 10..12));
    }
}
