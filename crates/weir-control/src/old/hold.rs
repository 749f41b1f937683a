//! While bulk writers write and syncs need protection.

use super::decision::{Action, Branch, Known};
use super::judge::{self, State, Terms, Verdict};
use super::regime::{Point, Way, same};
use super::window::View;
use super::{Guard, Probe, SECOND_NS};
use crate::{Sample, SensorSource};

type Step = (Action, Branch);

/// Who writes is told late: until a flood has lasted so long, the share of the protected is that of the time before.
const WRITERS_TOLD_NS: u64 = SECOND_NS * 3 / 2;

/// What a flood does in its first seconds, while the limit is still being found, is no measure of any limit: files are
/// made, and what was let in before drains. Nor is what it does in the first seconds on a device that has become slower or
/// faster: at which rate it lets writers go on the kernel learns anew.
const ARRIVES_NS: u64 = 4 * SECOND_NS;
/// Where a limit goes up to what held before, it goes so far at once, and on from there as long as syncs bear it. At one
/// and the same limit a device that serves in slices leaves syncs their rate, or takes half of it, for seconds: that
/// hangs on who came first when the limit rose, and bulk writers that come in at once come first.
const FIRST_STEP: f64 = 0.5;
/// Of the rate at which syncs lost too much: beyond it the limit is raised with care.
const NEARLY_FULL: f64 = 0.85;
/// A step that is just more than the same limit again.
const SMALL_STEP: f64 = 1.2;
/// Below this share of what it delivered a moment ago, a device delivers less.
const SLOWER: f64 = 0.75;
/// Of the same rate: there is nothing left that a higher limit could bring.
const FULL: f64 = 0.97;

/// A step so large shows in what the device delivers, if the limit is what bounds that.
const LARGE_STEP: f64 = 1.4;
/// Where the device delivers more with less than this power of the limit, it is not.
const USELESS: f64 = 0.25;
/// At a low limit syncs come back within so long, or it is not that.
const COMES_BACK_NS: u64 = 3 * SECOND_NS;

fn first_step(good: u64) -> u64 {
    (good as f64 * FIRST_STEP) as u64
}

impl Guard {
    /// One look beside bulk writers.
    pub(super) fn hold(&mut self, sample: &Sample, second: &View) -> Step {
        let whole = self.window.since(sample.at_ns.saturating_sub(self.parameters.window_ns));
        let told = self.presence.bulk_lasts(sample.at_ns, WRITERS_TOLD_NS);
        if told && !self.of_cgroup && self.is_checkpoint(&whole) {
            return self.checkpoint(sample, second);
        }
        let arriving = !self.flooded;
        let changed = self.follow_concurrency(sample, arriving);
        if arriving || changed {
            self.entered_ns = sample.at_ns;
        }
        let armed = if arriving || changed { self.arm(sample, arriving) } else { None };
        if let Some(step) = armed {
            return step;
        }
        if self.shadow || self.aside {
            return self.only_see(sample, second);
        }
        if let Some(step) = self.rate_change(sample, second) {
            return step;
        }
        if let Some(step) = self.probing(sample) {
            return step;
        }
        if let Some(step) = self.fast(sample, second) {
            return step;
        }
        if sample.at_ns < self.settled_ns {
            return (Action::Keep, Branch::Draining);
        }
        self.decide(sample)
    }

    /// What syncs lose at the limit that was found.
    fn only_see(&self, sample: &Sample, second: &View) -> Step {
        let seen = self.window.tail_since(sample.at_ns.saturating_sub(SECOND_NS));
        let verdict = judge::judge(&seen, &self.reference, &self.parameters, Terms::default());
        let branch = match (verdict.share, verdict.tail) {
            _ if second.count == 0 && sample.syncs.oldest_ns > SECOND_NS => Branch::OldestSync,
            (State::Bad, _) => Branch::Share,
            (_, State::Bad) => Branch::Tail,
            _ => Branch::Steady,
        };
        (Action::Keep, branch)
    }

