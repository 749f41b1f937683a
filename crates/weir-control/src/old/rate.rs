//! At what rate the device accepts writes.

use std::collections::VecDeque;

/// The last five seconds of delivered bytes, and the best that was ever delivered over three seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Rate {
    looks: VecDeque<Look>,
    best: f64,
    full: Option<f64>,
    /// How much slower the device has become since, as a factor.
    dropped: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    elapsed_ns: u64,
    bytes: u64,
    writes: u64,
    /// In force meanwhile.
    limit_bytes: u64,
}

const SECOND_NS: u64 = 1_000_000_000;
/// What a device delivers for so long it can deliver; in a single second a queue or a budget left over may empty.
const SUSTAINED_NS: u64 = 3 * SECOND_NS;
/// A device that has changed its rate shows it in so long; in less, others on the processors make rates jump as much.
const CHANGES_NS: u64 = SECOND_NS;
/// Above this multiple of what it did a moment ago, or of what a device that became slower can do at best, it is faster
/// again: a limit made for the slow one holds it back.
const RISEN: f64 = 1.4;
/// What a device that has become slower delivers at its best is no more than this multiple of what comes out of it now.
const AT_BEST: f64 = 1.25;
/// From this share of its rate on, a device is as fast as before.
const NEARLY: f64 = 0.75;
/// How far it has changed in so long: three slices of a throttle.
const LATEST_NS: u64 = 3 * SECOND_NS / 10;
/// The best rate halves in half an hour in which it is not reached again.
const BEST_HALF_LIFE_NS: f64 = 1800.0 * 1e9;

/// Looks added up.
#[derive(Default)]
struct Sum {
    elapsed: f64,
    bytes: f64,
    writes: f64,
    /// Of limits, weighed by time.
    limits: f64,
}

impl Sum {
    fn add(&mut self, look: &Look) {
        self.elapsed += look.elapsed_ns as f64;
        self.bytes += look.bytes as f64;
        self.writes += look.writes as f64;
        self.limits += look.limit_bytes as f64 * look.elapsed_ns as f64;
    }

    fn rate(&self) -> f64 {
        self.bytes / self.elapsed.max(1.0)
    }

    fn limit(&self) -> f64 {
        self.limits / self.elapsed.max(1.0)
    }
}

impl Rate {
    /// Takes in a look: how long, how many bytes in how many writes, at which limit.
    pub fn push(&mut self, elapsed_ns: u64, bytes: u64, writes: u64, limit_bytes: u64) {
        self.looks.push_back(Look { elapsed_ns, bytes, writes, limit_bytes });
        let mut held: u64 = self.looks.iter().map(|look| look.elapsed_ns).sum();
        while let Some(first) = self.looks.front().filter(|look| held > 5 * SECOND_NS + look.elapsed_ns) {
            held -= first.elapsed_ns;
            self.looks.pop_front();
        }
        self.best *= 0.5_f64.powf(elapsed_ns as f64 / BEST_HALF_LIFE_NS);
        if held >= SUSTAINED_NS {
            self.best = self.best.max(self.last(SUSTAINED_NS));
        }
    }

