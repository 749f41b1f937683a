//! While bulk writers write and syncs need protection.

use super::constants::{DIP, DIP_NS, GAIN, JUDGED_NS, MEAN_SYNCS, SECOND_NS, SLOWER, STEEP, SURE};
use super::decision::{Action, Known, Reason};
use super::judge::{self, Verdict};
use super::ladder::{Ask, Measured, bytes_of, rung_of};
use super::window::View;
use super::{Guard, State};
use crate::Sample;

type Step = (Action, Reason);

/// From this share of all dirtied bytes on, the protected processes are the bulk writer.
pub(super) const CHECKPOINT: f64 = 0.8;
/// Who writes is told late: until a flood has lasted so long, the share of the protected is that of the time before.
const WRITERS_TOLD_NS: u64 = SECOND_NS * 3 / 2;
/// A limit at which syncs became slow twice within so long does not hold.
const TIPS_NS: u64 = 60 * SECOND_NS;
/// Where a limit goes up to what held before, it goes so many rungs below it first: those who come in at once come first.
const CLIMB: i32 = 2;
/// What a slower device delivers at best, as a multiple of what comes out of it now.
const AT_BEST: f64 = 1.25;
/// A move shows after so long.
const SHOWS_NS: u64 = SECOND_NS / 5;

impl Guard {
    /// One sample beside bulk writers.
    pub(super) fn hold(&mut self, sample: &Sample, second: &View) -> Step {
        let whole = self.window.since(sample.at_ns.saturating_sub(5 * JUDGED_NS));
        let told = self.presence.bulk_lasts(sample.at_ns, WRITERS_TOLD_NS);
        if told && !self.of_cgroup && is_checkpoint(&whole) {
            return self.checkpoint(sample, second);
        }
        let is_other = self.follow_threads(sample);
        let arrives = !matches!(self.state, State::Standing { .. } | State::Dipped { .. });
        if is_other || arrives {
            return self.arm(sample);
        }
        if self.shadow || self.aside {
            return self.only_see(sample, second);
        }
        match self.state {
            State::Dipped { from_ns, until_ns, back, branch } => {
                self.dipped(sample, from_ns, until_ns, back, branch)
            }
            State::Standing { rung, from_ns, climb } => self.stand(sample, rung, from_ns, climb),
            _ => (Action::Keep, Reason::Steady),
        }
    }

    /// The protected processes are the bulk writer: what is cut is taken from them.
    fn checkpoint(&mut self, sample: &Sample, second: &View) -> Step {
        let limit = sample.limits.now_bytes;
        if self.state == State::Released {
            return (Action::Keep, Reason::Checkpoint);
        }
        self.state = State::Ready;
        if second.own_share > 0.01 && limit < sample.limits.saved_bytes {
            return (self.set(sample, limit.saturating_mul(2)), Reason::Checkpoint);
        }
        (Action::Keep, Reason::Checkpoint)
    }

    /// What syncs lose at the baseline.
    fn only_see(&self, sample: &Sample, second: &View) -> Step {
        let seen = self.window.tail_since(sample.at_ns.saturating_sub(SECOND_NS));
        let verdict = judge::judge(&seen, &self.reference, &self.target);
        let branch = match verdict {
            _ if second.count == 0 && sample.syncs.oldest_ns > SECOND_NS => Reason::OldestSync,
            Verdict { kept: Some(kept), error, .. } if kept + SURE * error < self.target.keep => {
                Reason::Share
            }
            Verdict { tail: Some(tail), .. } if tail > 1.0 => Reason::Tail,
            _ => Reason::Steady,
        };
        (Action::Keep, branch)
    }

    /// Goes to the ladder of the threads seen now; whether that is another one than a moment ago.
    fn follow_threads(&mut self, sample: &Sample) -> bool {
        let last = |looks: u64| self.window.since(sample.at_ns.saturating_sub(looks * sample.elapsed_ns));
        let (view, longer) = (last(3), last(6));
        // Throttled for their own pages, syncs wait for each other where nobody counts them: what is seen then is the doing of
        // the limit. Both short stretches must agree, or a single stall would change the place.
        let misled = sample.syncs.threads == 0 && view.own_share > 0.05;
        if misled || view.count < 3 {
            return false;
        }
        let is_other = self.ladder.is_other(view.concurrency) && self.ladder.is_other(longer.concurrency);
        is_other && self.ladder.enter(view.concurrency, self.rate.best())
    }

