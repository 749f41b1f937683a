//! The law: from a look to a state, by transitions that have names.

use super::constants::{
    AIM, BELOW, BUDGET_LEAST_BYTES, BUDGET_NS, CHANGE_MOST, CUT_MOST, DRAINED_NS, EXPIRED_NS, FIRST_PACE,
    HURTS, HURTS_MOST, IDLE_NS, JUDGED_NS, LUMP_NS, LUMPS_NS, PACE_LEAST, PACED_NS, PLAIN, PROBE_PACE, RAISE,
    ROOM_BYTES, SECOND_NS, SPARED_NS, TOO_MUCH_NS,
};
use super::harm::Harm;
use super::rate::Rate;
use super::{Group, Kept, Need, Seen, State, Transition, Wish};

/// The least bound of dirty pages, as time at the device's rate.
const TIME_LEAST_NS: u64 = BUDGET_NS / 5;
/// From this share of a pace on it is used: lumps fall into one second or the next.
const AT_PACE: f64 = 0.6;
/// Nothing moves while the sensor is silent for a sixth of that, and after so long nothing is held.
const SILENT_NS: u64 = 60 * SECOND_NS;

/// Cuts below a pace gave syncs nothing.
#[derive(Debug, Clone, Copy)]
struct Vain {
    pace: u64,
    /// What syncs kept there.
    kept: f64,
    /// That counts until then.
    until_ns: u64,
}

/// Paces gave syncs nothing, and whether they would keep more without one is being tried.
#[derive(Debug, Clone, Copy)]
struct Trial {
    pace: u64,
    /// What they kept at it.
    kept: f64,
    /// What they keep without a pace, once that is known.
    without: Option<f64>,
}

/// What a pace limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Means {
    #[default]
    Writes,
    /// Limits of their writes do not serve.
    Processors,
    /// Their pages count for others, so that no limit of memory bounds these. What was dirty before processor time was limited is
    /// written first, from then on.
    ProcessorsAlone { drains_from_ns: Option<u64> },
}

/// The law of one device's bulk writers.
#[derive(Debug, Clone, Default)]
pub struct Law {
    state: State,
    rate: Rate,
    harm: Harm,
    /// How often a group got more memory.
    rooms: usize,
    /// The last move was a cut.
    is_cut: bool,
    /// When the last move was made, and from when on it can show: what was dirty beyond a bound has to be written before.
    moved_ns: u64,
    judged_from_ns: u64,
    /// When a group wrote last.
    wrote_ns: u64,
    /// What proved too much, as time or in bytes a second as the state has it, and when.
    too_much: Option<(f64, u64)>,
    /// The last pace that was good, what syncs kept at it, and when.
    good: Option<(f64, f64, u64)>,
    /// What syncs kept when only dirty pages were bounded.
    kept_bounded: Option<f64>,
    /// The last pace that was good, as a share of the device's rate: the next flood begins with it.
    good_pace: Option<f64>,
    /// The pace from which it was cut since something was good, and what syncs kept there.
    cut_from: Option<(u64, f64)>,
    /// Below a pace cuts were in vain.
    vain: Option<Vain>,
    /// A comparison under way.
    trial: Option<Trial>,
    /// Since when syncs lose and no lower limit serves, and whether that was told.
    least_ns: Option<u64>,
    is_not_enough: bool,
    /// Since when they keep their rate though that was told, and how often it was told.
    enough_ns: Option<u64>,
    not_enough: u32,
    /// io.max is not tried until then, and so often it hurt since it served last.
    no_pace_until_ns: u64,
    hurts: u32,
    means: Means,
    /// The state before syncs paused, and before a probe while one is under way.
    before_pause: Option<State>,
    before_probe: Option<State>,
}

impl Law {
    /// How it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a limit is the guard's.
    pub fn holds(&self) -> bool {
        !matches!(self.state, State::Watching | State::Spared { .. })
    }

