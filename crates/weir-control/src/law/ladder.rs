//! What was found at each limit: a ladder of limits for each number of threads and each rate of the device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::constants::{AGAIN_NS, DIP, GAIN, JUDGED_NS, RUNGS, SLOWER, STEEP};

/// The limit of rung 0, in bytes.
const RUNG_ZERO: f64 = (1 << 20) as f64;
/// What was measured over more than this counts no more than that: limits are learned anew.
const WEIGHT_MOST_NS: u64 = 10 * JUDGED_NS;
/// Times that the wait for another try doubles.
const DOUBLED_MOST: u32 = 4;
/// Places that are remembered.
const PLACES_MOST: usize = 24;

/// The limit of a rung, in bytes.
pub(super) fn bytes_of(rung: i32) -> u64 {
    (RUNG_ZERO * (f64::from(rung) / RUNGS).exp2()) as u64
}

/// The rung nearest to a limit.
pub(super) fn rung_of(bytes: u64) -> i32 {
    ((bytes.max(1) as f64 / RUNG_ZERO).log2() * RUNGS).round() as i32
}

/// When to try again what failed once more.
fn again(now_ns: u64, fails: &mut u32) -> u64 {
    *fails += 1;
    now_ns + (AGAIN_NS << (*fails - 1).min(DOUBLED_MOST))
}

/// A window at one rung.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub kept: f64,
    /// Standard error of `kept`.
    pub error: f64,
    /// The tail against its target, above 1 missed; `None` where too few syncs came.
    pub tail: Option<f64>,
    pub delivered: f64,
    pub writes: f64,
    pub oldest_ns: u64,
    pub elapsed_ns: u64,
    pub at_ns: u64,
    /// What was lost was lost waiting for own pages.
    pub own: bool,
}

/// What was found at a rung.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Share of their undisturbed rate that syncs kept.
    pub kept: f64,
    /// Their tail against its target; above 1 it was missed.
    pub tail: f64,
    /// Bytes a second that the device delivered.
    pub delivered: f64,
    /// Write requests a second that it ended.
    pub writes: f64,
    /// The oldest sync, in nanoseconds.
    pub oldest_ns: u64,
    /// Time that this stands on; 0: it is a guess.
    pub weight_ns: u64,
    /// Times in a row that it proved no better than another.
    pub fails: u32,
    /// When it was measured last.
    pub at_ns: u64,
    /// Not tried again before.
    pub again_ns: u64,
    /// When syncs last became slow here although they had been fast.
    pub tipped_ns: Option<u64>,
}

impl Found {
    fn note(&mut self, m: &Measured) {
        self.at_ns = m.at_ns;
        // What differs by more than noise is of another time.
        let differs = (m.kept - self.kept).abs() > 2.0 * m.error + 2.0 * GAIN;
        if self.weight_ns == 0 || differs {
            self.weight_ns = 0;
        }
        let share = m.elapsed_ns as f64 / (self.weight_ns + m.elapsed_ns).max(1) as f64;
        let mean = |before: f64, now: f64| before + (now - before) * share;
        self.kept = mean(self.kept, m.kept);
        self.delivered = mean(self.delivered, m.delivered);
        self.writes = mean(self.writes, m.writes);
        self.tail = m.tail.map_or(self.tail, |tail| mean(self.tail, tail));
        self.oldest_ns = m.oldest_ns.max((self.oldest_ns as f64 * (1.0 - share)) as u64);
        self.weight_ns = (self.weight_ns + m.elapsed_ns).min(WEIGHT_MOST_NS);
    }

    /// Whether it is known and was left as no better.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.weight_ns == 0 || now_ns >= self.again_ns
    }

    fn holds_tail(&self) -> bool {
        self.tail <= 1.0 + GAIN
    }

    /// It proved no better: it is tried again later.
    pub(super) fn fails(&mut self, now_ns: u64) {
        self.again_ns = again(now_ns, &mut self.fails);
    }
}

