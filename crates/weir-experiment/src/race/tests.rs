//! Races on the simulator, where the truth is known.

use super::*;
use crate::design::Outcome;
use crate::finding::Recommendation;
use crate::log::TrialLog;
use crate::measures::Measures;
use crate::prune::{Facts, Space};
use crate::simulate::{self, Device, Noise, Simulation};

const MINUTE: u64 = 60_000_000_000;

fn plan(knobs: usize, goal: &str, seed: u64) -> RacePlan {
    let arm = simulate::flooded(Vec::new(), 10);
    let space = Space { dimensions: simulate::dimensions(knobs), left_out: Vec::new() };
    RacePlan::new(arm.workload, arm.floods, space, goal.parse().unwrap(), seed)
}

fn machine(device: Device, noise: Noise, seed: u64) -> Simulation {
    Simulation::new(device, noise, simulate::stock(), seed)
}

fn run(plan: RacePlan, machine: &mut Simulation, budget_ns: u64) -> (Race, Vec<TrialLog>) {
    let mut race = Race::new(plan).unwrap();
    let log = machine.run(&mut race, budget_ns);
    (race, log)
}

/// The score that an arm has in truth.
fn truth(machine: &Simulation, goal: &str, arm: &Arm) -> f64 {
    let goal: crate::Goal = goal.parse().unwrap();
    let found = simulate::flooded(Vec::new(), 10);
    goal.score(&machine.expected(arm), &machine.expected(&found)).unwrap()
}

/// The best score there is, by trying everything.
fn best(machine: &Simulation, goal: &str, dimensions: &[Dimension]) -> f64 {
    let mut random = Random::new(99);
    let mut best = (f64::MIN, vec![0.5; dimensions.len()]);
    for round in 0..6_000 {
        let point: Vec<f64> = if round < 2_000 {
            dimensions.iter().map(|_| random.uniform()).collect()
        } else {
            points::near(dimensions, &best.1, 0.05, &mut random)
        };
        let arm = simulate::flooded(space::settings(dimensions, &point), 10);
        let score = truth(machine, goal, &arm);
        if score > best.0 {
            best = (score, point);
        }
    }
    best.0
}

#[test]
fn the_winner_is_near_the_best_there_is_in_most_races() {
    for (device, knobs, minutes) in [(Device::throttled_loop(), 4, 30), (Device::array(), 6, 40)] {
        let best = best(&machine(device.clone(), Noise::none(), 0), "max rate", &simulate::dimensions(knobs));
        let mut near = 0;
        for seed in 0..10 {
            let mut machine = machine(device.clone(), Noise::quiet(), seed);
            let (race, _) = run(plan(knobs, "max rate", seed), &mut machine, minutes * MINUTE);
            let arm = race.recommended().unwrap_or_else(|| panic!("{knobs} knobs, seed {seed}: none"));
            near += usize::from(truth(&machine, "max rate", &race.arms[arm]) > best - 0.05);
        }
        assert!(near >= 7, "{knobs} knobs: {near} of 10 within 5 % of the best");
    }
}

#[test]
fn where_no_knob_matters_the_answer_is_to_keep() {
    let mut changed = 0;
    for seed in 0..200 {
        let noise = if seed % 2 == 0 { Noise::quiet() } else { Noise::shared() };
        let mut machine = machine(Device::indifferent(), noise, seed);
        let (race, _) = run(plan(4, "max rate", seed), &mut machine, 30 * MINUTE);
        assert!(matches!(race.step, Step::Done(End::Confirmed | End::NoneBetter)), "{:?}", race.step);
        changed += usize::from(race.recommended().is_some());
    }
    assert!(changed <= 10, "{changed} of 200 declared noise a win");
}

