//! The law: from a sample to an action.

use serde::{Deserialize, Serialize};

use super::{Parameters, Sample};

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
    /// The device accepts less than before.
    RateDrop,
    /// There is room.
    Raise,
    /// The protected processes are held back for their own pages.
    OwnWrites,
    /// No sync needs protection: bulk writers get everything.
    Unneeded,
    /// The bulk writer is the protected database itself.
    Checkpoint,
    /// The target cannot be held by this limit.
    Infeasible,
    /// The sensor is silent.
    Silent,
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
    /// Whether bulk writers write.
    pub bulk_active: bool,
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

/// The guard of one device.
#[derive(Debug, Clone)]
pub struct Guard {
    parameters: Parameters,
}

impl Guard {
    /// Of a device about which nothing is known yet.
    pub fn new(parameters: Parameters) -> Guard {
        Guard { parameters }
    }

    /// What to do now. Samples come in the order of time; an action is taken to be done when the next sample's
    /// limits show it.
    pub fn step(&mut self, sample: &Sample) -> Decision {
        let _ = &self.parameters;
        Decision {
            at_ns: sample.at_ns,
            action: Action::Keep,
            branch: Branch::Steady,
            inputs: Inputs { limit_bytes: sample.limits.now_bytes, ..Inputs::default() },
            mood: Mood::Released,
        }
    }
}
