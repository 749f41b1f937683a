//! Ladder: one change after another, each step against the one before, and what it really gained.
//!
//! A block is the whole ladder once, upwards or downwards in turn: every step runs next to the one it is compared
//! with, and what drifts evenly with time cancels.

use crate::Arm;
use crate::design::{Design, Observation, Proposal};
use crate::effects::{EffectJudge, Wanted, against};
use crate::finding::{ArmSummary, Effect, Finding, Judgement, Recommendation, effect_of};
use crate::goal::Bases;
use crate::measures::Metric;
use crate::plan::ArmsPlan;
use crate::schedule::Schedule;
use crate::words;
use weir_core::stats::bootstrap::UNITS_MIN;
use weir_core::stats::random::Random;

mod step;
#[cfg(test)]
mod tests;

/// Figures that each step is compared in, where they were measured.
const FIGURES: [Metric; 5] = [Metric::Rate, Metric::P50, Metric::P95, Metric::P99, Metric::SubmitP95];
/// A step that is better than a lower one by less than this factor is not worth climbing.
const AS_GOOD: f64 = 1.05;

/// Up the whole ladder and down again in turn; the seed says which comes first.
fn order(plan: &ArmsPlan) -> Vec<Vec<usize>> {
    let first_up = Random::new(plan.seed).below(2) == 0;
    let steps = plan.arms.len();
    let block = |i: u32| {
        if first_up == i.is_multiple_of(2) { (0..steps).collect() } else { (0..steps).rev().collect() }
    };
    (0..plan.repeats).map(block).collect()
}

/// A ladder under way.
#[derive(Debug, Clone)]
pub struct Ladder {
    plan: ArmsPlan,
    schedule: Schedule,
}

impl Ladder {
    /// A ladder by a plan, whose arms are the steps, the first being what all is built on.
    ///
    /// # Errors
    /// A sentence where there are fewer than two steps, no repeats or no time.
    pub fn new(plan: ArmsPlan) -> Result<Ladder, String> {
        if plan.arms.len() < 2 {
            return Err("a ladder needs at least two steps".to_string());
        }
        plan.check("a ladder")?;
        Ok(Ladder { schedule: plan.schedule(order(&plan)), plan })
    }

    /// Each step against the one before in all figures, and against the first by the goal.
    fn effects(&self, judge: &EffectJudge<'_>) -> Vec<Effect> {
        let goal = self.plan.goal.metrics();
        let measured = judge.metrics();
        let figures: Vec<&Metric> =
            measured.iter().filter(|metric| FIGURES.contains(metric) || goal.contains(metric)).collect();
        let wanted = |from: usize, to: usize, metric: &Metric| Wanted { from, to, metric: metric.clone() };
        let steps = 1..self.plan.arms.len();
        let mut all: Vec<Wanted> = steps
            .clone()
            .flat_map(|to| figures.iter().map(move |metric| wanted(to - 1, to, metric)))
            .collect();
        let by_goal = self.plan.goal.weights.iter().map(|(metric, _)| metric);
        all.extend(by_goal.flat_map(|metric| steps.clone().skip(1).map(move |to| wanted(0, to, metric))));
        judge.effects(&all)
    }

    /// What the goal says of each step against the first.
    fn judgements(&self, judge: &EffectJudge<'_>, effects: &[Effect]) -> Vec<Judgement> {
        let steps: Vec<usize> = (1..self.plan.arms.len()).collect();
        let of_steps: Vec<Judgement> = match self.plan.goal.weights.as_slice() {
            [(metric, _)] => {
                let of = |to: &usize| effect_of(effects, 0, *to, metric);
                steps.iter().map(|to| of(to).map_or(Judgement::Unknown, |effect| effect.judgement)).collect()
            }
            _ => judge.gains(0, &steps).into_iter().map(|(_, judgement)| judgement).collect(),
        };
        std::iter::once(Judgement::NoDifference).chain(of_steps).collect()
    }

    fn breaches(&self, arms: &[ArmSummary], arm: usize) -> Vec<String> {
        let bases = Bases { idle: None, found: Some(&arms[0].values) };
        against(&arms[arm], &self.plan.goal, &bases)
    }

