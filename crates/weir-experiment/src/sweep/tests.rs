//! Sweeps of made-up devices.

use super::*;
use crate::Workload;
use crate::design::Outcome;
use crate::finding::{Judgement, Recommendation};
use crate::log::TrialLog;
use crate::replay::replay;
use crate::simulate::{Device, Noise, Simulation, flooded};
use crate::synthetic::{Truth, arm, experiment, measures, run};

const SECOND_NS: u64 = 1_000_000_000;

/// Idle, baseline, and a grid of `vm.dirty_bytes`.
fn plan(repeats: u32, goal: Goal) -> SweepPlan {
    let mut arms = vec![arm("idle", &[], false), arm("baseline", &[], true)];
    arms.extend(["5MB", "15MB", "50MB", "200MB", "1GB"].map(|size| {
        let setting = format!("vm.dirty_bytes={size}");
        arm(&setting, &[&setting], true)
    }));
    let knob = "vm.dirty_bytes".to_string();
    SweepPlan {
        knob,
        arms,
        repeats,
        duration_ns: 10 * SECOND_NS,
        abort_age_ns: None,
        seed: 3,
        goal,
        refine: false,
        added: SweepPlan::ADDED.to_vec(),
    }
}

/// The device of scenario A: small limits spare the commits and cost bulk, large ones starve the commits.
fn evil_copy(arm: usize) -> Truth {
    let (rate, bulk) = [
        (758.0, 0.0),
        (33.7, 200e6),
        (730.0, 120e6),
        (703.0, 184e6),
        (420.0, 195e6),
        (150.0, 198e6),
        (40.0, 200e6),
    ][arm];
    Truth { rate, bulk, noise: 0.02 }
}

fn finding_of(plan: SweepPlan, truth: impl Fn(usize) -> Truth, seed: u64) -> Finding {
    let mut random = Random::new(seed);
    let mut sweep = Sweep::new(plan).unwrap();
    run(&mut sweep, u64::MAX / 2, SECOND_NS, |proposal| {
        Outcome::Measured(measures(&mut random, truth(proposal.arm), proposal.duration_ns))
    });
    sweep.finding()
}

#[test]
fn the_evil_copys_curve_has_its_knee_and_its_value_at_15_mb() {
    for (repeats, seed) in [(3, 1), (5, 2)] {
        let finding = finding_of(plan(repeats, SweepPlan::default_goal(true)), evil_copy, seed);
        let Recommendation::Change { arm, settings, .. } = &finding.recommendation else {
            panic!("{repeats}: {finding:#?}")
        };
        assert_eq!((*arm, settings[0].to_string().as_str()), (3, "vm.dirty_bytes=15000000"));
        let told = &finding.headline;
        assert!(
            told.starts_with(
                "vm.dirty_bytes = 15 MB brings synchronous commits under the flood from 4 % to 9"
            )
        );
        assert!(told.contains("% of idle (95 %: ") && told.contains("of the bulk rate"), "{told}");
        assert_eq!(finding.knee, Some(3), "{:?}", finding.front);
        assert!(finding.front.contains(&3) && finding.front.contains(&1), "{:?}", finding.front);
        let rate = finding.effects.iter().find(|e| e.from == 1 && e.to == 3 && e.metric == Metric::Rate);
        assert_eq!(rate.map(|e| e.judgement), Some(Judgement::Better));
        assert!(finding.arms[3].intervals[&Metric::Rate].0 < 703.0 * 1.1);
    }
}

#[test]
fn dominated_means_worse_on_both_axes() {
    // The arm of 5 MB is slower in both than that of 15 MB.
    let truth =
        |arm: usize| if arm == 2 { Truth { rate: 300.0, bulk: 100e6, noise: 0.02 } } else { evil_copy(arm) };
    let finding = finding_of(plan(5, SweepPlan::default_goal(true)), truth, 4);
    assert!(!finding.front.contains(&2) && finding.front.contains(&3), "{:?}", finding.front);
}

