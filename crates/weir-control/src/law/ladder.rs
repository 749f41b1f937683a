//! The limits that were tried at one concurrency, and what syncs and bulk writers had at each.
//!
//! Limits are rungs, each √2 of the one below. What a rung is worth says what the guard wants: first that syncs keep their
//! target, then that bulk writers get much. It moves to the best rung it knows, tries one that it does not know where the
//! target is missed or where there is room, and believes what it found for a while. Each speed that the device has had has rungs
//! of its own.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;

use super::reference::octaves_between;

/// Rungs to a doubling.
const STEPS: f64 = 2.0;
/// The first rung, in bytes.
const FIRST: f64 = (1 << 20) as f64;
/// What bulk writers get counts this much beside what syncs keep: where no limit gives syncs their target, a limit that
/// gives bulk writers all of the device may cost syncs a fifth.
const BULK: f64 = 0.2;
/// What is lost between the target and this share of it counts again so many times: all that bulk writers could get does not
/// make up for a target that can be held.
const NEAR: f64 = 2.0;
const NEAR_KEPT: f64 = 0.93;
/// A tail beyond its target counts as a loss of so much. How far beyond does not matter: where no limit holds it, none is
/// better for it.
const TAIL: f64 = 0.2;
/// Rungs whose worth differs by less are as good as each other.
const MARGIN: f64 = 0.04;
/// A way up is followed while each step gains so much.
const GAIN: f64 = 0.005;
/// The rung that a step came from is looked for within so many.
const FAR: Rung = 4;
/// A rung is an average over so long.
const AVERAGED_NS: f64 = 4e9;
/// What is found at a rung is believed for so long; twice as long each time it is found again. A wrong try costs a second or
/// two, and a device that was slow may soon be slow again.
const BELIEVED_NS: u64 = 20_000_000_000;
const BELIEVED_MOST_NS: u64 = 160_000_000_000;
/// A share of their rate that syncs keep more or less at the same limit than before says that something has changed.
const CHANGED: f64 = 0.25;
/// The same of what the device delivers, as a factor.
const CHANGED_FLOW: f64 = 1.6;
/// What was measured across such a change is believed for so long only.
const CHANGED_NS: u64 = 500_000_000;
/// No limit is scaled down by more at once.
const SCALED_LEAST: f64 = 1.0 / 16.0;
/// Speeds of a device that are distinguished at one concurrency.
const SPEEDS_MOST: usize = 4;
/// Octaves within which two concurrencies want the same limit.
const SAME_OCTAVES: f64 = 0.8;
/// And within which one that changes is still taken for the same: a server's log writer makes one connection two every
/// other second.
const STAY_OCTAVES: f64 = 1.05;
const LADDERS_MOST: usize = 12;

/// A rung, from 0.
pub(super) type Rung = i32;

/// What syncs and bulk writers had at a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    /// Share of their undisturbed rate.
    pub kept: f64,
    /// The tail is beyond its target.
    pub is_over: bool,
    pub p99_ns: Option<u64>,
    /// By the device, bytes a second.
    pub delivered: f64,
    pub span_ns: f64,
}

