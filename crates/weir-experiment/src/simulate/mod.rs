//! A device under a flood as a pure, seeded simulator: what the designs are tested and compared on.

use crate::arm::{Arm, Workload};
use crate::design::{Design, Observation, Outcome, Proposal};
use crate::log::{TrialLog, Washout};
use crate::measures::{Figures, Measures, Metric, Second};
use crate::space::{Dimension, Range};
use weir_core::workload::Job;
use weir_knobs::{KnobName, Setting, Value};

mod device;
mod noise;

pub use device::Device;
pub use noise::{Noise, Weather};

/// A machine to make trials on, with its clock.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// What stands in it.
    pub device: Device,
    /// Baseline settings.
    pub found: Vec<Setting>,
    weather: Weather,
    clock_s: f64,
    /// Dirty bytes' drain time left by the trial before, s.
    undrained_s: f64,
}

/// Setting up, starting the workload and restoring, s.
const OVERHEAD_S: f64 = 0.5;
/// Head start of a flood, s.
const BUILD_UP_S: f64 = 2.0;
/// Fewest operations for a figure: a median, and the percentiles above it.
const SAMPLES: [(Metric, f64); 5] = [
    (Metric::Mean, 1.0),
    (Metric::P50, 10.0),
    (Metric::P95, 60.0),
    (Metric::P99, 300.0),
    (Metric::P999, 3_000.0),
];

impl Simulation {
    /// A machine; the same seed has the same noise.
    pub fn new(device: Device, noise: Noise, found: Vec<Setting>, seed: u64) -> Simulation {
        Simulation { device, found, weather: Weather::new(noise, seed), clock_s: 0.0, undrained_s: 0.0 }
    }

    /// Time since the start, s.
    pub fn clock_s(&self) -> f64 {
        self.clock_s
    }

    /// What an arm would show without noise.
    pub fn expected(&self, arm: &Arm) -> Figures {
        self.device.expected(arm, &self.found)
    }

    /// Waits until nothing is dirty any more.
    pub fn washout(&mut self) -> Washout {
        let took_s = std::mem::take(&mut self.undrained_s);
        self.clock_s += took_s;
        Washout { took_ns: (took_s * 1e9) as u64, ..Washout::default() }
    }

    /// Makes a trial.
    pub fn trial(&mut self, arm: &Arm, proposal: &Proposal) -> Outcome {
        self.clock_s += OVERHEAD_S + if arm.floods.is_empty() { 0.0 } else { BUILD_UP_S };
        self.undrained_s = self.device.drain_s(arm, &self.found);
        let expected = self.expected(arm);
        let count = (proposal.duration_ns as f64 / 1e9).ceil().max(1.0) as usize;
        let factors = self.weather.seconds(self.clock_s, count);
        let measures = measures(&expected, &factors);
        let longest_ns = longest_ns(&expected, measures.operations);
        if let Some(abort_ns) = proposal.abort_age_ns.filter(|abort| longest_ns > *abort as f64) {
            self.clock_s += (abort_ns as f64 / 1e9).min(count as f64);
            return Outcome::Aborted { why: "an operation was outstanding too long".to_string(), measures };
        }
        self.clock_s += proposal.duration_ns as f64 / 1e9;
        Outcome::Measured(measures)
    }

    /// Runs a design to its end, or until `budget_ns` is used up; the log is in the order of the trials.
    pub fn run(&mut self, design: &mut dyn Design, budget_ns: u64) -> Vec<TrialLog> {
        let started_s = self.clock_s;
        let mut log = Vec::new();
        loop {
            let left_ns = budget_ns.saturating_sub(((self.clock_s - started_s) * 1e9) as u64);
            let Some(proposal) = design.propose(left_ns) else { break };
            let washout = self.washout();
            let start_s = self.clock_s;
            let outcome = self.trial(&design.arms()[proposal.arm].clone(), &proposal);
            let observation = Observation { proposal, outcome };
            design.observe(&observation);
            log.push(TrialLog {
                left_ns,
                start_ns: ((start_s - started_s) * 1e9) as u64,
                took_ns: ((self.clock_s - start_s) * 1e9) as u64,
                washout,
                observation,
                job: None,
                transactions: None,
                stages: None,
                remarks: Vec::new(),
            });
        }
        log
    }
}

/// Limits as a stock kernel has them.
pub fn stock() -> Vec<Setting> {
    [("vm.dirty", 20), ("vm.dirty_background", 10)]
        .map(|(knob, percent)| Setting::new(KnobName::machine(knob), Value::Ratio(percent)))
        .to_vec()
}

