//! What was learned about the limit at one concurrency: where it was good, where it was too high, how syncs answer.

mod way;

use super::judge::{Terms, Verdict};
use crate::Parameters;

pub(super) use way::Way;

/// Octaves within which two concurrencies want the same limit.
const SAME_OCTAVES: f64 = 0.8;
/// And within which one that changes is still taken for the same: a server's log writer makes one connection two every
/// other second.
const STAY_OCTAVES: f64 = 1.05;
const REGIMES_MOST: usize = 12;
/// Rates closer than this ratio are one speed of a device.
const SAME_SPEED: f64 = 1.5;
/// Speeds that are remembered: a device with a burst budget has two.
const SPEEDS_MOST: usize = 4;
/// Stays at the floor that may fail to bring syncs back until a limit counts as too high.
const TIPS_MOST: u8 = 3;
/// Each after the first is longer by so many times that one.
const TIP_LONGER: u64 = 3;
/// Improvements smaller than this (of a logarithm) are none.
const NOTICEABLE: f64 = 0.1;
/// A limit below one that was too high, at which less than this share of what came out there comes out, is too low.
const UNUSED: f64 = 0.6;
/// That is believed of limits that proved too high so long ago.
const MOMENT_NS: u64 = 3_000_000_000;
/// Limits that differ by so much (of a logarithm, a factor of three) are far apart.
const FAR_APART: f64 = 1.1;
/// Differences larger than this (of a logarithm) at one limit mean that something else has changed.
const CHANGED: f64 = 0.4;
/// Where no limit was found to hold the target, a loss that is larger by this (of a logarithm) than the one found there
/// says that something has changed, too.
const WORSE: f64 = 0.15;

/// What was measured at a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub bytes: u64,
    pub off: f64,
    pub kept: Option<f64>,
    /// How many fewer syncs came than their durations explain, as a logarithm.
    pub fewer: f64,
    pub p99_ns: Option<u64>,
    pub delivered: f64,
    pub at_ns: u64,
}

/// A limit that was too high, or of no use.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    bytes: u64,
    /// What the device delivered meanwhile, in bytes per second.
    delivered: f64,
    until_ns: u64,
    wait_ns: u64,
    /// It was not gone beyond since.
    stands: bool,
    /// A higher one was tried since.
    was_tried: bool,
    /// A higher one was tried before, and this proved too high again: that is no bad moment.
    is_sure: bool,
}

/// How long a finding is believed.
#[derive(Debug, Clone, Copy)]
struct Belief {
    until_ns: u64,
    wait_ns: u64,
}

impl Belief {
    /// From now on, for twice as long as the last time up to ten times the first.
    fn again(last: Option<Belief>, now_ns: u64, p: &Parameters) -> Belief {
        let wait_ns = last.map_or(p.infeasible_ns, |last| (2 * last.wait_ns).min(10 * p.infeasible_ns));
        Belief { until_ns: now_ns + wait_ns, wait_ns }
    }

    fn holds(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }
}

/// A tail in reach where the wanted one is not.
#[derive(Debug, Clone, Copy)]
struct Relaxed {
    p99_ns: f64,
    belief: Belief,
}

/// A limit that held when the device delivered so many bytes a second at best.
#[derive(Debug, Clone, Copy)]
struct Speed {
    rate: f64,
    good: u64,
}

impl Speed {
    fn is_near(&self, rate: f64) -> bool {
        self.rate.max(rate) <= SAME_SPEED * self.rate.min(rate)
    }
}

/// One concurrency.
#[derive(Debug, Clone)]
pub(super) struct Regime {
    pub concurrency: f64,
    /// The highest limit that held lately.
    pub good: Option<u64>,
    /// When it did last.
    held_ns: u64,
    /// It is what another speed of the device suggests, and has not held yet.
    is_guess: bool,
    /// What held at other speeds of the device.
    speeds: Vec<Speed>,
    /// The device became slower, and is not known to be faster again.
    slowed: bool,
    /// Stays at the floor in a row that did not bring syncs back.
    tips: u8,
    /// When syncs last became slow at a limit that had held.
    tipped_ns: Option<u64>,
    /// Share of their rate that syncs lose as the limit grows by a factor of e.
    pub gain: f64,
    ceiling: Option<Ceiling>,
    points: Vec<Point>,
    /// Moves in one direction that did not help.
    fruitless: u8,
    /// The target cannot be held: until then the limit stays.
    pub stuck_until_ns: Option<u64>,
    /// What was measured when that was found.
    stuck_at: Option<Point>,
    /// No limit holds the tail: until then it is held to this instead.
    relaxed: Option<Relaxed>,
    /// The load comes less often whatever the limit is, so its rate is no measure of one.
    slack: Option<Belief>,
    /// When a probe was last made.
    pub probed_ns: Option<u64>,
}

