//! The winner against the baseline, on trials that had no part in choosing it.

use std::collections::BTreeMap;

use crate::design::{Observation, Outcome};
use crate::goal::{Bases, Bound, Goal};
use crate::measures::Figures;
use crate::words;
use weir_core::stats::bca;
use weir_core::stats::bootstrap::RatioInterval;
use weir_core::units::significant;

/// What the confirmation showed.
#[derive(Debug, Clone)]
pub struct Confirmation {
    /// Pairs that were made.
    pub pairs: usize,
    /// How much better the winner is by the goal, as a ratio.
    pub gain: Option<RatioInterval>,
    /// Bounds and guardrails that the winner's means break.
    pub breaches: Vec<String>,
    /// Those that the baseline breaks.
    pub found_breaches: Vec<String>,
    /// Bounds that the winner does not keep for certain: the interval of its mean reaches beyond the limit.
    pub uncertain: Vec<String>,
}

/// The idle machine, where the goal refers to it.
#[derive(Debug, Clone, Copy)]
pub struct Idle<'a> {
    /// Its arm.
    pub arm: Option<usize>,
    /// Its figures before the confirmation, which stand in where that has none.
    pub before: Option<&'a Figures>,
}

impl Confirmation {
    /// Judges these trials of both arms; pairs, and the idle machine of that time, share a block.
    pub fn of(
        trials: &[&Observation],
        (found, winner): (usize, usize),
        idle: Idle<'_>,
        goal: &Goal,
        seed: u64,
    ) -> Confirmation {
        let of_arm = |arm: usize| trials.iter().copied().filter(move |t| t.proposal.arm == arm);
        let (as_found, as_won) = (means(of_arm(found)), means(of_arm(winner)));
        let fresh_idle = idle.arm.and_then(|arm| means(of_arm(arm)));
        let bases = Bases { idle: fresh_idle.as_ref().or(idle.before), found: as_found.as_ref() };
        let breaches = |figures: &Option<Figures>| {
            figures.as_ref().map_or(vec!["nothing was measured".to_string()], |f| goal.breaches(f, &bases))
        };
        let logs = scores(trials, (found, winner), goal);
        let is_uncertain = |bound: &&Bound| {
            let margin = |t: &Observation| {
                let in_turn = |arm: usize| {
                    let mut of_turn = of_arm(arm).filter(|other| other.proposal.block == t.proposal.block);
                    Some(&of_turn.next()?.outcome.measured()?.values)
                };
                let idle = idle.arm.and_then(in_turn).or(bases.idle);
                let bases = Bases { idle, found: in_turn(found).or(bases.found) };
                bound.margin(&t.outcome.measured()?.values, &bases)
            };
            let margins: Option<Vec<f64>> = of_arm(winner).map(margin).collect();
            margins
                .and_then(|margins| bca::paired(&margins, seed))
                .is_none_or(|e| e.interval(bca::ALPHA).low <= 1.0)
        };
        Confirmation {
            pairs: logs.len(),
            gain: bca::paired(&logs, seed).map(|estimate| estimate.interval(bca::ALPHA)),
            breaches: breaches(&as_won),
            found_breaches: breaches(&as_found),
            uncertain: goal.bounds.iter().filter(is_uncertain).map(ToString::to_string).collect(),
        }
    }

    /// Whether the winner is to be recommended.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn accepted(&self, pairs: usize, bar: f64) -> Result<(), String> {
        if self.pairs < pairs {
            return Err(self.lacking(pairs));
        }
        if !self.breaches.is_empty() {
            return Err(format!("on fresh data {}", self.breaches.join(", ")));
        }
        // Where the baseline breaks a bound, keeping it is the gain; the score may well be lower.
        if !self.found_breaches.is_empty() {
            let uncertain = self.uncertain.join(" and ");
            return if uncertain.is_empty() {
                Ok(())
            } else {
                Err(format!("{uncertain} is not certain to hold"))
            };
        }
        let percent = |ratio: f64| significant((ratio - 1.0) * 100.0);
        match &self.gain {
            None => Err("too little was measured to say how much better it is".to_string()),
            Some(gain) if gain.low > 1.0 + bar => Ok(()),
            Some(gain) => Err(format!(
                "on fresh data it is {} % better, between {} % and {} %: not for certain the {} % that are asked for",
                percent(gain.ratio),
                percent(gain.low),
                percent(gain.high),
                percent(1.0 + bar),
            )),
        }
    }

    /// What there is to say where some of the `pairs` are missing: what those that were made show.
    pub fn lacking(&self, pairs: usize) -> String {
        let made = match self.pairs {
            0 => return format!("none of the {pairs} pairs that were to confirm it was made"),
            made => format!("only {made} of the {pairs} pairs that were to confirm it were made"),
        };
        let shown =
            self.gain.as_ref().map_or("they are too few to say how much better it is".to_string(), |gain| {
                format!(
                    "in them it is by the goal {} {}",
                    words::change(gain.ratio),
                    words::interval(gain, bca::ALPHA)
                )
            });
        let broken =
            if self.breaches.is_empty() { String::new() } else { format!("; {}", self.breaches.join(", ")) };
        format!("{made}; {shown}{broken}")
    }
}

/// The winner's score against the baseline, pair by pair. A spoilt trial of the winner is twice as bad as the
/// worst pair measured; of a spoilt trial of the other one the winner has no credit.
fn scores(trials: &[&Observation], (found, winner): (usize, usize), goal: &Goal) -> Vec<f64> {
    let mut pairs: BTreeMap<u32, [Option<&Outcome>; 2]> = BTreeMap::new();
    for trial in trials {
        let pair = pairs.entry(trial.proposal.block).or_default();
        if trial.proposal.arm == found {
            pair[0] = Some(&trial.outcome);
        } else if trial.proposal.arm == winner {
            pair[1] = Some(&trial.outcome);
        }
    }
    let whole: Vec<(&Outcome, &Outcome)> = pairs.values().filter_map(|[a, b]| a.zip(*b)).collect();
    let score = |(a, b): &(&Outcome, &Outcome)| goal.score(&b.measured()?.values, &a.measured()?.values);
    let worst = whole.iter().filter_map(score).fold(0.0, f64::min);
    let of_pair = |pair: &(&Outcome, &Outcome)| match (score(pair), pair.1.measured()) {
        (Some(score), _) => score,
        (None, None) => worst - 2f64.ln(),
        (None, Some(_)) => 0.0,
    };
    whole.iter().map(of_pair).collect()
}

/// Means of the figures of measured trials, each over those that have it; `None` where there is none.
pub fn means<'a>(trials: impl Iterator<Item = &'a Observation>) -> Option<Figures> {
    let mut sums: BTreeMap<_, (f64, usize)> = BTreeMap::new();
    for (metric, value) in trials.filter_map(|trial| trial.outcome.measured()).flat_map(|m| &m.values) {
        let (sum, count) = sums.entry(metric.clone()).or_default();
        *sum += value;
        *count += 1;
    }
    (!sums.is_empty()).then(|| sums.into_iter().map(|(m, (sum, count))| (m, sum / count as f64)).collect())
}
