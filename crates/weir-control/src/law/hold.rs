//! Beside bulk writers: where the limit is to be.

use super::judge::{self, State, Verdict};
use super::ladder::{Outcome, Rung, Standing, bytes_of, rung_of, same};
use super::window::View;
use super::{Branch, Guard, Known, Mood, Probe, SECOND_NS};
use crate::{Action, Sample, SensorSource};

type Step = (Action, Branch);

/// Until then not all bulk writers are named.
const WRITERS_TOLD_NS: u64 = 3 * SECOND_NS;
/// A limit that is raised from below what held goes there by way of this share of it: bulk writers that come in at once
/// take the requests of a throttle's slice, and syncs stay behind them.
const FIRST_STEP: f64 = 0.5;
/// A limit is not raised where the device would take longer than this for it.
const DRAIN_S: f64 = 0.5;
/// Threads that have next to no pages of their own.
const FEW: f64 = 2.0;
/// Bulk writers fill a limit where they have dirtied this share of it.
const FILLED: f64 = 0.3;
/// A limit that has held for so long is not left for one window in which syncs keep more than this share of the target.
const HELD_NS: f64 = 2e9;
const DOUBTFUL: f64 = 0.6;

impl Guard {
    /// One look beside bulk writers.
    pub(super) fn hold(&mut self, sample: &Sample, second: &View) -> Step {
        if self.aside {
            return self.stand_aside(sample, second);
        }
        let whole = self.window.since(sample.at_ns.saturating_sub(self.parameters.window_ns));
        let told = self.presence.bulk_lasts(sample.at_ns, WRITERS_TOLD_NS);
        if told && !self.of_cgroup && self.is_checkpoint(&whole) {
            return self.checkpoint(sample, second);
        }
        let arriving = !self.flooded;
        let changed = self.follow_concurrency(sample, arriving);
        if arriving || changed {
            self.entered_ns = sample.at_ns;
            self.doubted_ns = None;
        }
        let armed = if arriving || changed { self.arm(sample, arriving) } else { None };
        if let Some(step) = armed {
            return step;
        }
        if self.shadow {
            return self.only_see(sample, second);
        }
        if let Some(step) = self.probing(sample) {
            return step;
        }
        if let Some(step) = self.fast(sample, second) {
            return step;
        }
        if self.is_draining(sample) {
            return (Action::Keep, Branch::Draining);
        }
        self.decide(sample)
    }

    /// Whether bytes beyond the limit are still to be written; it is over when they are, whatever was foreseen.
    fn is_draining(&mut self, sample: &Sample) -> bool {
        let limit = sample.limits.now_bytes;
        let is_drained = sample.backlog_bytes() <= limit + limit / 8;
        if is_drained && sample.at_ns >= self.moved_ns + 2 * self.parameters.look_ns {
            self.settled_ns = self.settled_ns.min(sample.at_ns);
        }
        sample.at_ns < self.settled_ns
    }

    /// Beside private limits that hold all bulk writers: what syncs do is learned, and nothing is decided.
    fn stand_aside(&mut self, sample: &Sample, second: &View) -> Step {
        if self.follow_concurrency(sample, false) {
            self.entered_ns = sample.at_ns;
        }
        if !self.shadow {
            self.learn_aside(sample.at_ns);
        }
        self.only_see(sample, second)
    }

    /// What a probe of private limits shows, or a whole window between two.
    fn learn_aside(&mut self, now: u64) {
        let p = &self.parameters;
        let (since_ns, least) = match self.probed_from_ns {
            Some(from_ns) => (from_ns, p.mean_samples),
            None => (now.saturating_sub(p.window_ns), p.tail_samples),
        };
        if self.probed_from_ns.is_some()
            && let Some(ladder) = self.ladders.current()
        {
            ladder.probed_ns = Some(now);
        }
        let view = self.window.since(since_ns.max(self.entered_ns));
        let is_enough = view.elapsed_ns >= SECOND_NS / 2 && view.count >= least;
        if is_enough && self.known(&view) != Known::Seen {
            self.reference.bound(&view);
        }
    }