impl Outcome {
    /// The mean of both, by how long they were measured.
    fn averaged(&self, other: &Outcome) -> Outcome {
        let share = other.span_ns / (self.span_ns + other.span_ns);
        let mean = |before: f64, now: f64| before + (now - before) * share;
        Outcome {
            kept: mean(self.kept, other.kept),
            is_over: other.is_over,
            p99_ns: other.p99_ns.or(self.p99_ns),
            delivered: mean(self.delivered, other.delivered),
            span_ns: (self.span_ns + other.span_ns).min(AVERAGED_NS),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Found {
    outcome: Outcome,
    /// It is believed until then; 0 where it is void.
    until_ns: u64,
    /// And was for so long when it was measured.
    believed_ns: u64,
}

impl Found {
    fn new(outcome: Outcome, now_ns: u64, believed_ns: u64) -> Found {
        Found { outcome, until_ns: now_ns + believed_ns, believed_ns }
    }

    fn is_believed(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }
}

/// How the target stands at a rung, for where to look next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// Syncs miss it.
    pub is_short: bool,
    /// What they lost, they lost waiting for pages of their own: a higher limit is tried first.
    pub own: bool,
    /// They wait for such pages at all.
    pub throttled: bool,
    /// They keep so much that two rungs up are worth trying at once.
    pub has_spare: bool,
    /// The tail as a multiple of its target; 0 where it is not known.
    pub tail: f64,
    /// A higher limit may be tried.
    pub may_rise: bool,
    /// Bulk writers are held back by the limit.
    pub bound: bool,
    /// The lowest and the highest rung.
    pub ends: (Rung, Rung),
    /// The share of their undisturbed rate that syncs are to keep.
    pub keep: f64,
    /// What the device delivers at best, bytes a second.
    pub full: f64,
    pub now_ns: u64,
}

/// How the device's speed changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Slower,
    Faster,
}

/// What is known of the rungs at one speed of the device.
#[derive(Debug, Clone, Default)]
struct Speed {
    rungs: BTreeMap<Rung, Found>,
    /// Where it was best.
    home: Option<Rung>,
}

impl Speed {
    /// Whether what the device delivered at a rung cannot be this speed's.
    fn change(&self, rung: Rung, delivered: f64, now_ns: u64) -> Option<Change> {
        let (least, most) = self.delivers(rung, |found| found.is_believed(now_ns));
        if delivered * CHANGED_FLOW < least {
            return Some(Change::Slower);
        }
        (delivered > most * CHANGED_FLOW).then_some(Change::Faster)
    }

    /// One that delivers a share of this one's at every rung. A sync waits as long for a smaller backlog of a slower device.
    fn scaled(&self, share: f64) -> Speed {
        let down = (STEPS * share.clamp(SCALED_LEAST, 1.0).log2()).round() as Rung;
        Speed { home: self.home.map(|home| home + down), ..Speed::default() }
    }

    /// Bytes a second that the device delivers at a rung, at least and at most: a lower limit never lets more through.
    fn delivers(&self, rung: Rung, counts: impl Fn(&Found) -> bool) -> (f64, f64) {
        let flow = |(_, found): (&Rung, &Found)| counts(found).then_some(found.outcome.delivered);
        if let Some(same) = self.rungs.get_key_value(&rung).and_then(flow) {
            return (same, same);
        }
        let below = self.rungs.range(..rung).filter_map(flow).fold(0.0, f64::max);
        let above = self.rungs.range(rung..).filter_map(flow).fold(f64::INFINITY, f64::min);
        (below, above)
    }

    /// How far this speed is from where a change leads, by what was measured across it at a rung and what was delivered last;
    /// `None` where it cannot be that, or nothing says so. What was measured across the change lies between both speeds.
    fn distance(&self, change: Change, rung: Rung, delivered: f64, last: f64) -> Option<f64> {
        let (least, most) = self.delivers(rung, |_| true);
        let (expected, is_it) = match change {
            Change::Slower => (least, least > 0.0 && least < delivered * CHANGED_FLOW),
            Change::Faster => (most, most.is_finite() && delivered < most * CHANGED_FLOW),
        };
        is_it.then(|| (last.max(1.0) / expected.max(1.0)).ln().abs())
    }

    /// Voids what is known of every rung.
    fn doubt(&mut self) {
        self.rungs.values_mut().for_each(|found| found.until_ns = 0);
    }

