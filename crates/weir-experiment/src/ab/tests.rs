//! A/B on noise of real runs: what does not differ must be left alone, what does must be found.

use std::collections::BTreeMap;

use super::*;
use crate::design::Outcome;
use crate::measures::{Measures, Second};
use crate::replay::replay;
use crate::simulate::{Noise, Weather};
use crate::synthetic::{self, experiment, run};
use weir_oltp::limits::synthetic::Scene;
use weir_oltp::limits::{Wait, judge};

const SECOND_NS: u64 = 1_000_000_000;
const QUIET: &str = include_str!("../../../../fixtures/noise/throttled-xfs-quiet.csv");
const BUSY: &str = include_str!("../../../../fixtures/noise/throttled-ext4-busy.csv");

fn plan(pairs: u32, seed: u64) -> AbPlan {
    AbPlan {
        a: synthetic::arm("none", &["sda/scheduler=none"], false),
        b: synthetic::arm("mq-deadline", &["sda/scheduler=mq-deadline"], false),
        pairs,
        duration_ns: 10 * SECOND_NS,
        abort_age_ns: None,
        first_look: None,
        seed,
        goal: Goal::of(Metric::Rate),
        claim: None,
    }
}

/// Recorded runs: rates second by second, over the mean of all.
fn recorded(csv: &str) -> Vec<Vec<f64>> {
    let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in csv.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let cells: Vec<&str> = line.split(',').collect();
        runs.entry(cells[0].parse().unwrap()).or_default().push(cells[2].parse().unwrap());
    }
    let all: Vec<f64> = runs.values().flatten().copied().collect();
    let mean = mean(&all);
    runs.into_values().map(|run| run.into_iter().map(|rate| rate / mean).collect()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1).max(1) as f64).sqrt()
}

/// Correlation of neighbours over all series, each around its own mean.
fn memory(series: &[Vec<f64>]) -> f64 {
    let (mut together, mut all) = (0.0, 0.0);
    for values in series {
        let mean = mean(values);
        together += values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
        all += values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    }
    (together / all).clamp(0.0, 0.9)
}

/// The noise of recorded runs: AR(1) within and between them, and seconds that lost half of the rate as bursts.
fn fitted(runs: &[Vec<f64>]) -> Noise {
    let logs: Vec<Vec<f64>> = runs.iter().map(|run| run.iter().map(|rate| rate.ln()).collect()).collect();
    let means: Vec<f64> = logs.iter().map(|logs| mean(logs)).collect();
    let within = mean(&logs.iter().map(|logs| deviation(logs)).collect::<Vec<_>>());
    let of_seconds = within.powi(2) / mean(&runs.iter().map(|run| run.len() as f64).collect::<Vec<_>>());
    let lost = |run: &&Vec<f64>| run.iter().any(|rate| *rate < 0.5 * mean(run));
    Noise {
        second: within,
        second_memory: memory(&logs),
        trial: (deviation(&means).powi(2) - of_seconds).max(0.0).sqrt(),
        trial_memory: memory(&[means]),
        burst: runs.iter().filter(lost).count() as f64 / runs.len() as f64,
        burst_leaves: 0.4,
        ..Noise::quiet()
    }
}

/// A trial of 750 operations per second, times what the noise and the arm leave of it.
fn trial(random: &mut Random, factors: &[f64], speed: f64) -> Outcome {
    let rates: Vec<f64> = factors.iter().map(|factor| 750.0 * speed * factor).collect();
    let rate = mean(&rates);
    let mut values = BTreeMap::from([(Metric::Rate, rate)]);
    for (metric, ms, noise) in
        [(Metric::P50, 10.0, 0.02), (Metric::P95, 25.0, 0.05), (Metric::P99, 60.0, 0.1)]
    {
        values.insert(metric, ms * 1e6 * 750.0 / rate * (noise * random.normal()).exp());
    }
    let second = |(i, rate): (usize, &f64)| Second {
        at_ns: i as u64 * SECOND_NS,
        len_ns: SECOND_NS,
        rate: *rate,
        p99_ns: values.get(&Metric::P99).map(|ns| *ns as u64),
        ..Second::default()
    };
    let seconds = rates.iter().enumerate().map(second).collect();
    Outcome::Measured(Measures { seconds, operations: (rate * 10.0) as u64, values })
}