    /// What syncs lose at the limit that was found.
    fn only_see(&self, sample: &Sample, second: &View) -> Step {
        let seen = self.window.tail_since(sample.at_ns.saturating_sub(SECOND_NS));
        let verdict = judge::judge(&seen, &self.reference, &self.parameters);
        let branch = match (verdict.share, verdict.tail) {
            _ if second.count == 0 && sample.syncs.oldest_ns > SECOND_NS => Branch::OldestSync,
            (State::Bad, _) => Branch::Share,
            (_, State::Bad) => Branch::Tail,
            _ => Branch::Steady,
        };
        (Action::Keep, branch)
    }

    /// Enters the ladder of the concurrency seen now; whether that is another one than a moment ago.
    fn follow_concurrency(&mut self, sample: &Sample, arriving: bool) -> bool {
        let view = self.window.since(sample.at_ns.saturating_sub(3 * self.parameters.look_ns));
        let none = self.ladders.current().is_none();
        // Held back for their own pages, syncs wait for each other where nobody counts them: what is seen then is the
        // doing of the limit and no reason to choose one.
        let counted = sample.syncs.threads > 0;
        let misled = (!counted && view.own_share > 0.05) || view.count < 3;
        if none || (!misled && !self.ladders.here(view.concurrency)) {
            let second = self.window.since(sample.at_ns.saturating_sub(6 * self.parameters.look_ns));
            // Both short stretches must agree, or a single stall would change the ladder.
            if none || arriving || !self.ladders.here(second.concurrency) {
                return self.ladders.enter(view.concurrency);
            }
        }
        false
    }

    /// Goes to where the limit was good at this concurrency.
    fn arm(&mut self, sample: &Sample, arriving: bool) -> Option<Step> {
        self.probe = None;
        let limit = sample.limits.now_bytes;
        self.settled_ns = self.settled_ns.max(sample.at_ns);
        let start = self.start_here(sample);
        let to = match self.known_good(start) {
            Some(good) => good.min(limit.max((good as f64 * FIRST_STEP) as u64)),
            None => start,
        };
        if arriving && self.mood == Mood::Holding && limit < to {
            return None;
        }
        if same(to, limit) {
            self.wanted = Some(limit);
            self.mood = Mood::Holding;
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
            if now < probe.until_ns && !hurts {
                return Some((Action::Keep, Branch::Probe));
            }
            self.probe = None;
            if view.count >= self.parameters.mean_samples && !hurts {
                self.reference.bound(&view);
                self.note_probe(sample, &view);
            }
            return Some((self.set(sample, probe.back_bytes), Branch::Probe));
        }
        let view = self.window.since(self.settled_ns);
        if now < self.settled_ns
            || view.elapsed_ns < SECOND_NS / 2
            || view.own_share > 0.05
            || view.count == 0
        {
            return None;
        }
        let known = self.known(&view);
        let floor = self.low(sample);
        let limit = sample.limits.now_bytes;
        // What is too much dirty for a moment's drain would make the probe a stall.
        let drain = self.rate.time_of(sample.backlog_bytes().saturating_sub(floor));
        let probe_ns = self.parameters.probe_ns;
        let due = self.ladders.is_probe_due(now, self.parameters.probe_every_ns);
        if known == Known::Seen || !due || limit <= floor || same(limit, floor) || drain > probe_ns / 4 {
            return None;
        }
        self.ladders.current()?.probed_ns = Some(now);
        let action = self.set(sample, floor);
        self.probe = Some(Probe { from_ns: now, until_ns: now + probe_ns, back_bytes: limit });
        Some((action, Branch::Probe))
    }