    /// The device is so again: what was found then holds.
    fn believed_again(mut self, now_ns: u64) -> Speed {
        self.rungs.values_mut().for_each(|found| found.until_ns = now_ns + found.believed_ns);
        self
    }
}

/// One concurrency.
#[derive(Debug, Clone)]
pub(super) struct Ladder {
    pub concurrency: f64,
    /// At the speed that the device has.
    now: Speed,
    /// At those that it had before, the latest last.
    others: Vec<Speed>,
    /// When a probe was last made.
    pub probed_ns: Option<u64>,
}

/// All concurrencies.
#[derive(Debug, Clone, Default)]
pub(super) struct Ladders {
    all: Vec<Ladder>,
    current: Option<usize>,
}

/// The rung nearest to a limit.
pub(super) fn rung_of(bytes: u64) -> Rung {
    (STEPS * (bytes.max(1) as f64 / FIRST).log2()).round() as Rung
}

/// The limit of a rung.
pub(super) fn bytes_of(rung: Rung) -> u64 {
    (FIRST * (f64::from(rung) / STEPS).exp2()) as u64
}

/// Whether two limits are one.
pub(super) fn same(a: u64, b: u64) -> bool {
    a.max(b) as f64 <= a.min(b).max(1) as f64 * 1.04
}

impl Ladders {
    /// Goes to the ladder of a concurrency, a new one if there is none near; whether that is another one than before.
    pub fn enter(&mut self, concurrency: f64) -> bool {
        if self.here(concurrency) {
            return false;
        }
        let away = |i: &usize| self.all[*i].away(concurrency);
        let near = (0..self.all.len()).filter(|i| away(i) < SAME_OCTAVES);
        let index = near.min_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or_else(|| {
            if self.all.len() >= LADDERS_MOST {
                self.all.remove(0);
            }
            self.all.push(Ladder::new(concurrency));
            self.all.len() - 1
        });
        self.current = Some(index);
        true
    }

    /// The ladder entered last.
    pub fn current(&mut self) -> Option<&mut Ladder> {
        self.current.and_then(|i| self.all.get_mut(i))
    }

    /// Whether no probe was made lately at the concurrency entered last.
    pub fn is_probe_due(&self, now_ns: u64, every_ns: u64) -> bool {
        let current = self.current.and_then(|i| self.all.get(i));
        current.is_some_and(|ladder| ladder.probed_ns.is_none_or(|at| now_ns - at >= every_ns))
    }

    /// Whether a concurrency still belongs to the current ladder.
    pub fn here(&self, concurrency: f64) -> bool {
        self.current.is_some_and(|i| self.all[i].away(concurrency) < STAY_OCTAVES)
    }
}

impl Ladder {
    fn new(concurrency: f64) -> Ladder {
        Ladder { concurrency, now: Speed::default(), others: Vec::new(), probed_ns: None }
    }

    /// Octaves between a concurrency and this one.
    fn away(&self, concurrency: f64) -> f64 {
        octaves_between(self.concurrency, concurrency)
    }

    /// The limit that was best lately, in bytes.
    pub fn home(&self) -> Option<u64> {
        self.now.home.map(bytes_of)
    }

    /// What is believed of a rung.
    pub fn known(&self, rung: Rung, now_ns: u64) -> Option<Outcome> {
        self.now.rungs.get(&rung).filter(|found| found.is_believed(now_ns)).map(|found| found.outcome)
    }

    /// Of what is believed, the outcome of which syncs kept most. A rung above the best one that was found to keep more did so by chance.
    pub fn most_kept(&self, now_ns: u64) -> Option<Outcome> {
        let rungs = self.now.rungs.range(..=self.now.home?);
        let believed = rungs.filter(|(_, found)| found.is_believed(now_ns)).map(|(_, found)| found.outcome);
        believed.max_by(|a, b| a.kept.total_cmp(&b.kept))
    }

