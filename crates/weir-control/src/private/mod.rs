//! Limits that only the bulk writers feel: memory.high and io.max of cgroups that are theirs alone.
//!
//! Every limit of dirty pages holds the protected back too, since their own pages count. memory.high of the bulk writer's cgroup
//! bounds its dirty pages and nobody else's, and io.max paces what is written back of them. [`Law::step`] takes one look and moves
//! between the states of [`State`] by transitions that have names; [`needed`] turns the budget of dirty pages into
//! memory.high. It is pure, and knows nothing of the law of the other limits but what [`Kept`] and [`Need`] say.

mod bound;
mod constants;
mod group;
mod harm;
mod law;
mod looks;
mod rate;
#[cfg(test)]
mod tests;
mod work;

use std::fmt;

pub use bound::{followed, needed};
pub use group::{Candidate, Group, Memory, Refusal, may_hold};
pub use law::Law;
pub use work::{Work, are_at_work};

/// Who needs protection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Need {
    /// Nobody synced for minutes.
    #[default]
    Nobody,
    /// Syncs pause.
    Pausing,
    /// Syncs come.
    Here,
}

/// The rate of syncs since a moment, as a share of their undisturbed rate, against the share that they are to keep.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Kept {
    /// Nothing is known of them undisturbed, or too few came.
    #[default]
    Unknown,
    /// They keep it, with room.
    Good(f64),
    /// They keep it, as far as can be said.
    Close(f64),
    /// They do not.
    Bad(f64),
}

impl Kept {
    /// The share, where it is known.
    pub fn share(self) -> Option<f64> {
        match self {
            Kept::Unknown => None,
            Kept::Good(share) | Kept::Close(share) | Kept::Bad(share) => Some(share),
        }
    }
}

/// One look at a device and at the cgroups of its bulk writers. Counts are of the time since the look before.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen<'a> {
    /// When, on a clock that is never set.
    pub at_ns: u64,
    /// Since the look before.
    pub elapsed_ns: u64,
    /// Since when the sensor is silent.
    pub silent_ns: u64,
    /// Who needs protection.
    pub need: Need,
    /// What syncs keep since [`Law::judged_from`].
    pub kept: Kept,
    /// The share that they are to keep.
    pub keep: f64,
    /// Age of the oldest sync under way.
    pub oldest_ns: u64,
    /// Written to the device, by all.
    pub delivered_bytes: u64,
    /// Most of what bulk writers write is past the page cache.
    pub is_direct: bool,
    /// The cgroups that may be held; none where no bulk writer is in one.
    pub groups: &'a [Group],
    /// All of them that write have io.max.
    pub can_pace: bool,
    /// All of them that write have cpu.max.
    pub can_quota: bool,
    /// Nothing like these syncs was seen undisturbed, nor probed lately.
    pub wants_probe: bool,
}

/// What private limits do for a device, as far as other limits go by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hold {
    /// They hold all bulk writers: no other limit has to.
    pub covers: bool,
    /// Who is held by them writes in bulk, however slowly.
    pub is_at_work: bool,
    /// Since when a probe can show: until it is over, bulk writers have the least.
    pub probed_from_ns: Option<u64>,
}

/// How the guard stands to the cgroups of a device's bulk writers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum State {
    /// No limit is the guard's.
    #[default]
    Watching,
    /// memory.high bounds their dirty pages.
    Bounded {
        /// Of all of them together, as time at the device's rate.
        time_ns: u64,
    },
    /// io.max paces them besides, or cpu.max where their pages count for others.
    Paced {
        /// Of all of them together, in bytes a second.
        pace: u64,
    },
    /// Syncs pause: dirty pages are bounded to what is soon written, and nothing is paced.
    Loose,
    /// A limit harmed: they are left alone for a time.
    Spared {
        /// Until then.
        until_ns: u64,
    },
}

/// Why a state was left for another, or its figure changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// Bulk writers came.
    Arm,
    /// Syncs lose: less.
    Cut,
    /// Syncs keep what they are to: more.
    Raise,
    /// Bounding dirty pages is not enough, or does nothing to who writes past the page cache.
    Pace,
    /// The pace is the device's own rate.
    Unpace,
    /// Lower paces gave syncs nothing: whether they keep more without one is tried.
    Compare,
    /// Pacing does not serve: syncs wait for what is throttled.
    PaceHurts,
    /// Lower paces gave syncs nothing: back to the one before.
    Vain,
    /// For a second bulk writers have the least, to learn what syncs do undisturbed.
    Probe,
    /// That second is over.
    Probed,
    /// Syncs pause.
    Loosen,
    /// Syncs are back.
    Tighten,
    /// Bulk writers have written nothing in bulk for a while.
    Ended,
    /// None of their cgroups is held any more: it is gone, or was let go of.
    Gone,
    /// Nobody has synced for minutes.
    Unneeded,
    /// The sensor is silent.
    Silent,
    /// The group waits for memory: it gets more.
    Room,
    /// It still waits for memory.
    MemoryStalls,
    /// It needs the pages again that it gave back.
    WorkingSet,
    /// It waits for I/O and writes nothing.
    OtherStall,
    /// It writes pages that count for others: they had them in memory before.
    Escapes,
    /// No limit of what it writes serves: its processor time is limited.
    Quota,
    /// What was dirty before processor time was limited is written.
    Drained,
    /// Least bounds are not enough, or one that cannot be paced writes: the other limits hold as well from now on.
    NotEnough,
    /// Syncs keep their rate: the other limits no longer hold.
    Enough,
    /// It was left alone for long enough.
    Again,
}