/// A number of threads that sync and a rate of the device, and what was found there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// Threads that sync.
    pub threads: f64,
    /// What the device delivers at most, in bytes a second.
    pub rate: f64,
    /// By rung.
    pub rungs: BTreeMap<i32, Found>,
    /// Times in a row that a dip did not make syncs fast again, and until when there is none.
    pub dips_failed: u32,
    /// See above.
    pub no_dip_ns: u64,
}

/// How far the search may go, and where it wants to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub keep: f64,
    pub now_ns: u64,
    /// The lowest and the highest rung.
    pub bounds: (i32, i32),
    /// Syncs wait for their own pages here.
    pub own: bool,
    /// Bulk writers feel the limit.
    pub bound: bool,
    /// What syncs do undisturbed was seen, not concluded.
    pub seen: bool,
}

impl Place {
    /// Takes in a window.
    pub(super) fn note(&mut self, rung: i32, m: &Measured, keep: f64) {
        self.rungs.entry(rung).or_default().note(m);
        if m.kept >= keep {
            return;
        }
        // What waits behind the backlog here waits longer at a higher limit; what waits for own pages, at a lower one. What was seen
        // there a moment ago says more.
        for (at, found) in &mut self.rungs {
            let is_beyond = if m.own { *at < rung } else { *at > rung };
            let is_old = m.at_ns > found.at_ns + AGAIN_NS;
            if is_beyond && is_old && found.kept > m.kept + GAIN {
                (found.kept, found.weight_ns) = (m.kept, 0);
            }
        }
    }

    /// What the device is to deliver at a rung: what it did there or at a lower limit; or in proportion to the next higher one.
    pub(super) fn expected(&self, rung: i32) -> Option<Found> {
        let known = |(_, found): &(&i32, &Found)| found.weight_ns >= JUDGED_NS / 2;
        let lower = self.rungs.range(..=rung).rev().find(known).map(|(_, found)| *found);
        lower.or_else(|| {
            let (above, found) = self.rungs.range(rung..).find(known)?;
            let part = (f64::from(rung - above) / RUNGS).exp2();
            Some(Found { delivered: found.delivered * part, writes: found.writes * part, ..*found })
        })
    }

    /// A dip ended, and syncs were fast again or were not.
    pub(super) fn dipped(&mut self, now_ns: u64, is_back: bool) {
        if is_back {
            self.dips_failed = 0;
        } else {
            self.no_dip_ns = again(now_ns, &mut self.dips_failed);
        }
    }

    /// The best share that was found.
    pub(super) fn best(&self) -> Option<f64> {
        self.rungs.values().map(|found| found.kept).max_by(f64::total_cmp)
    }

    /// What a limit has to keep here: the target, or nearly the best there is where no limit holds that.
    pub(super) fn needed(&self, keep: f64) -> f64 {
        self.best().map_or(keep, |best| keep.min(best * (1.0 + keep) / 2.0))
    }

    /// The rung to stand on: of those that hold what is needed, the one that lets most through; the lower where that makes no
    /// difference.
    pub(super) fn choice(&self, keep: f64) -> Option<i32> {
        let needed = self.needed(keep);
        let holds = || self.rungs.iter().filter(|(_, found)| found.kept >= needed);
        // Bulk writers are not strangled for a tail that no limit holds.
        let is_held = holds().any(|(_, found)| found.holds_tail());
        let mut chosen: Option<(i32, f64)> = None;
        for (rung, found) in holds().filter(|(_, found)| !is_held || found.holds_tail()) {
            if chosen.is_none_or(|(_, delivered)| found.delivered > delivered * (1.0 + GAIN)) {
                chosen = Some((*rung, found.delivered));
            }
        }
        chosen.map(|(rung, _)| rung)
    }

