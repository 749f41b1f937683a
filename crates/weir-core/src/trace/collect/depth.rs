//! How many are in flight, weighted by time.

use crate::trace::analysis::Depth;

/// Depths told apart; all above share the last place.
const DEPTHS_MAX: usize = 4096;

/// Keeps a [`Depth`] up to date.
#[derive(Debug, Default)]
pub struct DepthMeter {
    now: u64,
    since_ns: u64,
    period_since_ns: u64,
    started: bool,
    /// Depth × time that was not taken yet.
    area_ns: u64,
    /// Depth × time in the last place, whose depths differ.
    area_above_ns: u128,
    out: Depth,
}

impl DepthMeter {
    /// How many are in flight.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets time pass.
    #[inline]
    pub fn pass(&mut self, time_ns: u64) {
        if !self.started {
            self.started = true;
            self.since_ns = time_ns;
            self.period_since_ns = time_ns;
        }
        let ns = time_ns.saturating_sub(self.since_ns);
        if ns > 0 {
            let place = (self.now as usize).min(DEPTHS_MAX - 1);
            if place >= self.out.time_ns.len() {
                self.out.time_ns.resize(place + 1, 0);
            }
            self.out.time_ns[place] += ns;
            if place == DEPTHS_MAX - 1 {
                self.area_above_ns += u128::from(self.now) * u128::from(ns);
            }
            self.area_ns = self.area_ns.saturating_add(self.now.saturating_mul(ns));
            self.since_ns = time_ns;
        }
    }

    /// Depth × time that passed since this was taken last.
    pub fn take_area_ns(&mut self) -> u64 {
        std::mem::take(&mut self.area_ns)
    }

    /// One more, after [`DepthMeter::pass`].
    #[inline]
    pub fn enter(&mut self, time_ns: u64) {
        self.out.seen_sum += self.now;
        self.out.arrivals += 1;
        if self.now == 0 {
            self.out.active_periods += 1;
            self.end_period(time_ns);
        }
        self.now += 1;
        self.out.max = self.out.max.max(self.now);
    }

    /// One less, after [`DepthMeter::pass`]. What was in flight before the recording began is not counted, so there
    /// is never less than none.
    #[inline]
    pub fn leave(&mut self, time_ns: u64) {
        if self.now == 1 {
            self.end_period(time_ns);
        }
        self.now = self.now.saturating_sub(1);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: DepthMeter) {
        other.close();
        self.close();
        self.out.merge(&other.out);
        self.area_above_ns += other.area_above_ns;
        self.started = false;
    }

    /// The figures, up to the last time given.
    pub fn finish(mut self) -> Depth {
        self.close();
        let below = self.out.time_ns.iter().enumerate().take(DEPTHS_MAX - 1);
        let area_ns: u128 = below.map(|(depth, ns)| depth as u128 * u128::from(*ns)).sum();
        self.out.area_ns = area_ns + self.area_above_ns;
        self.out
    }

    fn close(&mut self) {
        if self.started {
            self.end_period(self.since_ns);
        }
        self.now = 0;
    }

    fn end_period(&mut self, time_ns: u64) {
        let ns = time_ns.saturating_sub(self.period_since_ns);
        let longest = if self.now == 0 { &mut self.out.idle_ns_max } else { &mut self.out.active_ns_max };
        *longest = (*longest).max(ns);
        self.period_since_ns = time_ns;
    }
}
