//! The law: from a sample to an action.
//!
//! A limit is found, not computed. How much dirty memory a device bears depends on its queue, its file system's log and
//! on how many syncs are under way at once, and the same limit is too large for one sync at a time and too small for ten
//! buffered ones. So the guard keeps a [`ladder::Ladder`] of limits for each concurrency, with what it found at each rung.

mod decision;
mod hold;
mod judge;
mod ladder;
mod presence;
mod rate;
mod reference;
mod window;

#[cfg(test)]
mod tests;

pub use decision::{Action, Branch, Decision, Inputs, Known, Mood};

use super::private::{Hold, Kept, Need};
use super::{Parameters, Sample, SensorSource};
use judge::State;
use ladder::Ladders;
use presence::Presence;
use rate::Rate;
use reference::Reference;
use window::{View, Window};

const SECOND_NS: u64 = 1_000_000_000;
/// So many times what bulk writers get while syncs pause is plenty for a device that is nearly full.
const PLENTY: f64 = 1.5;
/// Protected processes that were throttled without a flood are left alone for so long.
const ROOMY_NS: u64 = 60 * SECOND_NS;
/// What is low is so many times less than what held.
const LOW: u64 = 3;

/// A short stay at the floor.
#[derive(Debug, Clone, Copy)]
struct Probe {
    from_ns: u64,
    until_ns: u64,
    back_bytes: u64,
}

/// The guard of one device.
#[derive(Debug, Clone)]
pub struct Guard {
    parameters: Parameters,
    window: Window,
    rate: Rate,
    presence: Presence,
    reference: Reference,
    ladders: Ladders,
    /// The limit is of a cgroup, which holds none of the protected.
    of_cgroup: bool,
    /// Of the other kind of limit.
    set_aside: Ladders,
    mood: Mood,
    /// The limit asked for last.
    wanted: Option<u64>,
    /// When the limit moved last, and when that move can show.
    moved_ns: u64,
    settled_ns: u64,
    /// Since when it is this flood and this concurrency.
    entered_ns: u64,
    /// Until then everything that was measured is in the ladder.
    noted_ns: u64,
    /// The last window was worse than what is known of its limit, and ended then.
    doubted_ns: Option<u64>,
    learned_ns: u64,
    /// Bulk writers were active at the last look.
    flooded: bool,
    probe: Option<Probe>,
    /// Until then the protected processes need more room than a limit would leave them.
    roomy_until_ns: u64,
    /// Nothing of what it decides is done.
    shadow: bool,
    /// Others hold the bulk writers for now, and since then a probe of theirs can show, if one is under way.
    aside: bool,
    probed_from_ns: Option<u64>,
}

impl Guard {
    /// Of a device about which nothing is known yet.
    pub fn new(parameters: Parameters) -> Guard {
        Guard {
            window: Window::new(parameters.window_ns),
            parameters,
            rate: Rate::default(),
            presence: Presence::default(),
            reference: Reference::default(),
            ladders: Ladders::default(),
            of_cgroup: false,
            set_aside: Ladders::default(),
            mood: Mood::Released,
            wanted: None,
            moved_ns: 0,
            settled_ns: 0,
            entered_ns: 0,
            noted_ns: 0,
            doubted_ns: None,
            learned_ns: 0,
            flooded: false,
            probe: None,
            roomy_until_ns: 0,
            shadow: false,
            aside: false,
            probed_from_ns: None,
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
            std::mem::swap(&mut self.ladders, &mut self.set_aside);
        }
        self.of_cgroup = of_cgroup;
        (self.mood, self.wanted, self.probe) = (Mood::Released, None, None);
        (self.flooded, self.roomy_until_ns) = (false, 0);
    }

    /// What private limits do from now on. While they hold all bulk writers it goes on learning what syncs do, and decides nothing.
    pub fn set_aside(&mut self, by: Hold) {
        if by.covers != self.aside {
            let of_cgroup = self.of_cgroup;
            self.change_lever(of_cgroup);
        }
        (self.aside, self.probed_from_ns) = (by.covers, by.probed_from_ns);
        self.presence.hold(by.is_at_work);
    }

    /// Whether the device is known to be flooded, and so every other one that stands on the same disk is disturbed.
    pub fn floods_others(&self, at_ns: u64) -> bool {
        self.presence.floods_others(at_ns, &self.parameters)
    }

    /// Another device that stands on the same disk is flooded from now on, or no longer: what syncs do meanwhile is not what they do
    /// undisturbed.
    pub fn disturb(&mut self, is_disturbed: bool) {
        self.presence.disturb(is_disturbed);
    }

    /// What syncs keep since a moment, by the target, and whether there are any to protect.
    pub fn judged(&self, at_ns: u64, since_ns: u64) -> (Kept, Need) {
        let view = self.window.tail_since(since_ns.max(at_ns.saturating_sub(self.parameters.window_ns)));
        let verdict = judge::judge(&view, &self.reference, &self.parameters);
        let share = verdict.kept.unwrap_or(1.0);
        let kept = match verdict.state() {
            State::Unknown => Kept::Unknown,
            State::Good => Kept::Good(share),
            State::Close => Kept::Close(share),
            State::Bad => Kept::Bad(share),
        };
        let need = match self.presence.protected() {
            false => Need::Nobody,
            true if self.presence.pauses(at_ns) => Need::Pausing,
            true => Need::Here,
        };
        (kept, need)
    }

