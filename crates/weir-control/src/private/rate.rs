//! At what rate the device accepts writes.

use super::constants::{CUT_MOST, SECOND_NS};
use super::looks::Looks;

/// How long a device has to take less, with more to write all the time, until it is believed to be slower.
const SLOWER_NS: u64 = 2 * SECOND_NS;

/// Follows a device that becomes faster at once, and one that becomes slower as soon as it is known that it is not the writers
/// who pause.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    /// Of the last second.
    looks: Looks,
    bytes_per_second: f64,
    /// So long it has had more to write than it took.
    full_ns: u64,
}

impl Rate {
    /// Takes in a look; `is_full`: the device has more to write than it takes.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64, is_full: bool) {
        let held = self.looks.push(elapsed_ns, bytes, SECOND_NS);
        self.full_ns = if is_full { self.full_ns + elapsed_ns } else { 0 };
        if held < SECOND_NS / 2 {
            return;
        }
        let second = self.last_second();
        if second > self.bytes_per_second {
            self.bytes_per_second = second;
        } else if self.full_ns >= SLOWER_NS {
            self.bytes_per_second = second.max(CUT_MOST * self.bytes_per_second);
            self.full_ns = SLOWER_NS / 2;
        }
    }

    /// What it takes, in bytes a second.
    pub fn get(&self) -> f64 {
        self.bytes_per_second
    }

    /// What it took in the last second.
    pub fn last_second(&self) -> f64 {
        self.looks.per_second()
    }
}