/// All concurrencies.
#[derive(Debug, Clone, Default)]
pub(super) struct Regimes {
    all: Vec<Regime>,
    current: Option<usize>,
}

fn octaves(concurrency: f64) -> f64 {
    concurrency.max(1.0).log2()
}

impl Regimes {
    /// Goes to the regime of a concurrency, a new one if there is none near; whether that is another one than before.
    pub fn enter(&mut self, concurrency: f64, parameters: &Parameters) -> bool {
        if self.here(concurrency) {
            return false;
        }
        let found = (0..self.all.len())
            .filter(|&i| self.all[i].near(concurrency))
            .min_by(|&a, &b| self.all[a].away(concurrency).total_cmp(&self.all[b].away(concurrency)));
        let index = found.unwrap_or_else(|| {
            if self.all.len() >= REGIMES_MOST {
                self.all.remove(0);
            }
            self.all.push(Regime::new(concurrency, parameters.gain));
            self.all.len() - 1
        });
        self.current = Some(index);
        true
    }

    /// The regime entered last.
    pub fn current(&mut self) -> Option<&mut Regime> {
        self.current.and_then(|i| self.all.get_mut(i))
    }

    /// Whether a concurrency still belongs to the current regime.
    pub fn here(&self, concurrency: f64) -> bool {
        self.current.is_some_and(|i| self.all[i].away(concurrency) < STAY_OCTAVES)
    }

    /// The device, which delivered `from` bytes a second at best, delivers `to` from now on: limits are what held at
    /// that speed before, or else change with it.
    pub fn change_speed(&mut self, from: f64, to: f64) {
        for regime in &mut self.all {
            regime.change_speed(from, to);
        }
    }
}

impl Regime {
    fn new(concurrency: f64, gain: f64) -> Regime {
        Regime {
            concurrency,
            good: None,
            held_ns: 0,
            is_guess: false,
            speeds: Vec::new(),
            slowed: false,
            tips: 0,
            tipped_ns: None,
            gain,
            ceiling: None,
            points: Vec::new(),
            fruitless: 0,
            stuck_until_ns: None,
            stuck_at: None,
            relaxed: None,
            slack: None,
            probed_ns: None,
        }
    }

    /// The highest limit that held lately, or before at the speed that the device has now.
    pub fn proven(&self) -> Option<u64> {
        self.good.filter(|_| !self.is_guess)
    }

    fn change_speed(&mut self, from: f64, to: f64) {
        if let Some(good) = self.proven() {
            self.speeds.retain(|speed| !speed.is_near(from));
            if self.speeds.len() >= SPEEDS_MOST {
                self.speeds.remove(0);
            }
            self.speeds.push(Speed { rate: from, good });
        }
        let known = self.speeds.iter().find(|speed| speed.is_near(to)).map(|speed| speed.good);
        self.good = known.or(self.good.map(|bytes| self.scaled(bytes, to / from.max(1.0))));
        self.slowed = to < from;
        self.is_guess = known.is_none();
        // What was measured was measured on a device of another speed.
        self.ceiling = None;
        self.tips = 0;
        self.points.clear();
        self.unstick();
    }

    /// What a limit comes to on a device that is so many times as fast. What many threads need for pages of their own does
    /// not change with it.
    pub fn scaled(&self, bytes: u64, factor: f64) -> u64 {
        let factor = if self.has_many() { factor.sqrt() } else { factor };
        (bytes as f64 * factor) as u64
    }

    /// Whether these are more threads than a few, with pages of their own.
    pub fn has_many(&self) -> bool {
        self.concurrency > way::FEW
    }

    fn near(&self, concurrency: f64) -> bool {
        self.away(concurrency) < SAME_OCTAVES
    }

    /// Octaves between a concurrency and this one.
    fn away(&self, concurrency: f64) -> f64 {
        (octaves(self.concurrency) - octaves(concurrency)).abs()
    }

    /// Whether a limit up to this one was too high here.
    pub fn was_too_high_below(&self, bytes: u64) -> bool {
        self.ceiling.is_some_and(|ceiling| ceiling.stands && ceiling.bytes <= bytes)
    }

