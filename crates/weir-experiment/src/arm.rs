//! One way to run: a workload under given settings.

use serde::{Deserialize, Serialize};

use weir_core::workload::Job;
use weir_core::workload::spec::{OpenSync, SyncMode};
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

/// What rates and latencies of jobs count: one thing in all arms of an experiment, or they could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Commits: every write of every arm is one, and durable.
    Commits,
    /// Reads, and writes each with the sync that it waits for.
    Operations,
}

impl Counted {
    /// What an experiment with these arms counts.
    pub fn of(arms: &[Arm]) -> Counted {
        let commits_all = |arm: &Arm| match &arm.workload {
            Workload::Job(job) => synced_every(job) == Some(1),
            Workload::Transactions(_) | Workload::Command(_) => false,
        };
        if !arms.is_empty() && arms.iter().all(commits_all) { Counted::Commits } else { Counted::Operations }
    }
}

/// Of how many writes one makes all before it durable; `None` where none does: sync_file_range(2) does not, nor does the
/// MS_ASYNC that stands for it on a mapping.
pub(crate) fn synced_every(job: &Job) -> Option<u64> {
    let is_durable = job.open_sync != OpenSync::None || job.sync.mode != SyncMode::SyncFileRange;
    commit_every(job).filter(|_| is_durable)
}

/// Of how many writes one waits for a sync, of whatever kind; `None` where none does.
pub(crate) fn commit_every(job: &Job) -> Option<u64> {
    let every = if job.open_sync == OpenSync::None { job.sync.every } else { 1 };
    (job.writes() && every > 0).then_some(every)
}