    /// Takes in what was measured at a rung, and what the device delivered at the end of that time. Where the device is
    /// faster or slower than it was, what is known of its rungs is put aside until it is so again. Where only syncs keep
    /// less, whatever is known of other rungs is of another load; where they keep more, what failed at other rungs stays known.
    pub fn note(&mut self, rung: Rung, outcome: Outcome, last: f64, now_ns: u64) {
        if let Some(change) = self.now.change(rung, outcome.delivered, now_ns) {
            self.follow(change, rung, (outcome.delivered, last), now_ns);
            self.now.rungs.entry(rung).or_insert(Found::new(outcome, now_ns, CHANGED_NS));
            return;
        }
        let now = &mut self.now;
        let before = now.rungs.get(&rung).copied();
        let found = match before.filter(|found| found.is_believed(now_ns)) {
            Some(before) if outcome.kept < before.outcome.kept - CHANGED => {
                now.doubt();
                Found::new(outcome, now_ns, before.believed_ns)
            }
            // Part of it was measured before the change.
            Some(before) if outcome.kept > before.outcome.kept + CHANGED => {
                Found::new(outcome, now_ns, CHANGED_NS)
            }
            Some(before) => Found::new(before.outcome.averaged(&outcome), now_ns, before.believed_ns),
            None => {
                let again = before.map_or(0, |found| 2 * found.believed_ns);
                Found::new(outcome, now_ns, again.clamp(BELIEVED_NS, BELIEVED_MOST_NS))
            }
        };
        now.rungs.insert(rung, found);
    }

    /// Goes to the speed that a change points to, or to a new one.
    fn follow(&mut self, change: Change, rung: Rung, (delivered, last): (f64, f64), now_ns: u64) {
        let distances = self.others.iter().map(|speed| speed.distance(change, rung, delivered, last));
        let known =
            distances.enumerate().filter_map(|(at, distance)| distance.map(|distance| (at, distance)));
        let speed = match known.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, _)) => self.others.remove(at).believed_again(now_ns),
            None if change == Change::Slower => {
                let (before, _) = self.now.delivers(rung, |found| found.is_believed(now_ns));
                self.now.scaled(last / before.max(1.0))
            }
            None => Speed::default(),
        };
        let mut left = mem::replace(&mut self.now, speed);
        left.rungs.retain(|_, found| found.is_believed(now_ns));
        self.others.push(left);
        if self.others.len() >= SPEEDS_MOST {
            self.others.remove(0);
        }
    }

    /// Where to go from a rung of which something is known; `None` where it is as good here as anywhere.
    pub fn next(&mut self, at: Rung, standing: &Standing) -> Option<Rung> {
        let here = self.known(at, standing.now_ns)?;
        let own = standing.worth(&here);
        if let Some(better) = self.better(at, &here, standing) {
            self.now.home = Some(better);
            return Some(better);
        }
        // Where it is looked for first, at a speed that was never seen.
        let guess = self.now.home.filter(|home| !self.now.rungs.contains_key(home));
        self.now.home = Some(at);
        if let Some(guess) = guess.map(|home| home.clamp(standing.ends.0, standing.ends.1))
            && guess < at
            && standing.is_short
        {
            return Some(guess);
        }
        let lower = || self.untried(at, -1, standing.reach_down(&here), own, standing);
        let reach_up = if standing.has_spare { 2 } else { 1 };
        let higher = || self.untried(at, 1, reach_up, own, standing).filter(|_| standing.may_rise);
        match (standing.is_short, standing.own) {
            (false, _) => higher(),
            // What is seen at a limit that delivers all there is cannot be its doing; what syncs keep there is chance.
            (true, false) => lower().or_else(|| higher().filter(|_| standing.lacks(&here))),
            (true, true) => higher().or_else(lower),
        }
    }

    /// The best rung of those that are known to be better. A lower one never brings bulk writers more, so it is one only
    /// where the target is missed.
    fn better(&self, at: Rung, here: &Outcome, standing: &Standing) -> Option<Rung> {
        let own = standing.worth(here);
        let known = self
            .now
            .rungs
            .iter()
            .filter(|(rung, found)| standing.has(**rung) && found.is_believed(standing.now_ns));
        let is_chance = |rung: Rung| rung > at && standing.is_short && !standing.throttled;
        let worth = known.map(|(rung, found)| {
            let there = found.outcome;
            let kept = if is_chance(*rung) { there.kept.min(here.kept) } else { there.kept };
            (*rung, standing.worth(&Outcome { kept, ..there }))
        });
        let is_better = |(rung, there): &(Rung, f64)| match rung.cmp(&at) {
            Ordering::Greater => *there > own + GAIN,
            Ordering::Less => standing.is_short && *there > own + MARGIN,
            Ordering::Equal => false,
        };
        worth.filter(is_better).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(rung, _)| rung)
    }

    /// The furthest rung in reach that is not known, with none on the way that is worse. A plateau may end: up, it is followed
    /// while bulk writers wait for more; down, while that costs nothing.
    fn untried(&self, at: Rung, way: Rung, reach: Rung, own: f64, standing: &Standing) -> Option<Rung> {
        let known = |rung| self.known(rung, standing.now_ns).map(|outcome| standing.worth(&outcome));
        let behind = (1..=FAR).find_map(|step| known(at - way * step));
        let gains = behind.is_none_or(|behind| own > behind + GAIN);
        let costs = behind.is_some_and(|behind| own < behind - MARGIN);
        if way > 0 && (costs || !(gains || standing.bound)) {
            return None;
        }
        let mut found = None;
        for rung in (1..=reach).map(|step| at + way * step).take_while(|rung| standing.has(*rung)) {
            match known(rung) {
                Some(there) if there < own - MARGIN || (way < 0 && there <= own) => break,
                Some(_) => {}
                None => found = Some(rung),
            }
        }
        found
    }
}

