//! A device, its dirty pages and its writers in a few closed formulas: enough to try the law's branches on.

use crate::{
    Action, Bulk, Decision, DeviceFlow, Guard, Limits, Mood, Sample, Sensor, SensorSource, Syncs, Writer,
};
use weir_core::stats::CoarseHistogram;
use weir_core::stats::random::Random;
use weir_core::target::DeviceNumber;

pub const MB: f64 = 1e6;
pub const SECOND: u64 = 1_000_000_000;
const LOOK: u64 = SECOND / 10;

/// What is going on.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Device's rate, bytes per second.
    pub rate: f64,
    /// Syncs per second that the device does at most.
    pub syncs: f64,
    /// Threads that sync.
    pub threads: f64,
    /// Bulk writers' rate into the page cache, bytes per second.
    pub flood: f64,
    /// Backlog at which one sync at a time does half its rate, as time at the device's rate; ten bear as many times more.
    pub bears: f64,
    /// Limit under which the syncs' own writes are held back most of the time; 0 where they never are.
    pub own: f64,
    /// Share of their undisturbed rate at which syncs come, limit or not.
    pub pace: f64,
    /// What the backlog costs, threads wait for elsewhere than in their syncs.
    pub elsewhere: bool,
    /// Time since the sensor answered.
    pub silent_ns: u64,
    /// Share of the flood that is the protected processes' own.
    pub protected_share: f64,
    pub source: SensorSource,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            rate: 251.0 * MB,
            syncs: 1500.0,
            threads: 1.0,
            flood: 0.0,
            bears: 0.044,
            own: 0.0,
            pace: 1.0,
            elsewhere: false,
            silent_ns: 0,
            protected_share: 0.0,
            source: SensorSource::Syscalls,
        }
    }
}

/// The device and the limit in force.
#[derive(Debug, Clone)]
pub struct Toy {
    pub scene: Scene,
    pub limits: Limits,
    pub at_ns: u64,
    pub dirty: f64,
    random: Random,
    fraction: f64,
    stalled_ns: u64,
}

/// What a look came to, for a test to judge.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Share of their undisturbed rate that syncs did.
    pub kept: f64,
    pub bulk: f64,
    pub decision: Decision,
}

impl Toy {
    pub fn new(scene: Scene, seed: u64) -> Toy {
        let limits = Limits { now_bytes: 3_900_000_000, saved_bytes: 3_900_000_000, floor_bytes: 2 << 20 };
        Toy {
            scene,
            limits,
            at_ns: SECOND,
            dirty: 0.0,
            random: Random::new(seed),
            fraction: 0.0,
            stalled_ns: 0,
        }
    }

