//! The shape of a verdict.

use serde::{Deserialize, Serialize};

use super::bounds::Bounds;
use super::profile::Profile;
use super::tested::Tested;
use super::traps::Trap;

/// What limits a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Processors, and mostly the server uses them.
    ServerCpu,
    /// Processors, and mostly the client uses them: weir itself.
    ClientCpu,
    /// What a commit waits for until the log is on the device.
    CommitLatency,
    /// A standby or replica that has to confirm commits.
    Replicas,
    /// Reads of pages that memory does not hold.
    ReadIo,
    /// Dirty pages and checkpoints that have to be written before work can go on.
    WriteBack,
    /// Rows that sessions hold against each other.
    Locks,
    /// What sends the transactions: too few connections, or kept from running.
    LoadGenerator,
    /// Processors, and others than server and client use a good part of them.
    OtherPrograms,
    /// Latches inside the server.
    Latches,
    /// Nothing: an open loop's transactions ran when they were due.
    Nothing,
    /// Cannot be told from what could be seen.
    CannotTell,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Little was seen, or two limits are close to each other.
    Low,
    /// One limit leads.
    Medium,
    /// One limit leads by far, and independent sources agree.
    High,
}

/// A limit and the share of the sessions' time that it accounts for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The limit.
    pub limit: Limit,
    /// Share of the sessions' time in transactions, 0 to 1.
    pub share: f64,
}

/// What limits a run, why, and what would help at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The limit.
    pub limit: Limit,
    /// Its share of the sessions' time in transactions, 0 to 1; 0 for [`Limit::Nothing`] and [`Limit::CannotTell`].
    pub share: f64,
    /// How sure.
    pub confidence: Confidence,
    /// The verdict in a sentence.
    pub headline: String,
    /// What it stands on, in sentences; the strongest first.
    pub evidence: Vec<String>,
    /// What the limit itself waits for, where that is something else: a queue for a row whose holder commits slowly.
    pub chain: Option<String>,
    /// What would help at most.
    pub bounds: Bounds,
    /// What changes did that were tried, held against this verdict.
    pub tested: Vec<Tested>,
    /// What could mislead.
    pub traps: Vec<Trap>,
    /// Everything that was weighed, largest first.
    pub candidates: Vec<Candidate>,
    /// Where the sessions' time went.
    pub profile: Profile,
    /// What could not be seen, and why.
    pub unseen: Vec<String>,
}

impl Limit {
    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Limit::ServerCpu => "CPU (server)",
            Limit::ClientCpu => "CPU (client)",
            Limit::CommitLatency => "commit latency",
            Limit::Replicas => "replicas",
            Limit::ReadIo => "read I/O",
            Limit::WriteBack => "write-back and checkpoints",
            Limit::Locks => "locks",
            Limit::LoadGenerator => "the load generator",
            Limit::OtherPrograms => "other programs",
            Limit::Latches => "latches in the server",
            Limit::Nothing => "nothing",
            Limit::CannotTell => "cannot tell",
        }
    }
}

impl Confidence {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}
