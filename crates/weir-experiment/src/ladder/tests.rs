//! Ladders of made-up devices; the first is the one that sysbench's asynchronous p95 has misled people on.

use super::*;
use crate::arm::Workload;
use crate::design::Outcome;
use crate::goal::Goal;
use crate::replay::replay;
use crate::synthetic::{self, Truth, experiment, run};
use weir_core::workload::spec::EngineKind;

const SECOND_NS: u64 = 1_000_000_000;

/// Label, depth (0: synchronous), threads, operations per second, true p95 in ms, p95 of submitting in ms.
const STEPS: [(&str, u32, u32, f64, f64, f64); 6] = [
    ("dsync", 0, 2, 224.0, 33.1, 0.0),
    ("direct", 0, 2, 247.0, 29.2, 0.0),
    ("direct + async", 128, 2, 780.0, 640.0, 0.04),
    ("backlog 256", 256, 2, 843.0, 1150.0, 0.04),
    ("backlog 2", 2, 2, 244.0, 48.0, 26.2),
    ("16 threads", 256, 16, 943.0, 9000.0, 0.06),
];

fn plan(repeats: u32) -> ArmsPlan {
    let arms = STEPS.iter().map(|(label, depth, threads, ..)| {
        let mut arm = synthetic::arm(label, &[], false);
        if let Workload::Job(job) = &mut arm.workload {
            job.threads = *threads;
            (job.engine, job.depth) =
                if *depth == 0 { (EngineKind::Psync, 1) } else { (EngineKind::Libaio, *depth) };
        }
        arm
    });
    let arms = arms.collect();
    ArmsPlan {
        arms,
        repeats,
        duration_ns: 10 * SECOND_NS,
        abort_age_ns: None,
        seed: 1,
        goal: Goal::of(Metric::Rate),
    }
}

fn outcome(random: &mut Random, proposal: &Proposal, steps: &[(&str, u32, u32, f64, f64, f64)]) -> Outcome {
    let (_, depth, threads, rate, p95, submit) = steps[proposal.arm];
    let truth = Truth { rate, bulk: 0.0, noise: 0.01 };
    let mut measures = synthetic::measures(random, truth, proposal.duration_ns);
    let rate = measures.values[&Metric::Rate];
    let in_flight = f64::from(depth.max(1) * threads);
    measures.values.insert(Metric::Mean, in_flight / rate * 1e9);
    for (metric, share) in [(Metric::P50, 0.5), (Metric::P95, 1.0), (Metric::P99, 2.0)] {
        measures.values.insert(metric, p95 * 1e6 * share * steps[proposal.arm].3 / rate);
    }
    if depth > 0 {
        measures.values.insert(Metric::SubmitP95, submit * 1e6);
    }
    Outcome::Measured(measures)
}

fn finding(seed: u64, repeats: u32, steps: &[(&str, u32, u32, f64, f64, f64)]) -> Finding {
    let mut random = Random::new(seed);
    let mut ladder = Ladder::new(plan(repeats)).unwrap();
    run(&mut ladder, u64::MAX / 2, SECOND_NS, |proposal| outcome(&mut random, proposal, steps));
    ladder.finding()
}

#[test]
fn the_gain_in_p95_of_asynchronous_steps_is_an_artefact_and_is_called_one() {
    let finding = finding(5, 5, &STEPS);
    let told = finding.remarks.join("\n");
    for sentence in [
        "direct: throughput: 245/s, better, +9.7 % (95 %: +",
        "direct + async: the gain in p95 is an artefact: sysbench's asynchronous p95 (0.04 ms) is the cost of \
         submitting; operations really take 637 ms (p95)",
        "direct + async: 256 in flight at 783/s mean 327 ms each by Little's law; measured on average: 327 ms",
        "backlog 256: sysbench would print 0.04 ms for the p95",
        "backlog 2: the loss in p95 is an artefact",
    ] {
        assert!(told.contains(sentence), "no `{sentence}` in\n{told}");
    }
    assert!(!told.contains("direct: the gain"), "a synchronous p95 is a latency\n{told}");
    assert!(finding.headline.contains("it fell with backlog 2"), "{}", finding.headline);
    let Recommendation::Change { arm, cost, .. } = &finding.recommendation else { panic!("{finding:?}") };
    assert_eq!(*arm, 5);
    assert!(cost.contains("p95 goes from 33.2 ms to 8.99 s"), "{cost}");
}

