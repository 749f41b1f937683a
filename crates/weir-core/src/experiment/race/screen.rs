//! Which knobs matter: a design of twelve runs after Plackett and Burman (1946) for up to eleven knobs, and its
//! foldover at other levels, so that interactions do not pass for a knob's own effect and a knob whose best value lies
//! between two levels is not overlooked.

use crate::stats::random::Random;

/// Runs of a half.
pub const RUNS: usize = 12;
/// Most knobs.
pub const KNOBS_MAX: usize = RUNS - 1;
/// The first row; the next ones are its rotations, the last has the lower level throughout.
const ROW: [bool; KNOBS_MAX] = [true, true, false, true, true, true, false, false, false, true, false];
/// Places of the lower and the higher level, in each half.
const LEVELS: [(f64, f64); 2] = [(0.15, 0.85), (0.03, 0.5)];

/// The points of one half (0 or 1) for so many knobs, in random order with their row.
pub fn half(half: usize, knobs: usize, random: &mut Random) -> Vec<(usize, Vec<f64>)> {
    let (low, high) = LEVELS[half % 2];
    let point =
        |row: usize| (0..knobs).map(|knob| if is_high(half, row, knob) { high } else { low }).collect();
    let mut points: Vec<(usize, Vec<f64>)> = (0..RUNS).map(|row| (row, point(row))).collect();
    random.shuffle(&mut points);
    points
}

/// Whether a knob is at its higher level in a row; the second half is the first one's mirror.
fn is_high(half: usize, row: usize, knob: usize) -> bool {
    (row < KNOBS_MAX && ROW[(knob + KNOBS_MAX - row) % KNOBS_MAX]) != (half % 2 == 1)
}

/// What a screening found of each knob.
#[derive(Debug, Clone, PartialEq)]
pub struct Screened {
    /// The greatest change of the score (a logarithm) between a knob's two levels in either half.
    pub effects: Vec<f64>,
    /// The change that a knob would show that does not exist.
    pub noise: f64,
}

/// Effects of the knobs, from the score of each row of each half that was made.
pub fn effects(scores: &[[f64; RUNS]], knobs: usize) -> Screened {
    let contrast = |half: usize, knob: usize| {
        let signed =
            |row: usize| if is_high(half, row, knob) { scores[half][row] } else { -scores[half][row] };
        (0..RUNS).map(signed).sum::<f64>() / (RUNS / 2) as f64
    };
    let greatest = |knob| (0..scores.len()).map(|half| contrast(half, knob).abs()).fold(0.0, f64::max);
    // Columns without a knob show nothing but noise and interactions.
    let idle: Vec<f64> =
        (knobs..KNOBS_MAX).flat_map(|knob| (0..scores.len()).map(move |half| contrast(half, knob))).collect();
    let noise = (idle.iter().map(|c| c * c).sum::<f64>() / idle.len().max(1) as f64).sqrt();
    Screened { effects: (0..knobs).map(greatest).collect(), noise }
}

impl Screened {
    /// The knobs to go on with: at most `most`, the strongest, and of those beyond the second only what stands out
    /// of the noise.
    pub fn keep(&self, most: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.effects.len()).collect();
        order.sort_by(|a, b| self.effects[*b].total_cmp(&self.effects[*a]));
        let mut kept: Vec<usize> = order
            .into_iter()
            .take(most)
            .enumerate()
            .filter(|(place, knob)| *place < 2 || self.effects[*knob] > 2.5 * self.noise)
            .map(|(_, knob)| knob)
            .collect();
        kept.sort_unstable();
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_balanced_and_orthogonal() {
        for half in 0..2 {
            let sign = |row, knob| if is_high(half, row, knob) { 1 } else { -1 };
            for a in 0..KNOBS_MAX {
                assert_eq!((0..RUNS).map(|row| sign(row, a)).sum::<i32>(), 0);
                for b in 0..a {
                    assert_eq!((0..RUNS).map(|row| sign(row, a) * sign(row, b)).sum::<i32>(), 0, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn knobs_that_matter_are_kept_in_whatever_order_they_ran() {
        let mut random = Random::new(3);
        // Knob 2 is steep, knob 5 best in the middle, the others do nothing.
        let score = |point: &[f64]| 3.0 * point[2] - 4.0 * (point[5] - 0.5).powi(2);
        let mut scores = [[0.0; RUNS]; 2];
        for (half, of_half) in scores.iter_mut().enumerate() {
            for (row, point) in self::half(half, 8, &mut random) {
                of_half[row] = score(&point) + 0.05 * random.normal();
            }
        }
        let screened = effects(&scores, 8);
        assert_eq!(screened.keep(4), [2, 5], "{screened:?}");
        assert!((screened.effects[2] - 2.1).abs() < 0.2 && screened.noise < 0.1, "{screened:?}");
    }
}