    /// The target was held at this limit. A lower one than is known to hold says nothing against that.
    pub fn holds(&mut self, bytes: u64, now_ns: u64, parameters: &Parameters) {
        let is_old = now_ns.saturating_sub(self.held_ns) > parameters.memory_ns;
        if is_old || self.good.is_none_or(|good| bytes as f64 >= good as f64 * 0.96) {
            self.tips = 0;
            (self.good, self.held_ns, self.is_guess) = (Some(bytes), now_ns, false);
        }
    }

    /// A sync came to a stand at this limit: that it or a higher one held is no longer known.
    pub fn stalls(&mut self, bytes: u64) {
        if self.good.is_some_and(|good| good >= bytes || same(good, bytes)) {
            self.refute(bytes);
        }
    }

    /// Syncs lost at this limit, and not for a moment: of those that held, one below it is left, if any.
    fn refute(&mut self, bytes: u64) {
        let below = |point: &&Point| point.bytes < bytes && !same(point.bytes, bytes);
        let held = self.points.iter().filter(|point| point.off <= 0.0).filter(below);
        (self.good, self.is_guess) = (held.map(|point| point.bytes).max(), false);
        self.tips = 0;
    }

    /// How many times as long the next stay at the floor is: those before it in a row were too short.
    pub fn tip_times(&self) -> u64 {
        (TIP_LONGER * u64::from(self.tips).saturating_sub(1)).max(1)
    }

    /// Whether syncs became slow at a limit that had held, so short a time ago.
    pub fn tipped_within(&self, span_ns: u64, now_ns: u64) -> bool {
        self.tipped_ns.is_some_and(|at| now_ns - at < span_ns)
    }

    /// Syncs became slow at this limit. Where to lead it after a short stay at the floor: to where they were fast, or a
    /// little below that; `None` where no such limit is known, or where no such stay has helped.
    pub fn tip(&mut self, bytes: u64, floor: u64, now_ns: u64, parameters: &Parameters) -> Option<u64> {
        let good = self.proven().filter(|good| bytes <= good.saturating_mul(2))?;
        if bytes <= floor {
            return None;
        }
        if self.tips >= TIPS_MOST {
            self.refute(bytes);
            return None;
        }
        self.tips += 1;
        // Lost again on the way back says that the stay was too short, and nothing of the limit it was on the way to.
        let again = self.tips > 1;
        let back = if again { good } else { good.min(bytes) };
        // What holds for moments only is no limit to go back to for a moment more; what is lower by much holds back many
        // threads for pages of their own.
        let lately = self.tipped_within(parameters.ceiling_ns, now_ns) && !self.has_many();
        let refute = if lately { parameters.refute.powi(2) } else { parameters.refute };
        self.tipped_ns = Some(now_ns);
        let back = if again || same(back, bytes) { (back as f64 * refute) as u64 } else { back };
        self.good = Some(back.max(floor));
        self.good.filter(|back| !same(*back, floor))
    }

    /// No limit holds the target; this one is the best.
    pub fn stick(&mut self, at: Point, until_ns: u64) {
        self.stuck_until_ns = Some(until_ns);
        self.stuck_at = Some(at);
        self.good = Some(at.bytes);
    }

    /// Where what is measured is no longer what it was when no limit was found to hold the target, for better or worse,
    /// that finding is void.
    pub fn wake(&mut self, now: &Point) {
        let Some(then) = self.stuck_at.filter(|_| self.stuck_until_ns.is_some()) else { return };
        let flow = (now.delivered.max(1.0) / then.delivered.max(1.0)).ln().abs();
        if now.off - then.off > WORSE || then.off - now.off > CHANGED || flow > CHANGED {
            self.points.clear();
            self.unstick();
        }
    }

    /// Tries again what did not help before.
    pub fn unstick(&mut self) {
        (self.stuck_until_ns, self.stuck_at) = (None, None);
        self.fruitless = 0;
    }

    /// What syncs are not asked to keep: where no limit holds the wanted tail, one beyond twice what is in reach.
    pub fn terms(&self, now_ns: u64) -> Terms {
        let relaxed = self.relaxed.filter(|relaxed| relaxed.belief.holds(now_ns));
        Terms {
            relaxed_ns: relaxed.map(|relaxed| (2.0 * relaxed.p99_ns) as u64),
            is_slack: self.slack.is_some_and(|slack| slack.holds(now_ns)),
        }
    }