#[test]
fn each_step_is_judged_against_the_one_before() {
    let finding = finding(5, 5, &STEPS);
    let judged = |to: usize, metric: Metric| {
        finding
            .effects
            .iter()
            .find(|e| e.from + 1 == to && e.to == to && e.metric == metric)
            .unwrap()
            .judgement
    };
    let rates: Vec<Judgement> = (1..6).map(|to| judged(to, Metric::Rate)).collect();
    let (up, down) = (Judgement::Better, Judgement::Worse);
    assert_eq!(rates, [up, up, up, down, up]);
    assert_eq!(judged(2, Metric::P95), down);
    assert_eq!(judged(4, Metric::P95), up);
}

#[test]
fn steps_that_change_nothing_are_said_to() {
    let same = STEPS.map(|step| (step.0, 0, 2, 500.0, 10.0, 0.0));
    let quiet = (0..20).filter(|seed| {
        let finding = finding(*seed, 5, &same);
        finding.headline.starts_with("none of 5 steps changed the rate")
            && matches!(finding.recommendation, Recommendation::Keep { .. })
            && finding.effects.iter().all(|effect| effect.judgement == Judgement::NoDifference)
    });
    let quiet = quiet.count();
    assert!(quiet >= 18, "{quiet} of 20");
}

#[test]
fn the_ladder_is_climbed_up_and_down_in_turn_and_goes_on_from_its_log() {
    let plan = plan(4);
    let mut random = Random::new(6);
    let mut ladder = Ladder::new(plan.clone()).unwrap();
    let trials = run(&mut ladder, 1_000 * SECOND_NS, SECOND_NS, |p| outcome(&mut random, p, &STEPS));
    let arms: Vec<usize> = trials.iter().map(|trial| trial.proposal().arm).collect();
    let up: Vec<usize> = (0..6).collect();
    let down: Vec<usize> = (0..6).rev().collect();
    let first_up = arms[0] == 0;
    for (block, arms) in arms.chunks(6).enumerate() {
        assert_eq!(arms, if first_up == (block % 2 == 0) { &up[..] } else { &down[..] });
    }
    let stopped = experiment("ladder", &plan, plan.goal.clone(), trials[..9].to_vec());
    assert_eq!(replay(&stopped).unwrap().propose(trials[9].left_ns).as_ref(), Some(trials[9].proposal()));
    let whole = experiment("ladder", &plan, plan.goal.clone(), trials);
    assert_eq!(replay(&whole).unwrap().finding(), ladder.finding());
    assert!(Ladder::new(ArmsPlan { arms: plan.arms[..1].to_vec(), ..plan }).is_err());
}

#[test]
fn a_headline_agrees_with_what_is_said_of_its_steps() {
    let step = |label, rate: f64, p95: f64| (label, 0, 2, rate, p95, 0.0);
    let of = |goal: &str, steps: [(&'static str, u32, u32, f64, f64, f64); 6]| {
        let mut random = Random::new(4);
        let mut ladder = Ladder::new(ArmsPlan { goal: goal.parse().unwrap(), ..plan(12) }).unwrap();
        run(&mut ladder, u64::MAX / 2, SECOND_NS, |proposal| outcome(&mut random, proposal, &steps));
        ladder.finding()
    };
    let same = ["c", "d", "e", "f"].map(|label| step(label, 520.0, 10.0));
    let with = |b| [step("a", 500.0, 10.0), b, same[0], same[1], same[2], same[3]];
    let finding = of("max rate", with(step("b", 520.0, 10.0)));
    assert!(finding.headline.contains("the rate rose with direct (+"), "{}", finding.headline);
    let Recommendation::Keep { why } = &finding.recommendation else { panic!("{finding:?}") };
    assert!(why.contains("the best step gains less than 5 %, so dsync is as good"), "{why}");

    let worse = |label| step(label, 400.0, 10.0);
    let steps =
        [step("a", 500.0, 10.0), step("b", 700.0, 30.0), worse("c"), worse("d"), worse("e"), worse("f")];
    let finding = of("max rate keep p95 within 10%", steps);
    let Recommendation::Keep { why } = &finding.recommendation else { panic!("{finding:?}") };
    assert!(why.contains("direct is better than dsync, but p95: × 3.0"), "{why}");
}