/// Runs of an A/B whose B is `speed` times A, on noise as fitted or on the recorded runs in another order.
fn findings(csv: &str, fit: bool, speed: f64, pairs: u32, count: u64) -> Vec<Finding> {
    let runs = recorded(csv);
    let noise = fitted(&runs);
    let one = |seed: u64| {
        let mut random = Random::new(1000 + seed);
        let mut weather = Weather::new(noise, seed);
        let mut order: Vec<usize> = (0..runs.len()).collect();
        random.shuffle(&mut order);
        let mut made = 0;
        let mut ab = Ab::new(plan(pairs, seed)).unwrap();
        run(&mut ab, u64::MAX / 2, 5 * SECOND_NS, |proposal| {
            let factors = if fit {
                weather.seconds(15.0 * f64::from(made), 10)
            } else {
                runs[order[made as usize % order.len()]].clone()
            };
            made += 1;
            trial(&mut random, &factors, if proposal.arm == B { speed } else { 1.0 })
        });
        ab.finding()
    };
    (0..count).map(one).collect()
}

/// A difference in any figure, or by the goal.
fn claims(finding: &Finding) -> bool {
    finding.effects.iter().any(|e| matches!(e.judgement, Judgement::Better | Judgement::Worse))
        || !finding.headline.starts_with("no difference")
}

#[test]
fn what_is_the_same_shows_no_difference_in_95_of_100() {
    for (name, csv, fit) in
        [("quiet", QUIET, true), ("quiet", QUIET, false), ("busy", BUSY, true), ("busy", BUSY, false)]
    {
        let findings = findings(csv, fit, 1.0, 10, 400);
        let in_words = findings.iter().filter(|f| !f.headline.starts_with("no difference")).count();
        let in_any_figure = findings.iter().filter(|finding| claims(finding)).count();
        println!("A/A, {name}, fitted {fit}: of 400 {in_words} by the goal, {in_any_figure} in any figure");
        assert!(
            in_words <= 10 && in_any_figure <= 20,
            "{name}, fitted {fit}: {in_words}, {in_any_figure} of 400"
        );
    }
}

#[test]
fn a_loss_of_a_tenth_is_found_in_90_of_100_within_ten_pairs() {
    for (fit, pairs) in [(true, 10), (false, 10), (true, 5)] {
        let found = findings(QUIET, fit, 0.9, pairs, 100);
        let found = found
            .iter()
            .filter(|finding| finding.headline.contains("mq-deadline is worse than none: the rate -"));
        let found = found.count();
        println!("power, fitted {fit}, {pairs} pairs: {found} of 100");
        assert!(found >= 90, "fitted {fit}, {pairs} pairs: {found} of 100");
    }
    // On a busy machine it is not, and the data says so itself.
    let busy = findings(BUSY, true, 0.9, 10, 20);
    let honest =
        busy.iter().filter(|f| claims(f) || f.headline.contains("would have been found in four of five"));
    assert_eq!(honest.count(), 20, "{}", busy[0].headline);
}

#[test]
fn the_words_name_the_effect_and_the_least_that_would_have_shown() {
    let better = &findings(QUIET, true, 1.2, 10, 1)[0];
    assert!(
        better.headline.starts_with("mq-deadline is better than none: the rate +"),
        "{}",
        better.headline
    );
    let Recommendation::Change { arm: 1, settings, .. } = &better.recommendation else {
        panic!("{better:?}")
    };
    assert_eq!(settings[0].to_string(), "sda/scheduler=mq-deadline");
    let same = &findings(QUIET, true, 1.0, 10, 1)[0];
    assert!(same.headline.starts_with("no difference between none and mq-deadline"), "{}", same.headline);
    assert!(
        same.headline.contains(" % in the rate would have been found in four of five"),
        "{}",
        same.headline
    );
}

