//! Ways to search for settings, compared on simulated devices whose best settings are known: the race, a plain grid and
//! random search, each with the same time. Grid and random search name the best mean they saw, as people do.
//!
//!     tune_search [REPETITIONS] [MINUTES]
use std::collections::BTreeMap;

use weir_core::stats::random::Random;
use weir_experiment::race::{Race, RacePlan};
use weir_experiment::simulate::{Device, Noise, Simulation, dimensions, flooded, stock};
use weir_experiment::space::{Dimension, settings};
use weir_experiment::{Arm, Design, Goal, Metric, Phase, Proposal};
use weir_knobs::Setting;

/// Measured time of a trial, s.
const TRIAL_S: f64 = 10.0;
/// A candidate whose mean is this much above that of the baseline is declared a win by those who do not confirm.
const BAR: f64 = 1.05;
/// As near to the best known as this is near.
const NEAR: f64 = 0.05;

/// A place to search, with the answer.
struct Case {
    name: &'static str,
    device: Device,
    noise: Noise,
    dimensions: Vec<Dimension>,
}

/// What a search recommends: an arm, or none.
type Search = fn(&Case, &mut Simulation, u64, f64) -> Option<Arm>;

const SEARCHES: [(&str, Search); 3] = [("race", race), ("grid", grid), ("random", random)];

fn main() {
    let arguments: Vec<f64> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    let repetitions = arguments.first().map_or(200, |n| *n as u64);
    let minutes = arguments.get(1).copied().unwrap_or(40.0);
    println!(
        "{minutes:.0} min each, {repetitions} repetitions; goal: max rate (commits/s of 10 threads beside a flood)"
    );
    println!("{:34} {:8} {:>13} {:>13} {:>12}", "device", "search", "within 5 %", "median loss", "min used");
    for case in cases() {
        for (name, search) in SEARCHES {
            row(&case, name, search, repetitions, minutes);
        }
    }
}

fn cases() -> Vec<Case> {
    let case = |name, device, noise, knobs| Case { name, device, noise, dimensions: dimensions(knobs) };
    vec![
        case("throttled loop, quiet, 4 knobs", Device::throttled_loop(), Noise::quiet(), 4),
        case("throttled loop, shared, 4 knobs", Device::throttled_loop(), Noise::shared(), 4),
        case("array, quiet, 6 knobs", Device::array(), Noise::quiet(), 6),
        case("array, shared, 6 knobs", Device::array(), Noise::shared(), 6),
        case("A/A: no knob matters, quiet", Device::indifferent(), Noise::quiet(), 4),
        case("A/A: no knob matters, shared", Device::indifferent(), Noise::shared(), 4),
    ]
}

fn row(case: &Case, name: &str, search: Search, repetitions: u64, minutes: f64) {
    let best = best(case);
    let (mut near, mut wins, mut used_s, mut losses) = (0, 0, 0f64, Vec::new());
    for seed in 0..repetitions {
        let mut machine = Simulation::new(case.device.clone(), case.noise, stock(), seed);
        let recommended = search(case, &mut machine, seed, minutes * 60.0);
        used_s = used_s.max(machine.clock_s());
        wins += u32::from(recommended.is_some());
        let loss = 1.0 - rate(&machine, &recommended.unwrap_or_else(|| flooded(Vec::new(), 10))) / best;
        near += u32::from(loss <= NEAR);
        losses.push(loss * 100.0);
    }
    losses.sort_by(f64::total_cmp);
    let percent = |count: u32| format!("{:.1} %", f64::from(count) / repetitions as f64 * 100.0);
    // Where no knob matters every answer is the best one, and what counts is how often noise passes for a win.
    let (near, loss) = if case.name.starts_with("A/A") {
        (format!("{} wins", percent(wins)), "-".to_string())
    } else {
        (percent(near), format!("{:.1} %", losses[losses.len() / 2]))
    };
    println!("{:34} {name:8} {near:>13} {loss:>13} {:>12.1}", case.name, used_s / 60.0);
}

/// The race as it is.
fn race(case: &Case, machine: &mut Simulation, seed: u64, budget_s: f64) -> Option<Arm> {
    let as_found = flooded(Vec::new(), 10);
    let plan = RacePlan {
        dimensions: case.dimensions.clone(),
        ..RacePlan::new(as_found.workload, as_found.floods, Default::default(), Goal::of(Metric::Rate), seed)
    };
    let mut race = Race::new(plan).ok()?;
    machine.run(&mut race, (budget_s * 1e9) as u64);
    race.recommended().map(|arm| race.arms()[arm].clone())
}

