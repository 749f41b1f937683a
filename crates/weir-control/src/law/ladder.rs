//! The limits that were tried at one concurrency, and what syncs and bulk writers had at each.
//!
//! Limits are rungs, each √2 of the one below. What a rung is worth says what the guard wants: first that syncs keep their
//! target, then that bulk writers get much. It moves to the best rung it knows, tries one that it does not know where the
//! target is missed or where there is room, and believes what it found for a while. Nothing else decides where a limit goes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

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
/// What was measured while the device became faster is believed for so long only.
const CHANGED_NS: u64 = 500_000_000;
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

/// One concurrency.
#[derive(Debug, Clone)]
pub(super) struct Ladder {
    pub concurrency: f64,
    rungs: BTreeMap<Rung, Found>,
    /// Where it was best.
    home: Option<Rung>,
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
            self.all.push(Ladder { concurrency, rungs: BTreeMap::new(), home: None, probed_ns: None });
            self.all.len() - 1
        });
        self.current = Some(index);
        true
    }

    /// The ladder entered last.
    pub fn current(&mut self) -> Option<&mut Ladder> {
        self.current.and_then(|i| self.all.get_mut(i))
    }

    /// Whether a concurrency still belongs to the current ladder.
    pub fn here(&self, concurrency: f64) -> bool {
        self.current.is_some_and(|i| self.all[i].away(concurrency) < STAY_OCTAVES)
    }
}

impl Ladder {
    /// Octaves between a concurrency and this one.
    fn away(&self, concurrency: f64) -> f64 {
        octaves_between(self.concurrency, concurrency)
    }

    /// The limit that was best lately, in bytes.
    pub fn home(&self) -> Option<u64> {
        self.home.map(bytes_of)
    }

    /// What is believed of a rung.
    pub fn known(&self, rung: Rung, now_ns: u64) -> Option<Outcome> {
        self.rungs.get(&rung).filter(|found| found.is_believed(now_ns)).map(|found| found.outcome)
    }

    /// What was found where the limit was best.
    pub fn best(&self) -> Option<Outcome> {
        let found = self.home.and_then(|home| self.rungs.get(&home)).filter(|found| found.until_ns > 0);
        found.map(|found| found.outcome)
    }

    /// Takes in what was measured at a rung. Where that is worse than it was, whatever is known of other rungs is of another
    /// device, or of another load. Where it is better, what failed at other rungs stays known.
    pub fn note(&mut self, rung: Rung, outcome: Outcome, now_ns: u64) {
        let known = self.rungs.get(&rung).filter(|found| found.is_believed(now_ns)).copied();
        let Some(before) = known else {
            // A lower limit never lets more through.
            let below = self.rungs.range(..rung).filter(|(_, found)| found.is_believed(now_ns));
            let most = below.map(|(_, found)| found.outcome.delivered).fold(0.0, f64::max);
            if outcome.delivered * CHANGED_FLOW < most {
                self.doubt();
            }
            let again = self.rungs.get(&rung).map_or(0, |found| 2 * found.believed_ns);
            let believed_ns = again.clamp(BELIEVED_NS, BELIEVED_MOST_NS);
            self.rungs.insert(rung, Found::new(outcome, now_ns, believed_ns));
            return;
        };
        let kept = outcome.kept - before.outcome.kept;
        let flow = (outcome.delivered.max(1.0) / before.outcome.delivered.max(1.0)).ln();
        if kept.abs() > CHANGED || flow.abs() > CHANGED_FLOW.ln() {
            // Part of it was measured before the change.
            let is_worse = kept < -CHANGED || (kept <= CHANGED && flow < 0.0);
            if is_worse {
                self.doubt();
            }
            let believed_ns = if is_worse { before.believed_ns } else { CHANGED_NS };
            self.rungs.insert(rung, Found::new(outcome, now_ns, believed_ns));
            return;
        }
        let share = outcome.span_ns / (before.outcome.span_ns + outcome.span_ns);
        let mean = |before: f64, now: f64| before + (now - before) * share;
        let averaged = Outcome {
            kept: mean(before.outcome.kept, outcome.kept),
            is_over: outcome.is_over,
            p99_ns: outcome.p99_ns.or(before.outcome.p99_ns),
            delivered: mean(before.outcome.delivered, outcome.delivered),
            span_ns: (before.outcome.span_ns + outcome.span_ns).min(AVERAGED_NS),
        };
        self.rungs.insert(rung, Found::new(averaged, now_ns, before.believed_ns));
    }

    /// Voids what is known of every rung.
    fn doubt(&mut self) {
        self.rungs.values_mut().for_each(|found| found.until_ns = 0);
    }

