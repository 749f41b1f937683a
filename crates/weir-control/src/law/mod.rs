//! The law: from a sample to an action.
//!
//! A limit is found, not computed: how much of the bulk writers' backlog a sync can wait behind depends on the device's queue, the file
//! system's log, and on how many syncs are under way. So the guard keeps a [`ladder`] of limits for each number of threads and each
//! rate of the device, notes at every rung what syncs kept and what the device delivered, stands on the rung that lets most through of
//! those that hold the target, and tries the rung beside it. [`State`] says what it is doing; every transition is a [`Reason`].

mod constants;
mod decision;
mod hold;
mod judge;
mod ladder;
mod learned;
mod presence;
mod rate;
mod reference;
mod window;

#[cfg(test)]
mod tests;

pub use decision::{Action, Decision, Inputs, Known, Mood, Reason};
pub use ladder::{Found, Place};
pub use learned::Learned;
pub use reference::Entry;

use super::private::{Kept, Need};
use super::{Parameters, Sample, SensorSource, Target};
use constants::{BUSY_NS, JUDGED_NS, SECOND_NS, START_NS, SURE};
use ladder::{Ladder, bytes_of, rung_of};
use presence::Presence;
use rate::Rate;
use reference::Reference;
use window::{View, Window};

/// Silence of the sensor until the limit is frozen, and until the baseline is restored.
const FREEZE_NS: u64 = 10 * SECOND_NS;
const SILENT_NS: u64 = 60 * SECOND_NS;
/// The least first limit, in bytes: of a device of which nothing is known, its rate neither.
const START_LEAST: f64 = (4 << 20) as f64;
/// While bulk writers are idle the limit is so many first limits, until it is known where it held: not in the way.
const IDLE_FACTOR: u64 = 8;
/// Protected processes that need more than a limit leaves them while nobody floods get everything for so long.
const ROOMY_NS: u64 = 60 * SECOND_NS;

/// What the guard is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The baseline is in force.
    Released,
    /// Bulk writers are idle, or are the protected themselves: a limit is in force that is not in the way.
    Ready,
    /// Syncs pause: bulk writers get what keeps the device busy.
    Loose,
    /// A limit is being judged.
    Standing {
        /// Which.
        rung: i32,
        /// By what comes after this.
        from_ns: u64,
        /// Where it goes on to, if syncs bear it.
        climb: Option<i32>,
    },
    /// A moment at a low limit, so that syncs become fast again.
    Dipped {
        /// Since when.
        from_ns: u64,
        /// At least until then.
        until_ns: u64,
        /// The rung to go back to.
        back: i32,
        /// Why.
        branch: Reason,
    },
}

/// The guard of one device.
#[derive(Debug, Clone)]
pub struct Guard {
    target: Target,
    window: Window,
    rate: Rate,
    presence: Presence,
    reference: Reference,
    ladder: Ladder,
    /// The limit is of a cgroup, which holds none of the protected.
    of_cgroup: bool,
    /// The ladder of the other kind of limit.
    other: Ladder,
    state: State,
    /// The limit asked for last.
    wanted: Option<u64>,
    learned_ns: u64,
    roomy_until_ns: u64,
    /// Nothing of what it decides is done.
    shadow: bool,
    /// Others hold the bulk writers for now.
    aside: bool,
}

impl Guard {
    /// Of a device about which nothing is known yet.
    pub fn new(parameters: Parameters) -> Guard {
        Guard {
            target: parameters.target,
            window: Window::new(5 * JUDGED_NS),
            rate: Rate::default(),
            presence: Presence::default(),
            reference: Reference::default(),
            ladder: Ladder::default(),
            of_cgroup: false,
            other: Ladder::default(),
            state: State::Released,
            wanted: None,
            learned_ns: 0,
            roomy_until_ns: 0,
            shadow: false,
            aside: false,
        }
    }

    /// One whose decisions are only told. It says where it would begin; what it would do next hangs on what that limit
    /// does, which nobody sees, so it does not judge limits that were never in force.
    pub fn shadow(parameters: Parameters) -> Guard {
        Guard { shadow: true, ..Guard::new(parameters) }
    }

    /// From now on another limit is turned: of a cgroup that holds none of the protected, or of dirty pages. What was
    /// learned of the effect of either is put aside until it is turned again; what is known of syncs and of the device
    /// stays.
    pub fn change_lever(&mut self, of_cgroup: bool) {
        if of_cgroup != self.of_cgroup {
            std::mem::swap(&mut self.ladder, &mut self.other);
        }
        self.of_cgroup = of_cgroup;
        (self.state, self.wanted, self.roomy_until_ns) = (State::Released, None, 0);
    }