    /// Whether a cgroup that writes is held, or would be: one that would not is better left to others.
    pub fn would_hold(&self, need: Need, silent_ns: u64) -> bool {
        let is_ready = self.state == State::Watching && self.rate.get() > 0.0;
        self.holds() || (is_ready && need != Need::Nobody && silent_ns < SILENT_NS)
    }

    /// Whether other limits have to hold as well.
    pub fn is_not_enough(&self) -> bool {
        self.is_not_enough
    }

    /// From when on what syncs keep is to be judged.
    pub fn judged_from(&self) -> u64 {
        self.judged_from_ns
    }

    /// Since when a probe that is under way can show.
    pub fn probed_from(&self) -> Option<u64> {
        self.before_probe.map(|_| self.judged_from_ns)
    }

    /// What the device takes, in bytes a second.
    pub fn rate(&self) -> f64 {
        self.rate.get()
    }

    /// What the groups may have together.
    pub fn wish(&self) -> Wish {
        let (rate, time_ns, pace) = match self.state {
            State::Watching | State::Spared { .. } => return Wish::default(),
            State::Bounded { time_ns } => (self.rate.get(), time_ns, None),
            State::Paced { pace } => {
                let most_ns = LUMP_NS as f64 * self.rate.get() / pace as f64;
                (pace as f64, PACED_NS.min(most_ns as u64), Some(pace))
            }
            State::Loose => (self.rate.get(), 2 * PACED_NS, None),
        };
        // What is dirty is written first, and what its writes cost is not known before.
        let pace = pace.map(|pace| if self.drains_from_ns().is_some() { 0 } else { pace });
        let budget_bytes = (!self.escapes()).then(|| time_at(rate, time_ns));
        Wish { budget_bytes, pace, by_quota: self.by_quota(), room_bytes: ROOM_BYTES[self.rooms] }
    }

    /// Nothing is the guard's any more, whoever took it.
    pub fn let_go(&mut self) {
        (self.state, self.before_pause, self.before_probe) = (State::Watching, None, None);
        (self.trial, self.means) = (None, Means::Writes);
        (self.least_ns, self.is_not_enough, self.rooms) = (None, false, 0);
        (self.enough_ns, self.not_enough) = (None, 0);
        self.harm.forget();
    }

    /// They are left alone for a time, for a reason that the law does not know.
    pub fn spare(&mut self, at_ns: u64) {
        self.let_go();
        self.state = State::Spared { until_ns: at_ns + SPARED_NS };
    }

    /// Takes in a look. What changed, if anything did.
    pub fn step(&mut self, seen: &Seen<'_>) -> Option<Transition> {
        self.rate.push(seen.elapsed_ns, seen.delivered_bytes, self.is_full(seen));
        self.harm.push(seen.elapsed_ns, seen.groups);
        let writes = seen.groups.iter().any(|group| group.is_at_work);
        if writes {
            self.wrote_ns = seen.at_ns;
        }
        match self.state {
            State::Watching => self.watch(seen, writes),
            State::Spared { until_ns } if seen.at_ns < until_ns => None,
            State::Spared { .. } => {
                self.let_go();
                Some(Transition::Again)
            }
            _ => self.end(seen).or_else(|| self.hold(seen)),
        }
    }

    /// Whether groups are at work, whose writes come in lumps.
    fn are_at_work(&self, seen: &Seen<'_>) -> bool {
        seen.at_ns < self.wrote_ns + JUDGED_NS
    }

    /// Whether the device has more to write than it takes. A paced group waits for io.max, unless the device takes far less.
    fn is_full(&self, seen: &Seen<'_>) -> bool {
        let Some(bound) = self.wish().budget_bytes.filter(|_| self.is_settled(seen)) else { return false };
        let is_at_pace = match self.state {
            State::Paced { pace } => self.rate.last_second() >= AT_PACE * pace as f64,
            _ => false,
        };
        2 * backlog(seen) >= bound && !is_at_pace
    }