#[test]
fn nothing_helps_where_nothing_differs() {
    let same = |arm: usize| Truth { rate: 700.0, bulk: if arm == 0 { 0.0 } else { 200e6 }, noise: 0.03 };
    let mut changes = 0;
    for seed in 0..6 {
        for goal in [Goal::of(Metric::Rate), SweepPlan::default_goal(true)] {
            let finding = finding_of(plan(3, goal), same, seed);
            match finding.recommendation {
                Recommendation::Keep { .. } => {
                    assert!(finding.headline.starts_with("keep vm.dirty_bytes as it is"))
                }
                _ => changes += 1,
            }
        }
    }
    assert!(changes <= 1, "{changes} of 12");
}

#[test]
fn what_a_value_does_without_a_flood_is_said_even_where_the_one_found_is_kept() {
    let server = "mysql:root@/run/db.sock/";
    let arms = [
        arm("baseline (200)", &[], false),
        arm("100", &[&format!("{server}io=100")], false),
        arm("2000", &[&format!("{server}io_max=4000"), &format!("{server}io=2000")], false),
    ];
    let told = |rates: [f64; 3], noise: f64, repeats: u32| {
        let plan = SweepPlan {
            knob: "io".to_string(),
            arms: arms.to_vec(),
            ..plan(repeats, Goal::of(Metric::Rate))
        };
        finding_of(plan, |arm| Truth { rate: rates[arm], bulk: 0.0, noise }, 5).remarks.join(" ")
    };
    let shown = told([1200.0, 1210.0, 580.0], 0.03, 3);
    assert!(shown.contains("Influence on the rate against the baseline: 2000: -5"), "{shown}");
    let none = told([1200.0; 3], 0.02, 5);
    assert!(none.contains("No influence on the rate that this data can show"), "{none}");
    let coarse = told([1200.0; 3], 0.5, 5);
    assert!(coarse.contains("Too little was measured to say whether"), "{coarse}");
}

/// A sweep of two values without a flood, by rates and 99th percentiles over those of the baseline.
fn of_figures(goal: &str, factors: [(f64, f64); 3]) -> Finding {
    let arms = vec![
        arm("baseline", &[], false),
        arm("100", &["sda/nr_requests=100"], false),
        arm("200", &["sda/nr_requests=200"], false),
    ];
    let plan = SweepPlan { knob: "nr_requests".to_string(), arms, ..plan(5, goal.parse().unwrap()) };
    let mut random = Random::new(2);
    let mut sweep = Sweep::new(plan).unwrap();
    run(&mut sweep, u64::MAX / 2, SECOND_NS, |proposal| {
        let (rate, p99) = factors[proposal.arm];
        let truth = Truth { rate: 1000.0 * rate, bulk: 0.0, noise: 0.01 };
        let mut measures = measures(&mut random, truth, proposal.duration_ns);
        measures.values.insert(Metric::P99, 40e6 * p99 * (1.0 + 0.01 * random.normal()));
        Outcome::Measured(measures)
    });
    sweep.finding()
}

#[test]
fn what_a_value_costs_in_figures_beside_the_goal_is_named() {
    let finding = of_figures("max rate", [(1.0, 1.0), (1.2, 3.0), (0.9, 1.0)]);
    let Recommendation::Change { arm: 1, cost, .. } = &finding.recommendation else { panic!("{finding:?}") };
    assert!(cost.starts_with("costs p99 ") && finding.headline.ends_with(cost), "{}", finding.headline);
    let finding = of_figures("max rate", [(1.0, 1.0), (1.2, 1.0), (0.9, 1.0)]);
    assert!(finding.headline.ends_with("the data show no cost in any other figure"), "{}", finding.headline);
}

#[test]
fn a_better_value_that_breaks_a_guardrail_is_named_where_the_baseline_is_kept() {
    for factors in [[(1.0, 1.0), (1.2, 3.0), (0.9, 1.0)], [(1.0, 1.0), (1.2, 3.0), (1.001, 1.0)]] {
        let finding = of_figures("max rate keep p99 within 10%", factors);
        let Recommendation::Keep { why } = &finding.recommendation else { panic!("{finding:?}") };
        assert!(why.contains("is better than the baseline; 100 is, but p99: × "), "{why}");
    }
}

