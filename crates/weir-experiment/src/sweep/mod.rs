//! Sweep: one knob over a grid, judged on two axes: what the workload gets, and what the bulk beside it gets.
//!
//! Each repeat is a block that runs every arm once, in an order of its own, so that what drifts with time falls on no
//! arm in particular.

use serde::{Deserialize, Serialize};

use crate::Arm;
use crate::design::{Design, Observation, Proposal};
use crate::effects::{EffectJudge, Wanted};
use crate::finding::{ArmSummary, Effect, Finding, Judgement};
use crate::goal::{Base, Bound, Goal, Limit};
use crate::measures::Metric;
use crate::schedule::{Schedule, shuffled};
use crate::words;
use weir_core::stats::bca::ALPHA;
use weir_core::stats::bootstrap::RatioInterval;
use weir_core::stats::random::Random;

mod answer;
mod front;
mod refine;
#[cfg(test)]
mod tests;

/// Share of the idle machine's rate that the default goal asks for under a flood.
const IDLE_SHARE: f64 = 0.85;
/// Intervals that reach further than this factor from no difference would hide what anybody looks for.
const COARSE: f64 = 1.5;

/// What a sweep is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The knob's name, for sentences.
    pub knob: String,
    /// First the idle machine (without floods), if there are floods; then the baseline (without settings);
    /// then the grid in the knob's order.
    pub arms: Vec<Arm>,
    /// How often each arm is run; with fewer than five, intervals lean on the seconds within trials.
    pub repeats: u32,
    /// Measured time of a trial.
    pub duration_ns: u64,
    /// Abort a trial when an operation is outstanding longer than this.
    #[serde(default)]
    pub abort_age_ns: Option<u64>,
    /// Seed of the order of trials and of the resamples.
    pub seed: u64,
    /// What is to improve.
    pub goal: Goal,
    /// Whether limits in bytes may be added between the grid's where the goal's bounds lie, up to [`SweepPlan::ADDED_MAX`], and
    /// values that miss them by far be left out of later repeats.
    #[serde(default)]
    pub refine: bool,
    /// How many may be added after the first repeat, after the second, and so on.
    #[serde(default = "refine::unsaid")]
    pub added: Vec<usize>,
}

impl SweepPlan {
    /// How many values a sweep may gain after its repeats.
    pub const ADDED: [usize; 3] = refine::ADDED;
    /// Most values that a sweep may gain.
    pub const ADDED_MAX: usize = refine::ADDED_MAX;

    /// The goal of a user who named none: beside a flood the most bulk that leaves the workload 85 % of its idle rate,
    /// else the highest rate.
    pub fn default_goal(flooded: bool) -> Goal {
        if !flooded {
            return Goal::of(Metric::Rate);
        }
        let limit = Limit::Share { share: IDLE_SHARE, of: Base::Idle };
        Goal { bounds: vec![Bound { metric: Metric::Rate, at_most: false, limit }], ..Goal::of(Metric::Bulk) }
    }

    /// Index of the idle machine's arm.
    pub fn idle(&self) -> Option<usize> {
        let flooded = self.arms.iter().any(|arm| !arm.floods.is_empty());
        self.arms.iter().position(|arm| flooded && arm.floods.is_empty())
    }

    /// Index of the arm of the baseline.
    pub fn found(&self) -> Option<usize> {
        let idle = self.idle();
        (0..self.arms.len()).find(|i| Some(*i) != idle && self.arms[*i].settings.is_empty())
    }

    /// Arms that are candidates, in the knob's order: all but the idle one and the baseline.
    fn grid(&self) -> Vec<usize> {
        let (idle, found) = (self.idle(), self.found());
        let mut grid: Vec<usize> =
            (0..self.arms.len()).filter(|i| Some(*i) != idle && Some(*i) != found).collect();
        if self.refine {
            grid.sort_by_key(|arm| refine::limit(&self.arms[*arm]));
        }
        grid
    }
}

/// A sweep under way.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The plan, and what was added to its arms since.
    plan: SweepPlan,
    found: usize,
    schedule: Schedule,
    /// Of the orders within blocks.
    random: Random,
    /// Whole blocks that were looked at for where to add values.
    looked_at: usize,
    /// Arms that were added.
    added: Vec<usize>,
    /// Arms that are not worth more time.
    left_out: Vec<usize>,
}