    /// Whether what the groups had beyond their bounds is written or given back.
    fn is_settled(&self, seen: &Seen<'_>) -> bool {
        let bound = self.wish().budget_bytes.unwrap_or(u64::MAX);
        let is_over = |group: &Group| group.high.is_some_and(|high| group.memory.current > high + high / 16);
        let waits = seen.groups.iter().any(is_over) || backlog(seen) / 2 > bound;
        !waits || seen.at_ns >= self.moved_ns + IDLE_NS
    }

    fn watch(&mut self, seen: &Seen<'_>, writes: bool) -> Option<Transition> {
        if !writes || !self.would_hold(seen.need, seen.silent_ns) {
            return None;
        }
        (self.too_much, self.good, self.cut_from) = (None, None, None);
        (self.vain, self.kept_bounded) = (None, None);
        self.harm.forget();
        self.harm.push(seen.elapsed_ns, seen.groups);
        let state = match seen.need {
            Need::Pausing if !is_waiting(seen) => State::Loose,
            _ => State::Bounded { time_ns: BUDGET_NS },
        };
        self.enter(seen, state);
        Some(Transition::Arm)
    }

    fn loses_to_pages_of_others(&self, seen: &Seen<'_>) -> bool {
        let is_lost = !pauses(seen) && !matches!(seen.kept, Kept::Good(_) | Kept::Close(_));
        let is_plain = matches!(seen.kept, Kept::Bad(_)) || is_waiting(seen);
        is_lost && self.harm.escapes(is_plain)
    }

    /// What ends a limit, or keeps it from being one that counts.
    fn end(&mut self, seen: &Seen<'_>) -> Option<Transition> {
        if seen.can_quota && !self.escapes() && self.loses_to_pages_of_others(seen) {
            // Without any limit they lose.
            self.kept_bounded = Some(0.0);
            let means = Means::ProcessorsAlone { drains_from_ns: Some(seen.at_ns) };
            return Some(self.limit_processors(seen, means, self.low_pace()));
        }
        match self.harm.found() {
            // Nobody waits for memory or I/O where processor time alone is limited.
            _ if self.escapes() => {}
            // It will be, once they lose.
            Some(Transition::Escapes) if seen.can_quota => {}
            // A group that may not grow looks for pages to give back all the time.
            Some(Transition::MemoryStalls) if self.rooms + 1 < ROOM_BYTES.len() => {
                self.rooms += 1;
                self.harm.forget();
                return Some(Transition::Room);
            }
            Some(harm) => {
                self.spare(seen.at_ns);
                return Some(harm);
            }
            None => {}
        }
        let over = match seen {
            _ if seen.silent_ns >= SILENT_NS => Transition::Silent,
            _ if seen.need == Need::Nobody => Transition::Unneeded,
            _ if seen.at_ns - self.wrote_ns >= IDLE_NS => Transition::Ended,
            _ if seen.groups.is_empty() => Transition::Gone,
            _ => return None,
        };
        self.let_go();
        Some(over)
    }