    /// Enters the regime of the concurrency seen now; whether that is another one than a moment ago.
    fn follow_concurrency(&mut self, sample: &Sample, arriving: bool) -> bool {
        let view = self.window.since(sample.at_ns.saturating_sub(3 * self.parameters.look_ns));
        let none = self.regimes.current().is_none();
        // Held back for their own pages, syncs wait for each other where nobody counts them: what is seen then is the
        // doing of the limit and no reason to choose one.
        let counted = sample.syncs.threads > 0;
        let misled = (!counted && view.own_share > 0.05) || view.count < 3;
        if none || (!misled && !self.regimes.here(view.concurrency)) {
            let second = self.window.since(sample.at_ns.saturating_sub(6 * self.parameters.look_ns));
            // Both short stretches must agree, or a single stall would change the regime.
            if none || arriving || !self.regimes.here(second.concurrency) {
                return self.regimes.enter(view.concurrency, &self.parameters);
            }
        }
        false
    }

    /// Goes to where the limit was good at this concurrency.
    fn arm(&mut self, sample: &Sample, arriving: bool) -> Option<Step> {
        (self.probe, self.before) = (None, None);
        let limit = sample.limits.now_bytes;
        self.settled_ns = self.settled_ns.max(sample.at_ns);
        let start = self.start_here(sample);
        let to = match self.known_good(start) {
            Some(good) => good.min(limit.max(first_step(good))),
            None => start,
        };
        if arriving && self.mood == super::Mood::Holding && limit < to {
            return None;
        }
        if same(to, limit) {
            self.wanted = Some(limit);
            self.mood = super::Mood::Holding;
            return None;
        }
        Some((self.set(sample, to), Branch::Arm))
    }

    /// A look during a probe, or the first of one.
    fn probing(&mut self, sample: &Sample) -> Option<Step> {
        let now = sample.at_ns;
        if let Some(probe) = self.probe {
            let view = self.window.since(probe.from_ns + 2 * self.parameters.look_ns);
            let hurts = view.own_share > 0.1;
            let is_probe = probe.branch == Branch::Probe;
            let stays = now < probe.until_ns && (!hurts || !is_probe);
            // Held back a little, syncs come back all the same.
            let patience = !is_probe
                && view.own_share < self.parameters.own_share
                && now < probe.until_ns + self.parameters.tip_more_ns;
            if stays || (patience && !self.is_back(sample)) {
                return Some((Action::Keep, probe.branch));
            }
            self.probe = None;
            if view.count >= self.parameters.mean_samples && !hurts {
                self.reference.bound(&view);
            }
            return Some((self.set(sample, probe.back_bytes), probe.branch));
        }
        let view = self.window.since(self.settled_ns);
        if now < self.settled_ns
            || view.elapsed_ns < SECOND_NS / 2
            || view.own_share > 0.05
            || view.count == 0
        {
            return None;
        }
        let known = self.reference.at(view.concurrency).map_or(Known::Unknown, |expected| expected.known);
        let floor = self.low(sample);
        let limit = sample.limits.now_bytes;
        // What is too much dirty for a moment's drain would make the probe a stall.
        let drain = self.rate.time_of(sample.backlog_bytes().saturating_sub(floor));
        let every = self.parameters.probe_every_ns;
        let probe_ns = self.parameters.probe_ns;
        let regime = self.regimes.current()?;
        let due = regime.probed_ns.is_none_or(|at| now - at >= every);
        if known == Known::Seen || !due || limit <= floor || same(limit, floor) || drain > probe_ns / 4 {
            return None;
        }
        regime.probed_ns = Some(now);
        Some(self.stay_low(sample, Branch::Probe, probe_ns, limit))
    }

    /// Whether syncs have the device's writes for themselves again, as the last looks show.
    fn is_back(&mut self, sample: &Sample) -> bool {
        let view = self.window.since(sample.at_ns.saturating_sub(3 * self.parameters.look_ns));
        let terms = self.terms(sample.at_ns);
        let verdict = judge::judge(&view, &self.reference, &self.parameters, terms);
        verdict.kept.is_none_or(|kept| kept > 0.9 * self.parameters.target.keep)
    }

