//! Maps of made-up devices: the edge is found, few points are asked for, and they lie where latency changes.

use super::cost::CostModel;
use super::{Ask, Plan, Seen, next};
use weir_core::stats::random::Random;

/// A device that follows the model, with noise, and whose latency grows as in a queue.
struct Device {
    model: CostModel,
    noise: f64,
    random: Random,
}

impl Device {
    fn new(reads: f64, writes: f64, interference: f64, noise: f64, seed: u64) -> Device {
        let model = CostModel { reads, writes, interference, error: 0.0, points: 0 };
        Device { model, noise, random: Random::new(seed) }
    }

    fn wobble(&mut self) -> f64 {
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.noise * (2.0 * unit - 1.0)
    }

    fn measure(&mut self, ask: Ask) -> Seen {
        let (reads, writes) = match ask {
            Ask::Edge { share } => {
                let rate = self.model.edge(share) * self.wobble();
                (rate * (1.0 - share), rate * share)
            }
            Ask::Inside { reads, writes, .. } => (reads, writes),
        };
        let used = self.model.used(reads, writes).min(0.99);
        Seen { ask, reads, writes, p99_ns: 200_000.0 / (1.0 - used) * self.wobble() }
    }

    fn map(&mut self, plan: &Plan) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(ask) = next(plan, &seen) {
            seen.push(self.measure(ask));
            assert!(seen.len() <= plan.points_max, "more points than allowed");
        }
        seen
    }
}

#[test]
fn edges_are_recovered_with_tens_of_points() {
    for (seed, (reads, writes, interference)) in [
        (100_000.0, 30_000.0, 0.0),
        (3_000.0, 3_000.0, 0.0),
        (400_000.0, 60_000.0, 0.8),
        (9_000.0, 800.0, -0.6),
    ]
    .into_iter()
    .enumerate()
    {
        let mut device = Device::new(reads, writes, interference, 0.02, seed as u64 + 1);
        let seen = device.map(&Plan::default());
        let model = CostModel::fit(&seen).unwrap();
        assert!(seen.len() <= 40 && seen.len() >= 10, "{} points", seen.len());
        for share in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] {
            let (found, real) = (model.edge(share), device.model.edge(share));
            assert!((found / real - 1.0).abs() < 0.06, "{share}: {found} for {real}, {model:?}");
        }
    }
}

#[test]
fn points_lie_where_latency_changes() {
    let seen = Device::new(50_000.0, 20_000.0, 0.3, 0.0, 1).map(&Plan::default());
    let loads = seen.iter().filter_map(|s| match s.ask {
        Ask::Inside { load, .. } => Some(load),
        Ask::Edge { .. } => None,
    });
    let (high, low): (Vec<f64>, Vec<f64>) = loads.partition(|load| *load > 0.55);
    assert!(high.len() >= low.len(), "{high:?} {low:?}");
}

#[test]
fn a_device_unlike_the_model_gets_more_edges_and_says_how_far_it_is_off() {
    let mut seen = Vec::new();
    while let Some(ask) = next(&Plan::default(), &seen) {
        let share = super::share_of(&ask);
        // Half the rate for anything but reads alone and writes alone.
        let full = if share > 0.05 && share < 0.95 { 10_000.0 } else { 20_000.0 };
        let (reads, writes) = match ask {
            Ask::Edge { share } => (full * (1.0 - share), full * share),
            Ask::Inside { reads, writes, .. } => (reads, writes),
        };
        seen.push(Seen { ask, reads, writes, p99_ns: 1e6 });
    }
    let model = CostModel::fit(&seen).unwrap();
    assert!(model.points > 5 && model.error > 0.1, "{model:?}");
}

#[test]
fn nothing_is_fitted_without_both_ends_and_the_same_points_ask_for_the_same() {
    assert_eq!(CostModel::fit(&[]), None);
    let mut device = Device::new(50_000.0, 20_000.0, 0.3, 0.05, 9);
    let seen = device.map(&Plan { points_max: 17, ..Plan::default() });
    assert_eq!(seen.len(), 17);
    for count in 0..seen.len() {
        assert_eq!(next(&Plan::default(), &seen[..count]), Some(seen[count].ask), "{count}");
    }
    let none = Seen { ask: Ask::Edge { share: 0.0 }, reads: 0.0, writes: 0.0, p99_ns: 0.0 };
    assert_eq!(CostModel::fit(&[none]), None);
}