    fn hold(&mut self, seen: &Seen<'_>) -> Option<Transition> {
        let pauses = pauses(seen);
        if let Some(before) = self.before_probe {
            let is_over = pauses || seen.at_ns >= self.judged_from_ns + JUDGED_NS;
            return is_over.then(|| self.end_probe(seen, before));
        }
        match self.state {
            State::Loose if pauses => return None,
            State::Loose => {
                let back = self.before_pause.take();
                self.enter(seen, back.unwrap_or(State::Bounded { time_ns: BUDGET_NS }));
                return Some(Transition::Tighten);
            }
            // What it may write without a pace nobody bounds.
            _ if pauses && self.by_quota() => {
                return self.drains_from_ns().and_then(|since| self.drain(seen, since));
            }
            state if pauses => {
                (self.before_pause, self.enough_ns) = (Some(state), None);
                self.enter(seen, State::Loose);
                return Some(Transition::Loosen);
            }
            State::Bounded { .. } if !self.is_settled(seen) => {
                self.judged_from_ns = seen.at_ns;
                // A bound takes nothing back that is dirty already, and a pace only puts that off: io.max lets a bio go as a whole, and
                // one may hold all of it (large folios).
                let is_late = seen.at_ns >= self.moved_ns + DRAINED_NS;
                return (is_late && self.may_pace(seen)).then(|| self.pace(seen));
            }
            _ => {}
        }
        if let Some(since_ns) = self.drains_from_ns() {
            return self.drain(seen, since_ns);
        }
        let judged_ns = seen.at_ns.saturating_sub(self.judged_from_ns);
        // A loss that is certain and large needs no second. What a cut did of it needs one.
        let is_first = self.trial.is_none() && !self.is_cut;
        let is_plain = is_first && matches!(seen.kept, Kept::Bad(share) if share < PLAIN * seen.keep);
        let least_ns = match is_plain {
            _ if self.escapes() => LUMPS_NS,
            true => JUDGED_NS / 2,
            false => JUDGED_NS,
        };
        if seen.silent_ns >= SILENT_NS / 6 || judged_ns < least_ns {
            return None;
        }
        if seen.wants_probe && self.trial.is_none() && self.are_at_work(seen) {
            return Some(self.probe(seen));
        }
        // One that began before the move may wait for what was written before it.
        let is_stuck =
            seen.oldest_ns > JUDGED_NS && (seen.oldest_ns < judged_ns || judged_ns > 3 * JUDGED_NS);
        let stuck = || Kept::Bad(seen.kept.share().unwrap_or(1.0).min(CUT_MOST));
        self.answer(seen, if is_stuck { stuck() } else { seen.kept }, judged_ns)
    }

    /// What to do about what syncs keep since so long.
    fn answer(&mut self, seen: &Seen<'_>, kept: Kept, judged_ns: u64) -> Option<Transition> {
        if let Some(enough) = self.notice_enough(seen.at_ns, kept) {
            return Some(enough);
        }
        if let (Some(trial), Some(share)) = (self.trial, kept.share()) {
            // That a pace hurts keeps others from being tried for a while: it is judged for longer.
            if trial.without.is_some() && judged_ns < 2 * JUDGED_NS {
                return None;
            }
            return self.compare(seen, trial, share);
        }
        match (self.state, kept) {
            (State::Bounded { time_ns }, Kept::Bad(share)) => self.cut_budget(seen, time_ns, share),
            (State::Bounded { time_ns }, Kept::Good(share)) => {
                (self.kept_bounded, self.least_ns) = (Some(share), None);
                self.raise_budget(seen, time_ns)
            }
            // One that has no pace is not slower for a lower one of the others.
            (State::Paced { .. }, Kept::Bad(_)) if !self.reaches_all(seen) && self.are_at_work(seen) => {
                self.notice_not_enough(seen.at_ns)
            }
            (State::Paced { pace }, Kept::Bad(share)) => self.cut_pace(seen, pace, share),
            (State::Paced { pace }, Kept::Good(share)) => self.raise_pace(seen, pace, share, true),
            // Neither good nor bad for as long as it takes to know better: towards the goal, in small steps.
            (State::Paced { pace }, Kept::Close(share)) if judged_ns >= 2 * JUDGED_NS => {
                self.raise_pace(seen, pace, share, false)
            }
            _ => None,
        }
    }

    /// The least that bulk writers may have, for as long as it takes to judge it: syncs do undisturbed at least what they do then.
    fn probe(&mut self, seen: &Seen<'_>) -> Transition {
        let low = self.low_pace();
        let least = match self.state {
            State::Paced { pace } => State::Paced { pace: pace.min(low) },
            _ if self.may_pace(seen) => State::Paced { pace: low },
            _ => State::Bounded { time_ns: TIME_LEAST_NS },
        };
        self.before_probe = Some(self.state);
        self.enter(seen, least);
        Transition::Probe
    }

