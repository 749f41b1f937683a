//! A/B: two ways to run, in pairs, in the order A B B A, so that what drifts evenly with time cancels.

use serde::{Deserialize, Serialize};

use crate::Arm;
use crate::design::{Design, Observation, Proposal};
use crate::effects::{EffectJudge, Wanted};
use crate::finding::{ArmSummary, Effect, Finding, Judgement, Recommendation};
use crate::goal::{Bases, Goal};
use crate::measures::Metric;
use crate::schedule::Schedule;
use crate::words;
use weir_core::stats::bca::ALPHA;
use weir_core::stats::bootstrap::UNITS_MIN;
use weir_core::stats::random::Random;
use weir_core::stats::wilcoxon;
use weir_oltp::limits::{Change, Diagnosis, Tested, held};

#[cfg(test)]
mod tests;

/// Of the chance of a false claim, the part that a first look spends; the last look has the rest.
const FIRST_LOOK: f64 = 0.2;
/// Pairs from which on a rank test has a say.
const RANKED_MIN: usize = 10;
/// Figures that say again what others said, or nothing about the workload: compared only where the goal names them.
const UNASKED: [Metric; 4] = [Metric::Mean, Metric::Max, Metric::Device, Metric::SubmitP95];

const A: usize = 0;
const B: usize = 1;

/// What an A/B is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbPlan {
    /// What is compared with: arm 0.
    pub a: Arm,
    /// What is compared: arm 1.
    pub b: Arm,
    /// Pairs of trials; five at least for intervals that stand by themselves, ten for most purposes.
    pub pairs: u32,
    /// Measured time of a trial.
    pub duration_ns: u64,
    /// Abort a trial when an operation is outstanding longer than this.
    #[serde(default)]
    pub abort_age_ns: Option<u64>,
    /// Look once after so many pairs, and stop if a difference by the goal shows; both looks together make a false claim
    /// as seldom as one would.
    #[serde(default)]
    pub first_look: Option<u32>,
    /// Seed of which comes first, and of the resamples.
    pub seed: u64,
    /// What is to improve.
    pub goal: Goal,
    /// What was concluded of A before B was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Box<Claim>>,
}

/// A verdict on A, made before the trials, that says something of B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What B is to A.
    pub change: Change,
    /// What limits A.
    pub verdict: Diagnosis,
}

/// An A/B under way.
#[derive(Debug, Clone)]
pub struct Ab {
    plan: AbPlan,
    arms: [Arm; 2],
    schedule: Schedule,
    /// Whether the first look has been taken, and showed a difference.
    looked: Option<bool>,
}

impl Ab {
    /// An A/B by a plan.
    ///
    /// # Errors
    /// A sentence where there are no pairs, or no time.
    pub fn new(plan: AbPlan) -> Result<Ab, String> {
        if plan.pairs == 0 || plan.duration_ns == 0 {
            return Err("an A/B needs at least one pair, and trials that last".to_string());
        }
        let a_first = Random::new(plan.seed).below(2) == 0;
        let pair = |i: u32| if a_first == i.is_multiple_of(2) { vec![A, B] } else { vec![B, A] };
        let schedule =
            Schedule::new((0..plan.pairs).map(pair).collect(), plan.duration_ns, plan.abort_age_ns);
        Ok(Ab { arms: [plan.a.clone(), plan.b.clone()], plan, schedule, looked: None })
    }

