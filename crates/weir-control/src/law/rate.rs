//! At what rate the device accepts writes.

use std::collections::VecDeque;

/// The last seconds of delivered bytes, and the best that was ever delivered over three seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    looks: VecDeque<Look>,
    best: f64,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    elapsed_ns: u64,
    bytes: u64,
}

const SECOND_NS: u64 = 1_000_000_000;
/// What a device delivers for so long it can deliver; in a single second a queue or a budget left over may empty.
const SUSTAINED_NS: u64 = 3 * SECOND_NS;
/// The best rate halves in half an hour in which it is not reached again.
const BEST_HALF_LIFE_NS: f64 = 1800.0 * 1e9;

impl Rate {
    /// Takes in a look: how long, and how many bytes.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64) {
        self.looks.push_back(Look { elapsed_ns, bytes });
        let mut held: u64 = self.looks.iter().map(|look| look.elapsed_ns).sum();
        while let Some(first) = self.looks.front().filter(|look| held > SUSTAINED_NS + look.elapsed_ns) {
            held -= first.elapsed_ns;
            self.looks.pop_front();
        }
        self.best *= 0.5_f64.powf(elapsed_ns as f64 / BEST_HALF_LIFE_NS);
        if held >= SUSTAINED_NS {
            self.best = self.best.max(self.last(SUSTAINED_NS));
        }
    }

    /// Bytes per second over the last stretch.
    fn last(&self, stretch_ns: u64) -> f64 {
        let (mut elapsed, mut bytes) = (0, 0);
        for look in self.looks.iter().rev() {
            if elapsed >= stretch_ns {
                break;
            }
            elapsed += look.elapsed_ns;
            bytes += look.bytes;
        }
        if elapsed == 0 { 0.0 } else { bytes as f64 / elapsed as f64 * 1e9 }
    }

    /// The best three seconds, slowly ageing, in bytes per second.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// Nanoseconds until so many bytes are written, at the rate of the last second or a tenth of the best.
    pub fn time_of(&self, bytes: u64) -> u64 {
        let rate = self.last(SECOND_NS).max(self.best / 10.0);
        if rate <= 0.0 { 0 } else { (bytes as f64 / rate * 1e9) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_what_was_delivered_for_three_seconds() {
        let mut rate = Rate::default();
        let push = |rate: &mut Rate, looks: usize, per_second: u64| {
            (0..looks).for_each(|_| rate.push(SECOND_NS / 10, per_second / 10));
        };
        push(&mut rate, 20, 240_000_000);
        assert_eq!((rate.best(), rate.time_of(24_000_000)), (0.0, 100_000_000));
        push(&mut rate, 10, 240_000_000);
        assert!((rate.best() / 240e6 - 1.0).abs() < 0.01, "{}", rate.best());
        push(&mut rate, 40, 0);
        assert!((rate.time_of(24_000_000) as f64 / 1e9 - 1.0).abs() < 0.01, "at a tenth of the best");
    }
}
