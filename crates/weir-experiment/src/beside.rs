//! Beside: a workload alone, beside a bulk writer, and beside one while a guard holds the latency of syncs. What does the
//! flood take, what does the guard give back, and what does the bulk pay for it?

use crate::Arm;
use crate::design::{Design, Observation, Proposal};
use crate::effects::{EffectJudge, Wanted};
use crate::finding::{ArmSummary, Effect, Finding, Judgement, Recommendation, effect_of};
use crate::measures::Metric;
use crate::plan::ArmsPlan;
use crate::schedule::Schedule;
use crate::words;
use weir_core::units::megabytes_per_second;

const ALONE: usize = 0;
const FLOODED: usize = 1;
const GUARDED: usize = 2;

/// Such an experiment under way.
#[derive(Debug, Clone)]
pub struct Beside {
    plan: ArmsPlan,
    schedule: Schedule,
}

impl Beside {
    /// An experiment by a plan, whose arms are: alone, beside the flood, and (where there is to be a guard) beside the
    /// flood with a guard.
    ///
    /// # Errors
    /// A sentence where the arms are not those above; no repeats, or no time.
    pub fn new(plan: ArmsPlan) -> Result<Beside, String> {
        let kinds: Vec<(bool, bool)> =
            plan.arms.iter().map(|arm| (!arm.floods.is_empty(), arm.guarded)).collect();
        let expected = [(false, false), (true, false), (true, true)];
        if kinds.len() < 2 || expected.get(..kinds.len()) != Some(&kinds[..]) {
            return Err(
                "its arms are the workload alone, beside a flood, and beside one with a guard".to_string()
            );
        }
        plan.check("it")?;
        Ok(Beside { schedule: plan.shuffled(), plan })
    }

    fn is_guarded(&self) -> bool {
        self.plan.arms.len() > GUARDED
    }

    fn headline(&self, arms: &[ArmSummary], effects: &[Effect]) -> String {
        let share = |from: usize, to: usize, metric: Metric| share(effects, from, to, &metric);
        let what = words::operations(&self.plan.arms);
        let flood = self.plan.arms[FLOODED].floods.join(" and ");
        let Some(flooded) = share(ALONE, FLOODED, Metric::Rate) else {
            return "Too little was measured for the effect of the flood.".to_string();
        };
        let mut headline = format!("Beside {flood}, {what} keep {flooded} of their rate alone");
        if let Some(kept) = share(ALONE, GUARDED, Metric::Rate).filter(|_| self.is_guarded()) {
            headline.push_str(&format!("; with the guard {kept}"));
            let bulk = arms[GUARDED].values.get(&Metric::Bulk);
            if let Some((bulk, of)) = bulk.zip(share(FLOODED, GUARDED, Metric::Bulk)) {
                headline.push_str(&format!(
                    ", and the bulk still gets {}, {of} of what it takes unguarded",
                    megabytes_per_second(*bulk)
                ));
            }
        }
        headline + "."
    }
}

/// `93 % (90–95)`.
fn share(effects: &[Effect], from: usize, to: usize, metric: &Metric) -> Option<String> {
    let ratio = effect_of(effects, from, to, metric)?.ratio?;
    let [share, low, high] = [ratio.ratio, ratio.low, ratio.high].map(words::percent);
    Some(format!("{share} % ({low}–{high})"))
}

