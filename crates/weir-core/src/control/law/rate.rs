//! At what rate the device accepts writes.

use std::collections::VecDeque;

/// The last five seconds of delivered bytes, and the best that was ever delivered over three seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    looks: VecDeque<(u64, u64)>,
    best: f64,
    full: Option<f64>,
}

const SECOND_NS: u64 = 1_000_000_000;
/// What a device delivers for so long it can deliver; in a single second a queue or a budget left over may empty.
const SUSTAINED_NS: u64 = 3 * SECOND_NS;
/// The best rate halves in half an hour in which it is not reached again.
const BEST_HALF_LIFE_NS: f64 = 1800.0 * 1e9;

impl Rate {
    /// Takes in a look: how long, how many bytes.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64) {
        self.looks.push_back((elapsed_ns, bytes));
        let mut held: u64 = self.looks.iter().map(|look| look.0).sum();
        while let Some(&(first, _)) = self.looks.front().filter(|look| held > 5 * SECOND_NS + look.0) {
            held -= first;
            self.looks.pop_front();
        }
        self.best *= 0.5_f64.powf(elapsed_ns as f64 / BEST_HALF_LIFE_NS);
        if held >= SUSTAINED_NS {
            self.best = self.best.max(self.last(SUSTAINED_NS));
        }
    }

    /// Bytes per second over the last second.
    pub fn last_second(&self) -> f64 {
        self.last(SECOND_NS)
    }

    fn last(&self, stretch_ns: u64) -> f64 {
        let (mut elapsed, mut bytes) = (0, 0);
        for look in self.looks.iter().rev() {
            if elapsed >= stretch_ns {
                break;
            }
            elapsed += look.0;
            bytes += look.1;
        }
        if elapsed == 0 { 0.0 } else { bytes as f64 / elapsed as f64 * 1e9 }
    }

    /// Bytes per second over the seconds before that, where there are at least two of them.
    pub fn before(&self) -> Option<f64> {
        let (mut elapsed, mut older, mut bytes) = (0, 0, 0);
        for look in self.looks.iter().rev() {
            if elapsed >= SECOND_NS {
                older += look.0;
                bytes += look.1;
            }
            elapsed += look.0;
        }
        (older >= 2 * SECOND_NS).then(|| bytes as f64 / older as f64 * 1e9)
    }

    /// The best three seconds, slowly ageing, in bytes per second.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// Syncs lost much while so many bytes per second were delivered.
    pub fn was_full_at(&mut self, delivered: f64) {
        self.full = Some(self.full.map_or(delivered, |full| (full + delivered) / 2.0));
    }

    /// Syncs lost little while so many bytes per second were delivered: a rate that is much higher than the one at which
    /// they lost much says that the device has become faster.
    pub fn was_borne_at(&mut self, delivered: f64) {
        self.full = self.full.filter(|full| delivered < 1.1 * full);
    }

    /// The rate at which syncs lost much, in bytes per second, where that was seen.
    pub fn full(&self) -> Option<f64> {
        self.full
    }

    /// The device has become slower by this factor: what it did before is no measure any more.
    pub fn scale(&mut self, factor: f64) {
        self.best *= factor;
        self.full = None;
        self.looks.clear();
    }

    /// Nanoseconds until so many bytes are written, at the rate of the last second or a tenth of the best.
    pub fn time_of(&self, bytes: u64) -> u64 {
        let rate = self.last_second().max(self.best / 10.0);
        if rate <= 0.0 { 0 } else { (bytes as f64 / rate * 1e9) as u64 }
    }
}
