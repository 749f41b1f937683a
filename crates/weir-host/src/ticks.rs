//! How long writes and flushes of a device took, as its counters tell it.

use weir_core::target::DeviceNumber;

use crate::diskstats;
use crate::error::HostError;
use crate::host::Host;

/// Counters of a device: since boot, or what they grew by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Writes that ended.
    pub writes: u64,
    /// What they took together, ms.
    pub write_ms: u64,
    /// Flushes that ended; 0 for ever before Linux 5.5.
    pub flushes: u64,
    /// What they took together, ms.
    pub flush_ms: u64,
    /// Requests under way.
    pub in_flight: u64,
}

impl Ticks {
    /// What they grew by since an earlier reading, and what is under way now; `None` where another device has the number now.
    pub fn since(&self, earlier: &Ticks) -> Option<Ticks> {
        Some(Ticks {
            writes: self.writes.checked_sub(earlier.writes)?,
            write_ms: diskstats::grown_ms(earlier.write_ms, self.write_ms),
            flushes: self.flushes.checked_sub(earlier.flushes)?,
            flush_ms: diskstats::grown_ms(earlier.flush_ms, self.flush_ms),
            in_flight: self.in_flight,
        })
    }
}

impl Host {
    /// A device's counters; `None` where there is no such device.
    ///
    /// # Errors
    /// When `/proc/diskstats` cannot be read or understood.
    pub fn ticks(&self, device: DeviceNumber) -> Result<Option<Ticks>, HostError> {
        let all = self.tree.parsed("/proc/diskstats", diskstats::parse)?;
        Ok(all.get(&device).map(|counters| Ticks {
            writes: counters.writes,
            write_ms: counters.write_ms,
            flushes: counters.flushes,
            flush_ms: counters.flush_ms,
            in_flight: counters.in_flight,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    #[test]
    fn counters_are_those_of_the_device() {
        let machine = Machine::new();
        let line = "   8       0 sda 1 2 3 4 50 6 7 800 9 10 11 12 13 14 15 160 170\n";
        machine.set("/proc/diskstats", line);
        let found = |minor| machine.host.ticks(DeviceNumber { major: 8, minor }).unwrap();
        let expected = Ticks { writes: 50, write_ms: 800, flushes: 160, flush_ms: 170, in_flight: 9 };
        assert_eq!(found(0), Some(expected));
        assert_eq!(found(1), None);
        let later = Ticks { writes: 52, write_ms: 4, flushes: 161, flush_ms: 180, in_flight: 0 };
        let before = Ticks { write_ms: u64::from(u32::MAX), ..expected };
        let grown = Ticks { writes: 2, write_ms: 5, flushes: 1, flush_ms: 10, in_flight: 0 };
        assert_eq!((later.since(&before), before.since(&later)), (Some(grown), None));
    }
}
