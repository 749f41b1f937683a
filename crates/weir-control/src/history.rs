//! What a guard leaves in the store: one row a second and device, every decision that mattered, and what it was to hold.
//! Described in `docs/reference/record.md`.

use serde::{Deserialize, Serialize};

use super::{Branch, Decision, Mood, SensorSource, Target};
use weir_core::target::DeviceNumber;

/// Value of [`History::schema`].
pub const SCHEMA: &str = "weir.guard/1";

/// The kind of records that hold a guard's history.
pub const KIND: &str = "guard";

/// A guard's time: what the record of such a kind has in `extra`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// It only said what it would do.
    #[serde(default)]
    pub shadow: bool,
    /// What was to be held.
    pub target: Target,
    /// Whose syncs were protected, in words.
    pub protect: String,
    /// The devices.
    pub devices: Vec<DeviceHistory>,
    /// Decisions that changed something or say something new, in the order of time.
    pub decisions: Vec<Noted>,
    /// Decisions left out because there were too many in a short time.
    #[serde(default)]
    pub left_out: u64,
}

/// One device's part of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceHistory {
    /// The kernel's name when the record began.
    pub name: String,
    /// Its number then.
    pub number: DeviceNumber,
    /// What was turned, in words: `vm.dirty_bytes`, `sda/bdi/max_ratio_fine`.
    #[serde(rename = "lever")]
    pub actuator: String,
    /// Where latencies came from.
    pub sensor: SensorSource,
    /// The baseline limit, in bytes.
    pub saved_bytes: u64,
    /// The least that was allowed, in bytes.
    pub floor_bytes: u64,
    /// Seconds, in the order of time. Missing ones are time that the machine slept or the device was gone.
    pub seconds: Vec<Second>,
}

/// One second of one device. In JSON an array in the order of the fields, so that a day stays small; absent figures are
/// `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Second {
    /// Its end, in milliseconds since the start of the record, the time that the machine slept included.
    pub at_ms: u64,
    /// Syncs that ended.
    pub syncs: u64,
    /// Median of their durations, in microseconds.
    pub p50_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// The longest.
    pub max_us: Option<u64>,
    /// Age of the oldest sync under way at any look, in microseconds; 0 without one.
    pub oldest_us: u64,
    /// The target of the 99th percentile as far as it is known, in microseconds.
    pub target_us: Option<u64>,
    /// Share of their undisturbed rate that syncs kept, where there were any and that is known; above 1 where they did
    /// better than they were ever seen to.
    pub kept: Option<f32>,
    /// The limit in force at the end, in bytes: of dirty pages, or [of a cgroup](Second::of_cgroup).
    pub limit_bytes: u64,
    /// Dirty and under way at the end, in bytes.
    pub backlog_bytes: u64,
    /// Written to the device by all, in bytes.
    pub written_bytes: u64,
    /// Of these, by bulk writers, where it is known who dirtied how much.
    pub bulk_bytes: Option<u64>,
    /// Time that bulk writers were throttled, in milliseconds, summed over their threads.
    pub bulk_held_ms: u64,
    /// Time that the protected were throttled for their own pages, in the same way.
    pub own_held_ms: u64,
    /// Whether a limit of the guard's was in force.
    pub holding: bool,
    /// What bulk writers' own cgroups might have dirty, together, where they were held: in bytes, at the end.
    pub private_dirty_bytes: Option<u64>,
    /// What they might write, together, where that was paced: in bytes a second, at the end.
    pub private_pace: Option<u64>,
    /// Whether the limit was a cgroup's: what it might write in a tenth of a second.
    pub of_cgroup: bool,
}

/// From so many syncs on, one is no more than a hundredth of them.
const HUNDRED: u64 = 100;

impl Second {
    /// The 99th percentile, in microseconds. Where one sync is more than a hundredth, the oldest under way counts, too: one
    /// that stands still never ends.
    pub fn tail_us(&self) -> Option<u64> {
        let standing = (self.syncs < HUNDRED && self.oldest_us > 0).then_some(self.oldest_us);
        self.p99_us.max(standing)
    }

