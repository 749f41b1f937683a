//! Many comparisons at once: Holm's step-down correction (1979), which keeps the chance of any false claim at 5 %
//! however many comparisons there are.

use crate::stats::estimate::{ALPHA, Estimate, RatioInterval};

/// The level for each comparison's interval, given the p value of each. The smallest p is held against alpha / m, the
/// next against alpha / (m - 1), and so on; from the first that fails, all are held against the same level. So an
/// interval cut at its level excludes 1 exactly where Holm's procedure claims a difference.
pub fn levels(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| p[*i].total_cmp(&p[*j]));
    let mut levels = vec![alpha; p.len()];
    let (mut left, mut claiming) = (p.len(), true);
    for i in order {
        levels[i] = alpha / left as f64;
        claiming &= p[i] <= levels[i];
        left -= usize::from(claiming);
    }
    levels
}

/// The intervals of a family of comparisons, each at Holm's level. Where there is no estimate there is no comparison,
/// and it does not count.
pub fn intervals(estimates: &[Option<Estimate>]) -> Vec<Option<RatioInterval>> {
    intervals_at(estimates, ALPHA)
}

/// As [`intervals`] where the whole family may err with chance `alpha`.
pub fn intervals_at(estimates: &[Option<Estimate>], alpha: f64) -> Vec<Option<RatioInterval>> {
    let p: Vec<f64> = estimates.iter().flatten().map(Estimate::p).collect();
    let mut levels = levels(&p, alpha).into_iter();
    estimates.iter().map(|estimate| Some(estimate.as_ref()?.interval(levels.next()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::bca;
    use crate::stats::random::{Random, simulate};

    #[test]
    fn levels_step_down_until_the_first_that_fails() {
        let close = |found: Vec<f64>, expected: &[f64]| {
            let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(near && found.len() == expected.len(), "{found:?}, not {expected:?}");
        };
        // Holm's own example has 0.01, 0.04, 0.03 and 0.005 at 5 %: the two smallest are claimed.
        close(levels(&[0.01, 0.04, 0.03, 0.005], 0.05), &[0.05 / 3.0, 0.025, 0.025, 0.0125]);
        close(levels(&[0.001, 0.002], 0.05), &[0.025, 0.05]);
        close(levels(&[0.04], 0.05), &[0.05]);
        close(levels(&[0.04, 0.9], 0.05), &[0.025, 0.025]);
        close(levels(&[], 0.05), &[]);
    }

    #[test]
    fn an_interval_excludes_one_exactly_where_a_difference_is_claimed() {
        let mut random = Random::new(3);
        for family in 0..100u64 {
            let estimates: Vec<_> = (0..6)
                .map(|k| {
                    let shift = 0.01 * f64::from(k) * (family % 3) as f64;
                    let logs: Vec<f64> =
                        (0..8).map(|_| shift + 0.03 * simulate::normal(&mut random)).collect();
                    (k != 2).then(|| bca::paired(&logs, family).unwrap())
                })
                .collect();
            let p: Vec<f64> = estimates.iter().flatten().map(Estimate::p).collect();
            let claimed: Vec<bool> = p.iter().zip(levels(&p, ALPHA)).map(|(p, level)| *p <= level).collect();
            let excluded: Vec<bool> =
                intervals(&estimates).iter().flatten().map(|interval| !interval.covers_one()).collect();
            assert_eq!(excluded, claimed, "{p:?}");
            assert!(intervals(&estimates)[2].is_none());
        }
    }

    #[test]
    fn twenty_comparisons_of_nothing_make_a_false_claim_in_one_family_of_twenty() {
        for n in [5, 10] {
            let mut random = Random::new(11);
            let with_a_claim = (0..200u64)
                .filter(|seed| {
                    let noise = |random: &mut Random| {
                        (0..n).map(|_| 0.05 * simulate::normal(random)).collect::<Vec<_>>()
                    };
                    let family: Vec<_> = (0..20).map(|_| bca::paired(&noise(&mut random), *seed)).collect();
                    intervals(&family).iter().flatten().any(|interval| !interval.covers_one())
                })
                .count();
            // 5 % of 200 is 10, its standard deviation 3; uncorrected it would be 128.
            assert!(with_a_claim <= 19, "{n}: {with_a_claim} of 200");
        }
    }
}