    /// Where to go from a rung of which something is known; `None` where it is as good here as anywhere.
    pub fn next(&mut self, at: Rung, standing: &Standing) -> Option<Rung> {
        let here = self.known(at, standing.now_ns)?;
        let own = standing.worth(&here);
        if let Some(better) = self.better(at, own, standing) {
            self.home = Some(better);
            return Some(better);
        }
        self.home = Some(at);
        let lower = || self.untried(at, -1, standing.reach_down(&here), own, standing);
        let reach_up = if standing.has_spare { 2 } else { 1 };
        let higher = || self.untried(at, 1, reach_up, own, standing).filter(|_| standing.may_rise);
        match (standing.is_short, standing.own) {
            (false, _) => higher(),
            (true, false) => lower().or_else(higher),
            (true, true) => higher().or_else(lower),
        }
    }

    /// The best rung of those that are known to be better. A lower one never brings bulk writers more, so it is one only
    /// where the target is missed.
    fn better(&self, at: Rung, own: f64, standing: &Standing) -> Option<Rung> {
        let known = self
            .rungs
            .iter()
            .filter(|(rung, found)| standing.has(**rung) && found.is_believed(standing.now_ns));
        let worth = known.map(|(rung, found)| (*rung, standing.worth(&found.outcome)));
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
        kept - near - tail + BULK * (outcome.delivered / self.full.max(1.0)).min(1.0)
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
        let (own, has_spare, tail, may_rise, bound) = (false, false, 0.0, true, true);
        let (ends, keep, full, now_ns) = ((2, 20), 0.93, FULL, 2 * SECOND);
        Standing { is_short, own, has_spare, tail, may_rise, bound, ends, keep, full, now_ns }
    }

    /// A ladder on which these were found.
    fn found(rungs: &[Measured]) -> Ladder {
        let mut ladder = Ladder { concurrency: 1.0, rungs: BTreeMap::new(), home: None, probed_ns: None };
        for &(rung, kept, share) in rungs {
            ladder.note(rung, outcome(kept, share * FULL), SECOND);
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
        let cases: [(&[Measured], Rung, bool, Option<Rung>); 10] = [
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
            (&[(8, 0.60, 0.9), (7, 0.60, 0.6)], 8, true, Some(9)),
            // All of the device does not make up for a target that is held.
            (&[(8, 0.93, 0.2), (10, 0.84, 1.0)], 10, true, Some(8)),
            // But it does for a few of the syncs where none holds it.
            (&[(8, 0.62, 0.2), (10, 0.55, 1.0)], 8, true, Some(10)),
        ];
        for (rungs, at, is_short, to) in cases {
            assert_eq!(next(rungs, at, standing(is_short)), to, "{rungs:?} from {at}");
        }
        let own = Standing { own: true, ..standing(true) };
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
            ladder.note(9, outcome(0.70, 0.9 * FULL), at_ns);
        }
    }

    #[test]
    fn a_slower_device_voids_what_was_found_and_a_faster_one_does_not() {
        // (rung, share kept, share of the device's rate, rungs that are still believed)
        let cases: [(Rung, f64, f64, &[Rung]); 6] = [
            (8, 0.90, 0.5, &[8, 9]),
            (8, 0.60, 0.5, &[8]),
            (8, 0.95, 0.2, &[8]),
            // What failed on a device that was slow a moment ago may soon fail again.
            (8, 0.95, 0.9, &[8, 9]),
            (9, 0.97, 0.9, &[8, 9]),
            // Less than at a lower limit.
            (10, 0.90, 0.3, &[10]),
        ];
        for (rung, kept, share, believed) in cases {
            let mut ladder = found(&[(8, 0.95, 0.5), (9, 0.70, 0.9)]);
            ladder.note(rung, outcome(kept, share * FULL), 2 * SECOND);
            let known = |rung: &Rung| ladder.known(*rung, 2 * SECOND).is_some();
            assert_eq!((8..=10).filter(known).collect::<Vec<_>>(), believed, "{rung} {kept} {share}");
        }
    }

    #[test]
    fn concurrencies_have_ladders_of_their_own() {
        let mut ladders = Ladders::default();
        assert!(ladders.enter(1.0));
        ladders.current().unwrap().note(8, outcome(0.95, FULL), SECOND);
        assert!(!ladders.enter(1.5) && ladders.enter(10.0));
        assert_eq!(ladders.current().unwrap().known(8, SECOND), None);
        assert!(ladders.enter(1.0));
        assert!(ladders.current().unwrap().known(8, SECOND).is_some());
    }
}