    /// Whether there were any: one that never ends is one, too.
    pub fn has_syncs(&self) -> bool {
        self.syncs > 0 || self.oldest_us > 0
    }

    /// Whether the tail was over the target.
    pub fn is_over_target(&self) -> bool {
        self.target_us.is_some_and(|target| self.tail_us() > Some(target))
    }
}

/// The columns of [`Second`] as they stand in JSON.
pub const COLUMNS: [&str; 18] = [
    "at_ms",
    "syncs",
    "p50_us",
    "p99_us",
    "max_us",
    "oldest_us",
    "target_us",
    "kept",
    "limit_bytes",
    "backlog_bytes",
    "written_bytes",
    "bulk_bytes",
    "bulk_held_ms",
    "own_held_ms",
    "holding",
    "private_dirty_bytes",
    "private_pace",
    "of_cgroup",
];

/// A second as an array.
#[derive(Serialize, Deserialize)]
struct Row(
    u64,
    u64,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    u64,
    Option<u64>,
    Option<f32>,
    u64,
    u64,
    u64,
    Option<u64>,
    u64,
    u64,
    bool,
    // Both stand there where bulk writers' own cgroups were held or the next one stands, else neither, as in histories of before.
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")] bool,
);

impl From<Row> for Second {
    fn from(row: Row) -> Second {
        Second {
            at_ms: row.0,
            syncs: row.1,
            p50_us: row.2,
            p99_us: row.3,
            max_us: row.4,
            oldest_us: row.5,
            target_us: row.6,
            kept: row.7,
            limit_bytes: row.8,
            backlog_bytes: row.9,
            written_bytes: row.10,
            bulk_bytes: row.11,
            bulk_held_ms: row.12,
            own_held_ms: row.13,
            holding: row.14,
            private_dirty_bytes: row.15.flatten(),
            private_pace: row.16.flatten(),
            of_cgroup: row.17,
        }
    }
}

impl From<Second> for Row {
    fn from(second: Second) -> Row {
        // Three digits are what a share of a rate is good for; more would be half of the file.
        let kept = second.kept.map(|kept| (kept * 1000.0).round() / 1000.0);
        let is_held =
            second.private_dirty_bytes.is_some() || second.private_pace.is_some() || second.of_cgroup;
        Row(
            second.at_ms,
            second.syncs,
            second.p50_us,
            second.p99_us,
            second.max_us,
            second.oldest_us,
            second.target_us,
            kept,
            second.limit_bytes,
            second.backlog_bytes,
            second.written_bytes,
            second.bulk_bytes,
            second.bulk_held_ms,
            second.own_held_ms,
            second.holding,
            is_held.then_some(second.private_dirty_bytes),
            is_held.then_some(second.private_pace),
            second.of_cgroup,
        )
    }
}

/// What is added to a history while it is made: one line of the file beside the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addition {
    /// Seconds of a device.
    Seconds {
        /// Which, in the order of [`History::devices`].
        device: usize,
        /// In the order of time.
        seconds: Vec<Second>,
    },
    /// Decisions.
    Decisions {
        /// In the order of time.
        decisions: Vec<Noted>,
        /// So many were left out.
        left_out: u64,
    },
}

impl History {
    /// Of this version, with nothing in it.
    pub fn new() -> History {
        History { schema: SCHEMA.to_string(), ..History::default() }
    }

    /// Takes in the lines that were added. The last one may have been cut off by a kill: what cannot be read ends it.
    /// `false`: something could not be read.
    pub fn take_in(&mut self, lines: &str) -> bool {
        for line in lines.lines() {
            match weir_core::json::parse(line) {
                Ok(Addition::Seconds { device, seconds }) => match self.devices.get_mut(device) {
                    Some(device) => device.seconds.extend(seconds),
                    None => return false,
                },
                Ok(Addition::Decisions { decisions, left_out }) => {
                    self.decisions.extend(decisions);
                    self.left_out += left_out;
                }
                Err(_) => return false,
            }
        }
        true
    }
}