    /// Fewer syncs come than their durations explain: whether that is so at limits far apart, and so not their doing. From then
    /// on it is held against none of them.
    pub fn slacken(&mut self, now: &Point, p: &Parameters) -> bool {
        if now.fewer < NOTICEABLE || self.gain_of_cuts().is_none_or(|gain| gain >= NOTICEABLE) {
            return false;
        }
        let now_ns = now.at_ns;
        // Found again soon after, it is believed for longer.
        let last = self.slack.filter(|slack| now_ns < slack.until_ns + slack.wait_ns);
        self.slack = Some(Belief::again(last, now_ns, p));
        // What proved too high was judged by their rate.
        self.ceiling = None;
        self.points.clear();
        self.unstick();
        true
    }

    /// How much of what their durations do not explain syncs lose less (as a logarithm) at the lowest limit that was tried than
    /// at the highest, by the straight line through all of them; `None` where these are not far apart.
    fn gain_of_cuts(&self) -> Option<f64> {
        let size = |point: &Point| (point.bytes.max(1) as f64).ln();
        let (low, high) = self
            .points
            .iter()
            .map(size)
            .fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        let count = self.points.len() as f64;
        let mean = |of: &dyn Fn(&Point) -> f64| self.points.iter().map(of).sum::<f64>() / count;
        let (middle, fewer) = (mean(&size), mean(&|point| point.fewer));
        let slope = mean(&|point| (size(point) - middle) * (point.fewer - fewer))
            / mean(&|point| (size(point) - middle).powi(2));
        (high - low >= FAR_APART).then_some(slope * (high - low))
    }

    /// Whether the tail alone cannot be held: a missed one, that the floor would not hold either if it went down with
    /// the limit, or that the last cut hardly moved.
    pub fn relax(
        &mut self,
        before: Option<&Point>,
        now: &Point,
        target_ns: u64,
        floor: u64,
        p: &Parameters,
    ) -> bool {
        let Some(p99) = now.p99_ns.map(|ns| ns as f64) else { return false };
        let low = now.bytes <= 2 * floor && p99 * floor as f64 / now.bytes.max(1) as f64 > target_ns as f64;
        let unmoved = before.filter(|before| before.bytes > now.bytes).is_some_and(|before| {
            let step = (before.bytes as f64 / now.bytes as f64).ln();
            let gain = before.p99_ns.map_or(step, |ns| (ns as f64 / p99).ln());
            gain < 0.3 * step
        });
        if !low && !unmoved {
            return false;
        }
        let belief = Belief::again(self.relaxed.map(|relaxed| relaxed.belief), now.at_ns, p);
        let p99 = self
            .relaxed
            .filter(|relaxed| relaxed.belief.holds(now.at_ns))
            .map_or(p99, |before| before.p99_ns.max(p99));
        self.relaxed = Some(Relaxed { p99_ns: p99, belief });
        true
    }

    /// Notes what was measured at a limit; forgets what is old, or was measured on a device of another speed.
    pub fn note(&mut self, now: Point, parameters: &Parameters) {
        self.points.retain(|point| {
            now.at_ns - point.at_ns < parameters.memory_ns
                && !same(point.bytes, now.bytes)
                && !of_another_speed(point, &now)
        });
        self.points.push(now);
    }

    /// Forgets what was measured between two moments.
    pub fn forget(&mut self, from_ns: u64, until_ns: u64) {
        let between = |point: &Point| (from_ns..until_ns).contains(&point.at_ns);
        self.points.retain(|point| !between(point));
        if self.stuck_at.as_ref().is_some_and(between) {
            self.unstick();
        }
    }

    /// What was measured at the best limit: the least off, and of those nearly as good the one that lets most through.
    /// Where the target is held, how well it is held does not count.
    pub fn best(&self) -> Option<Point> {
        let least = self.points.iter().map(|point| point.off).min_by(f64::total_cmp)?;
        if least <= 0.0 {
            let held = self.points.iter().filter(|point| point.off <= 0.0);
            return held.max_by(|a, b| a.delivered.total_cmp(&b.delivered)).copied();
        }
        let near = self.points.iter().filter(|point| point.off < least + NOTICEABLE);
        near.max_by(|a, b| a.delivered.total_cmp(&b.delivered)).copied()
    }

