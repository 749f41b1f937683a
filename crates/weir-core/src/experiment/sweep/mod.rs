//! Sweep: one knob over a grid, judged on two axes: what the workload gets, and what the bulk beside it gets.
//!
//! Each repeat is a block that runs every arm once, in an order of its own, so that what drifts with time falls on no
//! arm in particular.

use serde::{Deserialize, Serialize};

use crate::experiment::Arm;
use crate::experiment::design::{Design, Observation, Proposal};
use crate::experiment::finding::{Effect, Finding};
use crate::experiment::goal::{Base, Bound, Goal, Limit};
use crate::experiment::judge::{Judge, Wanted};
use crate::experiment::measures::Metric;
use crate::experiment::schedule::Schedule;
use crate::stats::random::Random;

mod answer;
mod front;
#[cfg(test)]
mod tests;

/// Share of the idle machine's rate that the default goal asks for under a flood.
const IDLE_SHARE: f64 = 0.85;

/// What a sweep is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The knob's name, for sentences.
    pub knob: String,
    /// First the idle machine (without floods), if there are floods; then the machine as found (without settings);
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
}

impl SweepPlan {
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

    /// Index of the arm of the machine as found.
    pub fn found(&self) -> Option<usize> {
        let idle = self.idle();
        (0..self.arms.len()).find(|i| Some(*i) != idle && self.arms[*i].settings.is_empty())
    }

    /// Arms that are candidates: all but the idle one and the one as found.
    fn grid(&self) -> Vec<usize> {
        (0..self.arms.len()).filter(|i| Some(*i) != self.idle() && Some(*i) != self.found()).collect()
    }

    fn order(&self) -> Vec<Vec<usize>> {
        let mut random = Random::new(self.seed);
        let block = |_| {
            let mut arms: Vec<usize> = (0..self.arms.len()).collect();
            random.shuffle(&mut arms);
            arms
        };
        (0..self.repeats).map(block).collect()
    }
}

/// A sweep under way.
#[derive(Debug, Clone)]
pub struct Sweep {
    plan: SweepPlan,
    found: usize,
    schedule: Schedule,
}

impl Sweep {
    /// A sweep by a plan.
    ///
    /// # Errors
    /// A sentence where the plan has no arm as found, nothing to compare it with, no repeats or no time.
    pub fn new(plan: SweepPlan) -> Result<Sweep, String> {
        let found = plan.found().ok_or("a sweep needs an arm without settings: the machine as found")?;
        if plan.grid().is_empty() {
            return Err(format!("a sweep of {} needs at least one value to try", plan.knob));
        }
        if plan.repeats == 0 || plan.duration_ns == 0 {
            return Err("a sweep needs at least one repeat, and trials that last".to_string());
        }
        let schedule = Schedule::new(plan.order(), plan.duration_ns, plan.abort_age_ns);
        Ok(Sweep { plan, found, schedule })
    }

    /// Everything against the machine as found, and against the idle one where the goal or a flood makes it the measure.
    fn effects(&self, judge: &Judge<'_>) -> Vec<Effect> {
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
    }

    fn finding(&self) -> Finding {
        let judge = Judge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed);
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
        };
        let (headline, recommendation) = answer.answer();
        let remarks = answer.remarks(&self.schedule, knee);
        Finding { headline, recommendation, arms, effects, front, knee, remarks }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}