    /// What a slower device can do at best, as the last looks show it, as a share of what it did before.
    pub fn of_best(&self) -> f64 {
        AT_BEST * self.last(LATEST_NS) / self.best.max(1.0)
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
            elapsed += look.elapsed_ns;
            bytes += look.bytes;
        }
        if elapsed == 0 { 0.0 } else { bytes as f64 / elapsed as f64 * 1e9 }
    }

    /// What the device delivers now as a multiple of what it did in the seconds before, beyond what a change of the limit
    /// explains: half the limit lets through half of it at the least. `None` where those seconds are too few.
    pub fn change(&self) -> Option<f64> {
        self.change_over(CHANGES_NS)
    }

    /// How many times as fast a device that had become slower is again. A low limit lets little of that show: more than
    /// the slow device could do says it as well as a change that no limit explains.
    pub fn risen(&self) -> Option<f64> {
        self.dropped?;
        let held: u64 = self.looks.iter().map(|look| look.elapsed_ns).sum();
        let beyond = (held >= SECOND_NS && self.best > 0.0).then(|| self.last_second() / self.best);
        let ratio = self.change().into_iter().chain(beyond).max_by(f64::total_cmp)?;
        (ratio > RISEN).then_some(ratio)
    }

    /// The same of the last looks alone: how far it has changed where that it has is known.
    pub fn latest(&self) -> Option<f64> {
        self.change_over(LATEST_NS)
    }

    /// The same of what comes out, whatever the reason.
    pub fn delivered_change(&self) -> Option<f64> {
        let (now, before) = self.apart(LATEST_NS)?;
        Some(now.rate() / before.rate())
    }

    /// The same of writes, whatever their size: those of other writers may be smaller.
    pub fn writes_change(&self) -> Option<f64> {
        let (now, before) = self.apart(CHANGES_NS)?;
        Some((now.writes / now.elapsed) / (before.writes / before.elapsed)).filter(|ratio| ratio.is_finite())
    }

    fn change_over(&self, stretch_ns: u64) -> Option<f64> {
        let (now, before) = self.apart(stretch_ns)?;
        let ratio = now.rate() / before.rate();
        // A limit shows late: any of the last second may have made this rate.
        let limits = || self.recent_limits().map(|bytes| bytes as f64 / before.limit().max(1.0));
        let (least, most) = (limits().fold(1.0, f64::min), limits().fold(1.0, f64::max));
        Some(if ratio < 1.0 { (ratio / least).min(1.0) } else { (ratio / most).max(1.0) })
    }

    /// The last looks, and those more than a second ago; `None` where these are too few.
    fn apart(&self, stretch_ns: u64) -> Option<(Sum, Sum)> {
        let (mut elapsed, mut now, mut before) = (0, Sum::default(), Sum::default());
        for look in self.looks.iter().rev() {
            if elapsed < stretch_ns {
                now.add(look);
            } else if elapsed >= SECOND_NS {
                before.add(look);
            }
            elapsed += look.elapsed_ns;
        }
        (before.elapsed >= 2e9 && before.bytes > 0.0).then_some((now, before))
    }

    /// Limits of the last second.
    fn recent_limits(&self) -> impl Iterator<Item = u64> {
        let mut elapsed = 0;
        let recent = self.looks.iter().rev().take_while(move |look| {
            let is_recent = elapsed < SECOND_NS;
            elapsed += look.elapsed_ns;
            is_recent
        });
        recent.map(|look| look.limit_bytes)
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
    pub fn drops(&mut self, factor: f64) {
        self.dropped = Some(self.dropped.unwrap_or(1.0) * factor);
        self.scale(factor);
    }

    /// The device is as many times faster again as it had become slower, or `ratio` times where that is less: by how
    /// much.
    pub fn rises(&mut self, ratio: f64) -> Option<f64> {
        let dropped = self.dropped?;
        let factor = ratio.min(1.0 / dropped);
        self.dropped = Some(dropped * factor).filter(|left| *left < NEARLY);
        self.scale(factor);
        Some(factor)
    }

    fn scale(&mut self, factor: f64) {
        self.best *= factor;
        self.full = None;
        // What came since the change is all that says how fast it is now.
        let mut elapsed = 0;
        let latest = self.looks.iter().rev().take_while(|look| {
            elapsed += look.elapsed_ns;
            elapsed <= LATEST_NS
        });
        let older = self.looks.len() - latest.count();
        self.looks.drain(..older);
    }

    /// Nanoseconds until so many bytes are written, at the rate of the last second or a tenth of the best.
    pub fn time_of(&self, bytes: u64) -> u64 {
        let rate = self.last_second().max(self.best / 10.0);
        if rate <= 0.0 { 0 } else { (bytes as f64 / rate * 1e9) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks, MB/s, limit in MB.
    type Stretch = (usize, u64, u64);

    const LOOK: u64 = SECOND_NS / 10;

    /// Looks in which a device delivers so many MB a second at such a limit.
    fn delivered(stretches: &[Stretch]) -> Rate {
        let mut rate = Rate::default();
        for &(looks, per_second, limit) in stretches {
            for _ in 0..looks {
                rate.push(LOOK, per_second * 100_000, per_second, limit * 1_000_000);
            }
        }
        rate
    }

    #[test]
    fn a_change_is_what_no_limit_explains() {
        // (what came, how the device has changed)
        let cases: [(&[Stretch], f64); 5] = [
            (&[(40, 250, 8), (10, 60, 8)], 0.24),
            // Half the limit, a quarter of the rate: half of that is the limit's doing.
            (&[(40, 240, 8), (10, 60, 4)], 0.5),
            (&[(40, 240, 8), (10, 60, 1)], 1.0),
            // It was low a moment ago, and is high again.
            (&[(40, 240, 8), (9, 60, 1), (1, 60, 18)], 1.0),
            (&[(40, 60, 2), (10, 240, 4)], 2.0),
        ];
        for (stretches, changed) in cases {
            let rate = delivered(stretches);
            assert!((rate.change().unwrap() - changed).abs() < 0.01, "{stretches:?}: {:?}", rate.change());
        }
        assert_eq!(delivered(&[(20, 240, 8)]).change(), None);
    }

    #[test]
    fn what_comes_out_may_change_for_any_reason() {
        assert_eq!(delivered(&[(40, 240, 8), (10, 60, 2)]).delivered_change(), Some(0.25));
        assert_eq!(delivered(&[(20, 240, 8)]).delivered_change(), None);
    }

    #[test]
    fn smaller_writes_are_no_fewer() {
        let mut rate = delivered(&[(40, 240, 8)]);
        (0..10).for_each(|_| rate.push(LOOK, 60 * 100_000, 240, 8_000_000));
        assert_eq!((rate.change(), rate.writes_change()), (Some(0.25), Some(1.0)));
        assert_eq!(delivered(&[(40, 240, 8), (10, 60, 8)]).writes_change(), Some(0.25));
        assert_eq!(delivered(&[(20, 240, 8)]).writes_change(), None);
    }

    #[test]
    fn more_than_a_slow_device_could_do_says_that_it_is_fast_again_at_any_limit() {
        let mut rate = delivered(&[(40, 240, 8), (10, 60, 8)]);
        assert_eq!(rate.risen(), None);
        rate.drops(rate.of_best());
        assert!((rate.best() / 75e6 - 1.0).abs() < 0.01, "{}", rate.best());
        let mut push = |looks: usize, per_second: u64, limit: u64| {
            (0..looks).for_each(|_| rate.push(LOOK, per_second * 100_000, per_second, limit * 1_000_000));
            rate.risen()
        };
        assert_eq!(push(20, 60, 2), None);
        assert_eq!(push(50, 50, 1), None);
        // Twice what came out before at twice the limit may be the limit's doing; beyond the best of before it is not.
        assert_eq!(push(10, 100, 2), None);
        assert!(push(10, 150, 4).is_some_and(|ratio| ratio > RISEN));
    }

    #[test]
    fn a_device_is_as_fast_as_before_or_nearer_to_it() {
        let mut rate = delivered(&[(40, 240, 8)]);
        assert_eq!(rate.rises(4.0), None);
        rate.drops(0.25);
        assert_eq!(rate.rises(2.0), Some(2.0));
        assert_eq!(rate.rises(4.0), Some(2.0));
        assert_eq!(rate.rises(4.0), None);
    }
}
