//! Rank tests (Wilcoxon 1945, Mann and Whitney 1947): checks on intervals, that outliers cannot sway.

/// Up to this many values the distribution of the ranks is counted out, ties included; beyond, it is taken as normal.
const EXACT_MAX: usize = 40;

/// Two-sided p of the signed-rank test that pairs' differences lie around 0. Zeros are left out; 1 if nothing is left.
pub fn signed_rank(differences: &[f64]) -> f64 {
    let mut values: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0 && !d.is_nan()).collect();
    values.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = double_ranks(&values.iter().map(|v| v.abs()).collect::<Vec<_>>());
    let positive: u64 = values.iter().zip(&ranks).filter(|(v, _)| **v > 0.0).map(|(_, rank)| rank).sum();
    let total: u64 = ranks.iter().sum();
    if values.len() > EXACT_MAX {
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
        return normal_p(positive as f64 - total as f64 / 2.0, squares / 4.0);
    }
    // In how many of the 2^n choices of signs the positive ranks come to each sum.
    let mut ways = vec![0.0; total as usize + 1];
    ways[0] = 1.0;
    for rank in &ranks {
        for sum in (*rank as usize..ways.len()).rev() {
            ways[sum] += ways[sum - *rank as usize];
        }
    }
    two_sided(&ways, positive as usize)
}

/// Two-sided p of the rank-sum test that `a` and `b` come from one distribution; 1 if either is empty.
pub fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    let mut values: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    values.sort_by(|x, y| x.0.total_cmp(&y.0));
    let ranks = double_ranks(&values.iter().map(|(v, _)| *v).collect::<Vec<_>>());
    let of_a: u64 = values.iter().zip(&ranks).filter(|((_, is_a), _)| *is_a).map(|(_, rank)| rank).sum();
    let (n_a, n) = (a.len(), values.len());
    if n > EXACT_MAX {
        let (mean, size) = (ranks.iter().sum::<u64>() as f64 / n as f64, n as f64);
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
        let variance = n_a as f64 * b.len() as f64 * squares / (size * (size - 1.0));
        return normal_p(of_a as f64 - n_a as f64 * mean, variance);
    }
    // In how many choices of n_a of all values their ranks come to each sum.
    let most = ranks.iter().sum::<u64>() as usize;
    let mut ways = vec![vec![0.0; most + 1]; n_a + 1];
    ways[0][0] = 1.0;
    for rank in ranks.iter().map(|rank| *rank as usize) {
        for taken in (1..=n_a).rev() {
            let (fewer, more) = ways.split_at_mut(taken);
            for sum in rank..=most {
                more[0][sum] += fewer[taken - 1][sum - rank];
            }
        }
    }
    two_sided(&ways[n_a], of_a as usize)
}

/// Twice the ranks of ascending values, so that the mean ranks of ties are whole.
fn double_ranks(ascending: &[f64]) -> Vec<u64> {
    let mut ranks = Vec::with_capacity(ascending.len());
    for ties in ascending.chunk_by(|a, b| a == b) {
        let first = ranks.len() as u64 + 1;
        ranks.resize(ranks.len() + ties.len(), 2 * first + ties.len() as u64 - 1);
    }
    ranks
}

fn two_sided(ways: &[f64], at: usize) -> f64 {
    let all: f64 = ways.iter().sum();
    let (upto, from): (f64, f64) = (ways[..=at].iter().sum(), ways[at..].iter().sum());
    (2.0 * upto.min(from) / all).min(1.0)
}

fn normal_p(away: f64, variance: f64) -> f64 {
    let z = if variance > 0.0 { away.abs() / variance.sqrt() } else { 0.0 };
    (2.0 * crate::stats::student::normal_below(-z)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::{Random, simulate};

    #[test]
    fn small_samples_are_counted_out() {
        let up: Vec<f64> = (1..=5).map(f64::from).collect();
        assert_eq!(signed_rank(&up), 2.0 / 32.0);
        let up: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(signed_rank(&up), 2.0 / 1024.0);
        // One of ten against the rest, and the smallest: sums 0 and 1 of 1,024.
        let mut mixed = up.clone();
        mixed[0] = -1.0;
        assert_eq!(signed_rank(&mixed), 4.0 / 1024.0);
        // Ties: ranks 1.5 and 1.5 with opposite signs are the middle of the distribution.
        assert_eq!(signed_rank(&[1.0, -1.0]), 1.0);
        assert_eq!((signed_rank(&[]), signed_rank(&[0.0, 0.0])), (1.0, 1.0));

        // All of three below all of three: 1 of the 20 choices on either side.
        assert!((rank_sum(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert!((rank_sum(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]) - 0.1).abs() < 1e-12);
        assert_eq!((rank_sum(&[1.0; 4], &[1.0; 4]), rank_sum(&[], &[1.0])), (1.0, 1.0));
    }

    #[test]
    fn large_samples_follow_the_exact_ones_and_claim_as_seldom_as_they_say() {
        let mut random = Random::new(4);
        for n in [20, 60] {
            let mut claimed = [0, 0];
            for _ in 0..400 {
                let noise =
                    |random: &mut Random| (0..n / 2).map(|_| simulate::normal(random)).collect::<Vec<_>>();
                let (a, b) = (noise(&mut random), noise(&mut random));
                claimed[0] += usize::from(signed_rank(&[a.clone(), b.clone()].concat()) < 0.05);
                claimed[1] += usize::from(rank_sum(&a, &b) < 0.05);
            }
            // 5 % of 400 is 20, its standard deviation 4.4.
            assert!(claimed.iter().all(|n| (6..=34).contains(n)), "{n}: {claimed:?} of 400");
        }
    }
}