    fn answer(
        &self,
        judge: &EffectJudge<'_>,
        arms: &[ArmSummary],
        effects: &[Effect],
    ) -> (String, Recommendation) {
        let (goal, label) = (&self.plan.goal, |arm: usize| &self.plan.arms[arm].label);
        let score = |arm: usize| goal.score(&arms[arm].values, &arms[0].values);
        if arms[0].trials == 0 || score(0).is_none() {
            return ("too little was measured to say anything".to_string(), Recommendation::None);
        }
        let judgements = self.judgements(judge, effects);
        let eligible = |arm: &usize| arms[*arm].trials > 0 && self.breaches(arms, *arm).is_empty();
        let (meeting, breaking): (Vec<usize>, Vec<usize>) = (0..arms.len()).partition(eligible);
        if meeting.is_empty() {
            let why = format!("no step meets `{goal}`");
            return (why.clone(), Recommendation::Infeasible { why });
        }
        // The first step, and those that may be better than it.
        let scored: Vec<(usize, f64)> = meeting
            .into_iter()
            .filter(|arm| *arm == 0 || matches!(judgements[*arm], Judgement::Better | Judgement::Unknown))
            .filter_map(|arm| Some((arm, score(arm)?)))
            .collect();
        let best = scored.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
        let chosen = scored.iter().find(|(_, score)| best - score < AS_GOOD.ln()).map_or(0, |(arm, _)| *arm);
        let steps = step::summary(&self.plan.arms, effects);
        let is_better = |arm: &usize| judgements[*arm] == Judgement::Better;
        match judgements[chosen] {
            Judgement::Unknown => (steps, Recommendation::None),
            Judgement::Better => {
                let settings = self.plan.arms[chosen].settings.clone();
                let (durability, reversibility) = (
                    words::durability_of(&self.plan.arms[0], &self.plan.arms[chosen]),
                    words::reversibility(&settings),
                );
                let cost = step::cost(&arms[0], &arms[chosen]);
                let told = format!("{steps}; by `{goal}` the step to stop at is {}", label(chosen));
                (told, Recommendation::Change { arm: chosen, settings, cost, durability, reversibility })
            }
            Judgement::NoDifference | Judgement::Worse => {
                let why = if scored.iter().any(|(arm, _)| is_better(arm)) {
                    let gain = words::percent(AS_GOOD - 1.0);
                    format!("by `{goal}` the best step gains less than {gain} %, so {} is as good", label(0))
                } else if let Some(arm) = breaking.into_iter().find(is_better) {
                    let breaches = self.breaches(arms, arm).join("; ");
                    format!("by `{goal}` {} is better than {}, but {breaches}", label(arm), label(0))
                } else {
                    format!("by `{goal}` no step is better than {} by more than noise", label(0))
                };
                (format!("{steps}; {why}"), Recommendation::Keep { why })
            }
        }
    }

    fn remarks(&self, arms: &[ArmSummary], effects: &[Effect]) -> Vec<String> {
        let mut remarks: Vec<String> = Vec::new();
        for to in 1..arms.len() {
            remarks.extend(step::remarks(&self.plan.arms, arms, effects, to));
        }
        let (made, planned) = (self.schedule.whole_blocks(), self.schedule.planned_blocks());
        if made < planned {
            remarks.push(format!("{made} of {} were made", words::count(planned, "repeat")));
        }
        if made < UNITS_MIN {
            remarks.push(format!(
                "{} made: percentiles have intervals from {UNITS_MIN} on",
                words::count(made, "repeat")
            ));
        }
        remarks
    }
}

impl Design for Ladder {
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
        let judge = EffectJudge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed);
        let arms = judge.summaries(&self.plan.arms);
        let effects = self.effects(&judge);
        let (headline, recommendation) = self.answer(&judge, &arms, &effects);
        let remarks = self.remarks(&arms, &effects);
        Finding { headline, recommendation, arms, effects, remarks, ..Finding::default() }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}
