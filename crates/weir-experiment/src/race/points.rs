//! Points of the space to try: spread evenly at first, then near those that did well.

use crate::space::{Dimension, Range};
use weir_core::stats::random::Random;

/// So many points of which every knob's values are spread evenly over its range (McKay, Beckman, Conover 1979).
pub fn latin_hypercube(dimensions: usize, count: usize, random: &mut Random) -> Vec<Vec<f64>> {
    let mut points = vec![vec![0.0; dimensions]; count];
    for dimension in 0..dimensions {
        let mut strata: Vec<usize> = (0..count).collect();
        random.shuffle(&mut strata);
        for (point, stratum) in points.iter_mut().zip(strata) {
            point[dimension] = (stratum as f64 + random.uniform()) / count as f64;
        }
    }
    points
}

/// The middle of some points, best first: the centre of a plateau rather than its luckiest point. Values without an
/// order are the best one's.
pub fn centre(dimensions: &[Dimension], points: &[&[f64]]) -> Vec<f64> {
    let of = |(i, dimension): (usize, &Dimension)| match dimension.range {
        Range::Scale { .. } => points.iter().map(|point| point[i]).sum::<f64>() / points.len().max(1) as f64,
        Range::Levels(_) => points.first().map_or(0.0, |best| best[i]),
    };
    dimensions.iter().enumerate().map(of).collect()
}

/// A point near another one: `spread` is the standard deviation on a scale from 0 to 1.
pub fn near(dimensions: &[Dimension], point: &[f64], spread: f64, random: &mut Random) -> Vec<f64> {
    // One knob is moved for certain, each other one with even chances.
    let certain = random.below(dimensions.len());
    let mut moved = point.to_vec();
    for (i, dimension) in dimensions.iter().enumerate() {
        if i != certain && random.uniform() < 0.5 {
            continue;
        }
        moved[i] = match dimension.range.levels() {
            None => reflected(point[i] + spread * random.normal()),
            Some(levels) => (random.below(levels) as f64 + 0.5) / levels.max(1) as f64,
        };
    }
    moved
}

/// Back into 0..1 as from a mirror.
fn reflected(at: f64) -> f64 {
    let folded = at.rem_euclid(2.0);
    if folded > 1.0 { 2.0 - folded } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_knobs::Value;

    fn dimensions() -> [Dimension; 2] {
        let scale = Range::Scale { min: 1, max: 1000, step: 1, bytes: false };
        let levels = Range::Levels(vec![Value::Number(0), Value::Number(1)]);
        [("a", scale), ("b", levels)].map(|(name, range)| Dimension {
            knob: name.parse().unwrap(),
            range,
            found: Value::Number(1),
            found_at: 0.0,
            only_with: None,
        })
    }

    #[test]
    fn a_hypercube_has_one_point_in_each_stratum() {
        let points = latin_hypercube(3, 16, &mut Random::new(1));
        for dimension in 0..3 {
            let mut strata: Vec<usize> = points.iter().map(|p| (p[dimension] * 16.0) as usize).collect();
            strata.sort_unstable();
            assert!(strata.into_iter().eq(0..16));
        }
    }

    #[test]
    fn neighbours_stay_inside_and_near_and_always_move() {
        let (dimensions, mut random) = (dimensions(), Random::new(2));
        let mut scale_moves = 0;
        for _ in 0..500 {
            let moved = near(&dimensions, &[0.02, 0.25], 0.1, &mut random);
            assert!(moved.iter().all(|at| (0.0..=1.0).contains(at)) && moved[0] < 0.6, "{moved:?}");
            scale_moves += usize::from(moved[0] != 0.02);
        }
        assert!((300..450).contains(&scale_moves), "{scale_moves}");
        let best = [0.4, 0.75];
        let middle = centre(&dimensions, &[&best, &[0.6, 0.25]]);
        assert!((middle[0] - 0.5).abs() < 1e-12 && middle[1] == 0.75, "{middle:?}");
        for (at, folded) in [(-0.2, 0.2), (1.3, 0.7), (0.5, 0.5), (2.1, 0.1)] {
            assert!((reflected(at) - folded).abs() < 1e-12);
        }
    }
}
