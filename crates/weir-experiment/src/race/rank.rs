//! Arms compared over blocks of which not all ran all of them: each block has its own level, as the day drifts, and
//! each arm its own distance from it.

use std::collections::BTreeMap;

/// A trial's value in the race.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// The arm.
    pub arm: usize,
    /// The block.
    pub block: u32,
    /// More is better.
    pub value: f64,
}

/// What is known of an arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Its mean, as if it had run in all blocks alike.
    pub mean: f64,
    /// Trials.
    pub trials: usize,
    /// Standard error of the mean, from the spread that all arms share.
    pub error: f64,
}

/// Standings of all arms.
pub fn standings(trials: &[Trial]) -> BTreeMap<usize, Standing> {
    let (mut arms, mut blocks) = (BTreeMap::new(), BTreeMap::new());
    for trial in trials {
        arms.insert(trial.arm, 0.0);
        blocks.insert(trial.block, 0.0);
    }
    // Least squares for both in turn; a few dozen trials settle in much fewer rounds.
    for _ in 0..30 {
        settle(&mut arms, trials, |t| t.arm, |t| t.value - blocks[&t.block]);
        settle(&mut blocks, trials, |t| t.block, |t| t.value - arms[&t.arm]);
        let level = blocks.values().sum::<f64>() / blocks.len() as f64;
        blocks.values_mut().for_each(|block| *block -= level);
        arms.values_mut().for_each(|arm| *arm += level);
    }
    let squares: f64 = trials.iter().map(|t| (t.value - arms[&t.arm] - blocks[&t.block]).powi(2)).sum();
    let freedom = (trials.len() + 1).saturating_sub(arms.len() + blocks.len()).max(1);
    let spread = (squares / freedom as f64).sqrt();
    let standing = |(arm, mean): (usize, f64)| {
        let count = trials.iter().filter(|t| t.arm == arm).count();
        (arm, Standing { mean, trials: count, error: spread / (count.max(1) as f64).sqrt() })
    };
    arms.into_iter().map(standing).collect()
}

/// Sets each group's effect to the mean of what is left for it.
fn settle<K: Ord + Copy>(
    effects: &mut BTreeMap<K, f64>,
    trials: &[Trial],
    group: impl Fn(&Trial) -> K,
    rest: impl Fn(&Trial) -> f64,
) {
    let mut sums: BTreeMap<K, (f64, usize)> = BTreeMap::new();
    for trial in trials {
        let (sum, count) = sums.entry(group(trial)).or_default();
        *sum += rest(trial);
        *count += 1;
    }
    effects.extend(sums.into_iter().map(|(key, (sum, count))| (key, sum / count as f64)));
}

/// The arms, best first.
pub fn best_first(standings: &BTreeMap<usize, Standing>, of: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = of.iter().copied().filter(|arm| standings.contains_key(arm)).collect();
    order.sort_by(|a, b| standings[b].mean.total_cmp(&standings[a].mean));
    order
}

/// The arm that is best by what is certain of it: one seen once must lead by more than one seen often.
pub fn surest(standings: &BTreeMap<usize, Standing>, of: &[usize]) -> Option<usize> {
    let certain = |arm: &usize| standings.get(arm).map_or(f64::MIN, |s| s.mean - s.error);
    of.iter().copied().max_by(|a, b| certain(a).total_cmp(&certain(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_not_better_for_having_run_in_a_good_hour() {
        // Block 1 is worse by 5 for all; arm 2 ran in it only, arm 0 in block 0 only.
        let trials: Vec<Trial> = [(0, 0, 1.0), (1, 0, 0.5), (1, 1, -4.5), (2, 1, -3.0)]
            .map(|(arm, block, value)| Trial { arm, block, value })
            .to_vec();
        let standings = standings(&trials);
        assert!((standings[&0].mean - standings[&1].mean - 0.5).abs() < 1e-6, "{standings:?}");
        assert!((standings[&2].mean - standings[&1].mean - 1.5).abs() < 1e-6, "{standings:?}");
        assert_eq!(best_first(&standings, &[0, 1, 2]), [2, 0, 1]);
        assert_eq!(best_first(&standings, &[0, 1, 9]), [0, 1]);
    }

    #[test]
    fn one_lucky_trial_does_not_win() {
        let mut trials: Vec<Trial> = (0..6)
            .flat_map(|block| {
                [(0, 1.0), (1, 0.9)].map(|(arm, v)| (arm, block, v + 0.1 * f64::from(block % 2)))
            })
            .map(|(arm, block, value)| Trial {
                arm,
                block,
                value: value + 0.04 * f64::from(block % 3) * (arm as f64 - 0.5),
            })
            .collect();
        trials.push(Trial { arm: 2, block: 0, value: 0.99 });
        let standings = standings(&trials);
        assert!(standings[&2].error > standings[&0].error);
        assert_eq!(surest(&standings, &[0, 1, 2]), Some(0), "{standings:?}");
        assert_eq!(surest(&standings, &[]), None);
    }
}
