//! What happens to a plant, and scripts of it.

use serde::{Deserialize, Serialize};

use super::spec::FloodKind;

const SECOND: u64 = 1_000_000_000;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// So many threads sync from now on; those that are gone end their commit first.
    Threads(u32),
    /// Whether sync threads go past the page cache, from their next commit on.
    Direct(bool),
    /// Sync threads rest so long between commits, in nanoseconds.
    Think(u64),
    /// So many bulk writers write; 0 ends the flood. What is dirty stays.
    Flood(u32),
    /// How they write.
    Kind(FloodKind),
    /// Bytes per second that one bulk writer wants to write; 0 for all it can.
    Wanted(f64),
    /// Whether the bulk writers belong to those who are protected.
    Checkpoint(bool),
    /// The device accepts this multiple of its specified bytes and requests.
    Rate(f64),
    /// The device accepts this multiple of its specified bytes, and as many requests as before.
    Bandwidth(f64),
    /// The device accepts this multiple of its specified requests, and as many bytes as before.
    Requests(f64),
    /// A request takes this multiple of its specified latency.
    Latency(f64),
    /// The device ends nothing for so long, in nanoseconds.
    Stall(u64),
    /// Whether the sensor is silent.
    Silence(bool),
}

/// An event and when it happens, in nanoseconds from the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// When.
    pub at_ns: u64,
    /// What.
    pub event: Event,
}

/// What happens, in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// How long it all takes, in nanoseconds.
    pub length_ns: u64,
    /// The events.
    pub events: Vec<Timed>,
}

impl Script {
    /// Reads one from TOML.
    ///
    /// # Errors
    /// Where the text is no TOML or names what there is not; says the line and what was expected.
    pub fn from_toml(text: &str) -> Result<Script, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Nothing happens for so many seconds but what the specification starts with.
    pub fn of_seconds(seconds: u64) -> Script {
        Script { length_ns: seconds * SECOND, events: Vec::new() }
    }

    /// With one more event, so many seconds from the start; to be added in the order of time.
    pub fn and(mut self, at_seconds: f64, event: Event) -> Script {
        self.events.push(Timed { at_ns: (at_seconds * SECOND as f64) as u64, event });
        self
    }

    /// The phases that a guard is measured with, each of `phase` seconds: idle at ten threads and at one, a flood at
    /// one thread, at ten, at one again, bulk alone, syncs alone. With `steps` the device falls to a quarter of its
    /// bytes a second for a third of each flooded phase.
    pub fn gauntlet(phase: u64, steps: bool) -> Script {
        let phase = phase as f64;
        let mut script = Script { length_ns: (phase * 7.0) as u64 * SECOND, events: Vec::new() };
        let threads = [10, 1, 1, 10, 1, 0, 10];
        for (i, threads) in threads.into_iter().enumerate() {
            let begin = i as f64 * phase;
            let flood = u32::from((2..6).contains(&i));
            script = script.and(begin, Event::Threads(threads)).and(begin, Event::Flood(flood));
            if steps && flood == 1 {
                script = script.and(begin + phase / 3.0, Event::Bandwidth(0.24));
                script = script.and(begin + phase * 2.0 / 3.0, Event::Bandwidth(1.0));
            }
        }
        script
    }
}