/// A decision worth a line: which device, when, on what, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    /// In milliseconds since the start of the record, the time that the machine slept included.
    pub at_ms: u64,
    /// The device's name, in a history that of its [`DeviceHistory`]; empty where the guard itself is meant.
    pub device: String,
    /// The decision; absent where something happened without one, such as a device that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What came of it.
    pub effect: Effect,
}

/// What came of a decision, or what happened to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Nothing was to be done.
    None,
    /// The limit is led to this many bytes.
    Written {
        /// As asked for; on a long way down it gets there in steps.
        bytes: u64,
    },
    /// It would be, were this no shadow.
    Shadow {
        /// As it would be.
        bytes: u64,
    },
    /// The kernel did not take it.
    Refused {
        /// Why.
        why: String,
    },
    /// Somebody else has changed the limit: the guard leaves it alone from now on.
    StoodDown {
        /// What was seen.
        why: String,
    },
    /// The device is gone.
    Gone,
    /// The device is back.
    Back,
    /// The machine slept.
    Slept {
        /// For so long, in milliseconds.
        ms: u64,
    },
    /// Something else that a reader has to know.
    Remark {
        /// The sentence.
        what: String,
    },
}

impl Noted {
    /// The branch of its decision.
    pub fn branch(&self) -> Option<Branch> {
        self.decision.as_ref().map(|decision| decision.branch)
    }

    /// Released or holding after it.
    pub fn mood(&self) -> Option<Mood> {
        self.decision.as_ref().map(|decision| decision.mood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sync_that_stands_still_counts_where_it_is_more_than_a_hundredth() {
        let second = |syncs, p99_us, oldest_us| Second {
            syncs,
            p99_us,
            oldest_us,
            target_us: Some(2000),
            ..Second::default()
        };
        let cases = [
            ("one of very many", second(1500, Some(400), 90_000), (Some(400), false)),
            ("one of a few", second(99, Some(400), 90_000), (Some(90_000), true)),
            ("nothing ends", second(0, None, 900_000), (Some(900_000), true)),
            ("many are late", second(1500, Some(2001), 0), (Some(2001), true)),
            ("nobody syncs", second(0, None, 0), (None, false)),
        ];
        for (name, second, (tail, is_over)) in cases {
            assert_eq!((second.tail_us(), second.is_over_target()), (tail, is_over), "{name}");
        }
        assert!(!Second { target_us: None, ..second(0, None, 900_000) }.is_over_target());
    }

    #[test]
    fn a_second_is_a_row_in_the_order_of_its_columns() {
        let second = Second {
            at_ms: 1000,
            syncs: 15,
            p99_us: Some(92_000),
            kept: Some(0.93456),
            limit_bytes: 8_000_000,
            holding: true,
            private_pace: Some(30_000_000),
            of_cgroup: true,
            ..Second::default()
        };
        let row = serde_json::to_value(second).unwrap();
        let row = row.as_array().unwrap();
        assert_eq!(row.len(), COLUMNS.len());
        let column = |name: &str| &row[COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!(column("at_ms"), 1000);
        assert_eq!(column("p99_us"), 92_000);
        assert!(column("p50_us").is_null());
        assert_eq!(column("limit_bytes"), 8_000_000);
        assert_eq!(column("holding"), true);
        let read: Second = serde_json::from_value(serde_json::Value::Array(row.clone())).unwrap();
        assert_eq!(read.kept, Some(0.935));
        assert_eq!(Second { kept: None, ..read }, Second { kept: None, ..second });
        // Of versions that knew neither private limits nor that of a cgroup, or private limits alone: nor are they shown any.
        for (columns, expected) in [
            (15, Second { private_pace: None, of_cgroup: false, ..read }),
            (17, Second { of_cgroup: false, ..read }),
        ] {
            let older = serde_json::Value::Array(row[..columns].to_vec());
            let older: Second = serde_json::from_value(older).unwrap();
            assert_eq!(older, expected, "{columns} columns");
            assert_eq!(serde_json::to_value(older).unwrap().as_array().unwrap()[..], row[..columns]);
        }
        let alone = Second { private_pace: None, ..second };
        let again: Second = serde_json::from_value(serde_json::to_value(alone).unwrap()).unwrap();
        assert_eq!(again, Second { kept: again.kept, ..alone });
    }
}