    /// Others hold the bulk writers from now on, or no longer: it goes on learning what syncs do, and decides nothing.
    pub fn set_aside(&mut self, aside: bool) {
        if aside != self.aside {
            self.change_lever(self.of_cgroup);
        }
        self.aside = aside;
    }

    /// What syncs keep since a moment, by the target, and whether there are any to protect.
    pub fn judged(&self, at_ns: u64, since_ns: u64) -> (Kept, Need) {
        let view = self.window.tail_since(since_ns.max(at_ns.saturating_sub(5 * JUDGED_NS)));
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let keep = self.target.keep;
        let is_late = verdict.tail.is_some_and(|tail| tail > 1.0);
        let kept = match verdict.kept {
            None => Kept::Unknown,
            Some(share) if is_late || share + SURE * verdict.error < keep => Kept::Bad(share),
            Some(share) if share - SURE * verdict.error >= keep => Kept::Good(share),
            Some(share) => Kept::Close(share),
        };
        let need = match self.presence.protected() {
            false => Need::Nobody,
            true if self.presence.pauses(at_ns) => Need::Pausing,
            true => Need::Here,
        };
        (kept, need)
    }

    /// What to do now. Samples come in the order of time; an action is taken to be done when the next sample's
    /// limits show it.
    pub fn step(&mut self, sample: &Sample) -> Decision {
        if sample.elapsed_ns > 2 * JUDGED_NS {
            self.resume(sample.at_ns);
        }
        self.window.push(sample);
        self.rate.push(sample.elapsed_ns, sample.flow.written_bytes);
        self.presence.push(sample, self.rate.best());
        let now = sample.at_ns;
        let second = self.window.since(now.saturating_sub(SECOND_NS));
        let (action, branch) = if sample.sensor.silent_ns >= SILENT_NS {
            self.release(Reason::Silent)
        } else if sample.sensor.silent_ns >= FREEZE_NS {
            (Action::Keep, Reason::Silent)
        } else if !self.presence.protected() {
            self.release(Reason::Unneeded)
        } else if self.presence.pauses(now) {
            self.loosen(sample)
        } else if self.presence.bulk_active(now) {
            self.hold(sample, &second)
        } else {
            self.rest(sample, &second)
        };
        let inputs = self.inputs(sample, &second, branch);
        Decision { at_ns: now, action, branch, inputs, mood: self.mood() }
    }

    /// Nobody looked for a while, as in suspend: what came meanwhile and before is no window.
    fn resume(&mut self, now_ns: u64) {
        self.window = Window::new(5 * JUDGED_NS);
        self.learned_ns = now_ns;
        if let State::Standing { rung, .. } = self.state {
            self.state = State::Standing { rung, from_ns: now_ns, climb: None };
        }
    }

    fn mood(&self) -> Mood {
        if self.state == State::Released { Mood::Released } else { Mood::Holding }
    }

    /// Restores the baseline.
    fn release(&mut self, branch: Reason) -> (Action, Reason) {
        let held = self.state != State::Released;
        (self.state, self.wanted) = (State::Released, None);
        (if held { Action::Release } else { Action::Keep }, branch)
    }

    /// Syncs pause: bulk writers get what keeps the device busy, and no more than is soon written when syncs come back.
    fn loosen(&mut self, sample: &Sample) -> (Action, Reason) {
        if self.state == State::Released {
            return (Action::Keep, Reason::Unneeded);
        }
        self.state = State::Loose;
        let limit = sample.limits.now_bytes;
        let room = (self.busy() as u64).min(limit.saturating_mul(2));
        if rung_of(room) == rung_of(limit) || !self.presence.bulk_active(sample.at_ns) {
            return (Action::Keep, Reason::Unneeded);
        }
        (self.set(sample, room), Reason::Unneeded)
    }

