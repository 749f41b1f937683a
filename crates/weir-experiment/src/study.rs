//! An experiment with its record, arms and finding: what every report of it is made from.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::arm::{Arm, Counted, Workload};
use crate::design::{Outcome, Phase};
use crate::finding::{Effect, Finding, effect_of};
use crate::log::{Experiment, TrialLog};
use crate::measures::Metric;
use crate::replay::replay;
use weir_core::result::Record;
use weir_knobs::{KnobName, Setting};

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
    /// The machine at the baseline.
    AsFound,
    /// Something that is tried.
    Tried,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TimeUsed {
    /// Trials, each from its settings to their restoration.
    pub trials_ns: u64,
    /// Waits for a clean start.
    pub washouts_ns: u64,
}

/// The kind of records that hold an experiment.
pub const KIND: &str = "tune";

/// Whether an experiment's server was made for it, and is gone.
pub fn is_throw_away(record: &Record) -> bool {
    record.command.iter().any(|word| word == "--sandbox" || word.starts_with("--sandbox="))
}

impl<'a> Study<'a> {
    /// The experiment that a record holds, its finding derived anew. `path` is where the record lies, if it is in a store.
    ///
    /// # Errors
    /// A log that does not follow its plan; with the words for the user.
    pub fn of(
        record: &'a Record,
        experiment: &Experiment,
        path: Option<String>,
    ) -> Result<Study<'a>, String> {
        let experiment = experiment.clone();
        let mut design = replay(&experiment)?;
        // A design that came to its end was asked for another trial and had none: only then do designs conclude.
        if record.ended_early.is_none() {
            design.propose(experiment.left_ns());
        }
        let (arms, mut finding) = (design.arms().to_vec(), design.finding());
        finding.remarks.extend(experiment.notes.iter().cloned());
        Ok(Study { record, path, experiment, arms, finding })
    }
}

impl Study<'_> {
    /// The command that makes experiments of this design.
    pub fn title(&self) -> String {
        if let [_, db, name, ..] = self.record.command.as_slice()
            && db == "db"
        {
            return format!("weir db {name}");
        }
        match self.experiment.design.as_str() {
            "scale" => "weir db scale".to_string(),
            "beside" => "weir db flood".to_string(),
            design => format!("weir tune {design}"),
        }
    }

    /// See [`is_throw_away`].
    pub fn throw_away(&self) -> bool {
        is_throw_away(self.record)
    }

    /// What an arm stands for.
    pub fn role(&self, arm: usize) -> Role {
        // The steps of a ladder and the sides of a comparison may differ in anything: none is the yardstick by itself.
        if matches!(self.experiment.design.as_str(), "ladder" | "ab" | "scale" | "beside") {
            return Role::Tried;
        }
        let flooded = self.arms.iter().any(|a| !a.floods.is_empty());
        match self.arms.get(arm) {
            Some(a) if flooded && a.floods.is_empty() => Role::Idle,
            Some(a) if a.settings.is_empty() => Role::AsFound,
            _ => Role::Tried,
        }
    }

    /// Whether an arm had a trial, whatever became of it.
    pub fn was_tried(&self, arm: usize) -> bool {
        self.finding.arms.get(arm).is_some_and(|summary| summary.trials + summary.spoilt > 0)
    }

    /// Arms that had a trial.
    pub fn tried(&self) -> impl Iterator<Item = usize> {
        (0..self.finding.arms.len()).filter(|arm| self.was_tried(*arm))
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
        effect_of(&self.finding.effects, from, to, metric)
    }

    /// The knob that the plan names, else the one of which the arms try most values.
    pub fn swept(&self) -> Option<KnobName> {
        let planned =
            self.experiment.plan.get("knob").and_then(serde_json::Value::as_str).unwrap_or_default();
        let mut all = self.arms.iter().flat_map(|arm| &arm.settings).map(|setting| &setting.knob);
        if let Some(knob) = all.find(|knob| knob.setting == planned || knob.to_string() == planned) {
            return Some(knob.clone());
        }
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

    /// What one operation of the workload is: `commits`, `transactions` or `operations`.
    pub fn operations(&self) -> &'static str {
        if self.arms.iter().any(|arm| matches!(arm.workload, Workload::Transactions(_))) {
            return "transactions";
        }
        match self.experiment.counted.unwrap_or_else(|| Counted::of(&self.arms)) {
            Counted::Commits => "commits",
            Counted::Operations => "operations",
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::SCHEMA;
    use crate::synthetic::{Truth, arm, measures, run};
    use crate::{Conduct, Sweep, SweepPlan};
    use weir_core::result::samples;
    use weir_core::stats::random::Random;

    fn logged() -> Experiment {
        let goal = SweepPlan::default_goal(true);
        let arms = vec![
            arm("idle", &[], false),
            arm("baseline", &[], true),
            arm("15 MB", &["vm.dirty_bytes=15MB"], true),
        ];
        let plan = SweepPlan {
            knob: "vm.dirty".to_string(),
            arms,
            repeats: 3,
            duration_ns: 10_000_000_000,
            abort_age_ns: None,
            seed: 3,
            goal: goal.clone(),
            refine: false,
            added: SweepPlan::ADDED.to_vec(),
        };
        let mut design = Sweep::new(plan.clone()).unwrap();
        let truths = [(758.0, 0.0), (33.7, 187e6), (703.0, 180e6)].map(|(rate, bulk)| Truth {
            rate,
            bulk,
            noise: 0.01,
        });
        let mut random = Random::new(8);
        let trials = run(&mut design, 900_000_000_000, 1_000_000_000, |proposal| {
            Outcome::Measured(measures(&mut random, truths[proposal.arm], proposal.duration_ns))
        });
        Experiment {
            schema: SCHEMA.to_string(),
            design: "sweep".to_string(),
            plan: serde_json::to_value(&plan).unwrap(),
            goal,
            seed: 3,
            budget_ns: 900_000_000_000,
            conduct: Conduct::default(),
            found: vec!["vm.dirty_ratio=20".parse().unwrap()],
            counted: None,
            trials,
            notes: vec!["Known from the start.".to_string()],
            remarks: Vec::new(),
        }
    }

    #[test]
    fn a_record_gives_the_finding_again() {
        let mut record = samples::record(Vec::new());
        record.kind = KIND.to_string();
        let study = Study::of(&record, &logged(), None).unwrap();
        let roles: Vec<Role> = (0..study.arms.len()).map(|arm| study.role(arm)).collect();
        assert_eq!(roles, [Role::Idle, Role::AsFound, Role::Tried]);
        assert!(
            matches!(study.finding.recommendation, crate::Recommendation::Change { arm: 2, .. }),
            "{:?}",
            study.finding
        );
        assert_eq!((study.operations(), study.trials(1)), ("commits", 3));
        assert_eq!(study.finding.remarks.last().map(String::as_str), Some("Known from the start."));
        assert_eq!(study.swept().map(|knob| knob.to_string()), Some("vm.dirty".to_string()));
    }

    #[test]
    fn a_log_that_does_not_follow_its_plan_is_refused() {
        let mut shuffled = logged();
        shuffled.trials.swap(0, 4);
        let why = Study::of(&samples::record(Vec::new()), &shuffled, None).unwrap_err();
        assert!(why.contains("does not follow the plan"), "{why}");
    }
}