impl Design for Beside {
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
        let wanted = |from: usize, to: usize, metric: Metric| Wanted { from, to, metric };
        let mut pairs = vec![wanted(ALONE, FLOODED, Metric::Rate), wanted(ALONE, FLOODED, Metric::P99)];
        if self.is_guarded() {
            pairs.extend([
                wanted(ALONE, GUARDED, Metric::Rate),
                wanted(ALONE, GUARDED, Metric::P99),
                wanted(FLOODED, GUARDED, Metric::Rate),
                wanted(FLOODED, GUARDED, Metric::Bulk),
            ]);
        }
        let measured = judge.metrics();
        pairs.retain(|pair| measured.contains(&pair.metric));
        let effects = judge.effects(&pairs);
        let of_guard = effect_of(&effects, FLOODED, GUARDED, &Metric::Rate)
            .map_or(Judgement::Unknown, |effect| effect.judgement);
        let why = match of_guard {
            _ if !self.is_guarded() => "nothing was changed",
            Judgement::Better => {
                "the guard holds the rate without a setting that stays: `weir guard install` keeps it on"
            }
            Judgement::Worse => "with the guard the rate is lower than without: it is of no use here",
            Judgement::NoDifference => "the data show no effect of the guard",
            Judgement::Unknown => "too little was measured to say what the guard does",
        };
        Finding {
            headline: self.headline(&arms, &effects),
            recommendation: Recommendation::Keep { why: why.to_string() },
            effects,
            arms,
            remarks: words::few_repeats(self.schedule.whole_blocks()).into_iter().collect(),
            ..Finding::default()
        }
    }

    fn remaining(&self) -> usize {
        self.schedule.remaining()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::goal::Goal;
    use crate::synthetic::{Truth, arm, measures};
    use weir_core::stats::random::Random;

    fn plan(guarded: bool) -> ArmsPlan {
        let flooded = Arm { floods: vec!["dd".to_string()], ..arm("beside dd", &[], true) };
        let with_guard = Arm { guarded: true, label: "with the guard".to_string(), ..flooded.clone() };
        let mut arms = vec![arm("alone", &[], false), flooded];
        arms.extend(guarded.then_some(with_guard));
        ArmsPlan {
            arms,
            repeats: 6,
            duration_ns: 10_000_000_000,
            abort_age_ns: None,
            seed: 3,
            goal: Goal::of(Metric::Rate),
        }
    }

    fn run(plan: ArmsPlan, with_guard: f64) -> Finding {
        let mut design = Beside::new(plan).unwrap();
        let mut random = Random::new(5);
        let truths = [(1000.0, 0.0), (50.0, 200e6), (with_guard, 160e6)];
        while let Some(proposal) = design.propose(u64::MAX) {
            let (rate, bulk) = truths[proposal.arm];
            let truth = Truth { rate, bulk, noise: 0.02 };
            let outcome = Outcome::Measured(measures(&mut random, truth, proposal.duration_ns));
            design.observe(&Observation { proposal, outcome });
        }
        design.finding()
    }

    #[test]
    fn what_the_flood_takes_and_the_guard_gives_back() {
        let finding = run(plan(true), 920.0);
        let said = &finding.headline;
        let (taken, given) = said.split_once("; with the guard ").unwrap();
        let first = |text: &str, after: &str| {
            text.split(after).nth(1).unwrap().split(' ').next().unwrap().to_string()
        };
        let kept: f64 = first(taken, "keep ").parse().unwrap();
        let held: f64 = given.split(' ').next().unwrap().parse().unwrap();
        let bulk: f64 = first(given, "MB/s, ").parse().unwrap();
        assert!((kept - 5.0).abs() < 0.5 && (held - 92.0).abs() < 3.0 && (bulk - 80.0).abs() < 3.0, "{said}");
        let Recommendation::Keep { why } = &finding.recommendation else { panic!("{finding:?}") };
        assert!(why.contains("guard install"), "{why}");
        let alone = run(plan(false), 0.0);
        assert!(alone.headline.ends_with("of their rate alone."), "{}", alone.headline);
    }

    #[test]
    fn each_judgement_of_the_guard_has_its_sentence() {
        let few = ArmsPlan { repeats: 1, ..plan(true) };
        for (plan, with_guard, sentence) in [
            (plan(true), 40.0, "the rate is lower than without"),
            (plan(true), 50.0, "no effect of the guard"),
            (few, 920.0, "too little was measured"),
        ] {
            let finding = run(plan, with_guard);
            let Recommendation::Keep { why } = &finding.recommendation else { panic!("{finding:?}") };
            assert!(why.contains(sentence), "{with_guard}: {why}");
        }
    }

    #[test]
    fn other_arms_are_refused() {
        let mut swapped = plan(true);
        swapped.arms.swap(0, 1);
        assert!(Beside::new(swapped).is_err());
        let mut one = plan(false);
        one.arms.truncate(1);
        assert!(Beside::new(one).is_err());
        assert!(Beside::new(ArmsPlan { duration_ns: 0, ..plan(true) }).is_err());
    }
}