    fn end_probe(&mut self, seen: &Seen<'_>, before: State) -> Transition {
        self.before_probe = None;
        self.enter(seen, before);
        Transition::Probed
    }

    /// Dirty pages first: less of them keeps the device busy all the same, and no sync waits for what is not written yet.
    fn cut_budget(&mut self, seen: &Seen<'_>, time_ns: u64, share: f64) -> Option<Transition> {
        self.kept_bounded = Some(share);
        let is_least = time_ns <= TIME_LEAST_NS || time_at(self.rate.get(), time_ns) <= BUDGET_LEAST_BYTES;
        let is_steep = seen.is_direct || share < 0.9 * seen.keep;
        if self.may_pace(seen) && (is_steep || is_least) {
            return Some(self.pace(seen));
        }
        if is_least {
            let pace = self.first_pace();
            return self.processors_or(seen, pace, |law| law.notice_not_enough(seen.at_ns));
        }
        self.too_much = Some((time_ns as f64, seen.at_ns));
        let next = (time_ns as f64 * factor(share, seen.keep)) as u64;
        self.enter(seen, State::Bounded { time_ns: next.max(TIME_LEAST_NS) });
        self.is_cut = true;
        Some(Transition::Cut)
    }

    /// Limits of what is written do not serve. The copy may take processor time from syncs; and while it waits for that, no journal
    /// waits for a write of its that is throttled.
    fn processors_or(
        &mut self,
        seen: &Seen<'_>,
        pace: u64,
        otherwise: impl FnOnce(&mut Law) -> Option<Transition>,
    ) -> Option<Transition> {
        let is_new = seen.can_quota && !seen.is_direct && !self.by_quota();
        if is_new { Some(self.limit_processors(seen, Means::Processors, pace)) } else { otherwise(self) }
    }

    fn limit_processors(&mut self, seen: &Seen<'_>, means: Means, pace: u64) -> Transition {
        self.begin_to_pace();
        (self.means, self.before_probe) = (means, None);
        self.enter(seen, State::Paced { pace });
        Transition::Quota
    }

    /// What was dirty before processor time was limited is written as fast as the device takes it.
    fn drain(&mut self, seen: &Seen<'_>, since_ns: u64) -> Option<Transition> {
        let is_kept = matches!(seen.kept, Kept::Good(_) | Kept::Close(_));
        let is_slow = 2.0 * self.rate.last_second() < self.rate.get() && seen.at_ns >= since_ns + JUDGED_NS;
        if is_kept || is_slow || seen.at_ns >= since_ns + IDLE_NS {
            self.means = Means::ProcessorsAlone { drains_from_ns: None };
            self.enter(seen, self.state);
            return Some(Transition::Drained);
        }
        if seen.at_ns >= self.judged_from_ns + JUDGED_NS {
            self.judged_from_ns = seen.at_ns;
        }
        None
    }

    /// Whether a pace is in force for all that write.
    fn reaches_all(&self, seen: &Seen<'_>) -> bool {
        if self.by_quota() { seen.can_quota } else { seen.can_pace }
    }

    fn by_quota(&self) -> bool {
        self.means != Means::Writes
    }

    fn escapes(&self) -> bool {
        matches!(self.means, Means::ProcessorsAlone { .. })
    }

    fn drains_from_ns(&self) -> Option<u64> {
        match self.means {
            Means::ProcessorsAlone { drains_from_ns } => drains_from_ns,
            _ => None,
        }
    }

    fn low_pace(&self) -> u64 {
        ((PROBE_PACE * self.rate.get()) as u64).max(PACE_LEAST)
    }

    fn begin_to_pace(&mut self) {
        (self.cut_from, self.too_much, self.trial) = (None, None, None);
        (self.good, self.least_ns, self.is_not_enough) = (None, None, false);
    }