impl Transition {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Transition::Arm => "arm",
            Transition::Cut => "cut",
            Transition::Raise => "raise",
            Transition::Pace => "pace",
            Transition::Unpace => "unpace",
            Transition::Compare => "compare",
            Transition::PaceHurts => "pace-hurts",
            Transition::Vain => "vain",
            Transition::Probe => "probe",
            Transition::Probed => "probed",
            Transition::Loosen => "loosen",
            Transition::Tighten => "tighten",
            Transition::Ended => "ended",
            Transition::Gone => "gone",
            Transition::Unneeded => "unneeded",
            Transition::Silent => "silent",
            Transition::Room => "room",
            Transition::MemoryStalls => "memory-stalls",
            Transition::WorkingSet => "working-set",
            Transition::OtherStall => "other-stall",
            Transition::Escapes => "escapes",
            Transition::Quota => "quota",
            Transition::Drained => "drained",
            Transition::NotEnough => "not-enough",
            Transition::Enough => "enough",
            Transition::Again => "again",
        }
    }

    /// What it means, as a part of a sentence.
    pub fn why(self) -> &'static str {
        match self {
            Transition::Arm => "bulk writers came",
            Transition::Cut => "syncs lose more of their rate than they may",
            Transition::Raise => "syncs keep their rate",
            Transition::Pace => "a bound of dirty pages is not enough",
            Transition::Unpace => "the pace is what the device takes",
            Transition::Compare => {
                "a lower pace gives syncs nothing: a moment without one tells whether any does"
            }
            Transition::PaceHurts => "syncs keep more without a pace: they wait for what it delays",
            Transition::Vain => "lower paces give syncs nothing: what they lose they lose elsewhere",
            Transition::Probe => {
                "a second with the least that bulk writers may have, to learn what syncs do undisturbed"
            }
            Transition::Probed => "that second is over",
            Transition::Loosen => "syncs pause",
            Transition::Tighten => "syncs are back",
            Transition::Ended => "nothing was written in bulk for 30 s",
            Transition::Gone => "no cgroup of bulk writers is held any more",
            Transition::Unneeded => "nobody syncs",
            Transition::Silent => "the sensor does not answer",
            Transition::Room => "the group waits for memory, and gets more",
            Transition::MemoryStalls => "the group waits for memory, whatever it gets",
            Transition::WorkingSet => "the group needs pages again that it gave back",
            Transition::OtherStall => "the group waits for I/O and writes nothing",
            Transition::Escapes => "the group writes pages that count for others",
            Transition::Quota => "limits of what it writes do not serve: its processor time is limited",
            Transition::Drained => "what it had left dirty is written",
            Transition::NotEnough => {
                "syncs lose, and no lower limit of cgroups helps: the other limits hold as well"
            }
            Transition::Enough => "syncs keep their rate: the other limits are not needed",
            Transition::Again => "ten minutes are over",
        }
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the groups of a device may have together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Dirty, in bytes; `None`: the baseline of memory.high.
    pub budget_bytes: Option<u64>,
    /// Written, in bytes a second, 0 for the least that there is; `None`: the baseline of io.max.
    pub pace: Option<u64>,
    /// The pace is to be that of what they give to write(2), by processor time; io.max has its baseline.
    pub by_quota: bool,
    /// Memory that each may hold beyond what that needs, in bytes.
    pub room_bytes: u64,
}

impl Wish {
    /// Whether anything of them is limited.
    pub fn limits(self) -> bool {
        self.budget_bytes.is_some() || self.pace.is_some()
    }

    /// Whether their processor time is all that is limited.
    pub fn is_of_processors_alone(self) -> bool {
        self.by_quota && self.budget_bytes.is_none()
    }

    /// An equal part for each of so many groups, of which so many can be paced.
    pub fn part(self, groups: usize, paced: usize) -> Wish {
        let of = |bytes: u64, groups: usize| bytes / groups.max(1) as u64;
        let budget_bytes = self.budget_bytes.map(|bytes| of(bytes, groups));
        Wish { budget_bytes, pace: self.pace.map(|pace| of(pace, paced)), ..self }
    }
}