    /// The rung beside one that is worth a try now.
    pub(super) fn explore(&self, rung: i32, ask: &Ask) -> Option<i32> {
        let here = self.rungs.get(&rung)?;
        let holds = here.kept >= ask.keep;
        let has_spare = here.kept >= (1.0 + ask.keep) / 2.0;
        let known = |up: bool| self.rungs.keys().any(|at| if up { *at > rung } else { *at < rung });
        // Into the unknown by two at once, where there is room, or need.
        let up = rung + if !known(true) && (has_spare || ask.own) { 2 } else { 1 };
        let down = rung - if !known(false) && here.kept < STEEP * ask.keep { 2 } else { 1 };
        // What is lost may come back only at a third.
        let misses = !holds || !here.holds_tail();
        let least = if misses { (rung - DIP).min(down) } else { down };
        let wants_down = misses || !ask.seen;
        let lower = (least..=down).rev().map(|at| (at, wants_down));
        let higher = (up, ask.bound);
        let ways: Vec<(i32, bool)> = match ask.own && !holds {
            true => std::iter::once((up, ask.bound)).chain(lower).collect(),
            false => lower.chain([higher]).collect(),
        };
        // While the loss is steep, what was found a while ago is found anew.
        let is_steep = here.kept < STEEP * ask.keep;
        let is_due = |at: i32| {
            let is_stale = |found: &Found| is_steep && ask.now_ns > found.at_ns + AGAIN_NS;
            self.rungs.get(&at).is_none_or(|found| found.is_due(ask.now_ns) || is_stale(found))
        };
        let within = |at: i32| at.clamp(ask.bounds.0, ask.bounds.1);
        let ways = ways.into_iter().map(|(at, wanted)| (within(at), wanted));
        ways.into_iter().find(|(at, wanted)| *wanted && *at != rung && is_due(*at)).map(|(at, _)| at)
    }

    /// The same for a device whose rate is another, as a guess.
    fn scaled(&self, rate: f64) -> Place {
        let by = ((rate / self.rate.max(1.0)).log2() * RUNGS).round() as i32;
        let guess = |(rung, found): (&i32, &Found)| {
            let found = Found { kept: found.kept, tail: found.tail, ..Found::default() };
            (rung + by, found)
        };
        let rungs = self.rungs.iter().map(guess).collect();
        Place { threads: self.threads, rate, rungs, ..Place::default() }
    }
}

/// All places that are known, and which of them it is now.
#[derive(Debug, Clone, Default)]
pub(super) struct Ladder {
    pub places: Vec<Place>,
    here: usize,
}

fn octaves(a: f64, b: f64) -> f64 {
    (a.max(1.0) / b.max(1.0)).log2().abs()
}

impl Ladder {
    /// Where it is now.
    pub(super) fn here(&mut self) -> &mut Place {
        if self.places.is_empty() {
            self.places.push(Place { threads: 1.0, ..Place::default() });
        }
        self.here = self.here.min(self.places.len() - 1);
        &mut self.places[self.here]
    }

    /// Whether so many threads are another load than the one here.
    pub(super) fn is_other(&self, threads: f64) -> bool {
        self.places.get(self.here).is_none_or(|place| octaves(place.threads, threads) > 1.0)
    }

    /// Goes to so many threads at a rate; whether that is another place.
    pub(super) fn enter(&mut self, threads: f64, rate: f64) -> bool {
        let near = |place: &Place| {
            let is_rate = place.rate <= 0.0 || rate <= 0.0 || octaves(place.rate, rate) <= 0.5;
            octaves(place.threads, threads) <= 0.5 && is_rate
        };
        let off = |place: &Place| octaves(place.threads, threads) + octaves(place.rate, rate);
        let found = (0..self.places.len()).filter(|at| near(&self.places[*at]));
        let found = found.min_by(|a, b| off(&self.places[*a]).total_cmp(&off(&self.places[*b])));
        let at = found.unwrap_or_else(|| self.make(threads, rate));
        let is_other = self.here != at;
        self.here = at;
        is_other
    }

