//! Which knobs matter: a design of twelve runs after Plackett and Burman (1946) for up to eleven knobs, and its
//! foldover at other levels, so that interactions do not pass for a knob's own effect and a knob whose best value lies
//! between two levels is not overlooked.

use weir_core::stats::random::Random;

/// Runs of a half.
pub const RUNS: usize = 12;
/// Most knobs.
pub const KNOBS_MAX: usize = RUNS - 1;
/// The first row; the next ones are its rotations, the last has the lower level throughout.
const ROW: [bool; KNOBS_MAX] = [true, true, false, true, true, true, false, false, false, true, false];
/// Lower and higher place of a knob.
pub type Levels = (f64, f64);
/// Both places of all knobs in the first half.
const FAR: Levels = (0.15, 0.85);
/// In the second half, of a knob with an order: an end and the middle, in case the best value lies between.
const ELSEWHERE: Levels = (0.03, 0.5);
/// Of a knob whose values have no order: two that the first half did not try, where there are four.
const OTHERS: Levels = (0.4, 0.7);
/// Around the better place of a knob that decides everything, so that the others can show in the second half.
const AROUND: f64 = 0.12;
/// A knob decides everything when the goal doubles from one place to the other.
const DECISIVE: f64 = std::f64::consts::LN_2;
/// No contrast is noted more exactly than this, however still the machine seemed.
const NOISE_MIN: f64 = 0.02;

/// Scores of the rows of a half that was made.
pub type Scores = [f64; RUNS];

/// The levels of the first half.
pub fn first(knobs: usize) -> Vec<Levels> {
    vec![FAR; knobs]
}

/// The levels of the second half, by what the first one showed; `ordered` says of which knobs the values have an order.
pub fn second(scores: &Scores, ordered: &[bool]) -> Vec<Levels> {
    let of = |(knob, ordered): (usize, &bool)| match (contrast(0, scores, knob), ordered) {
        (_, false) => OTHERS,
        (effect, true) if effect >= DECISIVE => (FAR.1 - AROUND, FAR.1 + AROUND),
        (effect, true) if effect <= -DECISIVE => (FAR.0 - AROUND, FAR.0 + AROUND),
        (_, true) => ELSEWHERE,
    };
    ordered.iter().enumerate().map(of).collect()
}

/// The points of one half (0 or 1), in random order with their row.
pub fn half(half: usize, levels: &[Levels], random: &mut Random) -> Vec<(usize, Vec<f64>)> {
    let place = |row: usize, (knob, levels): (usize, &Levels)| {
        if is_high(half, row, knob) { levels.1 } else { levels.0 }
    };
    let point = |row: usize| levels.iter().enumerate().map(|level| place(row, level)).collect();
    let mut points: Vec<(usize, Vec<f64>)> = (0..RUNS).map(|row| (row, point(row))).collect();
    random.shuffle(&mut points);
    points
}

/// Whether a knob is at its higher level in a row; the second half is the first one's mirror.
fn is_high(half: usize, row: usize, knob: usize) -> bool {
    (row < KNOBS_MAX && ROW[(knob + KNOBS_MAX - row) % KNOBS_MAX]) != (half % 2 == 1)
}

/// The change of the score from a knob's lower level to its higher one.
fn contrast(half: usize, scores: &Scores, knob: usize) -> f64 {
    let signed = |row: usize| if is_high(half, row, knob) { scores[row] } else { -scores[row] };
    (0..RUNS).map(signed).sum::<f64>() / (RUNS / 2) as f64
}

/// What a screening found of a knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The change of the score, a logarithm, between two values of the knob, in the half where it stood out most.
    pub change: f64,
    /// What a knob that does not exist would show in that half: noise, and knobs that act together.
    pub noise: f64,
}

impl Effect {
    /// By how much it stands out.
    pub fn weight(&self) -> f64 {
        self.change / self.noise
    }
}

/// Effects of the knobs, from the scores of the halves that were made.
pub fn effects(halves: &[Scores], knobs: usize) -> Vec<Effect> {
    let noise_of = |half: usize| {
        let idle: Vec<f64> = (knobs..KNOBS_MAX).map(|knob| contrast(half, &halves[half], knob)).collect();
        (idle.iter().map(|c| c * c).sum::<f64>() / idle.len().max(1) as f64).sqrt().max(NOISE_MIN)
    };
    let noise: Vec<f64> = (0..halves.len()).map(noise_of).collect();
    let in_half = |half: usize, knob: usize| Effect {
        change: contrast(half, &halves[half], knob).abs(),
        noise: noise[half],
    };
    let nothing = Effect { change: 0.0, noise: NOISE_MIN };
    let greatest = |knob| {
        let in_halves = (0..halves.len()).map(|half| in_half(half, knob));
        in_halves.max_by(|a, b| a.weight().total_cmp(&b.weight())).unwrap_or(nothing)
    };
    (0..knobs).map(greatest).collect()
}

/// The knobs that stand out most, at most so many, in their own order.
pub fn keep(effects: &[Effect], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..effects.len()).collect();
    order.sort_by(|a, b| effects[*b].weight().total_cmp(&effects[*a].weight()));
    order.truncate(most);
    order.sort_unstable();
    order
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
    fn a_knob_that_decides_everything_does_not_hide_the_others() {
        let mut random = Random::new(3);
        // While knob 0 is high nothing else shows; below, knob 5 counts and knob 2 is best in the middle.
        let score = |point: &[f64]| match point[0] {
            at if at > 0.6 => 0.0,
            at => 5.0 - at - 0.5 * (point[2] - 0.5).abs() + 0.4 * point[5],
        };
        let mut run = |half: usize, levels: &[Levels]| {
            let mut scores = [0.0; RUNS];
            for (row, point) in super::half(half, levels, &mut random) {
                scores[row] = score(&point);
            }
            scores.map(|score| score + 0.01 * random.normal())
        };
        let ordered = [true; 8];
        let one = run(0, &first(8));
        let levels = second(&one, &ordered);
        assert!((levels[0].0 - 0.03).abs() < 1e-9 && (levels[0].1 - 0.27).abs() < 1e-9, "{levels:?}");
        assert_eq!((levels[2], second(&one, &[false; 8])[2]), (ELSEWHERE, OTHERS));
        let found = effects(&[one, run(1, &levels)], 8);
        assert_eq!(keep(&found, 3), [0, 2, 5], "{found:?}");
        assert!(found[0].change > 4.0 && found[7].change < 2.5 * found[7].noise, "{found:?}");
    }
}