    /// Goes to where the limit was good.
    fn arm(&mut self, sample: &Sample) -> Step {
        let threads = self.ladder.here().threads;
        let start = rung_of(self.start(sample, threads));
        let most = rung_of((2.0 * self.busy()) as u64).max(start);
        let good = self.ladder.here().choice(self.target.keep).map_or(start, |rung| rung.min(most));
        let here = rung_of(sample.limits.now_bytes);
        let to = good.min(here.max(good - CLIMB));
        let action = self.go(sample, to, Some(good).filter(|good| *good > to));
        (action, Reason::Arm)
    }

    /// Moves to a rung, which is judged when the move can show.
    fn go(&mut self, sample: &Sample, rung: i32, climb: Option<i32>) -> Action {
        let action = self.set(sample, bytes_of(rung));
        let bytes = self.wanted.unwrap_or(0);
        let drain = self.rate.time_of(sample.backlog_bytes().saturating_sub(bytes)).min(60 * SECOND_NS);
        let from_ns = if action == Action::Keep { sample.at_ns } else { sample.at_ns + SHOWS_NS + drain };
        self.state = State::Standing { rung, from_ns, climb };
        action
    }

    /// Leaves bulk writers little for a moment; then it goes back to a rung.
    /// Not where that did not help lately.
    fn dip(&mut self, sample: &Sample, rung: i32, back: i32, branch: Reason) -> Step {
        if sample.at_ns < self.ladder.here().no_dip_ns {
            return (self.go(sample, back, None), branch);
        }
        let low = rung.min(back) - DIP;
        let now = sample.at_ns;
        let action = self.set(sample, bytes_of(low));
        let left = sample.backlog_bytes().saturating_sub(bytes_of(low));
        let until_ns = now + DIP_NS + self.rate.time_of(left).min(60 * SECOND_NS);
        self.state = State::Dipped { from_ns: now, until_ns, back, branch };
        (action, branch)
    }

    fn dipped(&mut self, sample: &Sample, from_ns: u64, until_ns: u64, back: i32, branch: Reason) -> Step {
        let now = sample.at_ns;
        let view = self.window.since(from_ns + SHOWS_NS);
        // Throttled for their own pages they do not come back here.
        let hurts = view.own_share > 0.5;
        let is_patient = now < until_ns + JUDGED_NS && !hurts;
        let is_back = self.is_back(sample);
        if now < until_ns || (is_patient && !is_back) {
            return (Action::Keep, branch);
        }
        self.ladder.here().dipped(now, is_back);
        let low = rung_of(sample.limits.now_bytes);
        let to = low.max(back - CLIMB);
        (self.go(sample, to, Some(back).filter(|back| *back > to)), branch)
    }

    /// Whether syncs are fast again, as the last samples show.
    fn is_back(&mut self, sample: &Sample) -> bool {
        let view = self.window.since(sample.at_ns.saturating_sub(3 * sample.elapsed_ns));
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let needed = self.ladder.here().needed(self.target.keep);
        verdict.kept.map_or(view.count > 0, |kept| kept > (1.0 - 2.0 * GAIN) * needed)
    }

    /// A sample while a limit is judged.
    fn stand(&mut self, sample: &Sample, rung: i32, from_ns: u64, climb: Option<i32>) -> Step {
        let now = sample.at_ns;
        if let Some(step) = self.urgent(sample, rung, from_ns) {
            return step;
        }
        if now < from_ns {
            return (Action::Keep, Reason::Draining);
        }
        let view = self.window.since(from_ns);
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let kept = verdict.kept.unwrap_or(1.0);
        let needed = self.ladder.here().needed(self.target.keep);
        let long = view.elapsed_ns + sample.elapsed_ns / 2;
        let is_steep = kept + SURE * verdict.error < STEEP * needed;
        let is_sure = (kept - needed).abs() > SURE * verdict.error;
        if let Some(to) = climb.filter(|_| long >= JUDGED_NS / 2 && !is_steep) {
            return (self.go(sample, to, None), Reason::Raise);
        }
        let enough = match () {
            () if is_steep => JUDGED_NS / 2,
            () if is_sure && view.count >= MEAN_SYNCS => JUDGED_NS,
            () if view.count >= MEAN_SYNCS => 3 * JUDGED_NS,
            () => 5 * JUDGED_NS,
        };
        if long < enough {
            return (Action::Keep, self.calm(rung));
        }
        self.decide(sample, rung, from_ns)
    }