/// A grid with as many levels a knob as there is time for, and again from the start while there is time.
fn grid(case: &Case, machine: &mut Simulation, seed: u64, budget_s: f64) -> Option<Arm> {
    let trials = budget_s / typical_s(case, machine);
    let knobs = case.dimensions.len();
    let levels = (trials.powf(1.0 / knobs as f64) as usize).max(2);
    let point = |mut index: usize| {
        let mut at = || {
            let level = index % levels;
            index /= levels;
            (level as f64 + 0.5) / levels as f64
        };
        (0..knobs).map(|_| at()).collect::<Vec<f64>>()
    };
    let mut points: Vec<Vec<f64>> = (0..levels.pow(knobs as u32)).map(point).collect();
    // People who run out of time have not seen the end of their list; which end is chance.
    Random::new(seed).shuffle(&mut points);
    best_mean(case, machine, &mut points.into_iter().cycle(), budget_s)
}

/// Points drawn evenly from the whole space, each once, as long as there is time.
fn random(case: &Case, machine: &mut Simulation, seed: u64, budget_s: f64) -> Option<Arm> {
    let mut random = Random::new(seed);
    let mut points = std::iter::repeat_with(|| case.dimensions.iter().map(|_| random.uniform()).collect());
    best_mean(case, machine, &mut points, budget_s)
}

/// The point with the best mean, if it beats the baseline by the bar.
fn best_mean(
    case: &Case,
    machine: &mut Simulation,
    points: &mut dyn Iterator<Item = Vec<f64>>,
    budget_s: f64,
) -> Option<Arm> {
    let started_s = machine.clock_s();
    let as_found = measured(machine, &flooded(Vec::new(), 10));
    let mut sums: BTreeMap<Vec<Setting>, (f64, f64)> = BTreeMap::new();
    let longest_s = TRIAL_S + 20.0;
    while machine.clock_s() - started_s + longest_s < budget_s {
        let Some(point) = points.next() else { break };
        let settings = settings(&case.dimensions, &point);
        let rate = measured(machine, &flooded(settings.clone(), 10));
        let (sum, count) = sums.entry(settings).or_default();
        *sum += rate;
        *count += 1.0;
    }
    let means = sums.into_iter().map(|(settings, (sum, count))| (settings, sum / count));
    let best = means.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, mean)| *mean > as_found * BAR);
    best.map(|(settings, _)| flooded(settings, 10))
}

fn measured(machine: &mut Simulation, arm: &Arm) -> f64 {
    let duration_ns = (TRIAL_S * 1e9) as u64;
    machine.washout();
    let proposal = Proposal { arm: 0, block: 0, phase: Phase::Measure, duration_ns, abort_age_ns: None };
    let outcome = machine.trial(arm, &proposal);
    outcome.measured().and_then(|m| m.get(&Metric::Rate)).unwrap_or(0.0)
}

/// A trial with its wait, in the middle of the space.
fn typical_s(case: &Case, machine: &Simulation) -> f64 {
    let mut machine = machine.clone();
    let mut random = Random::new(0);
    let started_s = machine.clock_s();
    for _ in 0..50 {
        let point: Vec<f64> = case.dimensions.iter().map(|_| random.uniform()).collect();
        measured(&mut machine, &flooded(settings(&case.dimensions, &point), 10));
    }
    (machine.clock_s() - started_s) / 50.0
}

fn rate(machine: &Simulation, arm: &Arm) -> f64 {
    machine.expected(arm).get(&Metric::Rate).copied().unwrap_or(0.0)
}

/// The best rate there is: many random points, then many steps near the best one.
fn best(case: &Case) -> f64 {
    let machine = Simulation::new(case.device.clone(), Noise::none(), stock(), 0);
    let mut random = Random::new(7);
    let mut best = (0.0, vec![0.5; case.dimensions.len()]);
    for step in 0..40_000 {
        let moved = |at: &f64, random: &mut Random| (at + 0.05 * random.normal()).clamp(0.0, 1.0);
        let point: Vec<f64> = if step < 20_000 {
            case.dimensions.iter().map(|_| random.uniform()).collect()
        } else {
            best.1.iter().map(|at| moved(at, &mut random)).collect()
        };
        let rate = rate(&machine, &flooded(settings(&case.dimensions, &point), 10));
        if rate > best.0 {
            best = (rate, point);
        }
    }
    best.0
}