    /// Leaves bulk writers the least for a moment.
    fn stay_low(&mut self, sample: &Sample, branch: Branch, stay_ns: u64, back_bytes: u64) -> Step {
        let now = sample.at_ns;
        let low = self.low(sample);
        let action = self.set(sample, low);
        self.probe = Some(Probe { from_ns: now, until_ns: now + stay_ns, back_bytes, branch });
        (action, branch)
    }

    fn is_checkpoint(&self, view: &View) -> bool {
        let share = self.parameters.checkpoint_share;
        // Writers are named late and in lumps: whoever is seen to fill the device is a bulk writer, whatever the share.
        view.protected_share.is_some_and(|own| own >= share) && view.dirtied < (1.0 - share) * view.delivered
    }

    /// The protected processes are the bulk writer: what is cut is taken from them.
    fn checkpoint(&mut self, sample: &Sample, second: &View) -> Step {
        let limit = sample.limits.now_bytes;
        self.probe = None;
        if self.mood == super::Mood::Released {
            return (Action::Keep, Branch::Checkpoint);
        }
        let raised = (limit as f64 * self.parameters.raise_most) as u64;
        if second.own_share > 0.01
            && sample.at_ns >= self.settled_ns + SECOND_NS / 2
            && limit < sample.limits.saved_bytes
        {
            return (self.set(sample, raised), Branch::Checkpoint);
        }
        (Action::Keep, Branch::Checkpoint)
    }

    /// What cannot wait for statistics.
    fn fast(&mut self, sample: &Sample, second: &View) -> Option<Step> {
        let now = sample.at_ns;
        let stuck = self.regimes.current().is_some_and(|regime| regime.stuck_until_ns.is_some());
        // One cut a drain; and where cutting was found not to help, none.
        if now < self.settled_ns + SECOND_NS || stuck {
            return None;
        }
        let limit = sample.limits.now_bytes;
        let half = self.parameters.cut_most.sqrt();
        let relaxed = self.terms(now).relaxed_ns.unwrap_or(0);
        let expected = self.reference.at(second.concurrency);
        let target = judge::target_ns(expected, &self.parameters);
        let target = target.map(|target| target.max(relaxed));
        let view = self.window.since(now.saturating_sub(2 * self.parameters.look_ns));
        if let Some(target) = target.filter(|_| limit > sample.limits.floor_bytes) {
            // A device that serves in slices lets some sync wait for one at every look, flood or not.
            let usual = expected.map_or(0, |expected| expected.oldest_ns);
            // What is younger than a look has ended at the next one, and counts there.
            let old =
                sample.syncs.oldest_ns > target.max(usual).max(self.parameters.look_ns).saturating_mul(2);
            let slow = view.count >= 3 && view.min_ns.is_some_and(|min| min > target / 2);
            if (old || slow) && view.own_share < 0.05 {
                let branch = if old { Branch::OldestSync } else { Branch::Tail };
                if let (true, Some(regime)) = (old, self.regimes.current()) {
                    regime.stalls(limit);
                }
                return Some((self.lower(sample, half), branch));
            }
        }
        None
    }

