//! One way to run: a workload under given settings.

use serde::{Deserialize, Serialize};

use weir_core::workload::Job;
use weir_knobs::Setting;
use weir_oltp::OltpSpec;

/// One of the ways that an experiment compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name in tables and plots: `vm.dirty_bytes=15000000`, `idle`, `baseline`.
    pub label: String,
    /// Knobs it sets, over the baseline; empty for the machine as it is.
    pub settings: Vec<Setting>,
    /// What it runs.
    pub workload: Workload,
    /// Floods beside it, as typed; none for an idle machine.
    pub floods: Vec<String>,
    /// Whether a guard holds the latency of syncs beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
}

/// What a trial runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One of weir's own jobs.
    Job(Box<Job>),
    /// Transactions of a database.
    Transactions(Box<Transactions>),
    /// A command of the user's, with patterns that find its figures in what it prints.
    Command(CommandSpec),
}

/// Transactions against a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// What they do.
    pub spec: OltpSpec,
    /// The server as a user names it, without a password: `mysql://root@/weir?socket=/run/db.sock`.
    pub server: String,
}

/// An external command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// Run by `sh -c`.
    pub command: String,
    /// Figures: a name, and a regular expression whose first group is the number.
    pub metrics: Vec<(String, String)>,
}
