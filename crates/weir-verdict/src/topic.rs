//! What findings are about, and the bars that the general examination and a product share.

use serde::{Deserialize, Serialize};

/// p99 up to which commits are good: a disk of 7,200 turns a minute takes 4.2 ms for half a turn, and anything
/// meant for databases must beat it; one connection can then commit 200 times a second at the least.
pub const COMMIT_GOOD_NS: u64 = 5_000_000;
/// p99 up to which commits are fair: two of these and a person begins to notice a transaction of a few commits.
pub const COMMIT_FAIR_NS: u64 = 20_000_000;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// What kind of storage it behaves like.
    Class,
    /// Whether %util means anything on it.
    Utilization,
    /// How long a commit takes.
    Commit,
    /// How commits scale with threads.
    GroupCommit,
    /// Tails and stalls.
    Tail,
    /// Buffered, direct, O_DSYNC.
    SyncPath,
    /// Bulk throughput.
    Sequential,
    /// How long a load keeps its rate.
    Sustained,
    /// How reads, writes and commits share the device.
    Map,
    /// Survival under a bulk writer.
    Flood,
    /// Where the time of commits goes.
    Stages,
    /// Settings that need no measurement to be wrong.
    Settings,
}

impl Topic {
    /// The heading in reports.
    pub fn title(self) -> &'static str {
        match self {
            Topic::Class => "Storage",
            Topic::Utilization => "Saturation",
            Topic::Commit => "Commits",
            Topic::GroupCommit => "Concurrency",
            Topic::Tail => "Tails",
            Topic::SyncPath => "Sync path",
            Topic::Sequential => "Bulk",
            Topic::Sustained => "Sustained",
            Topic::Map => "Map",
            Topic::Flood => "Flood",
            Topic::Stages => "Stages",
            Topic::Settings => "Settings",
        }
    }
}