    /// The device has become slower: the limit with it, before the backlog is felt; or it is faster again.
    fn rate_change(&mut self, sample: &Sample, second: &View) -> Option<Step> {
        if let Some(ratio) = self.rate.risen() {
            return self.rate_rises(sample, ratio, second);
        }
        let ratio = self.rate.change()?;
        // Before a flood the device wrote what it was given.
        let is_told = self.presence.bulk_lasts(sample.at_ns, SECOND_NS);
        if !second.bound || !is_told || ratio >= self.parameters.rate_drop {
            return None;
        }
        let terms = self.terms(sample.at_ns);
        let view = self.window.tail_since(sample.at_ns.saturating_sub(SECOND_NS));
        let verdict = judge::judge(&view, &self.reference, &self.parameters, terms);
        if (verdict.state() != State::Bad && !self.is_stalled(&view))
            || (verdict.own && !self.ends_less(sample))
        {
            return None;
        }
        let factor = self.rate.latest().unwrap_or(ratio).clamp(ratio / 2.0, ratio);
        let factor = factor.min(self.rate.of_best()).max(self.parameters.cut_most);
        let fast = self.rate.best();
        self.changed_ns = Some(sample.at_ns);
        self.rate.drops(factor);
        self.regimes.change_speed(fast, self.rate.best());
        self.probe = None;
        let limit = sample.limits.now_bytes;
        // What held at this speed before is better than a guess.
        let good = self.regimes.current().map_or(limit, |regime| match regime.proven() {
            Some(good) => good.min(limit),
            None => regime.scaled(limit, factor),
        });
        if limit <= sample.limits.floor_bytes || same(good, limit) {
            return None;
        }
        self.cap_here(sample);
        if self.low(sample) >= good {
            return Some((self.set(sample, good), Branch::RateDrop));
        }
        // What is under way was let in for a faster device, and syncs stay behind it at a limit that would hold had they
        // come first: it drains at the floor.
        let drain = self.rate.time_of(sample.backlog_bytes()).min(SECOND_NS);
        let stay_ns = self.parameters.tip_ns + drain;
        Some(self.stay_low(sample, Branch::RateDrop, stay_ns, first_step(good)))
    }

    /// Whether too few syncs ended to be judged by, as they take so long.
    fn is_stalled(&self, second: &View) -> bool {
        second.count < self.parameters.mean_samples && second.oldest_ns > SECOND_NS / 2
    }

    /// Who waits for pages of its own writes them, too, in smaller pieces than a bulk writer: fewer bytes come out then, and
    /// no fewer writes. A slower device ends fewer of these as well, with enough to do.
    fn ends_less(&self, sample: &Sample) -> bool {
        let has_enough_to_do = sample.backlog_bytes() > sample.limits.now_bytes / 2;
        has_enough_to_do && self.rate.writes_change().is_some_and(|ratio| ratio < SLOWER)
    }

    /// As fast as before it became slower: limits are again what they were.
    fn rate_rises(&mut self, sample: &Sample, ratio: f64, second: &View) -> Option<Step> {
        // What comes out while syncs stand still is what was let in too much.
        if !self.presence.bulk_lasts(sample.at_ns, self.parameters.window_ns) || self.is_stalled(second) {
            return None;
        }
        let slow = self.rate.best();
        let factor = self.rate.rises(self.rate.latest().unwrap_or(ratio).clamp(ratio, ratio * 2.0))?;
        self.regimes.change_speed(slow, self.rate.best());
        (self.probe, self.before) = (None, None);
        self.changed_ns = Some(sample.at_ns);
        let limit = sample.limits.now_bytes;
        let start = self.start_here(sample);
        let to = self.known_good(start).unwrap_or((limit as f64 * factor) as u64);
        (to > limit && !same(to, limit)).then(|| (self.set(sample, to), Branch::Raise))
    }

    /// Cuts by a factor; what was measured so far was at another limit.
    fn lower(&mut self, sample: &Sample, factor: f64) -> Action {
        self.cap_here(sample);
        self.set(sample, (sample.limits.now_bytes as f64 * factor) as u64)
    }

    /// The limit in force is too high.
    fn cap_here(&mut self, sample: &Sample) {
        let delivered = self.rate.last_second();
        self.before = None;
        if let Some(regime) = self.regimes.current() {
            regime.cap(sample.limits.now_bytes, delivered, sample.at_ns, &self.parameters);
        }
    }

