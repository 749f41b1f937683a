//! What a sweep recommends, and in which words.

use super::SweepPlan;
use crate::effects::{EffectJudge, against};
use crate::finding::{ArmSummary, Effect, Judgement, Recommendation, effect_of};
use crate::goal::{Base, Bases, Limit};
use crate::measures::Metric;
use crate::words;
use weir_core::stats::bca::ALPHA;

/// Neighbours on the grid whose scores differ by less than this factor are as good as each other.
const AS_GOOD: f64 = 1.05;

/// All that an answer is drawn from.
pub(super) struct Answer<'a> {
    pub(super) plan: &'a SweepPlan,
    pub(super) judge: &'a EffectJudge<'a>,
    pub(super) arms: &'a [ArmSummary],
    pub(super) effects: &'a [Effect],
    pub(super) found: usize,
    pub(super) axis: Metric,
    /// Whole repeats that were made.
    pub(super) made: usize,
}

impl Answer<'_> {
    /// The headline and the recommendation.
    pub(super) fn answer(&self) -> (String, Recommendation) {
        let knob = &self.plan.knob;
        if self.arms[self.found].trials == 0 {
            let told = format!("nothing can be said of {knob}: no trial of the baseline ran to its end");
            return (told, Recommendation::None);
        }
        match self.chosen() {
            None => self.infeasible(),
            Some(arm) if arm == self.found => self.keep(arm),
            Some(arm) => match self.gain(arm) {
                Judgement::Better => self.change(arm),
                Judgement::Unknown => {
                    let told = format!(
                        "{} looks best of {knob}, but too little was measured to distinguish it from noise: {}",
                        words::arm(&self.plan.arms[arm]),
                        self.more()
                    );
                    (told, Recommendation::None)
                }
                Judgement::NoDifference | Judgement::Worse => self.keep(arm),
            },
        }
    }

    /// What measures enough: where repeats were planned that were not made, time was short.
    fn more(&self) -> String {
        match self.unmade() {
            Some(unmade) => format!("{unmade}; raise --budget"),
            None => "use at least two repeats, and five for reliable intervals".to_string(),
        }
    }

    /// `1 of 3 repeats was made`, where more were planned.
    fn unmade(&self) -> Option<String> {
        let planned = self.plan.repeats as usize;
        let verb = if self.made == 1 { "was" } else { "were" };
        (self.made < planned).then(|| format!("{} of {planned} repeats {verb} made", self.made))
    }

    fn bases(&self) -> Bases<'_> {
        let idle = self.plan.idle().map(|idle| &self.arms[idle].values);
        Bases { idle, found: Some(&self.arms[self.found].values) }
    }

    fn breaches(&self, arm: usize) -> Vec<String> {
        against(&self.arms[arm], &self.plan.goal, &self.bases())
    }

    fn score(&self, arm: usize) -> Option<f64> {
        self.plan.goal.score(&self.arms[arm].values, &self.arms[self.found].values)
    }

    fn candidates(&self) -> Vec<usize> {
        let mut candidates = self.plan.grid();
        candidates.insert(0, self.found);
        candidates
    }

    /// The eligible arm with the best score; on the grid the centre of the neighbours that are as good.
    fn chosen(&self) -> Option<usize> {
        let eligible: Vec<(usize, f64)> = self
            .candidates()
            .into_iter()
            .filter(|arm| self.breaches(*arm).is_empty())
            .filter_map(|arm| Some((arm, self.score(arm)?)))
            .collect();
        let (best, score) = eligible.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let grid = self.plan.grid();
        let Some(place) = grid.iter().position(|arm| *arm == best) else { return Some(best) };
        let as_good =
            |i: &usize| eligible.iter().any(|(arm, other)| *arm == grid[*i] && score - other < AS_GOOD.ln());
        let first = (0..=place).rev().take_while(as_good).last().unwrap_or(place);
        let last = (place..grid.len()).take_while(as_good).last().unwrap_or(place);
        // Of two centres the one nearer to the best.
        let centre = if place > (first + last) / 2 { (first + last).div_ceil(2) } else { (first + last) / 2 };
        Some(grid[centre])
    }

    /// Whether an arm is better than the baseline. Where that misses a bound which the arm meets, being better
    /// means being better in the figure that is bounded.
    fn gain(&self, arm: usize) -> Judgement {
        if self.breaches(self.found).is_empty() {
            return match self.plan.goal.weights.as_slice() {
                [(metric, _)] => {
                    self.effect(self.found, arm, metric).map_or(Judgement::Unknown, |e| e.judgement)
                }
                _ => self.weighted_gain(arm),
            };
        }
        let bounded = self.plan.goal.bounds.iter().map(|bound| &bound.metric).chain([&self.axis]);
        let judgements: Vec<Judgement> =
            bounded.filter_map(|metric| Some(self.effect(self.found, arm, metric)?.judgement)).collect();
        let any = |judgement| judgements.contains(&judgement);
        match (any(Judgement::Better), any(Judgement::NoDifference) || any(Judgement::Worse)) {
            (true, _) => Judgement::Better,
            (false, true) => Judgement::NoDifference,
            (false, false) => Judgement::Unknown,
        }
    }

    fn weighted_gain(&self, arm: usize) -> Judgement {
        let grid = self.plan.grid();
        let gains = self.judge.gains(self.found, &grid);
        let of_arm = grid.iter().position(|other| *other == arm).and_then(|place| gains.get(place));
        of_arm.map_or(Judgement::Unknown, |(_, judgement)| *judgement)
    }

    fn effect(&self, from: usize, to: usize, metric: &Metric) -> Option<&Effect> {
        effect_of(self.effects, from, to, metric)
    }

    fn change(&self, arm: usize) -> (String, Recommendation) {
        let cost = self.cost(arm);
        let headline = format!("{} {}, and {cost}", words::arm(&self.plan.arms[arm]), self.brings(arm));
        let settings = self.plan.arms[arm].settings.clone();
        let (durability, reversibility) = (words::durability(&settings), words::reversibility(&settings));
        (headline, Recommendation::Change { arm, settings, cost, durability, reversibility })
    }

    /// `brings synchronous commits under the flood from 4 % to 93 % of idle (95 %: 91–95)`.
    fn brings(&self, arm: usize) -> String {
        let subject = self.subject(arm);
        let of_idle = self.plan.idle().and_then(|idle| {
            let share = |arm: usize| {
                Some(self.arms[arm].values.get(&self.axis)? / self.arms[idle].values.get(&self.axis)?)
            };
            Some((share(self.found)?, share(arm)?, self.effect(idle, arm, &self.axis)?.ratio))
        });
        match of_idle {
            Some((from, to, ratio)) if self.axis.more_is_better() => {
                let (from, to) = (words::percent(from), ratio.map_or(to, |ratio| ratio.ratio));
                let interval = ratio.map_or(String::new(), |ratio| {
                    format!(" (95 %: {}–{})", words::percent(ratio.low), words::percent(ratio.high))
                });
                format!("brings {subject} from {from} % to {} % of idle{interval}", words::percent(to))
            }
            _ => {
                let value = |arm: usize| {
                    let value = self.arms[arm].values.get(&self.axis);
                    value.map_or("an unknown value".to_string(), |value| self.axis.shown(*value))
                };
                let effect = self
                    .effect(self.found, arm, &self.axis)
                    .map_or(String::new(), |e| words::effect(e, ALPHA));
                format!("brings {subject} from {} to {}, {effect}", value(self.found), value(arm))
            }
        }
    }

    fn subject(&self, arm: usize) -> String {
        let what = match self.axis {
            Metric::Rate => words::operations(&self.plan.arms).to_string(),
            ref other => words::figure(other),
        };
        if self.plan.arms[arm].floods.is_empty() { what } else { format!("{what} under the flood") }
    }

    /// What an arm costs on the other axis, and in the figures beside.
    fn cost(&self, arm: usize) -> String {
        let (bulk, others): (Vec<&Effect>, Vec<&Effect>) = self
            .effects
            .iter()
            .filter(|e| e.from == self.found && e.to == arm)
            .partition(|e| e.metric == Metric::Bulk);
        let others = words::cost(others.into_iter(), self.arms, ALPHA);
        let parts = [bulk.first().map(|bulk| cost_of_bulk(bulk)), others];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { words::NO_COST.to_string() } else { parts.join("; ") }
    }

    fn keep(&self, best: usize) -> (String, Recommendation) {
        let knob = &self.plan.knob;
        let mut why = if best == self.found {
            format!("no value of {knob} that was tried is better than the baseline")
        } else {
            let effect = self.plan.goal.headline().and_then(|metric| self.effect(self.found, best, metric));
            let shown = effect
                .and_then(|e| {
                    Some(format!(", {} {}", words::figure(&e.metric), words::interval(&e.ratio?, ALPHA)))
                })
                .unwrap_or_default();
            let looks = words::value_in(&self.plan.arms[best], knob);
            format!("no value is better than the baseline by more than noise; the best looks {looks}{shown}")
        };
        if let Some((value, breaches)) = self.ruled_out() {
            why = format!(
                "no value that meets `{}` is better than the baseline; {value} is, but {breaches}",
                self.plan.goal
            );
        }
        let breaches = self.breaches(self.found);
        let doubt = if breaches.is_empty() {
            String::new()
        } else {
            format!("; at the baseline, {}", breaches.join("; "))
        };
        let why = why + &doubt;
        (format!("keep {knob} as it is: {why}"), Recommendation::Keep { why })
    }

    /// The best of the values that are better than the baseline but for what they break, and what that is.
    fn ruled_out(&self) -> Option<(String, String)> {
        let broken = |arm: &usize| !self.breaches(*arm).is_empty() && self.gain(*arm) == Judgement::Better;
        let arms = self.plan.grid().into_iter().filter(broken);
        let score = |arm: &usize| self.score(*arm).unwrap_or(f64::NEG_INFINITY);
        let best = arms.max_by(|a, b| score(a).total_cmp(&score(b)))?;
        let value = words::value_in(&self.plan.arms[best], &self.plan.knob);
        Some((value, self.breaches(best).join("; ")))
    }

    fn infeasible(&self) -> (String, Recommendation) {
        let goal = &self.plan.goal;
        let nearest =
            self.candidates().into_iter().filter(|arm| self.arms[*arm].trials > 0).max_by(|a, b| {
                let near = |arm: usize| {
                    let bound = goal.bounds.first().map(|bound| &bound.metric).unwrap_or(&self.axis);
                    goal.gain(bound, &self.arms[arm].values, &self.arms[self.found].values)
                        .unwrap_or(f64::NEG_INFINITY)
                };
                near(*a).total_cmp(&near(*b))
            });
        let reached = nearest.map_or("no trial ran to its end".to_string(), |arm| {
            format!("{} comes nearest: {}", words::arm(&self.plan.arms[arm]), self.breaches(arm).join("; "))
        });
        let why = format!("no value of {} meets `{goal}`; {reached}", self.plan.knob);
        (why.clone(), Recommendation::Infeasible { why })
    }

    /// What a reader must know beside the headline.
    pub(super) fn remarks(&self, knee: Option<usize>) -> Vec<String> {
        let begun = |unmade| format!("{unmade}: one is begun only where there is time for all of it");
        let mut remarks: Vec<String> = self.unmade().map(begun).into_iter().collect();
        remarks.extend(words::few_repeats(self.made));
        if self.made == 1 {
            remarks.push(
                "one repeat does not show how much trials differ, so there are no intervals".to_string(),
            );
        }
        remarks.extend(words::spoilt_each(self.arms));
        if let Some(knee) = knee {
            remarks.push(format!("the curve bends at {}", words::arm(&self.plan.arms[knee])));
        }
        remarks.extend(self.near_bounds());
        remarks
    }

    /// Bounds that the recommended arm meets by its mean, but not by the whole of its interval.
    fn near_bounds(&self) -> Vec<String> {
        let Some(arm) = self.chosen() else { return Vec::new() };
        let near = |bound: &crate::Bound| {
            let Limit::Share { share, of: Base::Idle } = bound.limit else { return None };
            let ratio = self.effect(self.plan.idle()?, arm, &bound.metric)?.ratio?;
            let misses = if bound.at_most { ratio.high > share } else { ratio.low < share };
            let share = words::percent(share);
            misses.then(|| {
                format!(
                    "{} meets `{bound}` by its mean; its interval ({}–{} % of idle) reaches beyond {share} %",
                    words::arm(&self.plan.arms[arm]),
                    words::percent(ratio.low),
                    words::percent(ratio.high)
                )
            })
        };
        self.plan.goal.bounds.iter().filter_map(near).collect()
    }
}

fn cost_of_bulk(effect: &Effect) -> String {
    let percent = |ratio: f64| words::percent((1.0 - ratio).abs());
    let Some(ratio) = &effect.ratio else {
        return "its cost of bulk rate was not measured well enough".to_string();
    };
    let interval = words::interval(ratio, ALPHA);
    match effect.judgement {
        Judgement::Worse => format!(
            "costs {} % of the bulk rate (95 %: {}–{})",
            percent(ratio.ratio),
            percent(ratio.high),
            percent(ratio.low)
        ),
        Judgement::Better => format!("raises the bulk rate too: {} {interval}", words::change(ratio.ratio)),
        _ if ratio.ratio < 1.0 => {
            format!("costs {} % of the bulk rate or nothing {interval}", percent(ratio.ratio))
        }
        _ => format!("the data show no cost of bulk rate {interval}"),
    }
}