    /// Learns from two measurements at different limits how syncs answer to it.
    pub fn learn_gain(&mut self, before: &Point, now: &Point) {
        let (Some(kept_before), Some(kept)) = (before.kept, now.kept) else { return };
        let step = (now.bytes as f64 / before.bytes.max(1) as f64).ln();
        if step.abs() > 0.1 {
            let seen = ((kept_before - kept) / step).clamp(0.08, 1.0);
            self.gain += (seen - self.gain) * 0.5;
        }
    }

    /// This limit was too high or of no use: nothing near it is tried for a while, and longer each time.
    pub fn cap(&mut self, bytes: u64, delivered: f64, now_ns: u64, parameters: &Parameters) {
        if self.is_guess {
            self.stalls(bytes);
        }
        let again = self.ceiling.filter(|ceiling| {
            let lately = now_ns < ceiling.until_ns + ceiling.wait_ns.max(parameters.memory_ns);
            lately && bytes <= ceiling.bytes * 2
        });
        // One that became slower may be fast again, which a low limit shows in nothing else.
        let first_ns = if self.slowed { parameters.ceiling_ns / 3 } else { parameters.ceiling_ns };
        let wait_ns = again.map_or(first_ns, |ceiling| {
            // One finding while the last still held says nothing new.
            if ceiling.until_ns > now_ns { ceiling.wait_ns } else { ceiling.wait_ns * 2 }
        });
        let wait_ns = wait_ns.min(parameters.ceiling_most_ns);
        let is_sure = again.is_some_and(|ceiling| ceiling.is_sure || ceiling.was_tried);
        let until_ns = now_ns + wait_ns;
        let (stands, was_tried) = (true, false);
        self.ceiling = Some(Ceiling { bytes, delivered, until_ns, wait_ns, stands, was_tried, is_sure });
    }

    /// Where to raise to from a limit with room, by `most` at the most; `None` where it has settled.
    pub fn raise(
        &mut self,
        at: &Point,
        verdict: &Verdict,
        most: f64,
        parameters: &Parameters,
    ) -> Option<u64> {
        let (from, now_ns) = (at.bytes, at.at_ns);
        // More comes out below a limit that was too high than came out at it: the device was slower then.
        self.ceiling = self.ceiling.filter(|ceiling| {
            from >= ceiling.bytes || at.delivered.ln() < ceiling.delivered.max(1.0).ln() + CHANGED
        });
        let room = verdict.kept.map_or(0.0, |kept| kept - parameters.target.keep);
        let mut factor = (room / self.gain).exp();
        if let Some(ratio) = verdict.tail_ratio {
            factor = factor.min(parameters.tail_room / ratio.max(1e-3));
        } else {
            // The tail is unknown: smaller steps.
            factor = factor.min(parameters.raise_most.sqrt());
        }
        let factor = factor.min(most).clamp(1.05, parameters.raise_most);
        // Up to what is known to hold there is no need for care.
        if let Some(good) = self.good.filter(|good| *good > from && !same(*good, from)) {
            return Some(good.min((from as f64 * parameters.raise_most) as u64));
        }
        let Some(ceiling) = self.ceiling.as_mut().filter(|ceiling| ceiling.stands) else {
            return Some((from as f64 * factor) as u64);
        };
        // Where syncs lose nothing and most of the device's rate is unused, it was not the limit that was too high but the
        // moment: bulk writers had come first.
        let was_moment = !ceiling.is_sure
            && verdict.has_spare(parameters)
            && at.delivered < UNUSED * ceiling.delivered
            && now_ns >= ceiling.until_ns.saturating_sub(ceiling.wait_ns) + MOMENT_NS;
        if ceiling.until_ns <= now_ns || was_moment {
            // Long enough ago; a small step over it shows whether it still stands.
            ceiling.was_tried = true;
            if from as f64 > ceiling.bytes as f64 * parameters.settle_ratio {
                (ceiling.stands, ceiling.until_ns) = (false, now_ns);
            }
            let most = parameters.settle_ratio * parameters.settle_ratio;
            return Some((from as f64 * factor.min(most)) as u64);
        }
        if from as f64 * parameters.settle_ratio >= ceiling.bytes as f64 {
            return None;
        }
        let middle = (from as f64 * ceiling.bytes as f64).sqrt();
        Some((from as f64 * factor).min(middle) as u64)
    }
}