    fn pace(&mut self, seen: &Seen<'_>) -> Transition {
        self.begin_to_pace();
        let pace = self.first_pace();
        self.enter(seen, State::Paced { pace });
        // What it did not take back is under way for a moment.
        self.is_cut = true;
        Transition::Pace
    }

    /// It is told once: from then on two laws hold the same writers, and neither knows what is whose doing.
    fn notice_not_enough(&mut self, at_ns: u64) -> Option<Transition> {
        let since = *self.least_ns.get_or_insert(at_ns);
        if self.is_not_enough || at_ns < since + IDLE_NS / 3 {
            return None;
        }
        (self.is_not_enough, self.not_enough) = (true, self.not_enough + 1);
        Some(Transition::NotEnough)
    }

    /// The other limits may be why they keep their rate: that is tried ever more rarely.
    fn notice_enough(&mut self, at_ns: u64, kept: Kept) -> Option<Transition> {
        if !self.is_not_enough {
            return None;
        }
        match kept {
            Kept::Good(_) => {}
            Kept::Bad(_) => {
                self.enough_ns = None;
                return None;
            }
            Kept::Close(_) | Kept::Unknown => return None,
        }
        let since_ns = *self.enough_ns.get_or_insert(at_ns);
        let wait_ns = TOO_MUCH_NS << self.not_enough.saturating_sub(1).min(HURTS_MOST);
        if at_ns < since_ns + wait_ns {
            return None;
        }
        (self.enough_ns, self.least_ns, self.is_not_enough) = (None, None, false);
        Some(Transition::Enough)
    }

    fn raise_budget(&mut self, seen: &Seen<'_>, time_ns: u64) -> Option<Transition> {
        let most = self.most(seen.at_ns).unwrap_or(f64::INFINITY);
        let next = (time_ns as f64 * (1.0 + 2.0 * RAISE)).min(most).min(BUDGET_NS as f64) as u64;
        if next <= time_ns + time_ns / 100 {
            return None;
        }
        self.enter(seen, State::Bounded { time_ns: next });
        Some(Transition::Raise)
    }

    fn cut_pace(&mut self, seen: &Seen<'_>, pace: u64, share: f64) -> Option<Transition> {
        let least = self.vain(seen, share).map_or(PACE_LEAST, |vain| vain.pace);
        // A pace that is not reached does nothing, and says nothing of lower ones.
        let (from, kept_there) = self.cut_from.filter(|_| self.is_used(pace)).unwrap_or((pace, share));
        self.cut_from = self.is_used(pace).then_some((from, kept_there));
        // A loss that the pace makes goes down at least as the pace does. Half of that is more than noise makes of it.
        let cut = 1.0 - pace as f64 / from as f64;
        let helps = |before: f64| share > before + 0.5 * cut * (seen.keep - before);
        // Where pages count for others, what syncs lose now was let through half a minute ago.
        if cut >= CUT_MOST / 2.0 && !self.escapes() {
            if !helps(kept_there) {
                return Some(self.give_up(seen, from, kept_there));
            }
            self.cut_from = Some((pace, share));
        }
        if self.is_cut && share < PLAIN * seen.keep {
            // What was good had a cause that has passed.
            self.good = None;
        }
        let next = (self.lower(seen, pace as f64, share) as u64).max(least);
        if next >= pace {
            self.cut_from = None;
            // Another limit would hold the protected for pages that are not theirs.
            if pace > PACE_LEAST || self.escapes() {
                return None;
            }
            let pace = self.first_pace();
            return self.processors_or(seen, pace, |law| law.notice_not_enough(seen.at_ns));
        }
        self.too_much = Some((pace as f64, seen.at_ns));
        self.enter(seen, State::Paced { pace: next });
        self.is_cut = true;
        Some(Transition::Cut)
    }

