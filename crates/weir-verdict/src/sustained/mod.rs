//! How long a load keeps its rate: from courses of saturating writes, an idle time and writes again to the credit of a
//! token bucket, or to a write cache that fills, or to neither. `weir doctor --sustained` runs them.
//!
//! A **token bucket** holds a credit that refills at a steady rate and that each operation, or each byte, takes from.
//! While there is credit, the load runs at the burst rate; then at the rate of the refill. So the credit is what was
//! done beyond that rate, and an idle time brings back what the rate would have done in it.

pub mod course;
pub mod fall;
pub mod judge;
#[cfg(any(test, feature = "samples"))]
pub mod made;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use course::Done;
use weir_core::target::DeviceCounters;
use weir_core::units::Bytes;

/// What writes press on: a limit of operations shows with small ones, a limit of bytes with large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    /// Random writes of 4 KiB.
    Small,
    /// Sequential writes of 1 MiB.
    Bulk,
}

impl Pressure {
    /// Both, in the order they are run.
    pub const ALL: [Pressure; 2] = [Pressure::Small, Pressure::Bulk];

    /// The word in names.
    pub fn name(self) -> &'static str {
        match self {
            Pressure::Small => "small",
            Pressure::Bulk => "bulk",
        }
    }

    /// Size of each write, and of those of the run that distinguishes the limits.
    pub fn blocks(self) -> (u64, u64) {
        match self {
            Pressure::Small => (4 << 10, 16 << 10),
            Pressure::Bulk => (1 << 20, 256 << 10),
        }
    }
}

/// What a step of a sustained examination is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Writes until the rate has fallen, or the time is up.
    Drain,
    /// Writes of the other size right after: the same operations per second, or the same bytes?
    Other,
    /// Reads right after: are they limited too?
    Reads,
    /// Writes after an idle time: has the credit come back?
    Again,
}

impl Part {
    /// The end of a step's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Part::Drain => "",
            Part::Other => "-other",
            Part::Reads => "-reads",
            Part::Again => "-again",
        }
    }
}

/// What the doctor notes of a sustained examination beside its jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SustainedNotes {
    /// When the measured part of each job began and ended, on one clock, in the order of the record's jobs.
    pub stretches: Vec<Stretch>,
    /// The provider's and the device's own counters before.
    pub counters_before: Vec<DeviceCounters>,
    /// And after.
    pub counters_after: Vec<DeviceCounters>,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// What a sustained examination found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// One for each kind of writes that was run.
    pub pressures: Vec<Endurance>,
    /// Counters of provider and device that moved meanwhile, by what they grew.
    pub counters: Vec<DeviceCounters>,
}

/// How long writes of one kind keep their rate. Rates and amounts are in `unit`, per second or in total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endurance {
    /// Which writes.
    pub pressure: Pressure,
    /// Size of each.
    pub block: Bytes,
    /// Id of the measurement.
    pub measurement: String,
    /// What it looks like.
    pub kind: Kind,
    /// How sure that is.
    pub sure: Sure,
    /// What the limit counts; absent where it could not be distinguished. Figures are then in operations.
    pub unit: Option<LimitUnit>,
    /// Rate before it fell; absent where it did not fall.
    pub burst: Option<Figure>,
    /// Rate afterwards, or throughout.
    pub sustained: Figure,
    /// What was done beyond the sustained rate since weir began, which is the credit that was there.
    pub credit: Option<Figure>,
    /// What an idle second brings back.
    pub refill: Option<Figure>,
    /// Whether the idle time filled the credit up: `refill` is then a lower bound.
    pub refilled_whole: bool,
    /// How long the burst lasted.
    pub burst_ns: Option<u64>,
    /// Bytes written until the rate fell, or altogether.
    pub written: Bytes,
    /// How long the load ran.
    pub elapsed_ns: u64,
    /// The idle time before the last run; 0: there was none.
    pub idle_ns: u64,
    /// Median latency before and after the fall.
    pub p50_ns: Option<(u64, u64)>,
    /// Whether reads were limited right after; absent where it was not tried.
    pub reads_limited: Option<bool>,
    /// Operations per second over time, the idle time left out: (seconds, rate).
    pub course: Vec<(f64, f64)>,
    /// The same of the last run.
    pub course_again: Vec<(f64, f64)>,
}

/// What the course of the rate looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The rate did not fall.
    Steady,
    /// Credit that came back while idle and was spent again.
    TokenBucket,
    /// The rate fell after so many bytes written, nothing came back in seconds, and reads stay fast.
    WriteCache,
    /// The rate fell, and what was seen afterwards fits neither.
    Fell,
}

/// How sure a conclusion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sure {
    /// Two measurements that do not depend on each other agree.
    Certain,
    /// What was seen fits, and something was not seen.
    Likely,
    /// Seen, not explained.
    Unexplained,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitUnit {
    /// Each operation, whatever its size.
    Operations,
    /// Each byte.
    Bytes,
}

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Figure {
    /// The figure in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Figure {
        Figure { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The steps of one kind of writes, as far as they ran.
#[derive(Debug, Clone, Default)]
pub struct Courses {
    /// Until the rate fell.
    pub drain: Vec<Done>,
    /// The other size.
    pub other: Vec<Done>,
    /// Reads.
    pub reads: Vec<Done>,
    /// After the idle time.
    pub again: Vec<Done>,
    /// From the last operation that was limited to the first one of the last run.
    pub idle_ns: u64,
    /// The same without counting reads.
    pub idle_of_writes_ns: u64,
    /// Bytes that were written before, since the examination began, and the time until the drain began.
    pub written_before: (u64, f64),
}