/// A higher limit lets more through: where clearly less came out at it, the device was slower then or is now.
fn of_another_speed(one: &Point, other: &Point) -> bool {
    let (low, high) = if one.bytes < other.bytes { (one, other) } else { (other, one) };
    (low.delivered.max(1.0) / high.delivered.max(1.0)).ln() > CHANGED
}

/// Whether two limits are one.
pub(super) fn same(a: u64, b: u64) -> bool {
    a.max(b) as f64 <= a.min(b).max(1) as f64 * 1.04
}

#[cfg(test)]
mod tests {
    use super::way::FEW;
    use super::*;
    use crate::old::Known;
    use crate::old::judge::State;

    const MB: u64 = 1_000_000;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_device_that_has_a_speed_again_gets_what_held_at_it() {
        let parameters = Parameters::default();
        let mut regimes = Regimes::default();
        regimes.enter(1.0, &parameters);
        let mut now = 0;
        let mut held = |regimes: &mut Regimes, bytes| {
            now += SECOND;
            regimes.current().unwrap().holds(bytes, now, &parameters);
        };
        let good = |regimes: &mut Regimes| regimes.current().map(|regime| (regime.good, regime.proven()));
        held(&mut regimes, 12 * MB);
        // Nothing is known of the slow speed: a guess, until it holds.
        regimes.change_speed(240e6, 60e6);
        assert_eq!(good(&mut regimes), Some((Some(3 * MB), None)));
        held(&mut regimes, 2 * MB);
        assert_eq!(good(&mut regimes), Some((Some(3 * MB), None)));
        held(&mut regimes, 4 * MB);
        assert_eq!(good(&mut regimes), Some((Some(4 * MB), Some(4 * MB))));
        // Rates are never the same to the byte.
        regimes.change_speed(60e6, 220e6);
        assert_eq!(good(&mut regimes), Some((Some(12 * MB), Some(12 * MB))));
        held(&mut regimes, 16 * MB);
        regimes.change_speed(230e6, 70e6);
        assert_eq!(good(&mut regimes), Some((Some(4 * MB), Some(4 * MB))));
        regimes.change_speed(70e6, 240e6);
        assert_eq!(good(&mut regimes), Some((Some(16 * MB), Some(16 * MB))));
        // A guess is not remembered as what held.
        regimes.change_speed(240e6, 24e6);
        regimes.change_speed(24e6, 240e6);
        regimes.change_speed(240e6, 24e6);
        assert_eq!(good(&mut regimes), Some((Some(1_600_000), None)));
    }

    fn point(bytes: u64, off: f64, delivered: f64, at_ns: u64) -> Point {
        Point { bytes, off, kept: Some(0.93 * (-off).exp()), fewer: 0.0, p99_ns: None, delivered, at_ns }
    }

    #[test]
    fn a_rate_is_no_measure_where_limits_far_apart_do_not_change_it() {
        let parameters = Parameters::default();
        // (limits in MB and how many fewer syncs came there, whether that is the load's doing)
        let cases: [(&[(u64, f64)], bool); 6] = [
            (&[(16, 0.6), (8, 0.52), (4, 0.62)], true),
            // The first of them was half of the time before.
            (&[(16, 0.3), (8, 0.6), (4, 0.62)], true),
            (&[(16, 0.6), (8, 0.4), (4, 0.2)], false),
            (&[(16, 0.6), (12, 0.6), (8, 0.6)], false),
            (&[(16, 0.6)], false),
            (&[(16, 0.05), (8, 0.05), (4, 0.05)], false),
        ];
        for (found, slack) in cases {
            let mut regime = Regime::new(1.0, parameters.gain);
            for (at, &(megabytes, fewer)) in (1..).zip(found) {
                let found = point(megabytes * MB, 0.6, 250e6, at * SECOND);
                regime.note(Point { fewer, ..found }, &parameters);
            }
            let last = *regime.points.last().unwrap();
            let now = last.at_ns;
            assert_eq!(regime.slacken(&last, &parameters), slack, "{found:?}");
            assert_eq!(regime.terms(now).is_slack, slack, "{found:?}");
            assert!(!regime.terms(now + parameters.infeasible_ns).is_slack, "not for ever");
        }
    }