    /// Whether private limits, which hold all bulk writers, are to make a probe: nothing like the syncs of now was seen undisturbed,
    /// nor probed lately.
    pub fn wants_probe(&self, at_ns: u64) -> bool {
        let view = self.window.since(at_ns.saturating_sub(SECOND_NS));
        let is_due = self.ladders.is_probe_due(at_ns, self.parameters.probe_every_ns);
        self.aside && !self.shadow && is_due && view.count > 0 && self.known(&view) != Known::Seen
    }

    /// How well it is known what syncs like these do undisturbed.
    fn known(&self, view: &View) -> Known {
        self.reference.at(view.concurrency).map_or(Known::Unknown, |expected| expected.known)
    }

    /// What to do now. Samples come in the order of time; an action is taken to be done when the next sample's
    /// limits show it.
    pub fn step(&mut self, sample: &Sample) -> Decision {
        self.window.push(sample);
        self.rate.push(sample.elapsed_ns, sample.flow.written_bytes);
        self.presence.push(sample, &self.parameters, self.rate.best());
        let now = sample.at_ns;
        let second = self.window.since(now.saturating_sub(SECOND_NS));
        let (action, branch) = if sample.sensor.silent_ns >= self.parameters.silence_release_ns {
            self.release(Branch::Silent)
        } else if sample.sensor.silent_ns >= self.parameters.silence_freeze_ns {
            (Action::Keep, Branch::Silent)
        } else if !self.presence.protected() {
            self.release(Branch::Unneeded)
        } else if self.presence.pauses(now) {
            self.loosen(sample)
        } else if self.presence.bulk_active(now, &self.parameters) {
            self.hold(sample, &second)
        } else {
            self.rest(sample, &second)
        };
        let bulk_active = self.presence.bulk_active(now, &self.parameters);
        self.flooded = bulk_active && self.mood == Mood::Holding && branch != Branch::Unneeded;
        Decision { at_ns: now, action, branch, inputs: self.inputs(sample, &second, branch), mood: self.mood }
    }

    /// Gives back what was found.
    fn release(&mut self, branch: Branch) -> (Action, Branch) {
        (self.wanted, self.probe) = (None, None);
        let held = self.mood == Mood::Holding;
        self.mood = Mood::Released;
        (if held { Action::Release } else { Action::Keep }, branch)
    }

    /// Syncs pause: bulk writers get what keeps the device busy, and no more than is soon written when syncs come back.
    fn loosen(&mut self, sample: &Sample) -> (Action, Branch) {
        self.probe = None;
        let limit = sample.limits.now_bytes;
        let room = (self.pause_room() as u64).min(limit.saturating_mul(2));
        let settle = self.parameters.settle_ratio;
        let enough = room as f64 <= limit as f64 * settle && limit as f64 <= room as f64 * settle;
        if self.mood == Mood::Released || enough || !self.presence.bulk_active(sample.at_ns, &self.parameters)
        {
            return (Action::Keep, Branch::Unneeded);
        }
        (self.set(sample, room), Branch::Unneeded)
    }

    /// Without bulk writers: learn what syncs do undisturbed, and have a limit ready that is not in the way.
    fn rest(&mut self, sample: &Sample, second: &View) -> (Action, Branch) {
        let now = sample.at_ns;
        self.probe = None;
        if self.aside {
            self.learn_undisturbed(sample);
            return (Action::Keep, Branch::Idle);
        }
        let capped = sample.limits.now_bytes < sample.limits.saved_bytes;
        if capped && second.held_mean_ns > 0.0 {
            self.roomy_until_ns = now + ROOMY_NS;
            let own = second.protected_share.is_some_and(|share| share >= self.parameters.checkpoint_share);
            return self.release(if own { Branch::Checkpoint } else { Branch::OwnWrites });
        }
        self.learn_undisturbed(sample);
        if now < self.roomy_until_ns {
            return (Action::Keep, Branch::Idle);
        }
        if second.count > 0 && self.ladders.enter(second.concurrency) {
            self.wanted = None;
        }
        let backlog = self.presence.idle_backlog();
        let start = (self.start(sample, second.concurrency) as f64 * self.parameters.idle_factor) as u64;
        let good = self.known_good(start).unwrap_or(start);
        // The kernel writes back from half the limit on: below that the limit changes nothing.
        let cap =
            good.max(backlog.saturating_mul(2)).clamp(sample.limits.floor_bytes, sample.limits.saved_bytes);
        if self.mood == Mood::Released {
            let drained = sample.backlog_bytes() <= cap / 2 && self.presence.undisturbed_since(now).is_some();
            return if drained && cap < sample.limits.saved_bytes {
                (self.set(sample, cap), Branch::Idle)
            } else {
                (Action::Keep, Branch::Idle)
            };
        }
        let limit = sample.limits.now_bytes;
        let elsewhere = self.wanted.is_none() && !ladder::same(cap, limit);
        if elsewhere || cap as f64 > limit as f64 * self.parameters.settle_ratio {
            return (self.set(sample, cap), Branch::Idle);
        }
        (Action::Keep, Branch::Idle)
    }

