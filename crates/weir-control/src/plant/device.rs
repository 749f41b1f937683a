//! What the device accepts, and when a request that reached it ends.

use std::f64::consts::TAU;

use weir_core::stats::random::Random;

use super::spec::DeviceSpec;

#[derive(Debug, Clone)]
pub(super) struct Device {
    spec: DeviceSpec,
    busy_until: u64,
    latency_factor: f64,
    bytes_factor: f64,
    requests_factor: f64,
    credits: f64,
    credits_at: u64,
    phase: f64,
    pub under_way: u32,
}

impl Device {
    pub fn new(spec: DeviceSpec, random: &mut Random) -> Device {
        let credits = spec.credits.map_or(0.0, |credits| credits.bytes);
        Device {
            spec,
            busy_until: 0,
            latency_factor: 1.0,
            bytes_factor: 1.0,
            requests_factor: 1.0,
            credits,
            credits_at: 0,
            phase: random.uniform(),
            under_way: 0,
        }
    }

    pub fn set_rate(&mut self, bytes_factor: f64, requests_factor: f64) {
        (self.bytes_factor, self.requests_factor) = (bytes_factor, requests_factor);
    }

    pub fn set_latency(&mut self, factor: f64) {
        self.latency_factor = factor;
    }

    /// Nothing ends before `until`.
    pub fn stall(&mut self, until: u64) {
        self.busy_until = self.busy_until.max(until);
    }

    /// Bytes and requests a second that it accepts now.
    pub fn rates(&self, now: u64) -> (f64, f64) {
        let wave = match self.spec.drift {
            drift if drift.period_ns == 0 => 1.0,
            drift => 1.0 + drift.share * (TAU * (now as f64 / drift.period_ns as f64 + self.phase)).sin(),
        };
        let mut bytes = self.spec.bytes_per_second * self.bytes_factor * wave;
        if let Some(credits) = self.spec.credits
            && self.credits <= 0.0
        {
            bytes = bytes.min(credits.baseline_bytes_per_second);
        }
        (bytes, self.spec.requests_per_second * self.requests_factor * wave)
    }

    /// Whether write-back has to wait for a request to end.
    pub fn full(&self) -> bool {
        self.spec.slice_ns == 0 && self.under_way >= self.spec.depth
    }

    /// Takes a request and says when it ends; `crowd` sync threads share the processors with bulk writers at
    /// work.
    pub fn serve(&mut self, bytes: u64, now: u64, crowd: u32, random: &mut Random) -> u64 {
        self.earn(bytes, now);
        let mut busy = (self.spec.occupancy_ns + self.spec.crowded_ns * u64::from(crowd)) as f64;
        if self.spec.line_bytes_per_second > 0.0 {
            busy += bytes as f64 / self.spec.line_bytes_per_second * 1e9;
        }
        if self.spec.slice_ns == 0 {
            let (rate, requests) = self.rates(now);
            busy = busy.max(if rate > 0.0 { bytes as f64 / rate * 1e9 } else { 0.0 });
            busy = busy.max(if requests > 0.0 { 1e9 / requests } else { 0.0 });
        }
        self.under_way += 1;
        self.busy_until = self.busy_until.max(now) + busy as u64;
        let latency = self.spec.latency_ns as f64 * self.latency_factor * (0.6 + 0.8 * random.uniform());
        self.busy_until + latency as u64
    }

    fn earn(&mut self, bytes: u64, now: u64) {
        if let Some(credits) = self.spec.credits {
            let earned = (now - self.credits_at) as f64 / 1e9 * credits.baseline_bytes_per_second;
            self.credits = (self.credits + earned - bytes as f64).clamp(-credits.bytes, credits.bytes);
            self.credits_at = now;
        }
    }
}
