//! The one interface of all designs.

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::finding::Finding;
use crate::measures::Measures;

/// A plan of trials that unfolds with what they show.
pub trait Design {
    /// The arms so far; a proposal names one by index. Arms are only ever appended.
    fn arms(&self) -> &[Arm];

    /// The next trial, given the time that is left of the budget (washouts included); `None` when it is done or the
    /// time is too short for another that would be of use. Only then may it conclude.
    fn propose(&mut self, left_ns: u64) -> Option<Proposal>;

    /// What came of the trial proposed last.
    fn observe(&mut self, observation: &Observation);

    /// What follows from all observations so far.
    fn finding(&self) -> Finding;

    /// Trials still to come as far as is known, for progress.
    fn remaining(&self) -> usize;
}

/// A trial to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Index of the arm.
    pub arm: usize,
    /// Repeat, pair or block it belongs to: what is compared within a block shares its time.
    pub block: u32,
    /// What it is for.
    pub phase: Phase,
    /// Measured time, warm-up left out.
    pub duration_ns: u64,
    /// Abort when an operation is outstanding longer than this.
    pub abort_age_ns: Option<u64>,
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Sweep, ladder, A/B: all trials count alike.
    Measure,
    /// Which knobs matter at all.
    Screen,
    /// Which candidate is best.
    Race,
    /// Winner against the baseline, on fresh data.
    Confirm,
}

impl Phase {
    /// What reports call it, and records.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Measure => "measure",
            Phase::Screen => "screen",
            Phase::Race => "race",
            Phase::Confirm => "confirm",
        }
    }
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The proposal.
    pub proposal: Proposal,
    /// Its outcome.
    pub outcome: Outcome,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran to its end.
    Measured(Measures),
    /// It was dangerous and was ended early. Counts as the worst, never as missing.
    Aborted {
        /// Why.
        why: String,
        /// What was measured until then.
        measures: Measures,
    },
    /// It could not be made (a knob refused, a command failed). Counts as the worst, never as missing.
    Failed {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// What was measured, if the trial ran to its end.
    pub fn measured(&self) -> Option<&Measures> {
        match self {
            Outcome::Measured(measures) => Some(measures),
            Outcome::Aborted { .. } | Outcome::Failed { .. } => None,
        }
    }
}