    /// A place of which nothing is known but what another rate of the same threads suggests.
    fn make(&mut self, threads: f64, rate: f64) -> usize {
        if self.places.len() >= PLACES_MOST {
            let oldest = (0..self.places.len()).find(|at| *at != self.here).unwrap_or(0);
            self.places.remove(oldest);
        }
        let same = self.places.iter().filter(|place| octaves(place.threads, threads) <= 0.5);
        let like = same.min_by(|a, b| octaves(a.rate, rate).total_cmp(&octaves(b.rate, rate)));
        let place = like.map(|place| place.scaled(rate));
        self.places.push(place.unwrap_or(Place { threads, rate, ..Place::default() }));
        self.places.len() - 1
    }

    /// The rate of the slowest place of the same threads that is faster than here.
    pub(super) fn faster(&self) -> Option<f64> {
        let here = self.places.get(self.here)?;
        let rates = self.places.iter().filter(|place| octaves(place.threads, here.threads) <= 0.5);
        let faster = rates.map(|place| place.rate).filter(|rate| rate * SLOWER > here.rate);
        faster.min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const KEEP: f64 = 0.93;

    fn found(kept: f64, tail: f64, delivered: f64) -> Found {
        Found { kept, tail, delivered, weight_ns: SECOND, ..Found::default() }
    }

    fn place(rungs: &[(i32, Found)]) -> Place {
        let rungs = rungs.iter().copied().collect();
        Place { threads: 1.0, rate: 250e6, rungs, ..Place::default() }
    }

    #[test]
    fn it_stands_where_most_is_let_through_of_what_holds_the_target_or_nearly_the_best() {
        let cases: [(&[(i32, Found)], i32); 6] = [
            // The highest that holds; the lower one where it lets as much through.
            (&[(4, found(0.97, 0.5, 150e6)), (6, found(0.95, 0.5, 200e6)), (8, found(0.8, 0.5, 240e6))], 6),
            (&[(4, found(0.97, 0.5, 198e6)), (6, found(0.95, 0.5, 200e6))], 4),
            // A hump: the best, and not a little less for a little more.
            (&[(2, found(0.4, 0.5, 250e6)), (4, found(0.6, 0.5, 250e6)), (8, found(0.5, 0.5, 250e6))], 4),
            // No limit changes anything: the one that lets most through.
            (&[(2, found(0.6, 0.5, 150e6)), (4, found(0.61, 0.5, 200e6)), (8, found(0.6, 0.5, 250e6))], 8),
            // A tail that one holds is held; one that none holds is let go.
            (&[(2, found(0.97, 0.9, 150e6)), (4, found(0.97, 2.0, 200e6))], 2),
            (&[(2, found(0.97, 1.5, 150e6)), (4, found(0.97, 2.0, 200e6))], 4),
        ];
        for (rungs, expected) in cases {
            assert_eq!(place(rungs).choice(KEEP), Some(expected), "{rungs:?}");
        }
        assert_eq!(place(&[]).choice(KEEP), None);
    }

    #[test]
    fn what_proved_no_better_is_tried_again_ever_less_often() {
        let mut found = found(0.8, 0.5, 250e6);
        let mut now = SECOND;
        for seconds in [8, 16, 32, 64, 128, 128] {
            found.fails(now);
            assert!(!found.is_due(now + seconds * SECOND - 1) && found.is_due(now + seconds * SECOND));
            now += seconds * SECOND;
        }
    }

    #[test]
    fn the_rung_beside_is_tried_up_where_there_is_room_down_where_there_is_loss() {
        let ask = Ask { keep: KEEP, now_ns: SECOND, bounds: (0, 20), own: false, bound: true, seen: true };
        let alone = |kept, tail| place(&[(6, found(kept, tail, 150e6))]);
        // (what was found, asked how, where to)
        let cases = [
            (alone(0.99, 0.5), ask, Some(8)),
            (alone(0.94, 0.5), ask, Some(7)),
            (alone(0.9, 0.5), ask, Some(5)),
            (alone(0.5, 0.5), ask, Some(4)),
            (alone(0.5, 0.5), Ask { own: true, ..ask }, Some(8)),
            (alone(0.99, 2.0), ask, Some(5)),
            (alone(0.99, 0.5), Ask { seen: false, ..ask }, Some(5)),
            (alone(0.99, 0.5), Ask { bound: false, ..ask }, None),
            (alone(0.99, 0.5), Ask { bounds: (0, 6), ..ask }, None),
        ];
        for (place, ask, to) in cases {
            assert_eq!(place.explore(6, &ask), to, "{:?} {ask:?}", place.rungs);
        }
    }

    #[test]
    fn a_window_that_differs_by_more_than_noise_is_of_another_time() {
        let mut found = found(0.95, 0.5, 200e6);
        let window = |kept| Measured {
            kept,
            error: 0.02,
            tail: None,
            delivered: 200e6,
            writes: 0.0,
            oldest_ns: 0,
            elapsed_ns: SECOND,
            at_ns: SECOND,
            own: false,
        };
        found.note(&window(0.93));
        assert!((found.kept - 0.94).abs() < 1e-9 && found.weight_ns == 2 * SECOND);
        found.note(&window(0.5));
        assert_eq!((found.kept, found.weight_ns), (0.5, SECOND));
    }

    #[test]
    fn a_loss_here_is_one_above_as_well_and_one_for_own_pages_below_unless_that_was_seen_a_moment_ago() {
        let measured = |kept, own| Measured {
            kept,
            error: 0.02,
            tail: None,
            delivered: 200e6,
            writes: 0.0,
            oldest_ns: 0,
            elapsed_ns: SECOND,
            at_ns: SECOND,
            own,
        };
        // (what was lost was lost for own pages, seconds after the others, what they are believed to keep then)
        for (own, seconds, low, high) in
            [(false, 20, 0.95, 0.5), (false, 5, 0.95, 0.95), (true, 20, 0.5, 0.95)]
        {
            let mut place = place(&[(4, found(0.95, 0.5, 1.0)), (8, found(0.95, 0.5, 1.0))]);
            place.note(6, &Measured { at_ns: seconds * SECOND, ..measured(0.5, own) }, KEEP);
            assert_eq!((place.rungs[&4].kept, place.rungs[&8].kept), (low, high), "{own} {seconds}");
        }
    }

    #[test]
    fn each_number_of_threads_and_each_rate_has_a_ladder_and_what_is_near_is_the_same() {
        let mut ladder = Ladder::default();
        assert!(ladder.is_other(1.0));
        ladder.enter(1.0, 250e6);
        ladder.here().rungs.insert(8, found(0.95, 0.5, 200e6));
        // A log writer that comes and goes changes nothing; three are not one.
        assert!(!ladder.is_other(2.0) && ladder.is_other(3.0));
        // A quarter of the rate: what held, four rungs lower, as a guess.
        assert!(ladder.enter(1.0, 62.5e6));
        assert_eq!(ladder.here().choice(KEEP), Some(4));
        assert_eq!(ladder.here().rungs[&4].weight_ns, 0);
        assert_eq!(ladder.faster(), Some(250e6));
        assert!(ladder.enter(1.0, 240e6));
        assert_eq!((ladder.here().choice(KEEP), ladder.faster()), (Some(8), None));
        assert!(ladder.enter(10.0, 240e6));
        assert_eq!(ladder.here().choice(KEEP), None);
    }

    #[test]
    fn rungs_are_limits() {
        assert_eq!((bytes_of(0), bytes_of(2), bytes_of(-2)), (1 << 20, 1 << 21, 1 << 19));
        assert!((-20..=24).all(|rung| rung_of(bytes_of(rung)) == rung));
    }
}