impl Standing {
    /// What a rung is worth.
    fn worth(&self, outcome: &Outcome) -> f64 {
        let kept = (outcome.kept / self.keep).min(1.0);
        let near = NEAR * (1.0 - kept).min(1.0 - NEAR_KEPT);
        let tail = if outcome.is_over { TAIL } else { 0.0 };
        kept - near - tail + BULK * self.delivers(outcome)
    }

    /// Whether a higher limit may do more than this one did: syncs wait for it, or the device delivers less than it can.
    fn lacks(&self, here: &Outcome) -> bool {
        self.throttled || BULK * (1.0 - self.delivers(here)) > MARGIN
    }

    /// The share of its best that the device delivers.
    fn delivers(&self, outcome: &Outcome) -> f64 {
        (outcome.delivered / self.full.max(1.0)).min(1.0)
    }

    /// How many rungs further down is tried, by what syncs lose.
    fn reach_down(&self, here: &Outcome) -> Rung {
        match here.kept / self.keep {
            lost if lost < 0.5 || self.tail > 4.0 => 3,
            lost if lost < 0.85 || self.tail > 2.0 => 2,
            _ => 1,
        }
    }

    /// Whether a rung is a limit that may be set.
    fn has(&self, rung: Rung) -> bool {
        (self.ends.0..=self.ends.1).contains(&rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rung, the share that syncs kept, and the share of the device's rate.
    type Measured = (Rung, f64, f64);

    const SECOND: u64 = 1_000_000_000;
    const FULL: f64 = 200e6;

    fn outcome(kept: f64, delivered: f64) -> Outcome {
        Outcome { kept, is_over: false, p99_ns: None, delivered, span_ns: 1e9 }
    }

    fn standing(is_short: bool) -> Standing {
        let (own, throttled, has_spare, tail, may_rise, bound) = (false, false, false, 0.0, true, true);
        let (ends, keep, full, now_ns) = ((2, 20), 0.93, FULL, 2 * SECOND);
        Standing { is_short, own, throttled, has_spare, tail, may_rise, bound, ends, keep, full, now_ns }
    }

    /// A ladder on which these were found.
    fn found(rungs: &[Measured]) -> Ladder {
        let mut ladder = Ladder::new(1.0);
        for &(rung, kept, share) in rungs {
            ladder.note(rung, outcome(kept, share * FULL), share * FULL, SECOND);
        }
        ladder
    }

    /// Where it goes from a rung that is short or not, a second later.
    fn next(rungs: &[Measured], at: Rung, standing: Standing) -> Option<Rung> {
        found(rungs).next(at, &standing)
    }

    #[test]
    fn a_rung_is_a_limit_and_back() {
        for rung in 0..30 {
            assert_eq!(rung_of(bytes_of(rung)), rung);
        }
        assert_eq!((bytes_of(0), bytes_of(2), bytes_of(8)), (1 << 20, 2 << 20, 16 << 20));
    }

    #[test]
    fn a_step_goes_where_it_is_worth_most() {
        // (found, from, short, to)
        let cases: [(&[Measured], Rung, bool, Option<Rung>); 13] = [
            // Little is lost: one down. Nearly everything: three.
            (&[(8, 0.90, 0.9)], 8, true, Some(7)),
            (&[(8, 0.20, 1.0)], 8, true, Some(5)),
            // The floor ends it.
            (&[(3, 0.20, 1.0)], 3, true, Some(2)),
            // The target is held: up, if that is not known to be worse.
            (&[(8, 0.95, 0.5)], 8, false, Some(9)),
            (&[(8, 0.95, 0.5), (9, 0.70, 0.9)], 8, false, None),
            // Back to what held.
            (&[(8, 0.95, 0.5), (9, 0.70, 0.9)], 9, true, Some(8)),
            // No limit holds the target: the one that lets more through.
            (&[(8, 0.60, 0.9), (7, 0.60, 0.6)], 7, true, Some(8)),
            // Where a step down cost bulk writers something and gave syncs nothing, the way is up.
            (&[(8, 0.60, 0.75), (7, 0.60, 0.5)], 8, true, Some(9)),
            // Unless the device delivers next to all it can.
            (&[(8, 0.60, 0.9), (7, 0.60, 0.6)], 8, true, None),
            // What syncs keep more by chance, at a limit that lets no more through, is no reason to go up.
            (&[(8, 0.19, 1.0), (5, 0.17, 1.0)], 5, true, Some(2)),
            (&[(6, 0.20, 0.98), (3, 0.15, 0.98), (2, 0.18, 0.98)], 3, true, None),
            // All of the device does not make up for a target that is held.
            (&[(8, 0.93, 0.2), (10, 0.84, 1.0)], 10, true, Some(8)),
            // But it does for a few of the syncs where none holds it.
            (&[(8, 0.62, 0.2), (10, 0.55, 1.0)], 8, true, Some(10)),
        ];
        for (rungs, at, is_short, to) in cases {
            assert_eq!(next(rungs, at, standing(is_short)), to, "{rungs:?} from {at}");
        }
        let own = Standing { own: true, throttled: true, ..standing(true) };
        assert_eq!(next(&[(8, 0.5, 0.5)], 8, own), Some(9), "their own pages are in the way");
        let spare = Standing { has_spare: true, ..standing(false) };
        assert_eq!(next(&[(8, 0.99, 0.5)], 8, spare), Some(10));
        let free = Standing { bound: false, ..standing(false) };
        assert_eq!(next(&[(7, 0.99, 0.5), (8, 0.99, 0.5)], 8, free), None, "nobody waits for more");
    }

    #[test]
    fn what_was_found_is_believed_for_a_while_and_longer_when_it_is_found_again() {
        let mut ladder = found(&[(8, 0.95, 0.5), (9, 0.70, 0.9)]);
        let mut at_ns = SECOND;
        for believed_s in [20, 40, 80, 160, 160] {
            let until = at_ns + believed_s * SECOND;
            assert!(ladder.known(9, until - 1).is_some() && ladder.known(9, until).is_none(), "{believed_s}");
            at_ns = until;
            ladder.note(9, outcome(0.70, 0.9 * FULL), 0.9 * FULL, at_ns);
        }
    }

    #[test]
    fn what_was_found_is_put_aside_where_the_device_is_another() {
        // (rung, share kept, share of the device's rate, rungs that are still believed)
        let cases: [(Rung, f64, f64, &[Rung]); 6] = [
            (8, 0.90, 0.5, &[8, 9]),
            (8, 0.60, 0.5, &[8]),
            (8, 0.95, 0.2, &[8]),
            (8, 0.95, 0.9, &[8]),
            (9, 0.97, 0.9, &[8, 9]),
            // Less than at a lower limit.
            (10, 0.90, 0.3, &[10]),
        ];
        for (rung, kept, share, believed) in cases {
            let mut ladder = found(&[(8, 0.95, 0.5), (9, 0.70, 0.9)]);
            ladder.note(rung, outcome(kept, share * FULL), share * FULL, 2 * SECOND);
            let known = |rung: &Rung| ladder.known(*rung, 2 * SECOND).is_some();
            assert_eq!((8..=10).filter(known).collect::<Vec<_>>(), believed, "{rung} {kept} {share}");
        }
    }

    #[test]
    fn what_syncs_kept_most_is_found_below_the_best_rung_too() {
        let kept = |rungs: &[Measured], at: Rung| {
            let mut ladder = found(rungs);
            ladder.next(at, &standing(true));
            ladder.most_kept(2 * SECOND).map(|outcome| outcome.kept)
        };
        // Bulk writers get so much more at the best one.
        assert_eq!(kept(&[(8, 0.62, 0.2), (10, 0.55, 1.0)], 10), Some(0.62));
        // A device that delivers all it can higher up, too: syncs kept more there by chance.
        assert_eq!(kept(&[(8, 0.19, 1.0), (5, 0.17, 1.0)], 5), Some(0.17));
        assert_eq!(found(&[(8, 0.5, 0.5)]).most_kept(2 * SECOND), None, "nothing was chosen");
    }

    #[test]
    fn a_device_that_has_its_speed_again_finds_what_was_found() {
        let mut ladder = found(&[(8, 0.95, 0.8), (9, 0.70, 0.9)]);
        let mut at_ns = SECOND;
        let mut step = |ladder: &mut Ladder, rung, kept, share, is_short| {
            at_ns += SECOND;
            let measured = outcome(kept, share * FULL);
            let last = if share < 0.5 { 0.2 * FULL } else { measured.delivered };
            ladder.note(rung, measured, last, at_ns);
            ladder.next(rung, &Standing { now_ns: at_ns, ..standing(is_short) })
        };
        assert_eq!(step(&mut ladder, 8, 0.95, 0.8, false), None);
        // It becomes slow within a second: a quarter of the limit, as it delivers a quarter.
        assert_eq!(step(&mut ladder, 8, 0.5, 0.4, true), Some(4));
        assert_eq!(step(&mut ladder, 4, 0.95, 0.24, false), Some(5));
        assert_eq!(step(&mut ladder, 5, 0.8, 0.24, true), Some(4));
        // Fast again: where it was good when it was fast.
        assert_eq!(step(&mut ladder, 4, 0.95, 0.5, false), Some(8));
        assert_eq!(step(&mut ladder, 8, 0.95, 0.8, false), None);
        // Slow again: where it was good when it was slow.
        assert_eq!(step(&mut ladder, 8, 0.5, 0.4, true), Some(4));
        assert_eq!(step(&mut ladder, 4, 0.95, 0.24, false), None);
        assert_eq!(ladder.others.len(), 1);
        for rung in 0..10 {
            step(&mut ladder, 4, 0.3 * f64::from(rung % 4), 0.1 * f64::from(rung), false);
            assert!(ladder.others.len() < SPEEDS_MOST);
        }
    }

    #[test]
    fn concurrencies_have_ladders_of_their_own() {
        let mut ladders = Ladders::default();
        assert!(ladders.enter(1.0));
        ladders.current().unwrap().note(8, outcome(0.95, FULL), FULL, SECOND);
        assert!(!ladders.enter(1.5) && ladders.enter(10.0));
        assert_eq!(ladders.current().unwrap().known(8, SECOND), None);
        assert!(ladders.enter(1.0));
        assert!(ladders.current().unwrap().known(8, SECOND).is_some());
    }
}