    /// What the windows say.
    pub(super) fn decide(&mut self, sample: &Sample) -> Step {
        let now = sample.at_ns;
        let view = self.window.since(self.settled_ns);
        let lately = self.window.since(now.saturating_sub(SECOND_NS).max(self.settled_ns));
        let terms = self.terms(now);
        let rough = [&view, &lately].map(|view| judge::judge(view, &self.reference, &self.parameters, terms));
        if !self.is_time(now, &view, &rough) {
            return (Action::Keep, self.quiet(sample));
        }
        let [_, recent] = rough;
        let view = self.window.tail_since(self.settled_ns);
        let mut verdict = judge::judge(&view, &self.reference, &self.parameters, terms);
        self.decided_ns = now;
        let limit = sample.limits.now_bytes;
        if verdict.known != Known::Seen && view.count >= self.parameters.tail_samples {
            self.reference.bound(&view);
        }
        if now + self.parameters.look_ns >= self.entered_ns + self.parameters.window_ns {
            self.reference.outdone(&self.window.since(self.entered_ns), &lately);
        }
        // What the protected were held back for before something changed is no reason for what they lose since.
        let own = verdict.own && recent.own;
        // Syncs that tip over after seconds in which they lost nothing have lost little of the window.
        let keep = self.parameters.target.keep;
        let is_steep =
            verdict.loses_steeply(keep) || (recent.share == State::Bad && recent.loses_steeply(keep));
        let point = Point {
            bytes: limit,
            off: verdict.off,
            kept: verdict.kept,
            fewer: verdict.fewer,
            p99_ns: verdict.p99_ns,
            delivered: view.delivered,
            at_ns: now,
        };
        let before = self.before.take();
        // That more than plenty held in these circumstances is nothing to go back to in others.
        let plenty = self.plenty().max(sample.limits.floor_bytes);
        let Some(regime) = self.regimes.current() else { return (Action::Keep, Branch::Steady) };
        for since in [self.presence.bulk_since(), self.changed_ns].into_iter().flatten() {
            if now >= since + ARRIVES_NS {
                regime.forget(since, since + ARRIVES_NS);
            }
        }
        if let Some(before) = before.filter(|before| !same(before.bytes, limit)) {
            regime.learn_gain(&before, &point);
        }
        if let (State::Bad, true, Some(target)) =
            (verdict.tail, verdict.share != State::Bad, verdict.target_ns)
        {
            // Bulk writers are not strangled for a tail that no limit holds: the share is held all the same.
            if regime.relax(before.as_ref(), &point, target, sample.limits.floor_bytes, &self.parameters) {
                verdict = judge::judge(&view, &self.reference, &self.parameters, regime.terms(now));
            }
        }
        // Syncs that have their rate back lost it at another moment: leaving this limit now would be for what is over.
        if verdict.state() == State::Bad && verdict.tail != State::Bad && recent.share == State::Good {
            self.settled_ns = self.settled_ns.max(now.saturating_sub(SECOND_NS));
            return (Action::Keep, Branch::Draining);
        }
        let point = Point { off: verdict.off, ..point };
        verdict.own = own && regime.needs_more(&point, sample.limits.floor_bytes);
        let state = verdict.state();
        if state != State::Unknown {
            if view.elapsed_ns >= 2 * self.parameters.decide_ns {
                regime.wake(&point);
            }
            regime.note(point, &self.parameters);
        }
        match state {
            State::Unknown => (Action::Keep, self.quiet(sample)),
            State::Close | State::Good
                if regime.stuck_until_ns.is_some_and(|until| now < until)
                    && (state == State::Close
                        || view.elapsed_ns + self.parameters.look_ns < self.parameters.window_ns) =>
            {
                (Action::Keep, Branch::Infeasible)
            }
            State::Close => {
                if verdict.off <= 0.0 {
                    regime.holds(limit.min(plenty), now, &self.parameters);
                }
                regime.unstick();
                (Action::Keep, self.quiet(sample))
            }
            State::Good => {
                regime.holds(limit.min(plenty), now, &self.parameters);
                regime.unstick();
                self.rate.was_borne_at(point.delivered);
                self.grow(sample, &view, &verdict, before, point)
            }
            State::Bad => self.shrink(sample, &view, &verdict, point, is_steep),
        }
    }

    /// Where a cut to so many bytes stops first: a third of what held, or what is low for a moment. Syncs may take a moment to
    /// come back there, and below it they wait for pages of their own. `None` where the cut leads no further down than that,
    /// or where the moment is over.
    pub(super) fn low_enough(&mut self, sample: &Sample, view: &View, bytes: u64) -> Option<u64> {
        let limit = sample.limits.now_bytes;
        let low = self.low(sample);
        let least = match self.regimes.current().map(|regime| (regime.good, regime.has_many())) {
            Some((Some(good), _)) => low.max(good / super::LOW),
            Some((None, false)) => (low / 2).max(sample.limits.floor_bytes),
            _ => low,
        };
        let is_there = limit <= least || same(limit, least);
        (bytes < least && bytes < limit && !(is_there && view.elapsed_ns >= COMES_BACK_NS)).then_some(least)
    }

