//! Changes that were tried, and what they did.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use weir_core::stats::bootstrap::RatioInterval;
use weir_core::workload::SpecError;
use weir_core::workload::text::unknown;

/// Something that can be changed for a trial and restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Commits answered before the log is on the device. Only ever on a throw-away server.
    FlushOff,
    /// The same data on a RAM disk.
    InMemory,
    /// The server on half of the processors.
    HalfProcessors,
    /// Twice the connections.
    TwiceThreads,
    /// Half the connections.
    HalfThreads,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The change.
    pub change: Change,
    /// Rate with it over the rate without, with its 95 % interval; `None` with too few seconds or pairs.
    pub ratio: Option<RatioInterval>,
    /// The most that the verdict allows, as a ratio; `None` where it bounds nothing of the kind.
    #[serde(default)]
    pub bound: Option<f64>,
    /// Pairs of runs.
    pub pairs: u32,
    /// Whether that is what the verdict says; `None` where it says nothing of it, or the interval is too wide to tell.
    pub confirms: Option<bool>,
    /// In a sentence.
    pub sentence: String,
}

impl Change {
    /// All, in the order in which they are tried.
    pub const ALL: [Change; 5] = [
        Change::FlushOff,
        Change::HalfProcessors,
        Change::TwiceThreads,
        Change::HalfThreads,
        Change::InMemory,
    ];

    /// The word on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Change::FlushOff => "flush-off",
            Change::InMemory => "in-memory",
            Change::HalfProcessors => "half-processors",
            Change::TwiceThreads => "twice-threads",
            Change::HalfThreads => "half-threads",
        }
    }

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Change::FlushOff => "commits without a flush",
            Change::InMemory => "the data on a RAM disk",
            Change::HalfProcessors => "the server on half of the processors",
            Change::TwiceThreads => "twice the connections",
            Change::HalfThreads => "half the connections",
        }
    }
}

impl FromStr for Change {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Change, SpecError> {
        let known = Change::ALL.map(Change::word);
        let found = Change::ALL.into_iter().find(|change| change.word() == text);
        found.ok_or_else(|| unknown("change", text, &known))
    }
}