#[test]
fn the_budget_is_kept_and_six_knobs_fit_forty_minutes() {
    for (knobs, minutes) in [(6, 40), (6, 25), (4, 12), (6, 90), (4, 6), (4, 3), (4, 0)] {
        let mut machine = machine(Device::array(), Noise::shared(), 5);
        let (race, log) = run(plan(knobs, "max rate", 5), &mut machine, minutes * MINUTE);
        let used_ns = (machine.clock_s() * 1e9) as u64;
        assert!(used_ns <= minutes * MINUTE, "{knobs} knobs took {used_ns} of {minutes} min");
        let confirmed = log.iter().filter(|t| t.proposal().phase == Phase::Confirm).count();
        let expected = if minutes >= 12 { 20 } else { 0 };
        assert_eq!(confirmed, expected, "{knobs} knobs in {minutes} min: {}", race.finding().headline);
        if minutes < 12 {
            assert!(race.finding().headline.contains("too short"), "{}", race.finding().headline);
        }
        assert_eq!(race.remaining(), 0);
    }
}

#[test]
fn a_race_is_replayed_to_the_same_proposals_and_finding() {
    let plan = plan(6, "max rate keep bulk within 20%", 3);
    let (race, log) = run(plan.clone(), &mut machine(Device::array(), Noise::quiet(), 3), 40 * MINUTE);
    let read: RacePlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    let mut again = Race::new(read).unwrap();
    for trial in &log {
        assert_eq!(again.propose(trial.left_ns).as_ref(), Some(trial.proposal()));
        // Asked twice, it proposes the same.
        assert_eq!(again.propose(trial.left_ns).as_ref(), Some(trial.proposal()));
        again.observe(&trial.observation);
    }
    assert_eq!(again.propose(0), None);
    assert_eq!(again.finding().headline, race.finding().headline);
    assert_eq!(again.arms(), race.arms());
}

/// The race again from its log, not asked for what would come next.
fn replayed(plan: &RacePlan, log: &[TrialLog]) -> Race {
    let mut race = Race::new(plan.clone()).unwrap();
    for trial in log {
        assert_eq!(race.propose(trial.left_ns).as_ref(), Some(trial.proposal()));
        race.observe(&trial.observation);
    }
    race
}

#[test]
fn whatever_the_budget_a_log_leads_to_the_conclusion_that_its_race_came_to() {
    for (device, noise) in [(Device::array(), Noise::shared()), (Device::throttled_loop(), Noise::quiet())] {
        for seconds in [0, 90, 180, 300, 360, 480, 600, 720, 900, 2400] {
            let plan = plan(4, "max rate", seconds);
            let mut machine = machine(device.clone(), noise, seconds);
            let (race, log) = run(plan.clone(), &mut machine, seconds * 1_000_000_000);
            let mut again = replayed(&plan, &log);
            let left_ns = seconds * 1_000_000_000 - (machine.clock_s() * 1e9) as u64;
            assert_eq!(again.propose(left_ns), None);
            let (headline, told) = (race.finding().headline, again.finding().headline);
            assert_eq!(told, headline, "{seconds} s, {} trials", log.len());
            assert!(!headline.contains("not finished"), "{headline}");
        }
    }
}

#[test]
fn a_log_cut_anywhere_says_what_is_missing_and_a_whole_confirmation_its_verdict() {
    let plan = plan(4, "max rate", 3);
    let (race, log) = run(plan.clone(), &mut machine(Device::array(), Noise::quiet(), 3), 30 * MINUTE);
    let confirming = log.iter().filter(|trial| trial.proposal().phase == Phase::Confirm).count();
    assert_eq!(confirming, 20);
    for made in (0..log.len()).rev().step_by(5) {
        let headline = replayed(&plan, &log[..made]).finding().headline;
        let pairs = made.saturating_sub(log.len() - confirming) / 2;
        let told = match pairs {
            0 => "not finished".to_string(),
            pairs => format!("only {pairs} of the 10 pairs"),
        };
        let none_yet = pairs == 0 && headline.contains("none of the 10 pairs");
        assert!(headline.contains(&told) || none_yet, "after {made} trials: {headline}");
        assert!(
            pairs < 5 || headline.contains("in them it is by the goal"),
            "after {made} trials: {headline}"
        );
    }
    assert_eq!(replayed(&plan, &log).finding().headline, race.finding().headline);
}