    /// One look.
    pub fn look(&mut self, elapsed_ns: u64) -> (Sample, f64, f64) {
        let scene = self.scene.clone();
        let seconds = elapsed_ns as f64 / 1e9;
        self.at_ns += elapsed_ns;
        let limit = self.limits.now_bytes as f64;
        let noise = 1.0 + 0.02 * self.random.normal();
        // A limit smaller than what the queue holds leaves the device waiting.
        let reach = 1.0
            - (-self.dirty.max(limit.min(self.dirty + scene.flood * seconds)) / (scene.rate * 0.01)).exp();
        let mut written =
            (scene.rate * seconds * reach * noise.clamp(0.8, 1.2)).min(self.dirty + scene.flood * seconds);
        let wants = scene.flood * seconds;
        let fits = (limit - self.dirty + written).max(0.0);
        let dirtied = wants.min(fits);
        let backlog = (self.dirty + dirtied).min(limit.max(self.dirty));
        self.dirty = (self.dirty + dirtied - written).max(0.0);
        let bears = scene.rate * scene.bears * scene.threads.max(1.0).powf(0.9);
        let mut kept = 1.0 / (1.0 + (backlog.max(self.dirty) / bears).powf(2.2));
        let mut held_ns = 0;
        let full = dirtied < wants;
        if full && scene.own > 0.0 && scene.threads > 1.0 {
            let own = 1.0 / (1.0 + (scene.own / limit).powf(1.5));
            held_ns = ((1.0 - own) * scene.threads * elapsed_ns as f64) as u64;
            kept *= own;
        }
        let undisturbed = if scene.threads > 0.0 { scene.syncs * scene.threads.min(1.0) } else { 0.0 };
        let mut ended = CoarseHistogram::new();
        let mut oldest_ns = 0;
        self.fraction += undisturbed * scene.pace * kept * seconds * (1.0 + 0.03 * self.random.normal());
        let count = self.fraction.max(0.0) as u64;
        self.fraction -= count as f64;
        if count > 0 {
            let in_syncs = if scene.elsewhere { kept } else { 1.0 } * scene.pace;
            let mean =
                (scene.threads * elapsed_ns as f64 * in_syncs - held_ns as f64).max(1.0) / count as f64;
            // A tail as of a device that works in slices: one in two hundred takes ten times as long.
            let body = mean / 1.045;
            let long = count / 200 + u64::from(self.random.below(200) < (count % 200) as usize);
            ended.record_many(body as u64, count - long);
            ended.record_many((body * 10.0) as u64, long);
            ended.set_exact(
                (mean * count as f64) as u128,
                ended.min().unwrap_or(0),
                ended.max().unwrap_or(0),
            );
            self.stalled_ns = 0;
        } else if undisturbed > 0.0 {
            self.stalled_ns += elapsed_ns;
            oldest_ns = self.stalled_ns;
        }
        let others = dirtied * (1.0 - scene.protected_share);
        let synced = count as f64 * 16384.0;
        written += synced;
        let sample = Sample {
            device: DeviceNumber { major: 7, minor: 0 },
            at_ns: self.at_ns,
            elapsed_ns,
            sensor: Sensor { source: scene.source, silent_ns: scene.silent_ns, lost: 0 },
            syncs: Syncs {
                ended,
                under_way: scene.threads as u32,
                threads: 0,
                oldest_ns,
                held_back_ns: held_ns,
                held_back: u64::from(held_ns > 0),
            },
            bulk: Bulk {
                held_back_ns: if full && others > 0.0 { elapsed_ns / 2 } else { 0 },
                held_back: u64::from(full && others > 0.0),
                writers: if others > 0.0 {
                    vec![Writer { pid: 1, comm: "dd".to_string(), bytes: others as u64, start_ns: 0 }]
                } else {
                    Vec::new()
                },
                dirtied_bytes: others as u64,
                protected_bytes: (dirtied * scene.protected_share + synced) as u64,
                unlocated_bytes: 0,
            },
            flow: DeviceFlow {
                written_bytes: written as u64,
                writes: count * 2,
                dirty_bytes: (backlog / 2.0) as u64,
                writeback_bytes: (backlog / 2.0) as u64,
            },
            limits: self.limits,
        };
        (sample, if undisturbed > 0.0 { kept } else { 1.0 }, written / seconds)
    }

    /// Does what was decided.
    pub fn act(&mut self, decision: &Decision) {
        match decision.action {
            Action::Keep => {}
            Action::Set { bytes } => self.limits.now_bytes = bytes,
            Action::Release => self.limits.now_bytes = self.limits.saved_bytes,
        }
    }

    /// Looks for so many seconds under a guard; checks at each what must always hold.
    pub fn run(&mut self, guard: &mut Guard, seconds: f64) -> Vec<Seen> {
        self.run_by(guard, seconds, LOOK)
    }

    /// The same with another time between looks.
    pub fn run_by(&mut self, guard: &mut Guard, seconds: f64, look_ns: u64) -> Vec<Seen> {
        (0..(seconds * 1e9 / look_ns as f64).round() as u64)
            .map(|_| {
                let (sample, kept, bulk) = self.look(look_ns);
                let decision = guard.step(&sample);
                if let Action::Set { bytes } = decision.action {
                    assert!(bytes >= self.limits.floor_bytes, "below the floor: {decision:?}");
                    assert!(bytes <= self.limits.saved_bytes, "above the saved limit: {decision:?}");
                    assert_eq!(decision.mood, Mood::Holding, "{decision:?}");
                }
                if decision.action == Action::Release {
                    assert_eq!(decision.mood, Mood::Released, "{decision:?}");
                }
                self.act(&decision);
                assert!(
                    decision.mood == Mood::Holding || self.limits.now_bytes == self.limits.saved_bytes,
                    "released at another limit than the saved one: {decision:?}"
                );
                Seen { kept, bulk, decision }
            })
            .collect()
    }
}

/// Mean of a figure.
pub fn mean(seen: &[Seen], figure: impl Fn(&Seen) -> f64) -> f64 {
    seen.iter().map(figure).sum::<f64>() / seen.len().max(1) as f64
}
