//! When a device stands still: I/O is in flight, and none completes.

use std::collections::BTreeMap;

use crate::tables::Event;

/// The detail of an event of a device that still stood still when it was noted.
const GOES_ON: &str = r#"{"goes_on":true}"#;

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
        /// When it was first seen to stand still, Unix time, ms.
        since_ms: i64,
        /// For so long already, ns.
        for_ns: u64,
        /// Requests in flight.
        in_flight: u64,
    },
    /// It completes again, has nothing in flight any more, or is gone.
    Ended {
        /// The device.
        device: String,
        /// When it was first seen to stand still, as when that was said first.
        since_ms: i64,
        /// How long it stood still at least, ns.
        took_ns: u64,
    },
}

impl Stall {
    /// The device.
    pub fn device(&self) -> &str {
        match self {
            Stall::Begun { device, .. } | Stall::Ended { device, .. } => device,
        }
    }

    /// As an event: one when it begins, since it may last until nothing can be noted any more, and one of the same time when it is over.
    pub fn event(&self) -> Event {
        match self {
            Stall::Begun { device, since_ms, for_ns, .. } => event(device, *since_ms, *for_ns, GOES_ON),
            Stall::Ended { device, since_ms, took_ns } => event(device, *since_ms, *took_ns, "{}"),
        }
    }
}

fn event(device: &str, since_ms: i64, took_ns: u64, detail: &str) -> Event {
    Event {
        ts_ms: since_ms,
        kind: "stall".to_string(),
        device: device.to_string(),
        took_ns: i64::try_from(took_ns).unwrap_or(i64::MAX),
        detail: detail.to_string(),
        ..Event::default()
    }
}

/// Whether an event is of a device that still stood still when it was noted.
pub fn goes_on(event: &Event) -> bool {
    event.kind == "stall" && event.detail == GOES_ON
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
    since_ms: i64,
    told: bool,
}

impl Stalls {
    /// A device stands still when it completes nothing for so long.
    pub fn new(threshold_ns: u64) -> Stalls {
        Stalls { threshold_ns, waiting: BTreeMap::new() }
    }

    /// Takes readings of all devices; the clock `now_ns` must stand still while the machine sleeps, `now_ms` is Unix time.
    pub fn look(&mut self, now_ns: u64, now_ms: i64, readings: &[Reading]) -> Vec<Stall> {
        let mut said = Vec::new();
        let goes_on = |device: &str, waiting: &Waiting| {
            let same = |reading: &Reading| reading.device == device && reading.completed == waiting.completed;
            readings.iter().any(|reading| same(reading) && reading.in_flight > 0)
        };
        self.waiting.retain(|device, waiting| {
            let stays = goes_on(device, waiting);
            if !stays && waiting.told {
                let took_ns = now_ns.saturating_sub(waiting.since_ns);
                said.push(Stall::Ended { device: device.clone(), since_ms: waiting.since_ms, took_ns });
            }
            stays
        });
        for reading in readings.iter().filter(|reading| reading.in_flight > 0) {
            let Reading { device, in_flight, completed } = reading.clone();
            let new = Waiting { completed, since_ns: now_ns, since_ms: now_ms, told: false };
            let waiting = self.waiting.entry(device.clone()).or_insert(new);
            let for_ns = now_ns.saturating_sub(waiting.since_ns);
            if !waiting.told && for_ns >= self.threshold_ns {
                waiting.told = true;
                said.push(Stall::Begun { device, since_ms: waiting.since_ms, for_ns, in_flight });
            }
        }
        said
    }

    /// Events of the devices that were said to stand still and still do, for one who looks no more.
    pub fn going_on(&self, now_ns: u64) -> Vec<Event> {
        let told = self.waiting.iter().filter(|(_, waiting)| waiting.told);
        told.map(|(device, waiting)| {
            event(device, waiting.since_ms, now_ns.saturating_sub(waiting.since_ns), GOES_ON)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unix time, ms, less the clock of the readings.
    const CLOCK_MS: i64 = 1_000_000;

    #[test]
    fn a_device_stands_still_when_it_completes_nothing_and_is_not_idle() {
        let mut stalls = Stalls::new(1000);
        let sda = |in_flight, completed| [Reading { device: "sda".into(), in_flight, completed }];
        let ended =
            |since, took_ns| Stall::Ended { device: "sda".into(), since_ms: CLOCK_MS + since, took_ns };
        let begun = |since, for_ns, in_flight| Stall::Begun {
            device: "sda".into(),
            since_ms: CLOCK_MS + since,
            for_ns,
            in_flight,
        };
        for (at, readings, expected) in [
            // Idle for long, then busy, each time with another request.
            (0, sda(0, 5), vec![]),
            (2000, sda(1, 5), vec![]),
            (2900, sda(1, 6), vec![]),
            (3800, sda(3, 6), vec![]),
            // Nothing has completed since 2900.
            (3900, sda(3, 6), vec![begun(2900, 1000, 3)]),
            (4900, sda(4, 6), vec![]),
            (5900, sda(4, 7), vec![ended(2900, 3000)]),
            (6900, sda(4, 7), vec![begun(5900, 1000, 4)]),
            (7000, sda(0, 7), vec![ended(5900, 1100)]),
            (9000, sda(2, 7), vec![]),
        ] {
            assert_eq!(stalls.look(at, CLOCK_MS + at as i64, &readings), expected, "{at}");
        }
        // The clock was set meanwhile: it began when it was seen to begin.
        assert_eq!(stalls.look(10_000, 0, &sda(2, 7)), [begun(9000, 1000, 2)]);
        assert_eq!(stalls.look(11_000, 0, &[]), [ended(9000, 2000)], "it is gone");
    }

    #[test]
    fn a_hang_is_an_event_before_it_is_over() {
        let mut stalls = Stalls::new(1000);
        let sda = [Reading { device: "sda".into(), in_flight: 1, completed: 5 }];
        assert!(stalls.look(0, CLOCK_MS, &sda).is_empty() && stalls.going_on(500).is_empty());
        let begun = stalls.look(1000, CLOCK_MS, &sda)[0].event();
        assert_eq!((begun.ts_ms, begun.took_ns, begun.device.as_str()), (CLOCK_MS, 1000, "sda"));
        // The recorder ends and the device still hangs.
        let [last] = &stalls.going_on(7000)[..] else { panic!("one device") };
        assert_eq!((last.ts_ms, last.took_ns), (CLOCK_MS, 7000));
        assert!(goes_on(&begun) && goes_on(last));
        let ended = stalls.look(9000, CLOCK_MS, &[])[0].event();
        assert_eq!((ended.ts_ms, ended.took_ns, goes_on(&ended)), (CLOCK_MS, 9000, false));
        assert!(stalls.going_on(9000).is_empty());
    }
}