    /// A probe has been at a rung, too.
    fn note_probe(&mut self, sample: &Sample, view: &View) {
        let verdict = judge::judge(view, &self.reference, &self.parameters);
        let (Some(kept), Some(ladder)) = (verdict.kept, self.ladders.current()) else { return };
        let outcome = outcome(kept.min(1.0), &verdict, view);
        ladder.note(rung_of(sample.limits.now_bytes), outcome, view.delivered, sample.at_ns);
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
        if self.mood == Mood::Released {
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

    /// What cannot wait for statistics: syncs that have not ended, or of which not one was fast.
    fn fast(&mut self, sample: &Sample, second: &View) -> Option<Step> {
        let now = sample.at_ns;
        // One cut a drain.
        if now < self.settled_ns + SECOND_NS {
            return None;
        }
        let limit = sample.limits.now_bytes;
        let expected = self.reference.at(second.concurrency);
        let target =
            judge::target_ns(expected, &self.parameters).filter(|_| limit > sample.limits.floor_bytes)?;
        let view = self.window.since(now.saturating_sub(2 * self.parameters.look_ns));
        // A device that serves in slices lets some sync wait for one at every look, flood or not.
        let usual = expected.map_or(0, |expected| expected.oldest_ns);
        // What is younger than a look has ended at the next one, and counts there.
        let old = sample.syncs.oldest_ns > target.max(usual).max(self.parameters.look_ns).saturating_mul(2);
        let slow = view.count >= 3 && view.min_ns.is_some_and(|min| min > target / 2);
        if !(old || slow) || view.own_share >= 0.05 {
            return None;
        }
        // Where a lower limit is known to be no better, the stall is not its doing.
        let here = rung_of(limit);
        let ladder = self.ladders.current()?;
        let kept = |rung| ladder.known(rung, now).map(|outcome| outcome.kept);
        if kept(here).zip(kept(here - 2)).is_some_and(|(here, lower)| lower < here) {
            return None;
        }
        let branch = if old { Branch::OldestSync } else { Branch::Tail };
        Some((self.set(sample, limit / 2), branch))
    }

    /// What the window since the last move says.
    pub(super) fn decide(&mut self, sample: &Sample) -> Step {
        let (now, limit) = (sample.at_ns, sample.limits.now_bytes);
        let from_ns = self.settled_ns.max(self.noted_ns);
        let last_ns = from_ns.max(self.doubted_ns.unwrap_or(0));
        if !self.is_enough(now, &self.window.since(last_ns)) {
            return (Action::Keep, self.quiet(now, limit));
        }
        let is_doubted = self.doubted_ns.take().is_some();
        self.noted_ns = now;
        let view = self.window.tail_since(last_ns);
        let verdict = judge::judge(&view, &self.reference, &self.parameters);
        // Without anything undisturbed to compare with, a percentile that somebody has set still counts.
        if verdict.kept.is_none() && verdict.tail == State::Unknown {
            return (Action::Keep, Branch::Steady);
        }
        if verdict.kept.is_some() {
            self.learn_beside_bulk(now, &view, &verdict);
        }
        let is_short = verdict.state() == State::Bad;
        // A limit that bulk writers do not fill says nothing of what it does.
        if !view.bound && view.filled < FILLED && !is_short {
            return (Action::Keep, Branch::Steady);
        }
        let (keep, at) = (self.parameters.target.keep, rung_of(limit));
        let kept_of = |verdict: &Verdict| verdict.kept.unwrap_or(1.0).min(1.0);
        let Some(ladder) = self.ladders.current() else { return (Action::Keep, Branch::Steady) };
        let held = ladder.known(at, now).is_some_and(|known| known.kept >= keep && known.span_ns >= HELD_NS);
        if is_short && held && !is_doubted && kept_of(&verdict) > DOUBTFUL * keep {
            (self.noted_ns, self.doubted_ns) = (from_ns, Some(now));
            return (Action::Keep, Branch::Draining);
        }
        // A second that was doubted counts with the one that followed it.
        let whole = self.window.since(from_ns);
        let kept = kept_of(&judge::judge(&whole, &self.reference, &self.parameters));
        let outcome = outcome(kept, &verdict, &whole);
        // A look that took long is no end of the window: it is all of it.
        let last = self.window.since(now.saturating_sub(4 * self.parameters.look_ns));
        let last = if last.elapsed_ns > 0 { last.delivered } else { whole.delivered };
        ladder.note(at, outcome, last, now);
        self.next_rung(sample, at, &view, &verdict)
    }

    /// Goes to another rung, if one is better or worth a try.
    fn next_rung(&mut self, sample: &Sample, at: Rung, view: &View, verdict: &Verdict) -> Step {
        let (now, limit, p) = (sample.at_ns, sample.limits.now_bytes, &self.parameters);
        let is_short = verdict.state() == State::Bad;
        // Few samples, as of a canary: no reason to let more in.
        let few = sample.sensor.source != SensorSource::Syscalls && view.elapsed_ns + p.look_ns < p.window_ns;
        let is_soon_written = (limit as f64) < DRAIN_S * view.delivered;
        let ladder = self.ladders.current();
        let is_held = verdict.share == State::Good;
        // A thread or two have next to no pages of their own: what throttles them is how long a slow device takes for the
        // rest, of which a lower limit leaves less.
        let own = verdict.own && ladder.as_ref().is_some_and(|ladder| ladder.concurrency > FEW);
        let standing = Standing {
            is_short,
            own,
            throttled: verdict.own,
            has_spare: verdict.has_spare(p),
            tail: verdict.tail_ratio.unwrap_or(0.0),
            may_rise: (is_short || is_held) && !few && is_soon_written,
            bound: view.bound,
            ends: (rung_of(sample.limits.floor_bytes), rung_of(sample.limits.saved_bytes)),
            keep: p.target.keep,
            full: self.rate.best(),
            now_ns: now,
        };
        let Some(to) = ladder.and_then(|ladder| ladder.next(at, &standing)) else {
            return (Action::Keep, self.quiet(now, limit));
        };
        let branch = match () {
            _ if to > at && is_short && own => Branch::OwnWrites,
            _ if to > at && is_short => Branch::Search,
            _ if to > at => Branch::Raise,
            _ if verdict.tail == State::Bad && verdict.share != State::Bad => Branch::Tail,
            _ => Branch::Share,
        };
        (self.set(sample, bytes_of(to)), branch)
    }

    /// Whether a window is enough to decide on: half a second where syncs lose much, unless the limit was just set, as they
    /// take a moment to come back after a cut.
    fn is_enough(&self, now: u64, view: &View) -> bool {
        let p = &self.parameters;
        let lasts = |ns| view.elapsed_ns + p.look_ns / 2 >= ns;
        if !lasts(p.decide_ns / 2) {
            return false;
        }
        let verdict = judge::judge(view, &self.reference, p);
        let is_gross =
            verdict.kept.is_some_and(|kept| kept + 3.0 * verdict.error < judge::STEEP * p.target.keep);
        let least = if is_gross && now >= self.moved_ns + SECOND_NS { p.decide_ns / 2 } else { p.decide_ns };
        let has_samples = view.count >= p.mean_samples || view.elapsed_ns + p.look_ns >= p.window_ns;
        lasts(least) && has_samples
    }

    /// What a window beside bulk writers says of what syncs do undisturbed.
    fn learn_beside_bulk(&mut self, now: u64, view: &View, verdict: &Verdict) {
        if verdict.known != Known::Seen && view.count >= self.parameters.tail_samples {
            self.reference.bound(view);
        }
        if now + self.parameters.look_ns >= self.entered_ns + self.parameters.window_ns {
            let lately = self.window.since(now.saturating_sub(SECOND_NS).max(self.settled_ns));
            self.reference.outdone(&self.window.since(self.entered_ns), &lately);
        }
    }

    /// Nothing to do; where the target cannot be held, that is said at every look.
    fn quiet(&mut self, now: u64, limit: u64) -> Branch {
        // What is missed by no more than the noise is not said to be.
        let least = 0.97 * self.parameters.target.keep;
        let here = self.ladders.current().and_then(|ladder| ladder.known(rung_of(limit), now));
        let misses = here.is_some_and(|outcome| outcome.kept < least || outcome.is_over);
        if misses { Branch::Infeasible } else { Branch::Steady }
    }
}

/// What syncs and bulk writers had in a window.
fn outcome(kept: f64, verdict: &Verdict, view: &View) -> Outcome {
    Outcome {
        kept,
        is_over: verdict.tail == State::Bad,
        p99_ns: verdict.p99_ns,
        delivered: view.delivered,
        span_ns: view.elapsed_ns as f64,
    }
}
