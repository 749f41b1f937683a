//! What a running guard says about itself: one [`State`] a second on its control socket, as a line of JSON.

use serde::{Deserialize, Serialize};

use super::{Decision, Noted, Second, Sensor, Target, Writer};
use weir_core::target::DeviceNumber;

/// Value of [`State::schema`].
pub const SCHEMA: &str = "weir.guard.state/1";

/// A guard, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// Version of weir.
    pub weir_version: String,
    /// Its process.
    pub pid: u32,
    /// When it began, RFC 3339 with offset.
    pub since: String,
    /// Now, RFC 3339 with offset.
    pub at: String,
    /// In milliseconds since it began, the time that the machine slept included.
    pub at_ms: u64,
    /// It only says what it would do.
    pub shadow: bool,
    /// What is to be held.
    pub target: Target,
    /// Whose syncs are protected, in words.
    pub protect: String,
    /// The devices.
    pub devices: Vec<DeviceState>,
    /// The last decisions that mattered, newest last.
    pub decisions: Vec<Noted>,
    /// What it costs.
    pub cost: Cost,
    /// What is lacking and what is lost by it, in sentences.
    pub remarks: Vec<String>,
}

/// A device under guard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// The kernel's name.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// How the guard stands to it.
    pub standing: Standing,
    /// Where latencies come from.
    pub sensor: Sensor,
    /// What is turned, in words.
    #[serde(rename = "lever")]
    pub actuator: String,
    /// The limits of bulk writers' cgroups in words, while those are held: beside the other one, which the figures are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_actuator: Option<String>,
    /// The baseline limit, in bytes.
    pub saved_bytes: u64,
    /// The least allowed, in bytes.
    pub floor_bytes: u64,
    /// The last whole second.
    pub second: Second,
    /// Cgroups of bulk writers that are held by limits of their own.
    #[serde(default)]
    pub private_cgroups: u64,
    /// The newest decision, whether or not it mattered.
    pub decision: Decision,
    /// Bulk writers of the last second, most first.
    pub writers: Vec<Writer>,
    /// Sums since the guard began.
    pub totals: Totals,
}

/// How the guard stands to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It turns the limit.
    Guarding,
    /// It only says what it would do.
    Shadow,
    /// Somebody else turns the limit: it measures and leaves the limit alone until it is told otherwise.
    StoodDown {
        /// What was seen.
        why: String,
    },
    /// The device is gone; it is guarded again when it is back.
    Gone,
}

/// Sums since the guard began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Syncs that ended.
    pub syncs: u64,
    /// Sum of their durations, in nanoseconds.
    pub sync_ns: u64,
    /// Seconds with syncs.
    pub seconds: u64,
    /// Of these, seconds that were over the target ([`Second::is_over_target`]).
    pub seconds_over_target: u64,
    /// Written to the device, in bytes.
    pub written_bytes: u64,
    /// Of these, by bulk writers, as far as it is known.
    pub bulk_bytes: u64,
    /// Time that bulk writers were throttled, in milliseconds, summed over their threads.
    pub bulk_held_ms: u64,
    /// Time that the protected were throttled for their own pages, in the same way.
    pub own_held_ms: u64,
    /// Limits written, by branch.
    pub cuts: Vec<Count>,
    /// The same, for limits that went up.
    pub raises: Vec<Count>,
    /// Limits that the kernel refused.
    pub refused: u64,
    /// Times that somebody else changed the limit.
    pub stood_down: u64,
    /// Syncs that the sensor could not follow.
    pub lost: u64,
}

/// How often a branch did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The branch.
    pub branch: super::Branch,
    /// How often.
    pub times: u64,
}

/// What the guard costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time since it began, all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of one processor over the last minute, 0 to 1.
    pub cpu_share: f64,
    /// Memory in use, in bytes.
    pub rss_bytes: u64,
    /// Looks that came too late by more than half of the time between two.
    pub late_looks: u64,
}

impl Totals {
    /// Counts a limit that was written.
    pub fn count(&mut self, branch: super::Branch, raised: bool) {
        let counts = if raised { &mut self.raises } else { &mut self.cuts };
        match counts.iter_mut().find(|count| count.branch == branch) {
            Some(count) => count.times += 1,
            None => counts.push(Count { branch, times: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Branch;
    use super::*;

    #[test]
    fn writes_are_counted_by_branch_and_direction() {
        let mut totals = Totals::default();
        for (branch, raised) in [(Branch::Tail, false), (Branch::Raise, true), (Branch::Tail, false)] {
            totals.count(branch, raised);
        }
        assert_eq!(totals.cuts, [Count { branch: Branch::Tail, times: 2 }]);
        assert_eq!(totals.raises, [Count { branch: Branch::Raise, times: 1 }]);
    }
}
