//! An experiment with its record, arms and finding: what every report of it is made from.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::arm::{Arm, Workload};
use crate::experiment::design::{Outcome, Phase};
use crate::experiment::finding::{Effect, Finding};
use crate::experiment::log::{Experiment, TrialLog};
use crate::experiment::measures::Metric;
use crate::knob::{KnobName, Setting};
use crate::result::Record;
use crate::result::record::Class;

/// All of an experiment that can be shown.
#[derive(Debug, Clone)]
pub struct Study<'a> {
    /// Its record: id, command, conditions.
    pub record: &'a Record,
    /// Where the record lies, if it is in a store.
    pub path: Option<String>,
    /// The log.
    pub experiment: Experiment,
    /// The arms, in the order that proposals, summaries and effects count them.
    pub arms: Vec<Arm>,
    /// What was found.
    pub finding: Finding,
}

/// What an arm stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The workload without the floods that the other arms have.
    Idle,
    /// The machine as it was found.
    AsFound,
    /// Something that is tried.
    Tried,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TimeUsed {
    /// Trials, each from its settings to the way back.
    pub trials_ns: u64,
    /// Waits for a clean start.
    pub washouts_ns: u64,
}

impl Study<'_> {
    /// What an arm stands for.
    pub fn role(&self, arm: usize) -> Role {
        let flooded = self.arms.iter().any(|a| !a.floods.is_empty());
        match self.arms.get(arm) {
            Some(a) if flooded && a.floods.is_empty() => Role::Idle,
            Some(a) if a.settings.is_empty() && self.experiment.design != "ladder" => Role::AsFound,
            _ => Role::Tried,
        }
    }

    /// The first arm of a role that was tried at least once.
    pub fn arm_of(&self, role: Role) -> Option<usize> {
        (0..self.arms.len()).find(|arm| self.role(*arm) == role && self.trials(*arm) > 0)
    }

    /// Trials of an arm that ran to their end.
    pub fn trials(&self, arm: usize) -> u32 {
        self.finding.arms.get(arm).map_or(0, |summary| summary.trials)
    }

    /// A figure of an arm: the mean over its trials.
    pub fn value(&self, arm: usize, metric: &Metric) -> Option<f64> {
        self.finding.arms.get(arm)?.values.get(metric).copied()
    }

    /// Its 95 % interval.
    pub fn interval(&self, arm: usize, metric: &Metric) -> Option<(f64, f64)> {
        self.finding.arms.get(arm)?.intervals.get(metric).copied()
    }

    /// A comparison that was made.
    pub fn effect(&self, from: usize, to: usize, metric: &Metric) -> Option<&Effect> {
        self.finding.effects.iter().find(|e| e.from == from && e.to == to && e.metric == *metric)
    }

    /// The knob that differs between the arms that were tried, where it is one.
    pub fn swept(&self) -> Option<KnobName> {
        let mut values: BTreeMap<&KnobName, Vec<&Setting>> = BTreeMap::new();
        for setting in self.arms.iter().flat_map(|arm| &arm.settings) {
            let seen = values.entry(&setting.knob).or_default();
            if !seen.contains(&setting) {
                seen.push(setting);
            }
        }
        values.into_iter().max_by_key(|(_, seen)| seen.len()).map(|(knob, _)| knob.clone())
    }

    /// What an arm sets the knob to.
    pub fn setting(&self, arm: usize, knob: &KnobName) -> Option<&Setting> {
        self.arms.get(arm)?.settings.iter().find(|setting| setting.knob == *knob)
    }

    /// The value a knob had before the first trial.
    pub fn found(&self, knob: &KnobName) -> Option<&Setting> {
        self.experiment.found.iter().find(|setting| setting.knob == *knob)
    }

    /// The figure that is to get better first of all; bulk throughput only where nothing else is asked for.
    pub fn main_metric(&self) -> Metric {
        let asked = self.experiment.goal.weights.iter().map(|(metric, _)| metric);
        let bounded = self.experiment.goal.bounds.iter().map(|bound| &bound.metric);
        let first = asked.chain(bounded).find(|metric| **metric != Metric::Bulk);
        first.cloned().unwrap_or(Metric::Rate)
    }

    /// Whether any arm has a figure.
    pub fn has(&self, metric: &Metric) -> bool {
        self.finding.arms.iter().any(|arm| arm.values.contains_key(metric))
    }

    /// What one operation of the workload is: `commits`, or `operations`.
    pub fn operations(&self) -> &'static str {
        let commits = self.record.jobs.iter().any(|job| job.classes.contains_key(&Class::Commit));
        let asked = self.arms.iter().any(|arm| match &arm.workload {
            Workload::Job(job) => job.sync.every == 1,
            Workload::Command(_) => false,
        });
        if commits || asked { "commits" } else { "operations" }
    }

    /// Trials of an arm in one phase, in order.
    pub fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &TrialLog> {
        self.experiment.trials.iter().filter(move |trial| trial.proposal().phase == phase)
    }

    /// Where the time went.
    pub fn time_used(&self) -> TimeUsed {
        self.experiment.trials.iter().fold(TimeUsed::default(), |sum, trial| TimeUsed {
            trials_ns: sum.trials_ns + trial.took_ns,
            washouts_ns: sum.washouts_ns + trial.washout.took_ns,
        })
    }

    /// Trials that did not run to their end, with the reason.
    pub fn spoilt(&self) -> Vec<(&TrialLog, &str)> {
        let why = |trial: &'_ TrialLog| match &trial.observation.outcome {
            Outcome::Measured(_) => None,
            Outcome::Aborted { .. } => Some("aborted"),
            Outcome::Failed { .. } => Some("failed"),
        };
        self.experiment.trials.iter().filter_map(|trial| Some((trial, why(trial)?))).collect()
    }
}

impl TimeUsed {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.trials_ns + self.washouts_ns
    }
}