/// The first `count` knobs, of six, that a search may turn: the devices here heed some of them.
pub fn dimensions(count: usize) -> Vec<Dimension> {
    let limit = Range::Scale { min: 8_400_000, max: 2_500_000_000, step: 1, bytes: true };
    let number = |min, max, step| Range::Scale { min, max, step, bytes: false };
    let words = ["none", "mq-deadline", "kyber", "bfq"].map(|word| Value::Word(word.to_string())).to_vec();
    let swappiness = [0, 10, 60, 100].map(Value::Number).to_vec();
    let (disk, machine) = (|setting: &str| KnobName::device("sda", setting), KnobName::machine);
    let all = [
        (machine("vm.dirty"), limit, Value::Ratio(20), 1.0),
        (disk("max_sectors_kb"), number(64, 1280, 4), Value::Number(1280), 1.0),
        (disk("nr_requests"), number(4, 256, 1), Value::Number(128), 0.83),
        (disk("scheduler"), Range::Levels(words), Value::Word("none".into()), 0.1),
        (machine("vm.dirty_expire_centisecs"), number(100, 6000, 1), Value::Number(3000), 0.83),
        (machine("vm.swappiness"), Range::Levels(swappiness), Value::Number(60), 0.6),
    ];
    let of = |(knob, range, found, found_at)| Dimension { knob, range, found, found_at, only_with: None };
    all.into_iter().take(count).map(of).collect()
}

/// A commit of 16 KiB from this many threads, beside a bulk copy.
pub fn flooded(settings: Vec<Setting>, threads: u32) -> Arm {
    let mut job = Job { threads, read_percent: 0.0, ..Job::default() };
    job.sync.every = 1;
    let names: Vec<String> = settings.iter().map(ToString::to_string).collect();
    Arm {
        label: if names.is_empty() { "baseline".to_string() } else { names.join(" ") },
        settings,
        workload: Workload::Job(Box::new(job)),
        floods: vec!["dd".to_string()],
        guarded: false,
    }
}

fn measures(expected: &Figures, factors: &[f64]) -> Measures {
    let get = |metric: &Metric| expected.get(metric).copied().unwrap_or(0.0);
    let second = |(i, factor): (usize, &f64)| Second {
        at_ns: i as u64 * 1_000_000_000,
        len_ns: 1_000_000_000,
        rate: get(&Metric::Rate) * factor,
        p99_ns: Some((get(&Metric::P99) / factor) as u64),
        bulk: Some(get(&Metric::Bulk) * factor),
        device: Some(get(&Metric::Device) * factor),
        dirty_bytes: 0,
    };
    let seconds: Vec<Second> = factors.iter().enumerate().map(second).collect();
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    let operations = get(&Metric::Rate) * mean * factors.len() as f64;
    let mut values = Figures::new();
    for metric in [Metric::Rate, Metric::Bulk, Metric::Device] {
        values.insert(metric.clone(), get(&metric) * mean);
    }
    for (metric, least) in SAMPLES {
        if operations >= least {
            values.insert(metric.clone(), get(&metric) / mean);
        }
    }
    Measures { values, seconds, operations: operations as u64 }
}

/// The longest of so many log-normal latencies, roughly; of none, the one that never ended.
fn longest_ns(expected: &Figures, operations: u64) -> f64 {
    let get = |metric: &Metric| expected.get(metric).copied().unwrap_or(0.0);
    let spread = (get(&Metric::P99) / get(&Metric::P50)).ln() / 2.326;
    let sigmas = (2.0 * (operations.max(2) as f64).ln()).sqrt();
    get(&Metric::P50) * (spread * sigmas).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Phase;

    fn proposal(seconds: u64, abort_age_ns: Option<u64>) -> Proposal {
        let duration_ns = seconds * 1_000_000_000;
        Proposal { arm: 0, block: 0, phase: Phase::Measure, duration_ns, abort_age_ns }
    }

    fn machine(noise: Noise, seed: u64) -> Simulation {
        Simulation::new(Device::throttled_loop(), noise, stock(), seed)
    }

    #[test]
    fn a_trial_repeats_with_its_seed_and_scatters_about_what_is_expected() {
        let arm = flooded(vec!["vm.dirty_bytes=15MB".parse().unwrap()], 10);
        let rate = |seed| {
            let outcome = machine(Noise::quiet(), seed).trial(&arm, &proposal(10, None));
            outcome.measured().unwrap().get(&Metric::Rate).unwrap()
        };
        assert_eq!(rate(1), rate(1));
        let expected = machine(Noise::none(), 0).expected(&arm)[&Metric::Rate];
        let mean = (0..400).map(rate).sum::<f64>() / 400.0;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
        assert!((0..400).any(|seed| rate(seed) < 0.95 * expected));
    }

    #[test]
    fn a_starved_trial_lacks_samples_is_aborted_and_takes_long_to_wash_out() {
        let arm = flooded(Vec::new(), 1);
        let mut machine = machine(Noise::none(), 1);
        let outcome = machine.trial(&arm, &proposal(10, None));
        let measures = outcome.measured().unwrap();
        assert!(measures.get(&Metric::P99).is_none() && measures.get(&Metric::Rate).unwrap() < 1.0);
        assert!(machine.washout().took_ns > 10_000_000_000);
        assert_eq!(machine.washout().took_ns, 0);
        let before_s = machine.clock_s();
        let outcome = machine.trial(&arm, &proposal(10, Some(1_000_000_000)));
        assert!(matches!(outcome, Outcome::Aborted { .. }), "{outcome:?}");
        assert!(machine.clock_s() - before_s < 5.0);
    }
}