    /// What cannot wait for statistics: a sync that does not end, or none that is fast.
    fn urgent(&mut self, sample: &Sample, rung: i32, from_ns: u64) -> Option<Step> {
        let now = sample.at_ns;
        if now < from_ns + JUDGED_NS / 2 || sample.limits.now_bytes <= sample.limits.floor_bytes {
            return None;
        }
        let view = self.window.since(now.saturating_sub(2 * sample.elapsed_ns));
        let expected = self.reference.at(view.concurrency);
        let target = judge::target_ns(expected, &self.target)?;
        let found = self.ladder.here().rungs.get(&rung).copied().unwrap_or_default();
        if self.has_slowed(sample, rung) {
            let delivered = self.rate.last(5 * sample.elapsed_ns);
            return Some(self.slower(sample, rung, delivered));
        }
        // What is younger than a sample has ended at the next one, and counts there.
        let usual =
            expected.map_or(0, |expected| expected.oldest_ns).max(found.oldest_ns).max(sample.elapsed_ns);
        let old = sample.syncs.oldest_ns > 2 * target.max(usual);
        let slow = found.tail <= 1.0 && view.count >= 3 && view.min_ns.is_some_and(|min| min > target / 2);
        if !(old || slow) || view.own_share >= 0.05 {
            return None;
        }
        let back = self.struck(sample, rung);
        Some(self.dip(sample, rung, back, if old { Reason::OldestSync } else { Reason::Tail }))
    }

    /// Whether the last samples show a device that delivers less, and syncs that lose by it.
    fn has_slowed(&mut self, sample: &Sample, rung: i32) -> bool {
        let view = self.window.since(sample.at_ns.saturating_sub(5 * sample.elapsed_ns));
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let place = self.ladder.here();
        let needed = place.needed(self.target.keep);
        let kept = verdict.kept.unwrap_or(if view.count < 3 { 0.0 } else { 1.0 });
        let now = Measured {
            kept,
            error: verdict.error,
            tail: None,
            delivered: view.delivered,
            writes: view.writes,
            oldest_ns: 0,
            elapsed_ns: view.elapsed_ns,
            at_ns: sample.at_ns,
            own: view.own_share >= 0.05,
        };
        let is_lost = kept + SURE * verdict.error < STEEP * needed;
        is_lost && place.expected(rung).is_some_and(|before| is_slower(sample, &before, &now))
    }

    /// Syncs became slow at a rung: where to go back to. To the same rung, once, if it had held: fast and slow may both be stable there.
    fn struck(&mut self, sample: &Sample, rung: i32) -> i32 {
        let (now, keep) = (sample.at_ns, self.target.keep);
        let place = self.ladder.here();
        let needed = place.needed(keep);
        let found = place.rungs.entry(rung).or_default();
        let held = found.weight_ns >= JUDGED_NS && found.kept >= needed;
        if held && found.tipped_ns.is_none_or(|at| now > at + TIPS_NS) {
            found.tipped_ns = Some(now);
            return rung;
        }
        (found.kept, found.weight_ns) = (found.kept.min(STEEP * needed), JUDGED_NS);
        found.fails(now);
        let better = place.choice(keep).filter(|at| *at != rung);
        better.unwrap_or(rung - 2)
    }

    /// A window is enough to judge by.
    fn decide(&mut self, sample: &Sample, rung: i32, from_ns: u64) -> Step {
        let (now, keep) = (sample.at_ns, self.target.keep);
        let view = self.window.tail_since(from_ns);
        let raised = if view.count >= MEAN_SYNCS { self.reference.outdone(&view) } else { 1.0 };
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let best = self.rate.best();
        let place = self.ladder.here();
        place.rungs.values_mut().for_each(|found| found.kept /= raised);
        place.rate = place.rate.max(best);
        let needed = place.needed(keep);
        let before = place.expected(rung);
        let was_here = place.rungs.get(&rung).is_some_and(|found| found.weight_ns >= JUDGED_NS / 2);
        self.state = State::Standing { rung, from_ns: now, climb: None };
        let Some(kept) = verdict.kept.or_else(|| verdict.tail.map(|tail| keep / tail.max(keep))) else {
            return (Action::Keep, Reason::Steady);
        };
        let measured = Measured {
            kept,
            error: verdict.error,
            tail: verdict.tail,
            delivered: view.delivered,
            writes: view.writes,
            oldest_ns: view.oldest_ns,
            elapsed_ns: view.elapsed_ns,
            at_ns: now,
            own: verdict.own,
        };
        let is_steep = kept + SURE * verdict.error < STEEP * needed;
        if is_steep && before.is_some_and(|before| is_slower(sample, &before, &measured)) {
            return self.slower(sample, rung, view.delivered);
        }
        if was_here
            && before.is_some_and(|before| view.delivered * SLOWER > before.delivered)
            && let Some(rate) = self.ladder.faster()
        {
            self.enter_rate(rate);
            let (action, _) = self.arm(sample);
            return (action, Reason::RateRise);
        }
        if is_steep && !verdict.is_fast && !verdict.own && bytes_of(rung) > sample.limits.floor_bytes {
            let back = self.struck(sample, rung);
            let branch = if back == rung { Reason::Tip } else { Reason::Share };
            if back != rung {
                self.ladder.here().note(rung, &measured, keep);
            }
            return self.dip(sample, rung, back, branch);
        }
        // Another device may hold the limit closer than it is asked for here.
        let at =
            if rung_of(sample.limits.now_bytes) < rung - 1 { rung_of(sample.limits.now_bytes) } else { rung };
        self.ladder.here().note(at, &measured, keep);
        self.go_on(sample, rung, &view, &verdict)
    }

