//! One way to run: a workload under given settings.

use serde::{Deserialize, Serialize};

use crate::knob::Setting;
use crate::workload::Job;

/// One of the ways that an experiment compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name in tables and plots: `vm.dirty_bytes=15000000`, `idle`, `as found`.
    pub label: String,
    /// Knobs it sets, over what was found; empty for the machine as it is.
    pub settings: Vec<Setting>,
    /// What it runs.
    pub workload: Workload,
    /// Floods beside it, as typed; none for an idle machine.
    pub floods: Vec<String>,
}

/// What a trial runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One of weir's own jobs.
    Job(Box<Job>),
    /// A command of the user's, with patterns that find its figures in what it prints.
    Command(CommandSpec),
}

/// An external command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// Run by `sh -c`.
    pub command: String,
    /// Figures: a name, and a regular expression whose first group is the number.
    pub metrics: Vec<(String, String)>,
}