    fn judge(&self) -> EffectJudge<'_> {
        EffectJudge::new(&self.schedule.observations, &self.plan.goal, self.plan.seed)
    }

    /// The chance of a false claim that the current look may take.
    fn alpha(&self) -> f64 {
        match (self.plan.first_look, self.looked) {
            (None, _) => ALPHA,
            (Some(_), Some(false)) => ALPHA * (1.0 - FIRST_LOOK),
            (Some(_), _) => ALPHA * FIRST_LOOK,
        }
    }

    fn wanted(&self, judge: &EffectJudge<'_>) -> Vec<Wanted> {
        let goal = self.plan.goal.metrics();
        let asked = |metric: &Metric| goal.contains(metric) || !UNASKED.contains(metric);
        let metrics = judge.metrics().into_iter().filter(asked);
        metrics.map(|metric| Wanted { from: A, to: B, metric }).collect()
    }

    fn look(&mut self) {
        let due = self.plan.first_look.is_some_and(|pairs| self.schedule.whole_blocks() == pairs as usize);
        if due && self.looked.is_none() && self.schedule.between_blocks() {
            let judge = self.judge();
            let effects = judge.effects_at(&self.wanted(&judge), self.alpha());
            let differs = matches!(self.verdict(&judge, &effects), Judgement::Better | Judgement::Worse);
            self.looked = Some(differs);
            if differs {
                self.schedule.end_here();
            }
        }
    }

    /// What the goal says of B. With pairs enough a rank test must agree that there is a difference: one wild pair is
    /// none.
    fn verdict(&self, judge: &EffectJudge<'_>, effects: &[Effect]) -> Judgement {
        let judgement = match self.plan.goal.weights.as_slice() {
            [(metric, _)] => effects.iter().find(|e| e.metric == *metric).map(|e| e.judgement),
            _ => judge.gains_at(A, &[B], self.alpha()).pop().map(|(_, judgement)| judgement),
        };
        match judgement.unwrap_or(Judgement::Unknown) {
            Judgement::Better | Judgement::Worse if !self.ranks_agree(judge) => Judgement::NoDifference,
            judgement => judgement,
        }
    }

    fn ranks_agree(&self, judge: &EffectJudge<'_>) -> bool {
        let scores = judge.scores(A, B);
        scores.len() < RANKED_MIN || wilcoxon::signed_rank(&scores) <= ALPHA
    }

    fn answer(
        &self,
        judge: &EffectJudge<'_>,
        arms: &[ArmSummary],
        effects: &[Effect],
    ) -> (String, Recommendation) {
        let (a, b) = (&self.arms[A].label, &self.arms[B].label);
        let alpha = self.alpha();
        let shown = self.goal_in_words(effects, |e| words::effect(e, alpha));
        let keep = |why: String| (why.clone(), Recommendation::Keep { why });
        match self.verdict(judge, effects) {
            Judgement::Unknown => {
                let told = format!(
                    "too little was measured to compare {b} with {a}: two pairs at least, better five"
                );
                (told, Recommendation::None)
            }
            Judgement::Worse => keep(format!("{b} is worse than {a}: {shown}")),
            Judgement::NoDifference => {
                let least =
                    self.detectable(judge, effects).map_or(String::new(), |least| format!("; {least}"));
                let interval = |e: &Effect| Some(words::interval(e.ratio.as_ref()?, alpha));
                let shown = self.goal_in_words(effects, |e| interval(e).unwrap_or_default());
                keep(format!("no difference between {a} and {b} is shown: {shown}{least}"))
            }
            Judgement::Better => {
                if let Some(bound) = self.bound(&shown) {
                    return bound;
                }
                let breaches = self.breaches(arms);
                if !breaches.is_empty() {
                    let why = format!("{b} is better than {a} ({shown}), but {}", breaches.join("; "));
                    return (why.clone(), Recommendation::Infeasible { why });
                }
                let settings = self.arms[B].settings.clone();
                let cost =
                    words::cost(effects.iter(), arms, alpha).unwrap_or_else(|| words::NO_COST.to_string());
                let (durability, reversibility) =
                    (words::durability_of(&self.arms[A], &self.arms[B]), words::reversibility(&settings));
                let told = format!("{b} is better than {a}: {shown}, and {cost}");
                (told, Recommendation::Change { arm: B, settings, cost, durability, reversibility })
            }
        }
    }

    /// Better in memory is no setting to make: it bounds what a faster disk could give.
    fn bound(&self, shown: &str) -> Option<(String, Recommendation)> {
        let claim = self.plan.claim.as_ref().filter(|claim| claim.change == Change::InMemory);
        claim.map(|_| {
            let told = format!("with its data in memory, {shown}: a faster disk could give that at most");
            let why = "no setting to change: data in memory are lost with the machine, and only show the \
                gain of a faster disk"
                .to_string();
            (told, Recommendation::Keep { why })
        })
    }

    /// What stands against B.
    fn breaches(&self, arms: &[ArmSummary]) -> Vec<String> {
        self.plan.goal.breaches(&arms[B].values, &Bases { idle: None, found: Some(&arms[A].values) })
    }

    fn goal_in_words(&self, effects: &[Effect], said: impl Fn(&Effect) -> String) -> String {
        let of_goal =
            effects.iter().filter(|e| self.plan.goal.weights.iter().any(|(metric, _)| *metric == e.metric));
        let each = of_goal.map(|e| format!("{} {}", words::figure(&e.metric), said(e)));
        words::list(&each.collect::<Vec<_>>())
    }

    /// The smallest difference in the goal's first figure that this data could have shown, where it is the first to be
    /// claimed of all that are compared.
    fn detectable(&self, judge: &EffectJudge<'_>, effects: &[Effect]) -> Option<String> {
        let metric = self.plan.goal.headline()?.clone();
        let name = words::figure(&metric);
        let compared = effects.iter().filter(|effect| effect.ratio.is_some()).count().max(1);
        let estimate = judge.estimate(&Wanted { from: A, to: B, metric })?;
        let least = estimate.detectable(self.alpha() / compared as f64);
        let percent = words::percent(least - 1.0);
        Some(format!(
            "a difference of {percent} % in {name} would have been found in four of five such experiments"
        ))
    }

    /// What became of the claim: by the rate's interval alone, since it was made of nothing else.
    fn tested(&self, judge: &EffectJudge<'_>) -> Option<Tested> {
        let claim = self.plan.claim.as_ref()?;
        let estimate = judge.estimate(&Wanted { from: A, to: B, metric: Metric::Rate });
        let ratio = estimate.map(|estimate| estimate.interval(self.alpha()));
        Some(held(claim.change, self.schedule.whole_blocks() as u32, ratio, &claim.verdict))
    }

    fn remarks(&self, judge: &EffectJudge<'_>, arms: &[ArmSummary], effects: &[Effect]) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some((claim, tested)) = self.plan.claim.as_ref().zip(self.tested(judge)) {
            let label = &self.arms[A].label;
            remarks.push(format!("a look at {label} before the trials: {}", claim.verdict.headline));
            let in_table = effects.iter().find(|effect| effect.metric == Metric::Rate);
            // Two intervals of one ratio in a report need a reason.
            let differs =
                in_table.is_some_and(|effect| effect.ratio.is_some() && effect.ratio != tested.ratio);
            let why = "; the interval here is for the rate alone, that in the table for all figures together";
            remarks.push(tested.sentence + if differs { why } else { "" });
        }
        let (made, planned) = (self.schedule.whole_blocks(), self.plan.pairs as usize);
        if self.looked == Some(true) {
            remarks.push(format!(
                "ended at the first look, after {made} of {planned} pairs: intervals are at {:.0} %, which pays for \
                 looking twice",
                100.0 - self.alpha() * 100.0
            ));
        } else if made < planned {
            remarks.push(format!("{made} of {} were made", words::count(planned, "pair")));
        }
        if (2..UNITS_MIN).contains(&made) {
            remarks.push(format!(
                "{made} pairs are few: the spread of trials is known only roughly; {UNITS_MIN} pairs give \
                 reliable intervals"
            ));
        }
        remarks.extend(words::spoilt_each(arms));
        let claimed = effects.iter().any(|e| matches!(e.judgement, Judgement::Better | Judgement::Worse));
        if claimed && !self.ranks_agree(judge) {
            let p = wilcoxon::signed_rank(&judge.scores(A, B));
            remarks.push(format!(
                "Wilcoxon's signed-rank test finds no difference by the goal (p = {p:.2}): what the mean shows comes \
                 from few pairs"
            ));
        }
        remarks
    }
}

impl Design for Ab {
    fn arms(&self) -> &[Arm] {
        &self.arms
    }

    fn propose(&mut self, left_ns: u64) -> Option<Proposal> {
        self.look();
        self.schedule.propose(left_ns)
    }

    fn observe(&mut self, observation: &Observation) {
        self.schedule.observe(observation);
    }

    fn finding(&self) -> Finding {
        let judge = self.judge();
        let arms = judge.summaries(&self.arms);
        let effects = judge.effects_at(&self.wanted(&judge), self.alpha());
        let (headline, recommendation) = self.answer(&judge, &arms, &effects);
        let remarks = self.remarks(&judge, &arms, &effects);
        let tested = self.tested(&judge);
        Finding { headline, recommendation, arms, effects, tested, remarks, ..Finding::default() }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}
