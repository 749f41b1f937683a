//! What devices do from second to second: kept for snapshots, and looked at for devices that stand still.

use std::collections::{BTreeMap, VecDeque};

use weir_archive::snapshot::Second;
use weir_archive::stall::{Reading, Stall, Stalls};
use weir_archive::tables::Event;
use weir_core::target::DeviceNumber;
use weir_host::{Counts, Host};

use super::control::LAST_MAX_MS;
use crate::clock::Moment;

/// The last seconds of devices.
pub struct Watch {
    before: Counts,
    looked: Moment,
    stalls: Stalls,
    seconds: VecDeque<Second>,
}

impl Watch {
    /// From now on.
    pub fn begin(host: &Host, known: &BTreeMap<DeviceNumber, String>, stall_ns: u64) -> Watch {
        Watch {
            before: host.counts_in_short(known),
            looked: Moment::now(),
            stalls: Stalls::new(stall_ns),
            seconds: VecDeque::new(),
        }
    }

    /// Takes a second of the devices that are known; says which stand still, and which do so no more.
    pub fn look(
        &mut self,
        host: &Host,
        known: &BTreeMap<DeviceNumber, String>,
        now: Moment,
        now_ms: i64,
    ) -> Vec<Stall> {
        let counts = host.counts_in_short(known);
        let span_ms = (now.boot_ns.saturating_sub(self.looked.boot_ns) / 1_000_000) as i64;
        let mut second = Second { at_ms: now_ms, span_ms, counters: BTreeMap::new() };
        for counted in counts.since(&self.before) {
            second.counters.entry(counted.device).or_default().insert(counted.name, counted.value);
        }
        self.seconds.push_back(second);
        while self.seconds.len() as u64 > LAST_MAX_MS / 1000 {
            self.seconds.pop_front();
        }
        let reading = |(device, in_flight, completed): (&str, u64, u64)| Reading {
            device: device.to_string(),
            in_flight,
            completed,
        };
        let readings: Vec<Reading> = counts.requests().into_iter().map(reading).collect();
        (self.before, self.looked) = (counts, now);
        self.stalls.look(now.awake_ns, now_ms, &readings)
    }

    /// Events of devices that stand still and were said to.
    pub fn going_on(&self, now: Moment) -> Vec<Event> {
        self.stalls.going_on(now.awake_ns)
    }

    /// Seconds since a time, Unix time, ms.
    pub fn since(&self, from_ms: i64) -> Vec<Second> {
        self.seconds.iter().filter(|second| second.at_ms >= from_ms).cloned().collect()
    }
}