#[test]
fn what_no_value_reaches_is_said_with_the_best_that_was() {
    let goal: Goal = "max bulk with rate >= 99% of idle".parse().unwrap();
    let finding = finding_of(plan(3, goal), evil_copy, 5);
    let Recommendation::Infeasible { why } = finding.recommendation else { panic!("{finding:?}") };
    assert!(why.contains("vm.dirty_bytes = 5 MB comes nearest"), "{why}");
}

#[test]
fn one_repeat_recommends_nothing() {
    let finding = finding_of(plan(1, SweepPlan::default_goal(true)), evil_copy, 6);
    assert_eq!(finding.recommendation, Recommendation::None, "{}", finding.headline);
    assert!(finding.effects.iter().all(|effect| effect.judgement == Judgement::Unknown));
}

/// More repeats than were planned would end at the same time.
#[test]
fn where_the_time_was_short_more_time_is_advised() {
    for (budget_s, advised) in [(36_000, "brings"), (150, "1 of 3 repeats was made; raise --budget")] {
        let (sweep, ..) = on_a_loop_device(true, Noise::none(), budget_s);
        let finding = sweep.finding();
        assert!(finding.headline.contains(advised), "{budget_s}: {}", finding.headline);
        let told = finding.remarks.join("\n");
        let untried: Vec<&ArmSummary> = finding.arms.iter().filter(|arm| arm.trials == 0).collect();
        assert_eq!(untried.is_empty(), budget_s == 36_000, "{told}");
        assert_eq!(told.contains("no time was left to try"), !untried.is_empty(), "{told}");
        assert!(!told.contains("(0 trials)"), "{told}");
    }
}

#[test]
fn an_arm_that_was_aborted_is_not_recommended_and_counts_as_the_worst() {
    let mut random = Random::new(7);
    let mut sweep = Sweep::new(plan(5, SweepPlan::default_goal(true))).unwrap();
    run(&mut sweep, u64::MAX / 2, 0, |proposal| {
        let measures = measures(&mut random, evil_copy(proposal.arm), proposal.duration_ns);
        match proposal.arm {
            3 => Outcome::Aborted { why: "an operation was outstanding for 30 s".to_string(), measures },
            4 => Outcome::Failed { why: "the knob was refused".to_string() },
            _ => Outcome::Measured(measures),
        }
    });
    let finding = sweep.finding();
    assert!(matches!(finding.recommendation, Recommendation::Change { arm: 2, .. }), "{}", finding.headline);
    for spoilt in [3, 4] {
        let rate = finding.effects.iter().find(|e| e.from == 1 && e.to == spoilt && e.metric == Metric::Rate);
        assert_eq!(rate.unwrap().judgement, Judgement::Worse, "{rate:?}");
        assert_eq!((finding.arms[spoilt].trials, finding.arms[spoilt].spoilt), (0, 5));
    }
}