impl Sweep {
    /// A sweep by a plan.
    ///
    /// # Errors
    /// A sentence where the plan has no baseline arm, nothing to compare it with, no repeats or no time.
    pub fn new(plan: SweepPlan) -> Result<Sweep, String> {
        let found = plan.found().ok_or("a sweep needs an arm without settings: the baseline")?;
        if plan.grid().is_empty() {
            return Err(format!("a sweep of {} needs at least one value to try", plan.knob));
        }
        if plan.repeats == 0 || plan.duration_ns == 0 {
            return Err("a sweep needs at least one repeat, and trials that last".to_string());
        }
        let mut random = Random::new(plan.seed);
        let all: Vec<usize> = (0..plan.arms.len()).collect();
        let order = (0..plan.repeats).map(|_| shuffled(&mut random, all.clone())).collect();
        let schedule = Schedule::new(order, plan.duration_ns, plan.abort_age_ns);
        let (added, left_out) = (Vec::new(), Vec::new());
        Ok(Sweep { plan, found, schedule, random, looked_at: 0, added, left_out })
    }

    /// After a whole block: values between where the bounds lie, and no more of those that miss them by far.
    fn refine(&mut self) {
        let (blocks, repeats) = (self.schedule.whole_blocks(), self.plan.repeats as usize);
        if !self.plan.refine || blocks == self.looked_at || blocks > repeats || repeats < 2 {
            return;
        }
        self.looked_at = blocks;
        let judge = EffectJudge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed);
        let arms = judge.summaries(&self.plan.arms);
        let added = refine::added(&self.plan, &arms, blocks);
        let hopeless = refine::hopeless(&self.plan, &arms, &self.schedule.observations);
        let changes = added.is_some() || hopeless.iter().any(|arm| !self.left_out.contains(arm));
        let like = added.as_ref().map_or(self.found, |(like, _)| *like);
        if blocks < repeats {
            self.left_out = hopeless;
        }
        for arm in added.into_iter().flat_map(|(_, arms)| arms) {
            self.added.push(self.plan.arms.len());
            self.plan.arms.push(arm);
        }
        if changes {
            let rest = self.rest(repeats - blocks);
            self.schedule.go_on_with(rest, like);
        }
    }

    /// So many blocks of all arms but those left out; then blocks that give those added as many trials as the others
    /// have, with the arms that they are compared with.
    fn rest(&mut self, blocks: usize) -> Vec<Vec<usize>> {
        let arms: Vec<usize> = (0..self.plan.arms.len()).filter(|arm| !self.left_out.contains(arm)).collect();
        let mut rest: Vec<Vec<usize>> =
            (0..blocks).map(|_| shuffled(&mut self.random, arms.clone())).collect();
        let made = |arm: &usize| self.schedule.observations.iter().filter(|o| o.proposal.arm == *arm).count();
        let late = self.added.iter().filter(|arm| arms.contains(arm));
        let lacking: Vec<(usize, usize)> =
            late.map(|arm| (*arm, (self.plan.repeats as usize).saturating_sub(made(arm) + blocks))).collect();
        let most = lacking.iter().map(|(_, lacks)| *lacks).max().unwrap_or(0);
        for round in 0..most {
            let late = lacking.iter().filter(|(_, lacks)| *lacks > round).map(|(arm, _)| *arm);
            let block = self.plan.idle().into_iter().chain([self.found]).chain(late).collect();
            rest.push(shuffled(&mut self.random, block));
        }
        rest
    }

    /// Everything against the baseline, and against the idle one where the goal or a flood makes it the measure.
    fn effects(&self, judge: &EffectJudge<'_>) -> Vec<Effect> {
        let mut figures = self.plan.goal.metrics();
        let measured = judge.metrics();
        for metric in [Metric::Rate, Metric::P99, Metric::Bulk] {
            if measured.contains(&metric) && !figures.contains(&metric) {
                figures.push(metric);
            }
        }
        let grid = self.plan.grid();
        let against = |from: usize, arms: &[usize], metrics: &[Metric]| -> Vec<Wanted> {
            let pairs = arms.iter().flat_map(|to| metrics.iter().map(|metric| (*to, metric.clone())));
            pairs.map(|(to, metric)| Wanted { from, to, metric }).collect()
        };
        let mut effects = judge.effects(&against(self.found, &grid, &figures));
        if let Some(idle) = self.plan.idle() {
            let flooded = [&[self.found], &grid[..]].concat();
            effects.extend(judge.effects(&against(idle, &flooded, &[self.axis()])));
        }
        effects
    }

    /// What was added to the grid and what was left out, for the reader of unequal counts of trials.
    fn refinement(&self, arms: &[ArmSummary]) -> Option<String> {
        let named = |of: &[usize]| {
            let told = of.iter().map(|arm| {
                let summary = &arms[*arm];
                let trials = words::count((summary.trials + summary.spoilt) as usize, "trial");
                format!("{} ({trials})", words::value_of(&self.plan.arms[*arm]))
            });
            words::list(&told.collect::<Vec<_>>())
        };
        let (tried, untried): (Vec<usize>, Vec<usize>) =
            self.plan.grid().into_iter().partition(|arm| arms[*arm].trials + arms[*arm].spoilt > 0);
        let of_grid = |arms: &[usize]| -> Vec<usize> {
            tried.iter().filter(|arm| arms.contains(arm)).copied().collect()
        };
        let (added, left_out) = (of_grid(&self.added), of_grid(&self.left_out));
        let untried: Vec<String> = untried.iter().map(|arm| words::value_of(&self.plan.arms[*arm])).collect();
        let parts = [
            (!added.is_empty()).then(|| format!("added between, where the bound lies: {}", named(&added))),
            (!left_out.is_empty()).then(|| {
                format!("not repeated further, as they miss the bound by far: {}", named(&left_out))
            }),
            (!untried.is_empty()).then(|| format!("no time was left to try {}", words::list(&untried))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What the values tried do to the figure that the sweep is about: the changes beyond noise, or how large an influence may
    /// have been missed. Beside a flood the trade-off says it.
    fn influence(&self, effects: &[Effect]) -> Option<String> {
        let axis = self.axis();
        let figure = words::figure(&axis);
        let known: Option<Vec<(&Effect, RatioInterval)>> = effects
            .iter()
            .filter(|effect| effect.from == self.found && effect.metric == axis)
            .map(|effect| Some((effect, effect.ratio?)))
            .collect();
        let known = known.filter(|known| !known.is_empty())?;
        let shown: Vec<String> = known
            .iter()
            .filter(|(effect, _)| effect.judgement != Judgement::NoDifference)
            .map(|(effect, ratio)| {
                let arm = words::value_in(&self.plan.arms[effect.to], &self.plan.knob);
                format!("{arm}: {} {}", words::change(ratio.ratio), words::interval(ratio, ALPHA))
            })
            .collect();
        if !shown.is_empty() {
            let told = || format!("Influence on {figure} against the baseline: {}.", shown.join("; "));
            return self.plan.idle().is_none().then(told);
        }
        let low = known.iter().map(|(_, ratio)| ratio.low).fold(f64::INFINITY, f64::min);
        let high = known.iter().map(|(_, ratio)| ratio.high).fold(0.0, f64::max);
        let range = format!(
            "every value tried gives between {:.0} and {:.0} % of the baseline (95 %)",
            100.0 * low,
            100.0 * high
        );
        Some(if low < COARSE.recip() || high > COARSE {
            let more = if self.made() < self.plan.repeats as usize {
                "A larger --budget narrows it."
            } else {
                "More --repeats narrow it."
            };
            format!("Too little was measured to say whether it has an influence on {figure}: {range}. {more}")
        } else {
            format!("No influence on {figure} that this data can show: {range}.")
        })
    }

    /// Whole repeats that were made, of those that were planned.
    fn made(&self) -> usize {
        self.schedule.whole_blocks().min(self.plan.repeats as usize)
    }

    /// The figure of the workload that the sweep is about: the goal's first that is not the bulk's.
    fn axis(&self) -> Metric {
        self.plan.goal.metrics().into_iter().find(|metric| *metric != Metric::Bulk).unwrap_or(Metric::Rate)
    }
}

impl Design for Sweep {
    fn arms(&self) -> &[Arm] {
        &self.plan.arms
    }

    fn propose(&mut self, left_ns: u64) -> Option<Proposal> {
        self.schedule.propose(left_ns)
    }

    fn observe(&mut self, observation: &Observation) {
        self.schedule.observe(observation);
        if self.schedule.between_blocks() {
            self.refine();
        }
    }

    fn finding(&self) -> Finding {
        let judge = EffectJudge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed);
        let arms = judge.summaries(&self.plan.arms);
        let effects = self.effects(&judge);
        let axis = self.axis();
        let bulk = judge.metrics().contains(&Metric::Bulk).then_some(Metric::Bulk);
        let candidates = [&[self.found], &self.plan.grid()[..]].concat();
        let axes: Vec<Metric> = [Some(axis.clone()), bulk].into_iter().flatten().collect();
        let front = front::front(&judge, &self.plan.goal, &arms, &candidates, &axes);
        let knee = front::knee(&self.plan.goal, &arms, &front, &axes);
        let answer = answer::Answer {
            plan: &self.plan,
            judge: &judge,
            arms: &arms,
            effects: &effects,
            found: self.found,
            axis,
            made: self.made(),
        };
        let (headline, recommendation) = answer.answer();
        let mut remarks: Vec<String> = self.influence(&effects).into_iter().collect();
        remarks.extend(answer.remarks(knee));
        remarks.extend(self.refinement(&arms));
        Finding { headline, recommendation, arms, effects, front, knee, remarks, ..Finding::default() }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}
