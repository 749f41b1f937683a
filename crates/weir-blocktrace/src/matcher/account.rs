//! What became of every event, so that nothing is lost in silence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use weir_core::target::DeviceNumber;

/// Why an event is not part of an I/O whose beginning and end are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Reason {
    /// Its I/O began before the recording did: there is no Q, or no D, and the recording had just begun.
    BeforeStart,
    /// Its I/O has no Q, though the recording has Qs of its device. Stages that do not need it are counted.
    NoQ,
    /// A completion of something that was never issued.
    NoD,
    /// Its I/O never ended, though the recording went on for long: by [`super::Limits`], or by what others took.
    NoC,
    /// Its I/O was still in flight when the recording ended.
    AfterEnd,
    /// A requeue, merge or split of something not seen before.
    NoRequest,
    /// An act this version does not know.
    UnknownAct,
    /// Of a device beyond the number of devices followed; such events are counted under device 0:0.
    TooManyDevices,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// In the order of reports.
    pub const ALL: [Reason; Reason::COUNT] = [
        Reason::BeforeStart,
        Reason::NoQ,
        Reason::NoD,
        Reason::NoC,
        Reason::AfterEnd,
        Reason::NoRequest,
        Reason::UnknownAct,
        Reason::TooManyDevices,
    ];

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Reason::BeforeStart => "before_start",
            Reason::NoQ => "no_q",
            Reason::NoD => "no_d",
            Reason::NoC => "no_c",
            Reason::AfterEnd => "after_end",
            Reason::NoRequest => "no_request",
            Reason::UnknownAct => "unknown_act",
            Reason::TooManyDevices => "too_many_devices",
        }
    }
}

/// The events of one device: `events` is `matched` and all of `unmatched` together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Events taken.
    pub events: u64,
    /// Events that are part of an I/O known from beginning to end, and those of plugs, which belong to none. Where no Q of
    /// the device was recorded, an I/O begins with its first event.
    pub matched: u64,
    /// Of the matched: those that fitted several I/Os in flight at the same sector and went to the likeliest.
    pub ambiguous: u64,
    /// The others, by reason.
    pub unmatched: BTreeMap<Reason, u64>,
    /// Events that are not in the recording: gaps in the recorder's numbers.
    pub dropped: u64,
}

impl Account {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Account) {
        self.events += other.events;
        self.matched += other.matched;
        self.ambiguous += other.ambiguous;
        self.dropped += other.dropped;
        for (reason, count) in &other.unmatched {
            *self.unmatched.entry(*reason).or_default() += count;
        }
    }
}

/// The accounts of all devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unmatched {
    /// By device.
    #[serde(with = "pairs")]
    pub devices: BTreeMap<DeviceNumber, Account>,
    /// Events the recorder says it lost, of whatever device.
    pub dropped: u64,
}

impl Unmatched {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Unmatched) {
        for (device, account) in &other.devices {
            self.devices.entry(*device).or_default().merge(account);
        }
        self.dropped += other.dropped;
    }
}

/// A map whose keys are no strings, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Account;
    use weir_core::target::DeviceNumber;

    type Map = BTreeMap<DeviceNumber, Account>;

    pub(super) fn serialize<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map, D::Error> {
        Ok(Vec::<(DeviceNumber, Account)>::deserialize(deserializer)?.into_iter().collect())
    }
}