    /// Where a line from the last pace that was good, or from none, at which nothing is lost, reaches the goal. Where little is lost, or
    /// the pace was not reached, no less than half of it.
    fn lower(&self, seen: &Seen<'_>, pace: f64, share: f64) -> f64 {
        let is_recent = |since_ns: u64| seen.at_ns < since_ns + TOO_MUCH_NS;
        let good = self.good.filter(|(good, _, since_ns)| *good < pace && is_recent(*since_ns));
        let (low, kept, _) = good.unwrap_or((0.0, 1.0, 0));
        let next = low + (pace - low) * (kept - goal(seen.keep)).max(0.0) / (kept - share).max(0.01);
        let is_little = share + HURTS > seen.keep || !self.is_used(pace as u64);
        let least = if is_little { CUT_MOST } else { CHANGE_MOST.recip() };
        next.clamp(pace * least, pace * (1.0 - RAISE))
    }

    /// Lower paces gave nothing. Whether any pace does is tried at once: what was known of that before may have had a cause that has
    /// passed. Who writes past the page cache has no pages that a sync could wait for.
    fn give_up(&mut self, seen: &Seen<'_>, pace: u64, kept: f64) -> Transition {
        (self.cut_from, self.too_much) = (None, None);
        if seen.is_direct || self.by_quota() {
            return self.find_vain(seen, pace, kept);
        }
        self.trial = Some(Trial { pace, kept, without: None });
        self.enter(seen, State::Bounded { time_ns: TIME_LEAST_NS });
        Transition::Compare
    }

    /// Without a pace first. If syncs keep more then, at that pace again: the loss may have passed meanwhile.
    fn compare(&mut self, seen: &Seen<'_>, trial: Trial, share: f64) -> Option<Transition> {
        self.trial = None;
        match (self.state, trial.without) {
            (State::Paced { .. }, Some(without)) if share + HURTS > without => None,
            (State::Paced { .. }, Some(without)) => {
                self.no_pace_until_ns = seen.at_ns + (TOO_MUCH_NS << self.hurts.min(HURTS_MOST));
                (self.hurts, self.good_pace, self.kept_bounded) = (self.hurts + 1, None, Some(without));
                self.processors_or(seen, trial.pace, |law| {
                    law.enter(seen, State::Bounded { time_ns: TIME_LEAST_NS });
                    Some(Transition::PaceHurts)
                })
            }
            _ if share < trial.kept + HURTS => {
                self.kept_bounded = Some(share);
                let find_vain = |law: &mut Law| Some(law.find_vain(seen, trial.pace, trial.kept));
                self.processors_or(seen, trial.pace, find_vain)
            }
            _ => {
                self.trial = Some(Trial { without: Some(share), ..trial });
                self.enter(seen, State::Paced { pace: trial.pace });
                Some(Transition::Compare)
            }
        }
    }

    fn find_vain(&mut self, seen: &Seen<'_>, pace: u64, kept: f64) -> Transition {
        self.vain = Some(Vain { pace, kept, until_ns: seen.at_ns + TOO_MUCH_NS });
        self.enter(seen, State::Paced { pace });
        Transition::Vain
    }

    /// What is known to be in vain, unless syncs keep far less now: that has another cause.
    fn vain(&self, seen: &Seen<'_>, share: f64) -> Option<Vain> {
        self.vain.filter(|vain| seen.at_ns < vain.until_ns && share + HURTS > vain.kept)
    }

