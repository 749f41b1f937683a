//! How many are in flight, weighted by time.

use crate::analysis::Depth;

/// Depths distinguished; all above share the last place.
const DEPTHS_MAX: usize = 4096;

/// Before anything was seen.
const NOT_STARTED: u64 = u64::MAX;

/// Keeps a [`Depth`] up to date.
#[derive(Debug)]
pub struct DepthMeter {
    now: u64,
    since_ns: u64,
    period_since_ns: u64,
    /// By depth, but for the last place, how long there were so many.
    time_ns: Vec<u64>,
    /// The same of the last place, and depth × time there, where depths differ.
    time_above_ns: u64,
    area_above_ns: u128,
    /// What has to be added to `now` × `since_ns` to have the depth × time that was not taken yet: every arrival takes
    /// away its time, every end adds its own.
    offset_ns: u128,
    out: Depth,
}

impl Default for DepthMeter {
    fn default() -> Self {
        DepthMeter {
            now: 0,
            since_ns: NOT_STARTED,
            period_since_ns: 0,
            time_ns: Vec::new(),
            time_above_ns: 0,
            area_above_ns: 0,
            offset_ns: 0,
            out: Depth::default(),
        }
    }
}

impl DepthMeter {
    /// How many are in flight.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets time pass.
    #[inline(always)]
    pub fn pass(&mut self, time_ns: u64) {
        let ns = time_ns.saturating_sub(self.since_ns);
        match self.time_ns.get_mut(self.now as usize) {
            Some(at_depth_ns) => {
                *at_depth_ns += ns;
                self.since_ns += ns;
            }
            None => self.pass_at_new_depth(time_ns, ns),
        }
    }

    /// The same at a depth at which no time has passed yet, or for which there is no place.
    #[cold]
    fn pass_at_new_depth(&mut self, time_ns: u64, ns: u64) {
        if self.since_ns == NOT_STARTED {
            self.since_ns = time_ns;
            self.period_since_ns = time_ns;
        }
        if ns == 0 {
            return;
        }
        self.since_ns += ns;
        let depth = self.now as usize;
        if depth < DEPTHS_MAX - 1 {
            self.time_ns.resize(depth + 1, 0);
            self.time_ns[depth] += ns;
        } else {
            self.time_above_ns += ns;
            self.area_above_ns += u128::from(self.now) * u128::from(ns);
        }
    }

    /// Depth × time that passed since this was taken last.
    pub fn take_area_ns(&mut self) -> u64 {
        let all_ns = u128::from(self.now) * u128::from(self.since_ns);
        let area_ns = self.offset_ns.wrapping_add(all_ns);
        self.offset_ns = all_ns.wrapping_neg();
        u64::try_from(area_ns).unwrap_or(u64::MAX)
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
        self.offset_ns = self.offset_ns.wrapping_sub(self.since_ns.into());
    }

    /// One less, after [`DepthMeter::pass`]. I/Os that were in flight before the recording began are not counted, so there
    /// is never less than none.
    #[inline]
    pub fn leave(&mut self, time_ns: u64) {
        if self.now == 0 {
            return;
        }
        if self.now == 1 {
            self.end_period(time_ns);
        }
        self.now -= 1;
        self.offset_ns = self.offset_ns.wrapping_add(self.since_ns.into());
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: DepthMeter) {
        other.close();
        self.close();
        self.out.merge(&other.out);
        self.area_above_ns += other.area_above_ns;
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
        if self.since_ns != NOT_STARTED {
            self.end_period(self.since_ns);
        }
        if self.time_above_ns > 0 {
            self.time_ns.resize(DEPTHS_MAX, 0);
            self.time_ns[DEPTHS_MAX - 1] = std::mem::take(&mut self.time_above_ns);
        }
        let time_ns = std::mem::take(&mut self.time_ns);
        self.out.merge(&Depth { time_ns, ..Depth::default() });
        (self.now, self.since_ns, self.offset_ns) = (0, NOT_STARTED, 0);
    }

    fn end_period(&mut self, time_ns: u64) {
        let ns = time_ns.saturating_sub(self.period_since_ns);
        let longest = if self.now == 0 { &mut self.out.idle_ns_max } else { &mut self.out.active_ns_max };
        *longest = (*longest).max(ns);
        self.period_since_ns = time_ns;
    }
}
