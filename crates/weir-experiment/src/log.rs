//! The log of an experiment: the part `extra` of its record, enough to go on after a kill and to judge anew.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arm::Counted;
use crate::design::{Observation, Proposal};
use crate::goal::Goal;
use weir_blocktrace::StageTable;
use weir_knobs::Setting;
use weir_oltp::OltpRecord;

/// Value of [`Experiment::schema`] that this version writes.
pub const SCHEMA: &str = "weir.experiment/1";

/// An experiment as planned and as far as it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Experiment {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// `sweep`, `ladder`, `ab`, `race`, `scale` or `beside`.
    pub design: String,
    /// The design's own plan, from which it is made again: arms or candidates, repeats, seed.
    pub plan: Value,
    /// What it is to improve.
    pub goal: Goal,
    /// Seed of every random choice.
    pub seed: u64,
    /// Time it may take, washouts included.
    pub budget_ns: u64,
    /// How each trial is made.
    #[serde(default)]
    pub conduct: Conduct,
    /// Values found before the first trial, of every knob that any arm sets.
    pub found: Vec<Setting>,
    /// What the figures of its jobs count. Logs of earlier versions do not say it: see [`crate::count_alike`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The trials, in the order they were made.
    pub trials: Vec<TrialLog>,
    /// Sentences: what was known before the first trial, and helps to read what was found.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Sentences: what a reader must know of how it ran (interruptions, others' load, settings found changed).
    pub remarks: Vec<String>,
}

/// How each trial is made, whatever its arm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conduct {
    /// The folder or file whose file system and device are watched, and where floods write. Empty where the storage
    /// is not seen from this machine.
    pub place: String,
    /// Run before measuring, uncounted.
    pub warmup_ns: u64,
    /// Longest time that transactions run before that, until the server flushes at a pace of its own; 0 where what it has to
    /// flush does not matter.
    pub settle_ns: u64,
    /// Longest time for a flood's dirty pages to build up.
    pub build_up_ns: u64,
    /// Longest wait for a clean start.
    pub washout_ns: u64,
    /// Watch the stages of the device's requests.
    pub stages: bool,
    /// Go on beside others who write much.
    pub even_if_busy: bool,
}

/// One trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialLog {
    /// What the design was told of the time left; replaying needs it.
    pub left_ns: u64,
    /// Start, since the start of the experiment (of all its sittings together).
    pub start_ns: u64,
    /// The whole trial: settings, flood's build-up, measuring, restoring; the washout is apart.
    pub took_ns: u64,
    /// The wait before it.
    pub washout: Washout,
    /// What was proposed and what came of it.
    pub observation: Observation,
    /// Index of its job in the record, if it has one.
    pub job: Option<usize>,
    /// Its transactions, where a database was the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Box<OltpRecord>>,
    /// Stages of the device's requests while it measured, where they are watched.
    pub stages: Option<StageTable>,
    /// What the trial noticed: others' writes, settings not taken, a command's complaints.
    pub remarks: Vec<String>,
}

/// The wait for a clean start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Washout {
    /// How long it took.
    pub took_ns: u64,
    /// Dirty and under writeback when it ended.
    pub left_bytes: u64,
    /// Whether it gave up waiting.
    pub timed_out: bool,
}

/// What saving and printing may take after a trial, ns.
const BETWEEN_TRIALS: u64 = 1_000_000_000;

impl Experiment {
    /// What was left of the budget after the last trial, at least, ns.
    pub fn left_ns(&self) -> u64 {
        let spent_ns = self.trials.last().map_or(0, |trial| trial.start_ns + trial.took_ns + BETWEEN_TRIALS);
        self.budget_ns.saturating_sub(spent_ns)
    }
}

impl TrialLog {
    /// What was proposed.
    pub fn proposal(&self) -> &Proposal {
        &self.observation.proposal
    }
}