    /// To the best rung, or to one beside it that is worth a try.
    fn go_on(&mut self, sample: &Sample, rung: i32, view: &View, verdict: &Verdict) -> Step {
        let (now, keep) = (sample.at_ns, self.target.keep);
        let bounds = (
            (((sample.limits.floor_bytes.max(1) as f64 / bytes_of(0) as f64).log2()) * 2.0).ceil() as i32,
            rung_of(sample.limits.saved_bytes) - 1,
        );
        let ask = Ask {
            keep,
            now_ns: now,
            bounds: (bounds.0, bounds.1.max(bounds.0)),
            own: verdict.own,
            bound: view.bound,
            seen: verdict.known == Known::Seen,
        };
        let place = self.ladder.here();
        let choice = place.choice(keep).unwrap_or(rung);
        if choice != rung {
            let found = place.rungs.entry(rung).or_default();
            let lost = found.kept < keep;
            found.fails(now);
            let branch = match () {
                () if choice > rung && verdict.own => Reason::OwnWrites,
                () if choice > rung => Reason::Raise,
                () if lost => Reason::Share,
                () => Reason::Back,
            };
            let to = if choice > rung + CLIMB { choice - CLIMB } else { choice };
            return (self.go(sample, to, Some(choice).filter(|choice| *choice > to)), branch);
        }
        if let Some(found) = place.rungs.get_mut(&rung).filter(|found| found.weight_ns >= 5 * JUDGED_NS) {
            found.fails = 0;
        }
        match place.explore(rung, &ask) {
            Some(to) => {
                let branch = match () {
                    () if to < rung => Reason::Lower,
                    () if verdict.own => Reason::OwnWrites,
                    () => Reason::Raise,
                };
                (self.go(sample, to, None), branch)
            }
            None => (Action::Keep, self.calm(rung)),
        }
    }

    /// Nothing to do; where the target cannot be held, that is said.
    fn calm(&mut self, rung: i32) -> Reason {
        let keep = self.target.keep;
        let found = self.ladder.here().rungs.get(&rung).filter(|found| found.weight_ns > 0).copied();
        let misses = found.is_some_and(|found| found.kept < keep || found.tail > 1.0);
        if misses { Reason::Infeasible } else { Reason::Steady }
    }

    /// What is under way was let in for a faster device: it drains at a low limit.
    fn slower(&mut self, sample: &Sample, rung: i32, delivered: f64) -> Step {
        // One that stands still is not infinitely slow.
        let least = 0.1 * self.rate.best();
        self.enter_rate((AT_BEST * delivered).max(least));
        let keep = self.target.keep;
        let threads = self.ladder.here().threads;
        let start = rung_of(self.start(sample, threads));
        let back = self.ladder.here().choice(keep).unwrap_or(start).min(rung);
        self.dip(sample, rung, back, Reason::RateDrop)
    }

    fn enter_rate(&mut self, rate: f64) {
        let threads = self.ladder.here().threads;
        self.rate.is(rate);
        self.ladder.enter(threads, rate);
    }
}

fn is_checkpoint(view: &View) -> bool {
    // Writers are named late and in lumps: whoever is seen to fill the device is a bulk writer, whatever the share.
    view.protected_share.is_some_and(|own| own >= CHECKPOINT)
        && view.dirtied < (1.0 - CHECKPOINT) * view.delivered
}

/// Whether the device delivers less than is expected at this limit, with as much to write. Who waits for pages of its own writes
/// them, too, in smaller pieces: fewer bytes come out then, and no fewer writes.
fn is_slower(sample: &Sample, before: &super::Found, now: &Measured) -> bool {
    let has_enough = sample.backlog_bytes() > sample.limits.now_bytes / 2;
    let ends_less = !now.own || now.writes < SLOWER * before.writes;
    has_enough && ends_less && now.delivered < SLOWER * before.delivered
}
