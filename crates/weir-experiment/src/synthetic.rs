//! Experiments made by hand for the tests of designs: what each arm would do, with noise between and within trials.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "made for tests")]

use crate::design::{Design, Observation, Outcome, Proposal};
use crate::goal::Goal;
use crate::log::{Conduct, Experiment, SCHEMA, TrialLog, Washout};
use crate::measures::{Measures, Metric, Second};
use crate::{Arm, Workload};
use weir_core::stats::random::{Random, simulate};
use weir_core::workload::Job;
use weir_core::workload::spec::{SyncMode, SyncPolicy};
use weir_knobs::Setting;

const SECOND_NS: u64 = 1_000_000_000;

/// What an arm does in truth.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Operations per second.
    pub rate: f64,
    /// Bytes per second of the floods; 0: there are none.
    pub bulk: f64,
    /// Relative noise between trials, and as much between seconds.
    pub noise: f64,
}

/// A job that commits.
pub fn workload() -> Workload {
    let sync = SyncPolicy { every: 1, mode: SyncMode::Fdatasync, at_end: false };
    Workload::Job(Box::new(Job { read_percent: 0.0, sync, threads: 10, ..Job::default() }))
}

/// An arm with settings as typed.
pub fn arm(label: &str, settings: &[&str], flooded: bool) -> Arm {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let floods = if flooded { vec!["1".to_string()] } else { Vec::new() };
    Arm { label: label.to_string(), settings, workload: workload(), floods, guarded: false }
}

/// A trial of so many seconds of what is true.
pub fn measures(random: &mut Random, truth: Truth, duration_ns: u64) -> Measures {
    let factor = |random: &mut Random| (truth.noise * simulate::normal(random)).exp();
    let n = (duration_ns / SECOND_NS).max(1) as usize;
    let (rate, bulk) = (truth.rate * factor(random), truth.bulk * factor(random));
    let rates = simulate::series(random, n, rate, truth.noise, 0.3);
    let bulks = simulate::series(random, n, bulk, truth.noise, 0.3);
    let flooded = truth.bulk > 0.0;
    let second = |(i, (rate, bulk)): (usize, (&f64, &f64))| Second {
        at_ns: i as u64 * SECOND_NS,
        len_ns: SECOND_NS,
        rate: rate.max(0.0),
        p99_ns: Some((4e10 / rate.max(0.01)) as u64),
        bulk: flooded.then_some(bulk.max(0.0)),
        ..Second::default()
    };
    let seconds: Vec<Second> = rates.iter().zip(&bulks).enumerate().map(second).collect();
    let mean = |of: fn(&Second) -> f64| seconds.iter().map(of).sum::<f64>() / n as f64;
    let rate = mean(|second| second.rate);
    let mut values = std::collections::BTreeMap::from([(Metric::Rate, rate)]);
    let latency = 10.0 * 1e9 / rate.max(0.01);
    for (metric, times) in [(Metric::Mean, 1.0), (Metric::P50, 0.8), (Metric::P95, 2.5), (Metric::P99, 4.0)] {
        values.insert(metric, latency * times);
    }
    if flooded {
        values.insert(Metric::Bulk, mean(|second| second.bulk.unwrap_or(0.0)));
    }
    Measures { values, operations: (rate * n as f64) as u64, seconds }
}

/// Lets a design run to its end; each trial takes what it measures and `overhead_ns`. The log of it.
pub fn run(
    design: &mut dyn Design,
    budget_ns: u64,
    overhead_ns: u64,
    mut outcome: impl FnMut(&Proposal) -> Outcome,
) -> Vec<TrialLog> {
    let (mut left_ns, mut trials) = (budget_ns, Vec::new());
    while let Some(proposal) = design.propose(left_ns) {
        assert!(proposal.arm < design.arms().len() && proposal.duration_ns <= left_ns, "{proposal:?}");
        assert!(trials.len() < 10_000, "the design does not end");
        let took_ns = proposal.duration_ns + overhead_ns;
        let observation = Observation { outcome: outcome(&proposal), proposal };
        design.observe(&observation);
        trials.push(trial_log(left_ns, budget_ns - left_ns, took_ns, observation));
        left_ns = left_ns.saturating_sub(took_ns);
    }
    trials
}

fn trial_log(left_ns: u64, start_ns: u64, took_ns: u64, observation: Observation) -> TrialLog {
    let washout = Washout::default();
    TrialLog {
        left_ns,
        start_ns,
        took_ns,
        washout,
        observation,
        job: None,
        transactions: None,
        stages: None,
        remarks: Vec::new(),
    }
}

/// The log of an experiment.
pub fn experiment(
    design: &str,
    plan: &impl serde::Serialize,
    goal: Goal,
    trials: Vec<TrialLog>,
) -> Experiment {
    Experiment {
        schema: SCHEMA.to_string(),
        design: design.to_string(),
        plan: serde_json::to_value(plan).unwrap(),
        goal,
        seed: 1,
        budget_ns: 0,
        conduct: Conduct::default(),
        found: Vec::new(),
        counted: None,
        trials,
        notes: Vec::new(),
        remarks: Vec::new(),
    }
}