#[test]
fn a_short_budget_ends_with_whole_repeats() {
    let outcome = |_: &Proposal| Outcome::Failed { why: "not looked at".to_string() };
    // Seven trials of 10 s with 5 s of washout are 105 s; the first repeat teaches that.
    for (budget_s, repeats) in [(69, 0), (106, 1), (209, 1), (210, 2), (320, 3), (10_000, 5)] {
        let mut sweep = Sweep::new(plan(5, SweepPlan::default_goal(true))).unwrap();
        let trials = run(&mut sweep, budget_s * SECOND_NS, 5 * SECOND_NS, outcome);
        assert_eq!(trials.len(), repeats * 7, "{budget_s} s");
        assert_eq!(sweep.remaining(), 0);
        for block in trials.chunks(7) {
            let mut arms: Vec<usize> = block.iter().map(|trial| trial.proposal().arm).collect();
            arms.sort_unstable();
            assert_eq!(arms, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}

#[test]
fn a_log_leads_back_to_where_it_stopped_and_a_foreign_one_does_not() {
    let plan = plan(3, SweepPlan::default_goal(true));
    let mut random = Random::new(8);
    let mut whole = Sweep::new(plan.clone()).unwrap();
    let trials = run(&mut whole, 900 * SECOND_NS, SECOND_NS, |proposal| {
        Outcome::Measured(measures(&mut random, evil_copy(proposal.arm), proposal.duration_ns))
    });
    for stop in [0, 1, 7, 10, trials.len()] {
        let mut log = experiment("sweep", &plan, plan.goal.clone(), trials[..stop].to_vec());
        let mut design = replay(&log).unwrap();
        if let Some(next) = trials.get(stop) {
            assert_eq!(design.propose(next.left_ns).as_ref(), Some(next.proposal()));
        } else {
            assert_eq!(design.finding(), whole.finding());
        }
        if stop > 0 {
            log.trials[stop - 1].observation.proposal.arm = 99;
            let told = replay(&log).err().unwrap();
            assert!(told.contains(&format!("trial {stop} was arm 99")), "{told}");
        }
    }
    let told = replay(&experiment("dance", &plan, plan.goal.clone(), Vec::new())).err().unwrap();
    assert!(told.contains("`dance`"), "{told}");
    let told = replay(&experiment("sweep", &"nonsense", plan.goal.clone(), Vec::new())).err().unwrap();
    assert!(told.contains("not a plan of a sweep"), "{told}");
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let good = plan(3, SweepPlan::default_goal(true));
    let mut no_found = good.clone();
    no_found.arms.remove(1);
    let mut no_grid = good.clone();
    no_grid.arms.truncate(2);
    for (bad, word) in [
        (no_found, "baseline"),
        (no_grid, "at least one value"),
        (SweepPlan { repeats: 0, ..good.clone() }, "repeat"),
        (SweepPlan { duration_ns: 0, ..good.clone() }, "last"),
    ] {
        let told = Sweep::new(bad).err().unwrap();
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn the_knee_is_where_shares_bend_not_where_what_is_starved_does() {
    let measured = [
        (84e6, 677.0),
        (152e6, 672.0),
        (183e6, 552.0),
        (204e6, 425.0),
        (209e6, 75.0),
        (210e6, 34.0),
        (215e6, 3.0),
    ];
    let arms: Vec<ArmSummary> = measured
        .iter()
        .map(|(bulk, rate)| ArmSummary {
            values: [(Metric::Bulk, *bulk), (Metric::Rate, *rate)].into(),
            ..ArmSummary::default()
        })
        .collect();
    let front: Vec<usize> = (0..arms.len()).collect();
    let goal = SweepPlan::default_goal(true);
    for axes in [[Metric::Rate, Metric::Bulk], [Metric::Bulk, Metric::Rate]] {
        assert_eq!(front::knee(&goal, &arms, &front, &axes), Some(2), "{axes:?}");
    }
}

/// A sweep of a coarse grid on a throttled loop device, and the trials of it.
fn on_a_loop_device(refine: bool, noise: Noise, budget_s: u64) -> (Sweep, Simulation, Vec<TrialLog>) {
    let arm = |settings: &[&str]| flooded(settings.iter().map(|text| text.parse().unwrap()).collect(), 10);
    let mut arms = vec![arm(&[]), arm(&[])];
    arms[0].floods.clear();
    arms.extend(["4MB", "8MB", "32MB", "128MB", "1GB"].map(|size| arm(&[&format!("vm.dirty_bytes={size}")])));
    for arm in &mut arms {
        // Small limits hold up no write of the workload's own, so that there is one bound to find, not two.
        let Workload::Job(job) = &mut arm.workload else { unreachable!() };
        job.direct = true;
    }
    let plan = SweepPlan { arms, refine, ..plan(3, SweepPlan::default_goal(true)) };
    let mut simulation = Simulation::new(Device::throttled_loop(), noise, Vec::new(), 5);
    let mut sweep = Sweep::new(plan).unwrap();
    let trials = simulation.run(&mut sweep, budget_s * SECOND_NS);
    (sweep, simulation, trials)
}

fn picked(finding: &Finding) -> usize {
    match finding.recommendation {
        Recommendation::Change { arm, .. } => arm,
        _ => panic!("{}", finding.headline),
    }
}

#[test]
fn a_refined_sweep_finds_more_bulk_within_the_bound_than_its_coarse_grid() {
    for noise in [Noise::none(), Noise::quiet()] {
        let (coarse, ..) = on_a_loop_device(false, noise, 36_000);
        let (sweep, simulation, trials) = on_a_loop_device(true, noise, 36_000);
        let expected = |sweep: &Sweep| {
            let arm = &sweep.arms()[picked(&sweep.finding())];
            let (figures, idle) = (simulation.expected(arm), simulation.expected(&sweep.arms()[0]));
            (figures[&Metric::Rate] / idle[&Metric::Rate], figures[&Metric::Bulk])
        };
        let ((_, coarse_bulk), (share, bulk)) = (expected(&coarse), expected(&sweep));
        assert!(share >= 0.85 && bulk > coarse_bulk, "{share}, {bulk} against {coarse_bulk}");
        let added = sweep.arms().len() - 7;
        assert!((1..=SweepPlan::ADDED_MAX).contains(&added), "{added}");
        let finding = sweep.finding();
        let told = finding.remarks.join("\n");
        assert!(
            told.contains("added between, where the bound lies: ") && told.contains(" (3 trials)"),
            "{told}"
        );
        assert!(told.contains("128 MB (2 trials) and 1 GB (2 trials)"), "{told}");
        for arm in 7..sweep.arms().len() {
            assert_eq!(finding.arms[arm].trials, 3, "{}", finding.arms[arm].label);
            let beside = |trial: &&TrialLog| trial.proposal().arm == arm;
            let blocks: Vec<u32> = trials.iter().filter(beside).map(|trial| trial.proposal().block).collect();
            for anchor in 0..2 {
                let has = |block: &u32| {
                    trials.iter().any(|t| t.proposal().arm == anchor && t.proposal().block == *block)
                };
                assert!(blocks.iter().all(has), "{blocks:?}");
            }
        }
    }
}

#[test]
fn a_refined_sweeps_log_leads_back_to_where_it_stopped() {
    let (sweep, _, trials) = on_a_loop_device(true, Noise::quiet(), 36_000);
    let (short, ..) = on_a_loop_device(true, Noise::quiet(), 300);
    assert!(short.schedule.observations.len() < trials.len());
    let arms = sweep.plan.arms[..7].to_vec();
    let plan = SweepPlan { arms, ..sweep.plan.clone() };
    for stop in [0, 6, 7, 8, 15, 16, trials.len() - 1, trials.len()] {
        let log = experiment("sweep", &plan, plan.goal.clone(), trials[..stop].to_vec());
        let mut design = replay(&log).unwrap();
        match trials.get(stop) {
            Some(next) => assert_eq!(design.propose(next.left_ns).as_ref(), Some(next.proposal())),
            None => assert_eq!((design.arms(), design.finding()), (sweep.arms(), sweep.finding())),
        }
    }
}

#[test]
fn a_plan_that_does_not_say_how_many_values_are_added_leads_to_the_trials_it_led_to() {
    let (sweep, ..) = on_a_loop_device(true, Noise::none(), 36_000);
    let mut told = serde_json::to_value(&sweep.plan).unwrap();
    assert_eq!(told["added"], serde_json::json!(SweepPlan::ADDED));
    told.as_object_mut().unwrap().remove("added");
    let plan: SweepPlan = serde_json::from_value(told).unwrap();
    assert_eq!(plan, SweepPlan { added: vec![2, 1], ..sweep.plan });
}