    /// Without bulk writers: learn what syncs do undisturbed, and have a limit ready that is not in the way.
    fn rest(&mut self, sample: &Sample, second: &View) -> (Action, Reason) {
        let now = sample.at_ns;
        let limits = sample.limits;
        if limits.now_bytes < limits.saved_bytes && second.held_mean_ns > 0.0 {
            self.roomy_until_ns = now + ROOMY_NS;
            let own = second.protected_share.is_some_and(|share| share >= hold::CHECKPOINT);
            return self.release(if own { Reason::Checkpoint } else { Reason::OwnWrites });
        }
        self.learn(sample);
        if now < self.roomy_until_ns {
            return (Action::Keep, Reason::Idle);
        }
        if second.count > 0 && self.ladder.is_other(second.concurrency) {
            self.ladder.enter(second.concurrency, self.rate.best());
            self.wanted = None;
        }
        let start = self.start(sample, second.concurrency);
        let keep = self.target.keep;
        let good = self.ladder.here().choice(keep).map(bytes_of);
        let good = good.map(|good| good.min((2.0 * self.busy()) as u64).max(start));
        let good = good.unwrap_or(IDLE_FACTOR * start);
        // The kernel writes back from half the limit on: below that the limit changes nothing.
        let cap = good.max(2 * self.presence.idle_backlog()).clamp(limits.floor_bytes, limits.saved_bytes);
        if self.state == State::Released {
            let drained = sample.backlog_bytes() <= cap / 2 && self.presence.undisturbed_since(now).is_some();
            if !drained || cap >= limits.saved_bytes {
                return (Action::Keep, Reason::Idle);
            }
            self.state = State::Ready;
            return (self.set(sample, cap), Reason::Idle);
        }
        self.state = State::Ready;
        let limit = limits.now_bytes;
        let elsewhere = self.wanted.is_none() && rung_of(cap) != rung_of(limit);
        if elsewhere || rung_of(cap) > rung_of(limit) {
            return (self.set(sample, cap), Reason::Idle);
        }
        (Action::Keep, Reason::Idle)
    }

    fn learn(&mut self, sample: &Sample) {
        let now = sample.at_ns;
        let Some(since) = self.presence.undisturbed_since(now) else { return };
        // Some of what the first quiet samples show was still sent by the flood.
        let from = self.learned_ns.max(since + SECOND_NS / 2);
        if now < from + SECOND_NS {
            return;
        }
        let view = self.window.tail_since(from);
        self.learned_ns = now;
        if sample.sensor.source != SensorSource::Diskstats || view.count > 0 {
            self.reference.learn(&view);
        }
    }

    /// The limit for a device and a number of threads of which nothing is known. More syncs at once bear more, and where they
    /// go through the page cache their own pages need room.
    fn start(&self, sample: &Sample, threads: f64) -> u64 {
        let limits = sample.limits;
        let bytes = (self.rate.best() * START_NS as f64 / 1e9).max(START_LEAST);
        let bytes = bytes * (1.0 + threads.max(1.0).log2());
        (bytes as u64).clamp(limits.floor_bytes, limits.saved_bytes)
    }

    /// What keeps the device busy, in bytes.
    fn busy(&self) -> f64 {
        (self.rate.best() * BUSY_NS as f64 / 1e9).max(START_LEAST)
    }

    /// Asks for a limit.
    fn set(&mut self, sample: &Sample, bytes: u64) -> Action {
        let limits = sample.limits;
        let bytes = bytes.clamp(limits.floor_bytes.min(limits.saved_bytes), limits.saved_bytes);
        self.wanted = Some(bytes);
        if bytes == limits.now_bytes { Action::Keep } else { Action::Set { bytes } }
    }

    fn inputs(&mut self, sample: &Sample, second: &View, branch: Reason) -> Inputs {
        // Decisions stand on all that is known since the limit moved; right after a move on the last second.
        let last = sample.at_ns.saturating_sub(SECOND_NS);
        let from = match self.state {
            State::Standing { from_ns, .. } if from_ns < last => from_ns,
            _ => last,
        };
        let view = self.window.tail_since(from);
        let verdict = judge::judge(&view, &self.reference, &self.target);
        let best = self.ladder.here().best().filter(|_| branch == Reason::Infeasible);
        Inputs {
            syncs: view.count,
            syncs_per_second: view.per_second,
            p99_ns: verdict.p99_ns,
            target_ns: verdict.target_ns,
            kept: verdict.kept,
            reference: verdict.known,
            concurrency: view.concurrency,
            oldest_ns: sample.syncs.oldest_ns,
            own_share: view.own_share,
            delivered_bytes_per_second: second.delivered,
            backlog_bytes: sample.backlog_bytes(),
            limit_bytes: sample.limits.now_bytes,
            of_cgroup: self.of_cgroup,
            bulk_active: self.presence.bulk_active(sample.at_ns),
            achievable_p99_ns: None,
            achievable_kept: best,
        }
    }
}