#[test]
fn waits_that_grow_cost_pairs_but_never_the_answer() {
    // (phase from which on each trial takes so many seconds, pairs that there is time for)
    let cases = [
        (Phase::Race, 90, 0..10),
        (Phase::Confirm, 30, 1..10),
        (Phase::Confirm, 200, 0..4),
        (Phase::Confirm, 12, 10..11),
    ];
    for (slow_from, seconds, expected) in cases {
        let (mut race, mut machine) =
            (Race::new(plan(4, "max rate", 2)).unwrap(), machine(Device::array(), Noise::quiet(), 2));
        let mut left_ns = 25 * MINUTE;
        while let Some(proposal) = race.propose(left_ns) {
            let takes_s = if proposal.phase >= slow_from { seconds } else { 12 };
            let outcome = machine.trial(&race.arms()[proposal.arm].clone(), &proposal);
            race.observe(&Observation { proposal, outcome });
            left_ns = left_ns.saturating_sub(takes_s * 1_000_000_000);
        }
        let (finding, case) = (race.finding(), format!("{slow_from:?} takes {seconds} s"));
        assert!(matches!(race.step, Step::Done(_)), "{case}: {:?}", race.step);
        let pairs = race.choice().map_or(0, |arm| race.met(FOUND, arm).pairs);
        assert!(expected.contains(&pairs), "{case}: {pairs} pairs, {}", finding.headline);
        let changes = matches!(finding.recommendation, Recommendation::Change { .. });
        assert_eq!(changes, pairs == 10, "{case}: {}", finding.headline);
        assert!(
            changes
                || finding.headline.contains("pairs that were to confirm")
                || finding.headline.contains("too short"),
            "{case}: {}",
            finding.headline
        );
    }
}

#[test]
fn the_order_within_pairs_alternates_and_each_block_runs_each_arm_once() {
    let (race, log) =
        run(plan(4, "max rate", 1), &mut machine(Device::array(), Noise::quiet(), 1), 30 * MINUTE);
    let arms: Vec<usize> =
        log.iter().filter(|t| t.proposal().phase == Phase::Confirm).map(|t| t.proposal().arm).collect();
    let winner = race.winner.unwrap();
    assert_eq!(arms[..8], [0, winner, winner, 0, 0, winner, winner, 0]);
    let mut blocks: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for trial in log.iter().filter(|t| t.proposal().phase == Phase::Race) {
        blocks.entry(trial.proposal().block).or_default().push(trial.proposal().arm);
    }
    assert!(blocks.len() >= 5);
    for mut arms in blocks.into_values() {
        let count = arms.len();
        arms.sort_unstable();
        arms.dedup();
        assert_eq!(arms.len(), count);
    }
}

#[test]
fn spoilt_trials_are_the_worst_and_never_missing() {
    // Whatever has a scheduler but `none` fails; whatever has small requests is aborted.
    let mut machine = machine(Device::array(), Noise::quiet(), 4);
    let mut race = Race::new(plan(4, "max rate", 4)).unwrap();
    let mut left_ns = 30 * MINUTE;
    while let Some(proposal) = race.propose(left_ns) {
        let arm = race.arms()[proposal.arm].clone();
        let number = |name: &str| arm.settings.iter().find(|s| s.knob.setting == name)?.value.number();
        let scheduled =
            arm.settings.iter().any(|s| s.knob.setting == "scheduler" && s.written_value() != "none");
        let outcome = match machine.trial(&arm, &proposal) {
            _ if scheduled => Outcome::Failed { why: "Invalid argument".to_string() },
            Outcome::Measured(measures) if number("max_sectors_kb").is_some_and(|kb| kb < 256) => {
                Outcome::Aborted { why: "too old".to_string(), measures }
            }
            other => other,
        };
        race.observe(&Observation { proposal, outcome });
        left_ns -= 12_000_000_000;
    }
    let winner = &race.arms[race.winner.unwrap()];
    assert!(winner.label.contains("scheduler=none"), "{}", winner.label);
    assert!(race.finding().remarks.iter().any(|r| r.contains("aborted or failed")));
}