    /// Whether a window is enough to decide on, as it and its last second are judged.
    fn is_time(&self, now: u64, view: &View, verdicts: &[Verdict]) -> bool {
        let p = &self.parameters;
        let since = now - self.decided_ns.min(now);
        let is_gross = |verdict: &Verdict| {
            verdict.kept.is_some_and(|kept| kept + 3.0 * verdict.error < judge::STEEP * p.target.keep)
        };
        let least = if verdicts.iter().any(is_gross) { p.decide_ns / 2 } else { p.decide_ns };
        view.elapsed_ns + p.look_ns / 2 >= least && since + p.look_ns / 2 >= least
    }

    /// Nothing to do; where the target cannot be held, that is said at every look.
    fn quiet(&mut self, sample: &Sample) -> Branch {
        let now = sample.at_ns;
        let given_up = self.regimes.current().is_some_and(|regime| {
            regime.terms(now).relaxed_ns.is_some() || regime.stuck_until_ns.is_some_and(|until| now < until)
        });
        if given_up { Branch::Infeasible } else { Branch::Steady }
    }

    /// There is room: more for bulk writers, if they have any use for it.
    fn grow(
        &mut self,
        sample: &Sample,
        view: &View,
        verdict: &Verdict,
        before: Option<Point>,
        point: Point,
    ) -> Step {
        let (now, limit) = (sample.at_ns, sample.limits.now_bytes);
        let another = self.wanted.is_some_and(|wanted| limit < wanted && !same(limit, wanted));
        if !view.bound || another || limit >= sample.limits.saved_bytes {
            return (Action::Keep, self.quiet(sample));
        }
        // Few samples, as of a canary: only where the whole window agrees.
        let few = sample.sensor.source != SensorSource::Syscalls || view.count < self.parameters.tail_samples;
        if few && view.elapsed_ns + self.parameters.look_ns < self.parameters.window_ns {
            self.before = before;
            return (Action::Keep, self.quiet(sample));
        }
        let best = self.rate.best();
        let beyond = limit > self.plenty();
        let Some(regime) = self.regimes.current() else { return (Action::Keep, Branch::Steady) };
        // Where syncs tipped over lately, a limit that holds for a moment says nothing yet.
        if regime.tipped_within(self.parameters.memory_ns, now)
            && view.elapsed_ns + self.parameters.look_ns < self.parameters.window_ns
        {
            self.before = before;
            return (Action::Keep, self.quiet(sample));
        }
        // Syncs that lose next to nothing say that the rate at which they once lost much is not the device's any more.
        let spare = verdict.has_spare(&self.parameters);
        if !spare && self.rate.full().is_some_and(|full| point.delivered > FULL * full) {
            return (Action::Keep, self.quiet(sample));
        }
        // Near a limit that proved too high once, a step too far costs more than many small ones.
        let next = (limit as f64 * self.parameters.raise_most) as u64;
        let mut most = if regime.was_too_high_below(next) {
            self.parameters.settle_ratio
        } else {
            self.parameters.raise_most
        };
        let nearly_full = self.rate.full().is_some_and(|full| point.delivered > NEARLY_FULL * full);
        // More than plenty brings a device that is nearly full nothing, and takes long to drain when something changes.
        if beyond && point.delivered > NEARLY_FULL * best {
            return (Action::Keep, self.quiet(sample));
        }
        if nearly_full || beyond {
            most = most.min(SMALL_STEP);
        }
        if let Some(before) = before.filter(|before| before.bytes < limit && !same(before.bytes, limit)) {
            // Where more dirty pages no longer bring as much more to the device, it is nearly full: the next step leads
            // no further than that.
            let gain = (point.delivered / before.delivered.max(1.0)).ln()
                / (limit as f64 / before.bytes as f64).ln();
            if gain < 0.5 {
                // Where syncs have rate to spare, a step is large enough to show what it brings.
                let least = if spare { SMALL_STEP } else { 1.05 };
                most = most.min((best / point.delivered.max(1.0) * 1.05).max(least));
            }
            // More was let in and no more came out, of a device that gives no more; or next to no more after a step that would
            // show it, where it is not the limit that holds bulk writers back.
            let is_step = limit as f64 > before.bytes as f64 * self.parameters.settle_ratio;
            let is_full =
                point.delivered < before.delivered * 1.03 && (point.delivered > 0.95 * best || beyond);
            let is_useless = limit as f64 > before.bytes as f64 * LARGE_STEP && gain < USELESS;
            if (is_step && is_full) || is_useless {
                regime.cap(limit, point.delivered, now, &self.parameters);
            }
        }
        match regime.raise(&point, verdict, most, &self.parameters) {
            Some(to) if !same(to, limit) => {
                self.before = Some(point);
                (self.set(sample, to), Branch::Raise)
            }
            _ => (Action::Keep, self.quiet(sample)),
        }
    }

