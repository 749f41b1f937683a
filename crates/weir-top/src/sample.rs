//! What the screen is made of: one sample an interval.

use std::collections::BTreeMap;

use weir_blocktrace::Frame;
use weir_blocktrace::fsync::{Anatomy, SlowSync};
use weir_core::target::PressureLoad;

/// Processes and slow syncs of one sample that are kept; the busiest and the longest.
pub const PROCESSES_MAX: usize = 100;
pub const SLOW_MAX: usize = 40;

/// What stays the same while watching.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// The machine.
    pub host: String,
    /// Where the figures come from, in a few words.
    pub source: String,
    /// Sentences: what cannot be seen here, and why.
    pub remarks: Vec<String>,
    /// Time between samples, ns.
    pub interval_ns: u64,
    /// From when on a sync is slow, ns.
    pub slow_ns: u64,
}

/// One interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The wall clock at its end, as people read it.
    pub clock: String,
    /// The same, Unix time, ms.
    pub at_ms: i64,
    /// Whether a recorder has written it down: nobody watched.
    pub is_recorded: bool,
    /// Devices, memory, what was lost, what watching cost.
    pub frame: Frame,
    /// Share of the time in which tasks waited, by resource; empty where the kernel keeps none.
    pub pressure: BTreeMap<String, PressureLoad>,
    /// Processes that read, wrote or synced.
    pub processes: Vec<Process>,
    /// Syncs of all processes together; `None` where they cannot be seen.
    pub syncs: Option<Syncs>,
    /// Syncs that took long and ended in it.
    pub slow: Vec<SlowSync>,
}

/// All syncs of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Syncs {
    /// Those that returned, by the second.
    pub per_second: f64,
    /// Those that had not returned at its end.
    pub under_way: usize,
    /// Their time together.
    pub anatomy: Anatomy,
}

/// A process in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    /// Its id; `None` stands for a group that the name describes.
    pub pid: Option<u32>,
    /// Its name, as it chose it.
    pub name: String,
    /// The unit or container it runs in, where that is known.
    pub unit: Option<String>,
    /// Bytes it made the storage read, per second; `None` where nobody may know.
    pub read: Option<f64>,
    /// Bytes it made dirty or wrote directly, per second.
    pub written: Option<f64>,
    /// Its syncs, where it had any.
    pub syncs: Option<Anatomy>,
}

impl Sample {
    /// When its interval began, Unix time, ms.
    pub fn begin_ms(&self) -> i64 {
        self.at_ms.saturating_sub_unsigned(self.frame.length_ns / 1_000_000)
    }
}

/// Which recorded samples the screen asks for; times are Unix time, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Those that had ended by then: the last of them.
    Before(i64),
    /// Those that ended after then: the first of them.
    After(i64),
}

impl Process {
    /// Syncs that returned, by the second of an interval of this length.
    pub fn syncs_per_second(&self, length_ns: u64) -> f64 {
        self.syncs.as_ref().map_or(0.0, |syncs| syncs.syncs as f64 * 1e9 / length_ns.max(1) as f64)
    }

    /// Threads that were inside a sync, on the mean.
    pub fn waiting(&self, length_ns: u64) -> f64 {
        self.syncs.as_ref().map_or(0.0, |syncs| syncs.wall_ns as f64 / length_ns.max(1) as f64)
    }

    /// Bytes read and written per second.
    pub fn moved(&self) -> f64 {
        self.read.unwrap_or(0.0) + self.written.unwrap_or(0.0)
    }
}

/// Where samples come from: the machine as it is now, or what a recorder has written.
pub trait Samples {
    /// Why there is none.
    type Error;

    /// What stays the same.
    fn about(&self) -> &About;

    /// Recorded samples that the screen has no more of, oldest first; none where there are no others, or no recorder's archive.
    fn recorded(&mut self, wish: Wish) -> Vec<Sample> {
        let _ = wish;
        Vec::new()
    }

    /// Takes in what has piled up; called some twenty times a second.
    ///
    /// # Errors
    /// What the source said.
    fn drain(&mut self) -> Result<(), Self::Error>;

    /// What happened since the last call; `None` where no more will come.
    ///
    /// # Errors
    /// What the source said.
    fn take(&mut self) -> Result<Option<Sample>, Self::Error>;
}