#[test]
fn bounds_decide_and_may_be_out_of_reach() {
    let run = |goal: &str| {
        let mut machine = machine(Device::throttled_loop(), Noise::quiet(), 8);
        let (race, _) = run(plan(4, goal, 8), &mut machine, 40 * MINUTE);
        (race.finding(), race, machine)
    };
    let (finding, race, machine) = run("max bulk with rate >= 60% of idle");
    let Recommendation::Change { arm, cost, .. } = &finding.recommendation else {
        panic!("{}", finding.headline)
    };
    let rate = machine.expected(&race.arms[*arm])[&Metric::Rate];
    assert!(rate > 0.57 * 1520.0, "{rate}");
    assert!(finding.headline.contains("it keeps the bounds") && cost.contains("rate"), "{finding:?}");
    assert_eq!(race.arms[1].label, "idle");
    let (finding, ..) = run("max rate with p99 <= 10us");
    assert!(matches!(finding.recommendation, Recommendation::Infeasible { .. }), "{}", finding.headline);
    assert!(finding.headline.contains("p99 is"), "{}", finding.headline);
    let (finding, ..) = run("max rate keep bulk within 0.1%");
    assert!(!matches!(finding.recommendation, Recommendation::Change { .. }), "{}", finding.headline);
}

/// The arm of the user's candidate and the race, in so many minutes.
fn with_candidate(candidate: &str, seed: u64, minutes: u64) -> (usize, Race, Simulation) {
    let mut plan = plan(4, "max rate", seed);
    plan.given = vec![vec![candidate.parse().unwrap()]];
    let mut machine = machine(Device::throttled_loop(), Noise::quiet(), seed);
    let (race, _) = run(plan, &mut machine, minutes * MINUTE);
    let named = race.given().next().unwrap();
    (named, race, machine)
}

#[test]
fn a_candidate_of_the_users_is_only_given_up_for_what_fresh_data_show_to_be_better() {
    let (mut kept, mut better) = (0, 0);
    for seed in 0..12 {
        let (named, race, machine) = with_candidate("vm.dirty_bytes=15MB", seed, 30);
        let remarks = race.finding().remarks;
        assert!(remarks.iter().any(|r| r.contains("which you named")), "{remarks:?}");
        let confirmed = race.seen.iter().filter(|seen| seen.proposal.phase == Phase::Confirm).count();
        assert_eq!(confirmed, if race.winner == Some(named) { 20 } else { 30 });
        let of = |arm: usize| truth(&machine, "max rate", &race.arms[arm]);
        let chosen = race.recommended().unwrap();
        assert!(of(chosen) > of(named) - 0.02, "seed {seed}: {} against {}", of(chosen), of(named));
        kept += usize::from(chosen == named);
        better += usize::from(of(chosen) > of(named));
    }
    assert!(kept > 0 && kept + better == 12, "{kept} kept, {better} better");
}