    /// The target is missed, steeply or by a little.
    fn shrink(
        &mut self,
        sample: &Sample,
        view: &View,
        verdict: &Verdict,
        point: Point,
        is_steep: bool,
    ) -> Step {
        let now = sample.at_ns;
        let bounds = (sample.limits.floor_bytes, sample.limits.saved_bytes);
        let Some(regime) = self.regimes.current() else { return (Action::Keep, Branch::Steady) };
        if let Some(until) = regime.stuck_until_ns {
            if now < until {
                return (Action::Keep, Branch::Infeasible);
            }
            regime.unstick();
        }
        if !verdict.own {
            // Where the loss was steep, less than a step below it is not safe either.
            let bytes = if is_steep { point.bytes / 4 * 3 } else { point.bytes };
            regime.cap(bytes, point.delivered, now, &self.parameters);
            if is_steep {
                self.rate.was_full_at(point.delivered);
                // Where syncs have tipped over, bulk writers get all that the device gives: where less comes out than a
                // moment ago, it is something else.
                let slower = self.rate.delivered_change().is_some_and(|ratio| ratio < SLOWER);
                let low = self.low(sample);
                let tip = self.regimes.current().filter(|_| !slower);
                let tip = tip.and_then(|regime| regime.tip(point.bytes, low, now, &self.parameters));
                if let Some(good) = tip {
                    let times = self.regimes.current().map_or(1, |regime| regime.tip_times());
                    let stay_ns = times * self.parameters.tip_ns;
                    return self.stay_low(sample, Branch::Tip, stay_ns, first_step(good));
                }
            }
        }
        let Some(regime) = self.regimes.current() else { return (Action::Keep, Branch::Steady) };
        let way = regime.leave(&point, verdict, bounds, &self.parameters);
        if !matches!(way, Way::To(_)) && regime.slacken(&point, &self.parameters) {
            let most = regime.good.unwrap_or(point.bytes);
            return (self.set(sample, most), Branch::Slack);
        }
        match way {
            Way::Stuck => {
                regime.stick(point, now + self.parameters.infeasible_ns);
                (Action::Keep, Branch::Infeasible)
            }
            Way::Back(there) => {
                regime.stick(there, now + self.parameters.infeasible_ns);
                (self.set(sample, there.bytes), Branch::Infeasible)
            }
            Way::To(bytes) => {
                let bytes = match self.low_enough(sample, view, bytes) {
                    Some(least) if least >= point.bytes || same(least, point.bytes) => {
                        return (Action::Keep, Branch::Draining);
                    }
                    Some(least) => least,
                    None => bytes,
                };
                self.before = Some(point);
                let branch = match () {
                    _ if bytes > point.bytes && verdict.own => Branch::OwnWrites,
                    _ if verdict.tail == State::Bad && verdict.share != State::Bad => Branch::Tail,
                    _ => Branch::Share,
                };
                (self.set(sample, bytes), branch)
            }
        }
    }
}