    fn learn_undisturbed(&mut self, sample: &Sample) {
        let now = sample.at_ns;
        let Some(since) = self.presence.undisturbed_since(now) else { return };
        // Some of what the first quiet looks show was still sent by the flood.
        let from = self.learned_ns.max(since + SECOND_NS / 2);
        if now < from + SECOND_NS {
            return;
        }
        let view = self.window.tail_since(from);
        self.learned_ns = now;
        if sample.sensor.source != SensorSource::Diskstats || view.count > 0 {
            self.reference.learn(&view, self.parameters.reference_ns, self.parameters.tail_samples);
        }
    }

    /// The limit for a device and a concurrency of which nothing is known. More syncs at once bear more, and where they
    /// go through the page cache their own pages need room.
    fn start(&self, sample: &Sample, concurrency: f64) -> u64 {
        let limits = sample.limits;
        let bytes = self.rate.best() * self.parameters.start_ns as f64 / 1e9;
        let bytes = bytes.max(self.parameters.start_least_bytes as f64) * (1.0 + concurrency.max(1.0).log2());
        (bytes as u64).clamp(limits.floor_bytes, limits.saved_bytes)
    }

    /// The same for the concurrency that was seen last.
    fn start_here(&mut self, sample: &Sample) -> u64 {
        let concurrency = self.ladders.current().map_or(1.0, |ladder| ladder.concurrency);
        self.start(sample, concurrency)
    }

    /// Where the limit was good at this concurrency, if that is known. One far beyond what the device needs held in other
    /// circumstances, and would let in what takes long to drain.
    fn known_good(&mut self, start: u64) -> Option<u64> {
        let most = self.plenty().max(start);
        self.ladders.current().and_then(|ladder| ladder.home()).map(|home| home.min(most))
    }

    /// What keeps a device busy while syncs pause, in bytes.
    fn pause_room(&self) -> f64 {
        self.rate.best() * self.parameters.pause_room_ns as f64 / 1e9
    }

    /// That, and a reserve.
    fn plenty(&self) -> u64 {
        (PLENTY * self.pause_room()) as u64
    }

    /// The limit of a moment in which bulk writers get the least: well below what held, but no lower than it takes, as syncs
    /// are held back for pages of their own there.
    fn low(&mut self, sample: &Sample) -> u64 {
        let most = (self.rate.best() * self.parameters.low_ns as f64 / 1e9) as u64;
        let home = self.ladders.current().and_then(|ladder| ladder.home());
        let bytes = home.map_or(most, |home| (home / LOW).max(most / 2));
        bytes.clamp(sample.limits.floor_bytes, sample.limits.saved_bytes)
    }

    /// Asks for a limit; the windows that judge it begin when it can show.
    fn set(&mut self, sample: &Sample, bytes: u64) -> Action {
        let limits = sample.limits;
        let bytes = bytes.clamp(limits.floor_bytes.min(limits.saved_bytes), limits.saved_bytes);
        self.mood = Mood::Holding;
        self.wanted = Some(bytes);
        if bytes == limits.now_bytes {
            return Action::Keep;
        }
        let now = sample.at_ns;
        let drain = self.rate.time_of(sample.backlog_bytes().saturating_sub(bytes));
        (self.moved_ns, self.doubted_ns) = (now, None);
        self.settled_ns = now + 2 * self.parameters.look_ns + drain.min(60 * SECOND_NS);
        Action::Set { bytes }
    }

    fn inputs(&mut self, sample: &Sample, second: &View, branch: Branch) -> Inputs {
        // Decisions stand on all that is known since the limit moved; right after a move on the last second.
        let last = sample.at_ns.saturating_sub(SECOND_NS);
        let view = self.window.tail_since(if self.settled_ns < last { self.settled_ns } else { last });
        let verdict = judge::judge(&view, &self.reference, &self.parameters);
        let ladder = self.ladders.current().filter(|_| branch == Branch::Infeasible);
        let best = ladder.and_then(|ladder| ladder.most_kept(sample.at_ns));
        // What syncs keep now can be kept, too.
        let best = best.map(|outcome| match verdict.kept {
            Some(kept) if kept > outcome.kept => (kept.min(1.0), verdict.p99_ns),
            _ => (outcome.kept, outcome.p99_ns),
        });
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
            bulk_active: self.presence.bulk_active(sample.at_ns, &self.parameters),
            achievable_p99_ns: best.and_then(|(_, p99_ns)| p99_ns),
            achievable_kept: best.map(|(kept, _)| kept),
        }
    }
}