    #[test]
    fn slack_that_is_found_again_soon_is_believed_for_longer() {
        let parameters = Parameters::default();
        let minute = parameters.infeasible_ns;
        let mut regime = Regime::new(1.0, parameters.gain);
        // (when it is found, for how many minutes it is believed)
        for (at_ns, minutes) in [(minute, 1), (3 * minute - SECOND, 2), (60 * minute, 1)] {
            for megabytes in [16, 4] {
                let found = point(megabytes * MB, 0.6, 250e6, at_ns);
                regime.note(Point { fewer: 0.6, ..found }, &parameters);
            }
            let last = *regime.points.last().unwrap();
            assert!(regime.slacken(&last, &parameters));
            assert_eq!(regime.slack.map(|slack| slack.wait_ns), Some(minutes * minute), "{at_ns}");
        }
    }

    #[test]
    fn a_slower_device_takes_less_from_many_threads_and_is_tried_again_sooner() {
        let parameters = Parameters::default();
        let slowed = |threads, to| {
            let mut regime = Regime::new(threads, parameters.gain);
            regime.holds(16 * MB, SECOND, &parameters);
            regime.change_speed(240e6, to);
            regime.cap(4 * MB, to, 2 * SECOND, &parameters);
            (regime.scaled(16 * MB, 0.25), regime.ceiling.map(|ceiling| ceiling.wait_ns))
        };
        let (usual, soon) = (Some(parameters.ceiling_ns), Some(parameters.ceiling_ns / 3));
        assert_eq!(slowed(1.0, 60e6), (4 * MB, soon));
        assert_eq!(slowed(10.0, 60e6), (8 * MB, soon));
        assert_eq!(slowed(1.0, 300e6), (4 * MB, usual));
    }

    #[test]
    fn few_threads_held_back_for_their_own_pages_try_less_before_more() {
        let parameters = Parameters::default();
        let floor = MB;
        for (threads, worse) in [(1.0, false), (1.0, true), (10.0, false)] {
            let mut regime = Regime::new(threads, parameters.gain);
            let here = point(3 * MB, 0.8, 60e6, 10 * SECOND);
            assert_eq!(regime.needs_more(&here, floor), threads > FEW, "nothing was tried yet");
            assert!(regime.needs_more(&point(floor, 0.8, 60e6, 0), floor), "there is no less");
            regime.note(point(floor, if worse { 1.0 } else { -0.05 }, 50e6, SECOND), &parameters);
            assert_eq!(regime.needs_more(&here, floor), worse || threads > FEW, "{threads} threads");
        }
    }

    #[test]
    fn a_log_writer_that_comes_and_goes_changes_no_regime() {
        let parameters = Parameters::default();
        let mut regimes = Regimes::default();
        assert!(regimes.enter(1.0, &parameters));
        let flapping = [2.0, 1.0, 2.0];
        assert!(flapping.iter().all(|threads| !regimes.enter(*threads, &parameters)));
        assert!(regimes.enter(3.0, &parameters), "three are not one");
        assert!(!regimes.enter(2.0, &parameters), "and what is near them still belongs to them");
        assert!(regimes.enter(1.0, &parameters), "until it is as far away");
    }

    #[test]
    fn syncs_that_tip_again_soon_cost_a_few_threads_more_of_the_limit_than_many() {
        let parameters = Parameters::default();
        // (threads, limits gone back to after the first, second and third time)
        let cases =
            [(1.0, [17_000_000, 12_282_499, 8_874_105]), (10.0, [17_000_000, 14_450_000, 12_282_500])];
        for (threads, back) in cases {
            let mut regime = Regime::new(threads, parameters.gain);
            regime.holds(20 * MB, SECOND, &parameters);
            let mut tip = |bytes, second| {
                let to = regime.tip(bytes, MB, second * SECOND, &parameters);
                (to, regime.tip_times())
            };
            assert_eq!(tip(20 * MB, 10), (Some(back[0]), 1));
            // Lost again on the way back, at half of it, and again.
            assert_eq!(tip(8 * MB, 11), (Some(back[1]), TIP_LONGER));
            assert_eq!(tip(8 * MB, 13), (Some(back[2]), 2 * TIP_LONGER));
            assert_eq!(tip(7 * MB, 16).0, None, "then it is the limit");
            assert_eq!(regime.good, None, "and it is not gone back to");
            regime.holds(7 * MB, 17 * SECOND, &parameters);
            assert_eq!(regime.tip(14 * MB, MB, 40 * SECOND, &parameters), Some(7 * MB));
            assert_eq!(regime.tip_times(), 1);
        }
    }

