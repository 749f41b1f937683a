//! How long was recorded: longer than from the first event to the last.

use serde::{Deserialize, Serialize};

/// When recording began and ended, ns of the recording's clock, where that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extent {
    /// From then on events were recorded.
    pub begun_ns: Option<u64>,
    /// Up to then.
    pub ended_ns: Option<u64>,
}

impl Extent {
    /// Whether both ends are known.
    pub fn is_known(self) -> bool {
        self.begun_ns.is_some() && self.ended_ns.is_some()
    }

    /// Begin and end; the first and the last event stand for what is not known, and lie within what is. A last event at 0 is none.
    pub fn around(self, first_ns: u64, last_ns: u64) -> (u64, u64) {
        if last_ns == 0 {
            return self.begun_ns.zip(self.ended_ns).unwrap_or_default();
        }
        let begun_ns = self.begun_ns.map_or(first_ns, |begun_ns| begun_ns.min(first_ns));
        (begun_ns, self.ended_ns.map_or(last_ns, |ended_ns| ended_ns.max(last_ns)))
    }
}
