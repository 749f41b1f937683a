//! What a simulation leaves behind.

use serde::{Deserialize, Serialize};

use crate::Reason;
use weir_core::stats::Histogram;

/// One second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, in nanoseconds from the start.
    pub at_ns: u64,
    /// Commits that ended.
    pub commits: u64,
    /// Their durations, from the begin of their write.
    pub durations: Histogram,
    /// Age of the oldest commit under way at the end.
    pub oldest_ns: u64,
    /// Bytes of bulk writers that reached the device.
    pub bulk_bytes: u64,
    /// Bytes of all that did.
    pub bytes: u64,
    /// Requests that did.
    pub requests: u64,
    /// Bytes that the device would have accepted at its rate.
    pub accepted_bytes: f64,
    /// Bytes that bulk writers would have written at their own speed; infinite where they write all they can.
    #[serde(skip)]
    pub wanted_bytes: f64,
    /// Most dirty bytes seen, those under way among them.
    pub backlog_bytes: u64,
    /// The limit at the end.
    pub limit_bytes: u64,
    /// Sync threads at the end.
    pub threads: u32,
    /// Bulk writers at the end.
    pub writers: u32,
}

/// A limit that a law set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// When.
    pub at_ns: u64,
    /// To what.
    pub bytes: u64,
    /// Why.
    pub branch: Reason,
}

/// What a simulation leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Where the limit went.
    pub moves: Vec<Move>,
}

impl History {
    /// Commits a second on average between two seconds of the history, the second one not included; 0 without any.
    pub fn commits_per_second(&self, from: usize, to: usize) -> f64 {
        self.mean(from, to, |second| second.commits as f64)
    }

    /// Bytes of bulk writers a second that reached the device, as [`History::commits_per_second`].
    pub fn bulk_per_second(&self, from: usize, to: usize) -> f64 {
        self.mean(from, to, |second| second.bulk_bytes as f64)
    }

    /// Durations of commits between two seconds.
    pub fn durations(&self, from: usize, to: usize) -> Histogram {
        let mut all = Histogram::new();
        self.between(from, to).iter().for_each(|second| all.merge(&second.durations));
        all
    }

    /// The seconds from one to another, as far as there are.
    pub fn between(&self, from: usize, to: usize) -> &[Second] {
        let to = to.min(self.seconds.len());
        &self.seconds[from.min(to)..to]
    }

    fn mean(&self, from: usize, to: usize, figure: impl Fn(&Second) -> f64) -> f64 {
        let seconds = self.between(from, to);
        seconds.iter().map(figure).sum::<f64>() / seconds.len().max(1) as f64
    }
}
