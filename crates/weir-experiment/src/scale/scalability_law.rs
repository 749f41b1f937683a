//! The Universal Scalability Law (N. J. Gunther, "Guerrilla Capacity Planning", 2007): X(N) = λN / (1 + σ(N−1) + κN(N−1)).
//! σ is the share of work that only one can do at a time, κ the cost of agreeing among all pairs.

use serde::{Deserialize, Serialize};

/// A fitted law. Rates are in whatever unit the points were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityLaw {
    /// Rate of one alone, λ.
    pub alone: f64,
    /// Contention σ, 0 or more.
    pub contention: f64,
    /// Coherency κ, 0 or more.
    pub coherency: f64,
}

/// Fewest different numbers of connections that a law of three parameters is fitted to.
pub const POINTS_MIN: usize = 4;

impl ScalabilityLaw {
    /// The law nearest to points (connections, rate), by the sum of squared relative errors of N/X, in which the law
    /// is linear. `None` with fewer than [`POINTS_MIN`] points of different N, or where a rate is not positive.
    pub fn fit(points: &[(f64, f64)]) -> Option<ScalabilityLaw> {
        let mut counts: Vec<u64> = points.iter().map(|(n, _)| n.to_bits()).collect();
        counts.sort_unstable();
        counts.dedup();
        if counts.len() < POINTS_MIN || points.iter().any(|(n, x)| *n < 1.0 || *x <= 0.0) {
            return None;
        }
        // σ and κ below zero mean nothing: of the fits with either of them, both or none, the best that is allowed.
        let fits = [[true, true], [true, false], [false, true], [false, false]];
        let allowed = fits.into_iter().filter_map(|used| solve(points, used));
        allowed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, law)| law)
    }

    /// The rate of so many connections.
    pub fn at(&self, n: f64) -> f64 {
        self.alone * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    /// Where the rate is highest; `None` where the law only rises.
    pub fn peak(&self) -> Option<f64> {
        if self.contention >= 1.0 {
            return Some(1.0);
        }
        (self.coherency > 0.0).then(|| ((1.0 - self.contention) / self.coherency).sqrt().max(1.0))
    }

    /// The rate that it comes near to without end; `None` where it has a peak, or rises in proportion.
    pub fn ceiling(&self) -> Option<f64> {
        (self.peak().is_none() && self.contention > 0.0).then(|| self.alone / self.contention)
    }

    /// The largest distance of a point from the law, as a share of the point.
    pub fn worst_error(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(n, x)| (self.at(*n) / x - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// Least squares of a + b(N−1) + cN(N−1) = N/X, each row divided by N/X; b and c only where `used`. The sum of squares
/// and the law, if it is one.
fn solve(points: &[(f64, f64)], used: [bool; 2]) -> Option<(f64, ScalabilityLaw)> {
    let row = |(n, x): &(f64, f64)| {
        let y = n / x;
        [1.0 / y, if used[0] { (n - 1.0) / y } else { 0.0 }, if used[1] { n * (n - 1.0) / y } else { 0.0 }]
    };
    let mut normal = [[0.0; 4]; 3];
    for terms in points.iter().map(row) {
        for i in 0..3 {
            for j in 0..3 {
                normal[i][j] += terms[i] * terms[j];
            }
            normal[i][3] += terms[i];
        }
    }
    for (index, used) in used.into_iter().enumerate() {
        if !used {
            normal[index + 1][index + 1] = 1.0;
        }
    }
    let [a, b, c] = eliminate(normal)?;
    if a <= 0.0 || b < 0.0 || c < 0.0 {
        return None;
    }
    let error = |terms: [f64; 3]| (terms[0] * a + terms[1] * b + terms[2] * c - 1.0).powi(2);
    let sum = points.iter().map(|point| error(row(point))).sum();
    Some((sum, ScalabilityLaw { alone: 1.0 / a, contention: b / a, coherency: c / a }))
}

/// Gauss with the largest pivot; `None` where the equations depend on each other.
fn eliminate(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&i, &j| m[i][column].abs().total_cmp(&m[j][column].abs()))?;
        m.swap(column, pivot);
        if m[column][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        let pivot = m[column];
        for other in (0..3).filter(|other| *other != column) {
            let factor = m[other][column] / pivot[column];
            m[other].iter_mut().zip(pivot).for_each(|(term, of_pivot)| *term -= factor * of_pivot);
        }
    }
    Some([m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LADDER: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn points(law: ScalabilityLaw) -> Vec<(f64, f64)> {
        LADDER.map(|n| (n, law.at(n))).to_vec()
    }

    proptest! {
        #[test]
        fn a_law_is_found_again(alone in 1.0f64..1e5, contention in 0.0f64..0.9, coherency in 0.0f64..0.01) {
            let law = ScalabilityLaw { alone, contention, coherency };
            let found = ScalabilityLaw::fit(&points(law)).unwrap();
            prop_assert!((found.alone / alone - 1.0).abs() < 1e-6, "{found:?}");
            prop_assert!((found.contention - contention).abs() < 1e-6, "{found:?}");
            prop_assert!((found.coherency - coherency).abs() < 1e-7, "{found:?}");
        }

        #[test]
        fn no_points_break_it(points in prop::collection::vec((1.0f64..300.0, 1e-3f64..1e6), 0..12)) {
            if let Some(law) = ScalabilityLaw::fit(&points) {
                prop_assert!(law.alone > 0.0 && law.contention >= 0.0 && law.coherency >= 0.0);
                prop_assert!(law.peak().is_none_or(|peak| peak >= 1.0));
            }
        }
    }

    #[test]
    fn peak_and_ceiling_are_those_of_the_law() {
        let peaked = ScalabilityLaw { alone: 100.0, contention: 0.05, coherency: 0.001 };
        let peak = peaked.peak().unwrap();
        assert!((peak - 30.82).abs() < 0.01 && peaked.ceiling().is_none());
        assert!(peaked.at(peak) > peaked.at(peak * 0.9) && peaked.at(peak) > peaked.at(peak * 1.1));
        let amdahl = ScalabilityLaw { alone: 100.0, contention: 0.1, coherency: 0.0 };
        assert_eq!((amdahl.peak(), amdahl.ceiling()), (None, Some(1000.0)));
        let linear = ScalabilityLaw { alone: 100.0, contention: 0.0, coherency: 0.0 };
        assert_eq!((linear.peak(), linear.ceiling()), (None, None));
        for (contention, coherency) in [(1.0, 0.0), (1.2, 0.0), (1.0, 0.01), (1.5, 0.01)] {
            let falling = ScalabilityLaw { alone: 100.0, contention, coherency };
            assert_eq!((falling.peak(), falling.ceiling()), (Some(1.0), None), "{falling:?}");
            assert!(falling.at(1.0) >= falling.at(2.0), "{falling:?}");
        }
    }

    #[test]
    fn faster_than_in_proportion_is_no_negative_contention() {
        let points = [(1.0, 500.0), (2.0, 3000.0), (4.0, 2900.0), (8.0, 2100.0)];
        let law = ScalabilityLaw::fit(&points).unwrap();
        assert!(law.contention >= 0.0 && law.coherency >= 0.0);
        assert!(law.worst_error(&points) > 0.15, "{law:?} fits what no such law describes");
        assert_eq!(ScalabilityLaw::fit(&points[..3]), None);
    }
}