/// A goal's figure is one of several that are compared, and is claimed at their level.
#[test]
fn a_difference_of_the_stated_size_is_found_as_often_as_stated() {
    let made = |speed: f64, seed: u64| {
        let mut random = Random::new(seed);
        let mut ab = Ab::new(plan(8, seed)).unwrap();
        run(&mut ab, u64::MAX / 2, 0, |proposal| {
            let noise = (0.05 * random.normal()).exp();
            let mut outcome = trial(&mut random, &[noise; 10], if proposal.arm == B { speed } else { 1.0 });
            if let Outcome::Measured(measures) = &mut outcome {
                let latencies = measures.values.iter_mut().filter(|(metric, _)| metric.is_latency());
                latencies.for_each(|(_, ns)| *ns = 1e7 * (0.05 * random.normal()).exp());
            }
            outcome
        });
        ab
    };
    let stated: Vec<f64> = (0..100)
        .filter_map(|seed| {
            let headline = made(1.0, seed).finding().headline;
            let (_, rest) = headline.split_once("a difference of ")?;
            rest.split_once(" % in the rate")?.0.parse().ok()
        })
        .collect();
    let speed = 1.0 + mean(&stated) / 100.0;
    let found =
        (0..200).filter(|seed| made(speed, 1000 + seed).finding().headline.contains("is better")).count();
    println!("of {} stated, {speed}: found {found} of 200", stated.len());
    assert!(stated.len() > 80 && found >= 140, "{speed}: {found} of 200");
}

#[test]
fn figures_without_an_interval_are_not_said_to_cost_nothing() {
    let mut random = Random::new(6);
    let mut ab = Ab::new(plan(3, 6)).unwrap();
    run(&mut ab, u64::MAX / 2, 0, |proposal| {
        let factors: Vec<f64> = (0..10).map(|_| 1.0 + 0.01 * random.normal()).collect();
        let mut outcome = trial(&mut random, &factors, if proposal.arm == B { 1.3 } else { 1.0 });
        if let (B, Outcome::Measured(measures)) = (proposal.arm, &mut outcome) {
            measures.values.entry(Metric::P95).and_modify(|ns| *ns *= 2.6);
        }
        outcome
    });
    let finding = ab.finding();
    let Recommendation::Change { cost, .. } = &finding.recommendation else { panic!("{finding:?}") };
    assert_eq!(cost, "too little was measured to say its cost in p50 and p95");
    assert!(!finding.headline.contains("no cost in any other figure"), "{}", finding.headline);
}

#[test]
fn one_wild_pair_is_no_difference() {
    let mut random = Random::new(3);
    let mut ab = Ab::new(plan(10, 3)).unwrap();
    run(&mut ab, u64::MAX / 2, 0, |proposal| {
        let noise = 1.0 + 0.01 * random.normal();
        let wild = proposal.arm == B && proposal.block == 4;
        trial(&mut random, &[noise; 10], if wild { 0.05 } else { 1.0 })
    });
    let finding = ab.finding();
    assert!(finding.headline.starts_with("no difference"), "{}", finding.headline);
}

#[test]
fn a_first_look_ends_early_where_the_difference_is_plain_and_not_where_there_is_none() {
    let pairs_made = |speed: f64| {
        let mut random = Random::new(9);
        let mut ab = Ab::new(AbPlan { first_look: Some(5), ..plan(12, 9) }).unwrap();
        let trials = run(&mut ab, u64::MAX / 2, 0, |proposal| {
            let noise = 1.0 + 0.02 * random.normal();
            trial(&mut random, &[noise; 10], if proposal.arm == B { speed } else { 1.0 })
        });
        (trials, ab)
    };
    let (trials, ab) = pairs_made(0.7);
    assert_eq!((trials.len(), ab.remaining()), (10, 0));
    let finding = ab.finding();
    assert!(
        finding.remarks.iter().any(|r| r.contains("first look, after 5 of 12 pairs")),
        "{:?}",
        finding.remarks
    );
    assert!(
        finding.headline.contains("(99 %: ") && !finding.headline.contains("(95 %"),
        "{}",
        finding.headline
    );
    let log = experiment("ab", &ab.plan, ab.plan.goal.clone(), trials);
    assert_eq!(replay(&log).unwrap().propose(u64::MAX), None);
    let (trials, ab) = pairs_made(1.0);
    assert_eq!(trials.len(), 24);
    assert!(ab.finding().headline.contains("(96 %: "), "{}", ab.finding().headline);
}

