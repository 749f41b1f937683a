//! Scripts at random: what may happen to a database server's storage in minutes or hours.

use weir_core::stats::random::Random;

use super::event::{Event, Script, Timed};
use super::spec::{Credits, Drift, FloodKind, PlantSpec};

const SECOND: f64 = 1e9;

/// A plant and what happens to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The plant.
    pub spec: PlantSpec,
    /// What happens.
    pub script: Script,
}

/// Between two numbers, evenly by their logarithm.
pub fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.uniform())
}

fn chance(random: &mut Random, share: f64) -> bool {
    random.uniform() < share
}

fn kind(random: &mut Random) -> FloodKind {
    if chance(random, 0.5) { FloodKind::Fresh } else { FloodKind::Rewriting }
}

/// A device of any size, with whatever devices do.
pub fn plant(random: &mut Random) -> PlantSpec {
    let mut spec = PlantSpec::default();
    spec.device.requests_per_second = between(random, 800.0, 20_000.0);
    spec.device.bytes_per_second = between(random, 60e6, 1e9);
    if chance(random, 0.3) {
        spec.device.slice_ns = 0;
    }
    if chance(random, 0.3) {
        let share = 0.4 * random.uniform();
        spec.device.drift = Drift { share, period_ns: between(random, 10.0 * SECOND, 600.0 * SECOND) as u64 };
    }
    if chance(random, 0.2) {
        let baseline_bytes_per_second = spec.device.bytes_per_second * (0.25 + 0.5 * random.uniform());
        spec.device.credits = Some(Credits { bytes: between(random, 1e9, 50e9), baseline_bytes_per_second });
    }
    spec.cache.saved_bytes = between(random, 500e6, 8e9) as u64;
    spec.syncs.threads = random.below(17) as u32;
    spec.syncs.direct = chance(random, 0.4);
    spec.syncs.entangled = if chance(random, 0.3) { 0.3 * random.uniform() } else { 0.0 };
    spec.bulk.writers = 0;
    spec.bulk.kind = kind(random);
    spec
}

/// What happens in `length_ns`: something new every `every_s` seconds on average.
pub fn script(random: &mut Random, length_ns: u64, every_s: f64) -> Script {
    let mut script = Script { length_ns, events: Vec::new() };
    let mut at = SECOND * every_s * random.uniform();
    while (at as u64) < length_ns {
        let at_ns = at as u64;
        let mut push = |event| script.events.push(Timed { at_ns, event });
        match random.below(20) {
            0..=4 => push(Event::Threads([0, 1, 1, 2, 4, 8, 10, 10, 16, 32][random.below(10)])),
            5..=9 => {
                push(Event::Kind(kind(random)));
                push(Event::Checkpoint(chance(random, 0.1)));
                push(Event::Wanted(if chance(random, 0.3) { between(random, 5e6, 200e6) } else { 0.0 }));
                push(Event::Flood([1, 1, 1, 2, 4][random.below(5)]));
            }
            10..=12 => push(Event::Flood(0)),
            13 | 14 => push(Event::Rate(between(random, 0.15, 1.0))),
            15 => push(Event::Rate(1.0)),
            16 => push(Event::Latency(between(random, 0.5, 10.0))),
            17 => push(Event::Stall(between(random, 0.02 * SECOND, 3.0 * SECOND) as u64)),
            18 => push(Event::Direct(chance(random, 0.5))),
            _ => push(Event::Think(if chance(random, 0.5) { 0 } else { between(random, 1e5, 2e7) as u64 })),
        }
        if chance(random, 0.02) {
            push(Event::Silence(true));
            let ends = at_ns + between(random, SECOND, 90.0 * SECOND) as u64;
            script.events.push(Timed { at_ns: ends, event: Event::Silence(false) });
        }
        at += -SECOND * every_s * random.uniform().ln();
    }
    script.events.sort_by_key(|event| event.at_ns);
    script
}

/// A plant and a script for it; the same seed gives the same.
pub fn scenario(seed: u64, length_ns: u64) -> Scenario {
    let mut random = Random::new(seed);
    let spec = plant(&mut random);
    let script = script(&mut random, length_ns, 8.0);
    Scenario { spec, script }
}