    #[test]
    fn what_held_below_says_nothing_of_the_limit_it_was_on_the_way_to() {
        let parameters = Parameters::default();
        let mut regime = Regime::new(1.0, parameters.gain);
        regime.holds(20 * MB, SECOND, &parameters);
        assert!(regime.tip(20 * MB, MB, SECOND, &parameters).is_some());
        regime.holds(10 * MB, 2 * SECOND, &parameters);
        assert!(regime.tip(17 * MB, MB, 2 * SECOND, &parameters).is_some());
        assert!(regime.tip(15 * MB, MB, 2 * SECOND, &parameters).is_some());
        regime.note(point(8 * MB, -0.05, 150e6, 3 * SECOND), &parameters);
        regime.holds(8 * MB, 3 * SECOND, &parameters);
        assert_eq!((regime.tip(14 * MB, MB, 4 * SECOND, &parameters), regime.good), (None, Some(8 * MB)));
    }

    #[test]
    fn a_guess_that_does_not_hold_is_not_gone_back_to() {
        let parameters = Parameters::default();
        let mut regimes = Regimes::default();
        regimes.enter(1.0, &parameters);
        let regime = regimes.current().unwrap();
        regime.holds(20 * MB, SECOND, &parameters);
        regime.change_speed(250e6, 50e6);
        assert_eq!((regime.good, regime.proven()), (Some(4 * MB), None));
        regime.cap(8 * MB, 50e6, 2 * SECOND, &parameters);
        assert_eq!(regime.good, Some(4 * MB), "what is below was not tried");
        regime.note(point(MB, -0.05, 40e6, 3 * SECOND), &parameters);
        regime.cap(3 * MB, 50e6, 3 * SECOND, &parameters);
        assert_eq!((regime.good, regime.proven()), (Some(MB), Some(MB)));
    }

    #[test]
    fn how_a_flood_began_is_forgotten_with_what_was_concluded_from_it() {
        let parameters = Parameters::default();
        let mut regime = Regime::new(10.0, parameters.gain);
        for (number, bytes) in [(1, 8 * MB), (12, 18 * MB), (13, 4 * MB), (16, 2 * MB)] {
            regime.note(point(bytes, 0.5, 200e6, number * SECOND), &parameters);
        }
        regime.stick(regime.points[2], 60 * SECOND);
        regime.forget(12 * SECOND, 16 * SECOND);
        let left: Vec<u64> = regime.points.iter().map(|point| point.bytes / MB).collect();
        assert_eq!((left, regime.stuck_until_ns), (vec![8, 2], None));
    }

    #[test]
    fn a_lost_moment_is_no_ceiling_while_the_device_is_idle() {
        let parameters = Parameters::default();
        let verdict = |kept| Verdict {
            kept: Some(kept),
            fewer: 0.0,
            error: 0.0,
            known: Known::Seen,
            p99_ns: None,
            target_ns: None,
            share: State::Good,
            tail: State::Good,
            tail_ratio: None,
            off: 0.0,
            own: false,
        };
        let mut regime = Regime::new(1.0, parameters.gain);
        regime.cap(10 * MB, 250e6, SECOND, &parameters);
        let raised = |regime: &Regime, kept, delivered, at_ns| {
            regime.clone().raise(&point(9 * MB, 0.0, delivered, at_ns), &verdict(kept), 2.0, &parameters)
        };
        assert_eq!(raised(&regime, 1.0, 80e6, 3 * SECOND), None, "too soon");
        assert_eq!(raised(&regime, 0.94, 80e6, 5 * SECOND), None, "no rate to spare");
        assert_eq!(raised(&regime, 1.0, 200e6, 5 * SECOND), None, "little unused");
        assert!(raised(&regime, 1.0, 80e6, 5 * SECOND).is_some_and(|to| to > 10 * MB));
        // Gone beyond, it proves too high again: it was not the moment. The first is forgotten after a while.
        for (from, again_ns, is_moment) in
            [(9, 12, false), (12, 12, false), (9, 2000, true), (12, 2000, true)]
        {
            let mut regime = regime.clone();
            regime.raise(&point(from * MB, 0.0, 80e6, 5 * SECOND), &verdict(1.0), 2.0, &parameters);
            regime.cap(10 * MB, 250e6, again_ns * SECOND, &parameters);
            let raised = raised(&regime, 1.0, 80e6, (again_ns + 4) * SECOND);
            assert_eq!(raised.is_some(), is_moment, "beyond from {from} MB, again after {again_ns} s");
        }
    }
}