#[test]
fn a_verdict_made_before_is_held_against_the_pairs() {
    let on_disk = Scene {
        server: (0.4, 0.5),
        waits: &[(Wait::Commit, 0.08)],
        idle: 0.05,
        syncs: 1.0,
        ..Scene::default()
    };
    let verdict = judge(&on_disk.evidence());
    let bound = verdict.bounds.faster_disk.unwrap();
    for (speed, confirms, words) in
        [(bound * 0.98, Some(true), "as the verdict says"), (bound * 1.5, Some(false), "AGAINST the verdict")]
    {
        let claim = Claim { change: Change::InMemory, verdict: verdict.clone() };
        let mut random = Random::new(3);
        let mut ab = Ab::new(AbPlan { claim: Some(Box::new(claim)), ..plan(6, 3) }).unwrap();
        assert_eq!(ab.finding().tested.unwrap().confirms, None);
        let trials = run(&mut ab, u64::MAX / 2, 0, |proposal| {
            let noise = 1.0 + 0.01 * random.normal();
            trial(&mut random, &[noise; 10], if proposal.arm == B { speed } else { 1.0 })
        });
        let finding = ab.finding();
        let tested = finding.tested.as_ref().unwrap();
        assert_eq!((tested.confirms, tested.pairs, tested.bound), (confirms, 6, Some(bound)), "{tested:?}");
        assert!(finding.remarks[0].contains(&verdict.headline), "{:?}", finding.remarks);
        assert!(finding.remarks[1].contains(words), "{:?}", finding.remarks);
        let in_table = finding.effects.iter().find(|effect| effect.metric == Metric::Rate).unwrap().ratio;
        let says_why = finding.remarks[1].contains("for the rate alone");
        assert_eq!(says_why, in_table != tested.ratio, "{in_table:?} {:?}", finding.remarks);
        assert!(finding.headline.contains("a faster disk could give that at most"), "{}", finding.headline);
        assert!(
            matches!(finding.recommendation, Recommendation::Keep { .. }),
            "{:?}",
            finding.recommendation
        );
        // The claim is in the plan: the log gives the same finding again.
        let log = experiment("ab", &ab.plan, ab.plan.goal.clone(), trials);
        assert_eq!(replay(&log).unwrap().finding(), finding);
    }
}

#[test]
fn looking_twice_makes_no_more_false_claims_than_once() {
    let claiming = (0..200u64).filter(|seed| {
        let mut random = Random::new(*seed);
        let mut ab = Ab::new(AbPlan { first_look: Some(5), ..plan(10, *seed) }).unwrap();
        run(&mut ab, u64::MAX / 2, 0, |_| {
            let noise = 1.0 + 0.03 * random.normal();
            trial(&mut random, &[noise; 10], 1.0)
        });
        claims(&ab.finding())
    });
    let claiming = claiming.count();
    println!("two looks: {claiming} of 200");
    assert!(claiming <= 14, "{claiming} of 200");
}

#[test]
fn pairs_run_a_b_b_a_and_the_budget_ends_with_whole_pairs() {
    let outcome = |_: &Proposal| Outcome::Failed { why: "not looked at".to_string() };
    let mut ab = Ab::new(plan(6, 1)).unwrap();
    let trials = run(&mut ab, 101 * SECOND_NS, 5 * SECOND_NS, outcome);
    let arms: Vec<usize> = trials.iter().map(|trial| trial.proposal().arm).collect();
    assert!(arms == [A, B, B, A, A, B] || arms == [B, A, A, B, B, A], "{arms:?}");
    assert_eq!(ab.finding().recommendation, Recommendation::None);
    assert!(Ab::new(plan(0, 1)).is_err());
}
