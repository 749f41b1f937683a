//! At what rate the device accepts writes.

use std::collections::VecDeque;

use super::constants::SECOND_NS;

/// What a device delivers for so long it can deliver; in a single second a queue or a budget left over may empty.
const SUSTAINED_NS: u64 = 3 * SECOND_NS;
/// The best rate halves in half an hour in which it is not reached again.
const HALF_LIFE_NS: f64 = 1800.0 * 1e9;

/// The last seconds of delivered bytes, and the best that was delivered over three.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    looks: VecDeque<(u64, u64)>,
    best: f64,
}

impl Rate {
    /// Takes in a look.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64) {
        self.looks.push_back((elapsed_ns, bytes));
        let mut held: u64 = self.looks.iter().map(|look| look.0).sum();
        while let Some(first) = self.looks.front().filter(|look| held >= SUSTAINED_NS + look.0) {
            held -= first.0;
            self.looks.pop_front();
        }
        self.best *= 0.5_f64.powf(elapsed_ns as f64 / HALF_LIFE_NS);
        if held >= SUSTAINED_NS {
            self.best = self.best.max(self.last(SUSTAINED_NS));
        }
    }

    /// Bytes a second over the last stretch.
    pub fn last(&self, stretch_ns: u64) -> f64 {
        let (mut elapsed, mut bytes) = (0, 0);
        for look in self.looks.iter().rev() {
            if elapsed >= stretch_ns {
                break;
            }
            (elapsed, bytes) = (elapsed + look.0, bytes + look.1);
        }
        if elapsed == 0 { 0.0 } else { bytes as f64 / elapsed as f64 * 1e9 }
    }

    /// What it can deliver, in bytes a second.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// It is another rate from now on: what came before says nothing of it.
    pub fn is(&mut self, best: f64) {
        self.best = best;
        self.looks.clear();
    }

    /// Nanoseconds until so many bytes are written.
    pub fn time_of(&self, bytes: u64) -> u64 {
        let rate = self.last(SECOND_NS).max(self.best / 10.0);
        if rate <= 0.0 { 0 } else { (bytes as f64 / rate * 1e9) as u64 }
    }
}