    /// In proportion to what is kept beyond the goal; half of the way back at once where a pace proved too much. `is_sure`: they keep it
    /// with room.
    fn raise_pace(&mut self, seen: &Seen<'_>, pace: u64, share: f64, is_sure: bool) -> Option<Transition> {
        let is_too_soon = self.escapes() && seen.at_ns < self.moved_ns + EXPIRED_NS;
        if share < seen.keep || is_too_soon {
            return None;
        }
        (self.good_pace, self.hurts) = (Some(pace as f64 / self.rate.get().max(1.0)), 0);
        // A group that does not use what it has gets no more.
        if !self.is_used(pace) {
            return None;
        }
        let (now, most) = (pace as f64, self.most(seen.at_ns));
        let most_by_share = now * proportional(share, seen.keep);
        let half = |most: f64| 0.5 * (now + most);
        let mut next = now.max(half(most_by_share));
        if is_sure {
            (self.cut_from, self.least_ns) = (None, None);
            self.good = Some((now, share, seen.at_ns));
            // Half of the way to what proved too much lately, or to the device's rate, and there only as far as the loss allows if it
            // grows with the pace.
            let rate = BELOW * self.rate.get();
            let far = most.map_or_else(|| half(rate).min(most_by_share), half);
            next = next.max(far).max(now * (1.0 + RAISE));
        }
        next = next.min(most.unwrap_or(f64::INFINITY));
        let is_free = next >= self.rate.get() && self.kept_bounded.is_none_or(|kept| kept >= seen.keep);
        if is_free && !self.by_quota() {
            self.too_much = None;
            self.enter(seen, State::Bounded { time_ns: BUDGET_NS });
            return Some(Transition::Unpace);
        }
        // Where no bound of dirty pages is kept, a pace that the device does not take is dirty for long.
        next = next.min(if self.by_quota() { FIRST_PACE } else { 1.0 } * self.rate.get());
        if next < now * 1.01 {
            return None;
        }
        self.enter(seen, State::Paced { pace: next as u64 });
        Some(Transition::Raise)
    }

    fn is_used(&self, pace: u64) -> bool {
        self.rate.last_second() >= AT_PACE * pace as f64
    }

    /// The most that did not prove too much lately.
    fn most(&mut self, at_ns: u64) -> Option<f64> {
        self.too_much = self.too_much.filter(|(_, since_ns)| at_ns < since_ns + TOO_MUCH_NS);
        self.too_much.map(|(too_much, _)| BELOW * too_much)
    }

    fn may_pace(&self, seen: &Seen<'_>) -> bool {
        seen.can_pace && (seen.is_direct || seen.at_ns >= self.no_pace_until_ns)
    }

    fn first_pace(&self) -> u64 {
        let share = self.good_pace.map_or(FIRST_PACE, |good| BELOW * good).clamp(FIRST_PACE / 2.0, 1.0);
        ((self.rate.get() * share) as u64).max(PACE_LEAST)
    }

    fn enter(&mut self, seen: &Seen<'_>, state: State) {
        (self.state, self.is_cut) = (state, false);
        self.moved_ns = seen.at_ns;
        self.judged_from_ns = seen.at_ns + SECOND_NS / 5;
    }
}

/// Whether nobody syncs just now.
fn pauses(seen: &Seen<'_>) -> bool {
    seen.need == Need::Pausing && !is_waiting(seen)
}

/// Whether a sync is under way for longer than one look: those who wait for it do not pause.
fn is_waiting(seen: &Seen<'_>) -> bool {
    seen.oldest_ns > SECOND_NS / 5
}

/// Dirty or under way, of all groups.
fn backlog(seen: &Seen<'_>) -> u64 {
    seen.groups.iter().map(|group| group.memory.backlog()).sum()
}

/// So much time at a rate, in bytes; never less than a device needs to be kept busy.
fn time_at(rate: f64, time_ns: u64) -> u64 {
    ((rate * time_ns as f64 / 1e9) as u64).max(BUDGET_LEAST_BYTES)
}

/// How far one step cuts a bound.
fn factor(share: f64, keep: f64) -> f64 {
    (share / keep.max(0.01)).clamp(CUT_MOST, 1.0 - RAISE)
}

/// What a pace aims at: a little more than syncs are to keep.
fn goal(keep: f64) -> f64 {
    keep + AIM * (1.0 - keep)
}

/// By what a pace that is good may be multiplied if what syncs lose grows with it.
fn proportional(share: f64, keep: f64) -> f64 {
    ((1.0 - goal(keep)) / (1.0 - share).max(0.01)).min(CHANGE_MOST / 2.0)
}
