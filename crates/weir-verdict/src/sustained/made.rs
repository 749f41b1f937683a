//! Made-up storage for tests: a token bucket, a write cache, a device with noise. Time passes in steps of a tick.

use super::course::Done;
use super::{Courses, Pressure};
use weir_core::workload::rng::Rng;

/// Length of an interval.
const TICK_NS: u64 = 250_000_000;
const TICK_S: f64 = 0.25;

/// What a made-up device does.
#[derive(Debug, Clone, Copy)]
pub enum Device {
    /// Credit in operations or bytes, its refill, and the rate while there is any.
    Bucket {
        /// Whether the limit counts bytes.
        bytes: bool,
        /// Rate while there is credit.
        burst: f64,
        /// Refill, which is the rate without credit.
        base: f64,
        /// Credit at the start and at most.
        credit: f64,
        /// Whether reads are free.
        writes_only: bool,
    },
    /// Bytes that are written fast until so many are, and come back at so many a second while idle.
    Cache {
        /// Bytes a second while there is free cache.
        fast: f64,
        /// Bytes a second afterwards.
        slow: f64,
        /// Bytes of cache.
        bytes: f64,
    },
    /// Operations a second, whatever their size.
    Plain(f64),
}

/// A device in use.
pub struct Made {
    device: Device,
    left: f64,
    rng: Rng,
    noise: f64,
    now_ns: u64,
}

impl Made {
    /// Full; rates vary by about so much.
    pub fn new(device: Device, noise: f64, seed: u64) -> Made {
        let left = match device {
            Device::Bucket { credit, .. } => credit,
            Device::Cache { bytes, .. } => bytes,
            Device::Plain(_) => 0.0,
        };
        Made { device, left, rng: Rng::new(seed, 1), noise, now_ns: 0 }
    }

    /// A number of mean 0 and deviation about 1.
    fn chance(&mut self) -> f64 {
        (0..4).map(|_| self.rng.unit()).sum::<f64>() * 3f64.sqrt() - 2.0 * 3f64.sqrt()
    }

    /// Nobody writes.
    pub fn idle(&mut self, seconds: f64) {
        self.now_ns += (seconds * 1e9) as u64;
        if let Device::Bucket { base, credit, .. } = self.device {
            self.left = (self.left + base * seconds).min(credit);
        }
    }

    /// A saturating load of one size for some time.
    pub fn run(&mut self, block: u64, reads: bool, ticks: usize) -> Vec<Done> {
        let start = self.now_ns;
        let one = |made: &mut Made| {
            let noise = 1.0 + made.noise * made.chance();
            let rate = made.rate(block as f64, reads) * noise.max(0.05);
            let done = Done {
                start_ns: made.now_ns - start,
                len_ns: TICK_NS,
                operations: (rate * TICK_S) as u64,
                p50_ns: 1_000_000,
            };
            made.now_ns += TICK_NS;
            done
        };
        (0..ticks).map(|_| one(self)).collect()
    }

    /// Operations a second over the next tick.
    fn rate(&mut self, block: f64, reads: bool) -> f64 {
        let spend = |left: &mut f64, burst: f64, base: f64| {
            let for_burst = (*left / (burst - base)).clamp(0.0, TICK_S);
            *left -= for_burst * (burst - base);
            (for_burst * burst + (TICK_S - for_burst) * base) / TICK_S
        };
        match self.device {
            Device::Bucket { writes_only: true, .. } | Device::Cache { .. } if reads => 50_000.0,
            Device::Bucket { bytes, burst, base, .. } => {
                spend(&mut self.left, burst, base) / if bytes { block } else { 1.0 }
            }
            Device::Cache { fast, slow, .. } => {
                let share = (self.left / (fast * TICK_S)).clamp(0.0, 1.0);
                self.left -= share * fast * TICK_S;
                (share * fast + (1.0 - share) * slow) / block
            }
            Device::Plain(rate) => rate,
        }
    }

    /// What the doctor runs, for so many ticks at most, with this idle time.
    pub fn examine(&mut self, pressure: Pressure, ticks: usize, idle_s: f64) -> Courses {
        let (block, other) = pressure.blocks();
        let drain = self.run(block, false, ticks);
        let other = self.run(other, false, 12);
        let reads = self.run(block, true, 8);
        if let Device::Bucket { writes_only: true, base, credit, .. } = self.device {
            self.left = (self.left + base * 2.0).min(credit);
        }
        self.idle(idle_s);
        let again = self.run(block, false, 48);
        let idle_ns = (idle_s * 1e9) as u64;
        Courses {
            drain,
            other,
            reads,
            again,
            idle_ns,
            idle_of_writes_ns: idle_ns + 2_000_000_000,
            written_before: (0, 0.0),
        }
    }
}
