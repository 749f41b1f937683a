//! When a device stands still: I/O is in flight, and none completes.

use std::collections::BTreeMap;

/// What a device's counters say at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The kernel's name of the device.
    pub device: String,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests completed since boot, flushes and discards included.
    pub completed: u64,
}

/// What is to be said of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stall {
    /// It has completed nothing for as long as is too long.
    Begun {
        /// The device.
        device: String,
        /// For so long already, ns.
        for_ns: u64,
        /// Requests in flight.
        in_flight: u64,
    },
    /// It completes again, has nothing in flight any more, or is gone.
    Ended {
        /// The device.
        device: String,
        /// When it was first seen to stand still, by the clock of the readings.
        since_ns: u64,
        /// How long it stood still at least, ns.
        took_ns: u64,
    },
}

/// Devices that have I/O in flight.
#[derive(Debug, Default)]
pub struct Stalls {
    threshold_ns: u64,
    waiting: BTreeMap<String, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    completed: u64,
    since_ns: u64,
    told: bool,
}

impl Stalls {
    /// A device stands still when it completes nothing for so long.
    pub fn new(threshold_ns: u64) -> Stalls {
        Stalls { threshold_ns, waiting: BTreeMap::new() }
    }

    /// Takes readings of all devices; the clock must stand still while the machine sleeps.
    pub fn look(&mut self, now_ns: u64, readings: &[Reading]) -> Vec<Stall> {
        let mut said = Vec::new();
        let goes_on = |device: &str, waiting: &Waiting| {
            let same = |reading: &Reading| reading.device == device && reading.completed == waiting.completed;
            readings.iter().any(|reading| same(reading) && reading.in_flight > 0)
        };
        self.waiting.retain(|device, waiting| {
            let stays = goes_on(device, waiting);
            if !stays && waiting.told {
                let took_ns = now_ns.saturating_sub(waiting.since_ns);
                said.push(Stall::Ended { device: device.clone(), since_ns: waiting.since_ns, took_ns });
            }
            stays
        });
        for reading in readings.iter().filter(|reading| reading.in_flight > 0) {
            let Reading { device, in_flight, completed } = reading.clone();
            let new = Waiting { completed, since_ns: now_ns, told: false };
            let waiting = self.waiting.entry(device.clone()).or_insert(new);
            let for_ns = now_ns.saturating_sub(waiting.since_ns);
            if !waiting.told && for_ns >= self.threshold_ns {
                waiting.told = true;
                said.push(Stall::Begun { device, for_ns, in_flight });
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_stands_still_when_it_completes_nothing_and_is_not_idle() {
        let mut stalls = Stalls::new(1000);
        let sda = |in_flight, completed| [Reading { device: "sda".into(), in_flight, completed }];
        let ended = |since_ns, took_ns| Stall::Ended { device: "sda".into(), since_ns, took_ns };
        let begun = |for_ns, in_flight| Stall::Begun { device: "sda".into(), for_ns, in_flight };
        for (at, readings, expected) in [
            // Idle for long, then busy, each time with another request.
            (0, sda(0, 5), vec![]),
            (2000, sda(1, 5), vec![]),
            (2900, sda(1, 6), vec![]),
            (3800, sda(3, 6), vec![]),
            // Nothing has completed since 2900.
            (3900, sda(3, 6), vec![begun(1000, 3)]),
            (4900, sda(4, 6), vec![]),
            (5900, sda(4, 7), vec![ended(2900, 3000)]),
            (6900, sda(4, 7), vec![begun(1000, 4)]),
            (7000, sda(0, 7), vec![ended(5900, 1100)]),
            (9000, sda(2, 7), vec![]),
        ] {
            assert_eq!(stalls.look(at, &readings), expected, "{at}");
        }
        assert_eq!(stalls.look(10_000, &sda(2, 7)), [begun(1000, 2)]);
        assert_eq!(stalls.look(11_000, &[]), [ended(9000, 2000)], "it is gone");
    }
}