/// What weighs in the race so that limits are kept is no distance between figures.
#[test]
fn a_candidate_that_breaks_a_limit_stands_where_its_figures_do() {
    let mut plan = plan(6, "max bulk with rate >= 60% of idle", 8);
    plan.given = vec![vec!["vm.dirty_bytes=900MB".parse().unwrap()]];
    let (race, _) = run(plan, &mut machine(Device::throttled_loop(), Noise::quiet(), 8), 60 * MINUTE);
    let remarks = race.finding().remarks;
    let named = remarks.iter().find(|remark| remark.contains("which you named")).unwrap();
    // Large limits give the flood all that the device has, as the winner does or nearly.
    let told: f64 = named.split(" was ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(told < 20.0, "{named}");
    assert!(named.contains(", but rate is "), "{named}");
    let screening = remarks.iter().find(|remark| remark.starts_with("Screening: ")).unwrap();
    assert!(screening.contains(" times what noise alone shows)") && !screening.contains('×'), "{screening}");
}

#[test]
fn a_poor_candidate_of_the_users_does_not_win() {
    for seed in 0..4 {
        let (named, race, _) = with_candidate("vm.dirty_bytes=900MB", seed, 30);
        assert!(race.recommended().is_some_and(|arm| arm != named), "{}", race.finding().headline);
    }
}

#[test]
fn each_place_in_a_turn_of_three_is_taken_alike() {
    let (named, race, _) = (0..20)
        .map(|seed| with_candidate("vm.dirty_bytes=60MB", seed, 30))
        .find(|(named, race, _)| race.named == Some(*named))
        .unwrap();
    let turns: Vec<usize> = race
        .seen
        .iter()
        .filter(|seen| seen.proposal.phase == Phase::Confirm)
        .map(|seen| seen.proposal.arm)
        .collect();
    let first = |arm: usize| turns.chunks(3).take(6).filter(|turn| turn[0] == arm).count();
    assert_eq!([first(FOUND), first(named), first(race.winner.unwrap())], [2, 2, 2], "{turns:?}");
    for turn in race.seen.iter().filter(|s| s.proposal.phase == Phase::Confirm).collect::<Vec<_>>().chunks(3)
    {
        assert!(turn.iter().all(|seen| seen.proposal.block == turn[0].proposal.block));
    }
}

/// A race whose machine was slow while it was idle at the start, and a plan of an earlier version of the same.
fn slow_when_first_idle(seed: u64) -> [(Race, Vec<usize>); 2] {
    [true, false].map(|idle_in_turn| {
        let mut plan = serde_json::to_value(plan(4, "max bulk with rate >= 60% of idle", seed)).unwrap();
        if !idle_in_turn {
            plan.as_object_mut().unwrap().remove("idle_in_turn");
        }
        let mut race = Race::new(serde_json::from_value(plan).unwrap()).unwrap();
        let mut machine = machine(Device::throttled_loop(), Noise::quiet(), seed);
        let (mut left_ns, mut order) = (40 * MINUTE, Vec::new());
        while let Some(proposal) = race.propose(left_ns) {
            let mut outcome = machine.trial(&race.arms()[proposal.arm].clone(), &proposal);
            if let (Outcome::Measured(measures), Phase::Measure, 1) =
                (&mut outcome, proposal.phase, proposal.arm)
            {
                measures.values.entry(Metric::Rate).and_modify(|rate| *rate *= 0.3);
            }
            order.push(proposal.arm);
            race.observe(&Observation { proposal, outcome });
            left_ns -= 12_000_000_000;
        }
        (race, order)
    })
}

#[test]
fn what_refers_to_the_idle_machine_is_judged_by_that_of_the_same_turns() {
    // Held against the slow trials alone, too low a rate passes; the idle machine of the turns shows it.
    let truth = machine(Device::throttled_loop(), Noise::none(), 0);
    let too_low = |race: &Race| {
        let rate = |arm: usize| truth.expected(&race.arms[arm])[&Metric::Rate];
        race.recommended().is_some_and(|arm| rate(arm) < 0.57 * rate(1))
    };
    let races: Vec<_> = (0..6).map(slow_when_first_idle).collect();
    assert_eq!(races.iter().filter(|[(race, _), _]| too_low(race)).count(), 0);
    assert!(races.iter().any(|[_, (old, _)]| too_low(old)));
    let shown =
        |[(race, _), _]: &[(Race, Vec<usize>); 2]| race.finding().headline.contains("on fresh data rate is ");
    assert!(races.iter().any(shown));
    for [(race, order), (old, old_order)] in &races {
        assert_eq!((&order[..4], &old_order[..3]), (&[1, FOUND, FOUND, 1][..], &[1, FOUND, FOUND][..]));
        let fresh = |race: &Race| {
            let confirming = race.seen.iter().filter(|seen| seen.proposal.phase == Phase::Confirm);
            confirming.map(|seen| (seen.proposal.block, seen.proposal.arm)).collect::<Vec<_>>()
        };
        assert!(fresh(old).len() == 20 && fresh(old).iter().all(|(_, arm)| *arm != 1));
        let (turns, winner) = (fresh(race), race.winner.unwrap());
        for turn in turns.chunks(3) {
            let mut arms: Vec<usize> = turn.iter().map(|(_, arm)| *arm).collect();
            arms.sort_unstable();
            assert!(
                arms == [FOUND, 1, winner] && turn.iter().all(|(block, _)| *block == turn[0].0),
                "{turns:?}"
            );
        }
        let first = |arm: usize| turns.chunks(3).take(6).filter(|turn| turn[0].1 == arm).count();
        assert_eq!((turns.len(), [first(FOUND), first(winner), first(1)]), (30, [2, 2, 2]), "{turns:?}");
    }
}

#[test]
fn a_drift_that_the_idle_machine_shares_leaves_a_bound_certain() {
    let fresh = |arm: usize, block: u32, rate: f64| Observation {
        proposal: Proposal { arm, block, phase: Phase::Confirm, duration_ns: 1, abort_age_ns: None },
        outcome: Outcome::Measured(Measures {
            values: [(Metric::Rate, rate)].into(),
            seconds: Vec::new(),
            operations: 1,
        }),
    };
    // From turn to turn the machine is up to twice as fast; the winner has 66 % of idle in each.
    let turn = |block: u32| {
        let speed = 1.0 + f64::from(block % 4) / 3.0;
        let noise = 1.0 + f64::from(block % 3) / 100.0;
        [(FOUND, 20.0), (1, 1_000.0), (2, 660.0 * noise)].map(|(arm, rate)| fresh(arm, block, rate * speed))
    };
    let trials: Vec<Observation> = (0..10).flat_map(turn).collect();
    let trials: Vec<&Observation> = trials.iter().collect();
    let goal = "max rate with rate >= 60% of idle".parse().unwrap();
    let before: Figures = [(Metric::Rate, 1_450.0)].into();
    let uncertain = |arm: Option<usize>| {
        let idle = Idle { arm, before: Some(&before) };
        Confirmation::of(&trials, (FOUND, 2), idle, &goal, 1).uncertain
    };
    assert_eq!((uncertain(Some(1)), uncertain(None).len()), (Vec::new(), 1));
}

#[test]
fn a_machine_that_gives_no_figures_and_plans_that_are_none() {
    let mut race = Race::new(plan(4, "max rate", 1)).unwrap();
    while let Some(proposal) = race.propose(60 * MINUTE) {
        race.observe(&Observation { proposal, outcome: Outcome::Failed { why: "no such file".into() } });
    }
    assert!(race.finding().headline.contains("gave no figures") && race.seen.len() == BASELINE);
    let mut unflooded = plan(4, "max rate with rate >= 50% of idle", 1);
    unflooded.floods.clear();
    let facts = Facts { write_bps: 1e8, dirty_threshold: 1 << 30, background_threshold: 1 << 29 };
    let space = crate::prune::space(&[], &facts);
    let nothing = RacePlan { dimensions: space.dimensions, ..plan(4, "max rate", 1) };
    for (plan, why) in [(unflooded, "idle machine"), (nothing, "needs a knob")] {
        assert!(Race::new(plan).unwrap_err().contains(why));
    }
}
