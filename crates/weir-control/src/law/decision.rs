//! What the law says: an action, why, and on what it stands.

use serde::{Deserialize, Serialize};

/// What is to be done with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing.
    Keep,
    /// This many bytes, between floor and saved.
    Set {
        /// The limit.
        bytes: u64,
    },
    /// What was found.
    Release,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Branch {
    /// Nothing to do: syncs keep their latency, or too little is known yet.
    Steady,
    /// The limit is where the last cut has yet to show.
    Draining,
    /// Bulk writers are idle.
    Idle,
    /// A bulk writer came: the limit goes to where it was good, before the flood is felt.
    Arm,
    /// A sync has been under way for too long.
    OldestSync,
    /// The tail is beyond its target.
    Tail,
    /// Syncs lost more of their rate than they may.
    Share,
    /// The device accepts less than before. In histories of versions before 0.2 only.
    RateDrop,
    /// There is room.
    Raise,
    /// Syncs lose, and by what is known no lower limit is worth more: a higher one is tried.
    Search,
    /// The protected processes are held back for their own pages.
    OwnWrites,
    /// No sync came lately: bulk writers get more, in the end everything.
    Unneeded,
    /// The bulk writer is the protected database itself.
    Checkpoint,
    /// The target cannot be held by this limit.
    Infeasible,
    /// Syncs are as fast as ever and come less often, whatever the limit is: their rate is no measure of it for a while. In
    /// histories of versions before 0.2 only.
    Slack,
    /// The sensor is silent.
    Silent,
    /// For less than a second bulk writers get the least, to learn what syncs do undisturbed.
    Probe,
    /// A limit at which syncs can be fast, and have become slow: for less than a second bulk writers get the least, so
    /// that they become fast again. In histories of versions before 0.2 only.
    Tip,
}

/// How the guard stands to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mood {
    /// The saved limit is in force.
    Released,
    /// The guard's limit is in force.
    Holding,
}

/// How well it is known what syncs do undisturbed at this concurrency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Not at all: nothing like it was ever seen.
    #[default]
    Unknown,
    /// At least this well: from another concurrency, or from the best seen beside bulk writers.
    Bounded,
    /// Seen while bulk writers were idle.
    Seen,
}

/// What a decision stood on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Syncs in the window.
    pub syncs: u64,
    /// Syncs per second.
    pub syncs_per_second: f64,
    /// The 99th percentile of the window, where there were enough.
    pub p99_ns: Option<u64>,
    /// The target it is held to, as far as it is known.
    pub target_ns: Option<u64>,
    /// Share of their undisturbed rate at the same concurrency, where that is known.
    pub kept: Option<f64>,
    /// How well the undisturbed rate is known.
    pub reference: Known,
    /// Syncs and their writes under way on average.
    pub concurrency: f64,
    /// Age of the oldest sync under way.
    pub oldest_ns: u64,
    /// Share of the protected processes' time that they were held back for their own pages.
    pub own_share: f64,
    /// Delivered by the device, all writers.
    pub delivered_bytes_per_second: f64,
    /// Dirty and under way.
    pub backlog_bytes: u64,
    /// The limit in force.
    pub limit_bytes: u64,
    /// Whether that is a cgroup's: what it may write in a tenth of a second.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_cgroup: bool,
    /// Whether bulk writers write.
    pub bulk_active: bool,
    /// Where the target cannot be held: the 99th percentile beside `achievable_kept`.
    pub achievable_p99_ns: Option<u64>,
    /// Where the target cannot be held: the largest share that is known to be kept.
    pub achievable_kept: Option<f64>,
}

/// What the guard made of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at_ns: u64,
    /// What to do.
    pub action: Action,
    /// Why.
    pub branch: Branch,
    /// On what.
    pub inputs: Inputs,
    /// Released or holding, after the action.
    pub mood: Mood,
}
