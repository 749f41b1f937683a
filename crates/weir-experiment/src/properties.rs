//! What holds of every design, whatever comes of its trials.

use proptest::prelude::*;

use crate::design::Outcome;
use crate::goal::Goal;
use crate::replay::{build, replay};
use crate::synthetic::{self, Truth, experiment, run};
use crate::{AbPlan, Arm, ArmsPlan, Experiment, Observation, Proposal, SweepPlan};
use weir_core::stats::random::Random;

const SECOND_NS: u64 = 1_000_000_000;
const GOALS: [&str; 4] = [
    "max rate",
    "max bulk with rate >= 85% of idle",
    "min p99 with bulk >= 50% of found keep rate within 10%",
    "max 0.5*rate + 0.5*bulk",
];

/// The plan of a design with so many arms, blocks and seconds a trial.
fn plan(design: &str, arms: usize, blocks: u32, seconds: u64, goal: &Goal) -> serde_json::Value {
    let grid = |i: usize| {
        let setting = format!("vm.dirty_bytes={}MB", i + 1);
        synthetic::arm(&setting, &[&setting], true)
    };
    let (idle, found) = (synthetic::arm("idle", &[], false), synthetic::arm("baseline", &[], true));
    let all: Vec<Arm> = [idle, found.clone()].into_iter().chain((0..arms).map(grid)).collect();
    let (duration_ns, abort_age_ns, seed, goal) = (seconds * SECOND_NS, Some(SECOND_NS), 7, goal.clone());
    let plan = match design {
        "sweep" | "refined sweep" => {
            let knob = "vm.dirty_bytes".to_string();
            serde_json::to_value(SweepPlan {
                knob,
                arms: all,
                repeats: blocks,
                duration_ns,
                abort_age_ns,
                seed,
                goal,
                refine: design == "refined sweep",
                added: SweepPlan::ADDED.to_vec(),
            })
        }
        "ladder" => serde_json::to_value(ArmsPlan {
            arms: all,
            repeats: blocks,
            duration_ns,
            abort_age_ns,
            seed,
            goal,
        }),
        _ => {
            let (b, first_look) = (grid(0), (blocks > 2).then_some(2));
            let pairs = blocks;
            serde_json::to_value(AbPlan {
                a: found,
                b,
                pairs,
                duration_ns,
                abort_age_ns,
                first_look,
                seed,
                goal,
                claim: None,
            })
        }
    };
    plan.unwrap()
}

/// One of all the ways a trial can end.
fn outcome(kind: u8, random: &mut Random, duration_ns: u64) -> Outcome {
    let mut measures =
        |rate: f64, bulk: f64| synthetic::measures(random, Truth { rate, bulk, noise: 0.2 }, duration_ns);
    match kind % 8 {
        0 => Outcome::Failed { why: "refused".to_string() },
        1 => Outcome::Aborted { why: "stuck".to_string(), measures: measures(5.0, 1e6) },
        2 => Outcome::Aborted { why: "stuck at once".to_string(), measures: Default::default() },
        3 => Outcome::Measured(Default::default()),
        4 => Outcome::Measured(measures(0.0, 0.0)),
        5 => {
            let mut odd = measures(700.0, 2e8);
            odd.values.values_mut().for_each(|value| *value = f64::INFINITY);
            Outcome::Measured(odd)
        }
        6 => Outcome::Measured(measures(1e6, 1e9)),
        _ => Outcome::Measured(measures(700.0, 2e8)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// It ends, within the budget, on arms of its own; it states a finding at every moment; and its log leads to the
    /// same proposals again. (`run` checks arms, budget and end.)
    #[test]
    fn designs_end_within_their_budget_and_repeat_themselves(
        design in prop::sample::select(vec!["sweep", "refined sweep", "ladder", "ab"]),
        (arms, blocks, seconds) in (1usize..4, 1u32..7, 1u64..6),
        goal in prop::sample::select(GOALS.to_vec()),
        (budget_s, overhead_ns) in (0u64..300, 0u64..8_000_000_000),
        kinds in prop::collection::vec(any::<u8>(), 1..40),
        stop in any::<prop::sample::Index>(),
    ) {
        let goal: Goal = goal.parse().unwrap();
        let plan = plan(design, arms, blocks, seconds, &goal);
        let design = design.trim_start_matches("refined ");
        let mut made = build(design, &plan).unwrap();
        let mut random = Random::new(3);
        let mut kinds = kinds.iter().cycle();
        let trials = run(&mut *made, budget_s * SECOND_NS, overhead_ns, |proposal| {
            outcome(*kinds.next().unwrap(), &mut random, proposal.duration_ns)
        });
        prop_assert_eq!(made.remaining(), 0);
        let finding = made.finding();
        prop_assert!(!finding.headline.is_empty());
        prop_assert_eq!(finding.arms.len(), made.arms().len());
        let whole = experiment(design, &plan, goal, trials.clone());
        let stopped = stop.index(trials.len() + 1);
        let mut again = replay(&Experiment { trials: trials[..stopped].to_vec(), ..whole.clone() }).unwrap();
        let _ = again.finding();
        match trials.get(stopped) {
            Some(next) => prop_assert_eq!(again.propose(next.left_ns), Some(next.proposal().clone())),
            None => prop_assert_eq!(again.finding(), finding),
        }
    }
}

#[test]
fn a_stranger_to_the_design_changes_nothing() {
    let goal = Goal::default();
    let mut design = build("ab", &plan("ab", 1, 3, 2, &goal)).unwrap();
    let proposal = design.propose(u64::MAX).unwrap();
    let foreign = Proposal { arm: 7, ..proposal.clone() };
    let failed = Outcome::Failed { why: "refused".to_string() };
    design.observe(&Observation { proposal: foreign, outcome: failed });
    assert_eq!((design.propose(u64::MAX), design.remaining()), (Some(proposal), 6));
}
