//! Several inputs in one order of time, in bounded memory.
//!
//! Each input is nearly in order: a per-CPU file because an interrupt may write between another event's clock and
//! its record, a stream of ftrace because its CPUs are mixed. A window of events is therefore kept back from every
//! input and sorted with what comes next; an event that is later still is passed on at once and counted.

use super::decode::Batch;
use super::{Act, Event, Item};

/// Where items come from: a file, a stream, or anything else that yields batches.
pub trait Source {
    /// Appends what comes next to `batch`, which is never so much that it does not fit memory; false at the end. An
    /// input that breaks ends there: the source keeps its fault for the caller.
    fn refill(&mut self, batch: &mut Batch) -> bool;
}

impl<S: Source + ?Sized> Source for &mut S {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        (**self).refill(batch)
    }
}

/// How many events of an input are kept back to be sorted with later ones.
pub const WINDOW: usize = 64;
/// The same, once the input has shown to be out of order.
pub const WINDOW_OF_DISORDER: usize = 4096;

/// So many events are put in order before they are passed on.
const BLOCK: usize = 16;

/// One item in its turn.
#[derive(Debug, Clone, Copy)]
pub enum Turn<'a> {
    /// An event.
    Event(&'a Event),
    /// Anything else; it comes before the events that followed it in its input.
    Other(&'a Item),
}

/// What came out of a merge.
#[derive(Debug)]
pub struct Merged<S> {
    /// The sources, in the order in which they were given.
    pub sources: Vec<S>,
    /// Events that were out of order by more than the window.
    pub late: u64,
}

/// Passes the items of all `sources` to `take` in order of time, ties by the order of an I/O's life and then by CPU;
/// events of one input with the same time keep their order. Stops when `take` says false.
pub fn merge<S: Source>(sources: Vec<S>, take: impl FnMut(Turn) -> bool) -> Merged<S> {
    let merged = merge_sorted(sources.into_iter().map(Sorted::new).collect(), take);
    let sources = merged.sources.into_iter().map(Sorted::into_inner).collect();
    Merged { sources, late: merged.late }
}

/// The same for sources that are each in order already, see [`Sorted`]: events are passed on from where they are.
pub fn merge_sorted<S: Source>(sources: Vec<S>, mut take: impl FnMut(Turn) -> bool) -> Merged<S> {
    let mut lanes: Vec<Lane<S>> = sources.into_iter().map(Lane::new).collect();
    let mut going = lanes.iter_mut().all(|lane| lane.advance(&mut take));
    let keys = Keys::new(&lanes);
    let mut heads = Heads::new(keys, &runs_of(&lanes, keys));
    let mut ran_out = None;
    while going {
        let mut runs = runs_of(&lanes, keys);
        if let Some(nth) = ran_out.take() {
            heads.replace(nth, runs[nth].key(keys, nth), &runs);
        }
        while going && ran_out.is_none() {
            // First who comes when, then the events: what happens to one does not wait for whose turn the next is.
            let mut order = [None; BLOCK];
            ran_out = put_in_order(&mut runs, &mut heads, &mut order);
            going = order[0].is_some() && order.iter().flatten().all(|event| take(Turn::Event(event)));
        }
        let left: Vec<usize> = runs.iter().map(|run| run.rest.len()).collect();
        lanes.iter_mut().zip(left).for_each(|(lane, left)| lane.left = left);
        if let Some(nth) = ran_out {
            going = going && lanes[nth].advance(&mut take);
        }
    }
    let late = lanes.iter().map(|lane| lane.late).sum();
    Merged { sources: lanes.into_iter().map(|lane| lane.source).collect(), late }
}

/// Puts into `order` the events that are next: a block of them, or until a lane runs out, which is given back.
#[inline(never)]
fn put_in_order<'a>(
    runs: &mut [Run<'a>],
    heads: &mut Heads,
    order: &mut [Option<&'a Event>; BLOCK],
) -> Option<usize> {
    for turn in order {
        if heads.is_over() {
            return None;
        }
        let nth = heads.first();
        let run = &mut runs[nth];
        *turn = run.rest.next();
        let rest = run.rest.as_slice();
        if rest.is_empty() {
            return Some(nth);
        }
        let key = run.following;
        run.following = rest.get(1).map_or(NEVER, |event| heads.keys.of(event, nth));
        heads.replace(nth, key, runs);
    }
    None
}

/// A source that is nearly in order, put in order: its last events are kept back until later ones came.
#[derive(Debug)]
pub struct Sorted<S> {
    source: S,
    kept: Vec<Event>,
    in_order: bool,
}

impl<S: Source> Sorted<S> {
    /// Puts a source in order.
    pub fn new(source: S) -> Self {
        Sorted { source, kept: Vec::new(), in_order: true }
    }

    /// The source.
    pub fn into_inner(self) -> S {
        self.source
    }
}

impl<S: Source> Source for Sorted<S> {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        batch.append_events(&mut self.kept);
        let open = self.source.refill(batch);
        self.in_order &= batch.sort_by_time();
        if open {
            let window = if self.in_order { WINDOW } else { WINDOW_OF_DISORDER };
            batch.keep_back(window, &mut self.kept);
        }
        open
    }
}

/// Where the next event of a lane stands among those of others: its time, as far as the bits reach, and below that the
/// lane.
type Key = u64;

/// Of a lane that has no more events; no event has this key.
const NEVER: Key = Key::MAX;

/// How keys are made.
#[derive(Debug, Clone, Copy)]
struct Keys {
    /// Times are counted from here: about when the recording begins.
    start_ns: u64,
    /// The latest time, from there on, that has a place in a key.
    last_ns: u64,
    /// Bits of a key that say which lane it is of, and a mask of them.
    lane_bits: u32,
    lane_mask: Key,
}

impl Keys {
    fn new<S>(lanes: &[Lane<S>]) -> Keys {
        // A bit more than lanes take, and a time less: no key is that of no event.
        let lane_bits = lanes.len().next_power_of_two().trailing_zeros() + 1;
        let firsts = lanes.iter().filter_map(|lane| lane.batch.events().first());
        let start_ns = firsts.map(|event| event.time_ns).min().unwrap_or(0);
        Keys { start_ns, last_ns: (u64::MAX >> lane_bits) - 1, lane_bits, lane_mask: (1 << lane_bits) - 1 }
    }

    #[inline(always)]
    fn of(self, event: &Event, lane: usize) -> Key {
        let time_ns = event.time_ns.saturating_sub(self.start_ns).min(self.last_ns);
        time_ns << self.lane_bits | lane as u64
    }

    #[inline(always)]
    fn lane(self, key: Key) -> usize {
        (key & self.lane_mask) as usize
    }
}

/// What is left of a lane's batch.
struct Run<'a> {
    rest: std::slice::Iter<'a, Event>,
    /// The key of the second of them, made before it is asked for.
    following: Key,
}

impl<'a> Run<'a> {
    fn new(rest: &'a [Event], keys: Keys, lane: usize) -> Run<'a> {
        let following = rest.get(1).map_or(NEVER, |event| keys.of(event, lane));
        Run { rest: rest.iter(), following }
    }

    /// The key of the first.
    fn key(&self, keys: Keys, lane: usize) -> Key {
        self.rest.as_slice().first().map_or(NEVER, |event| keys.of(event, lane))
    }
}

fn runs_of<S>(lanes: &[Lane<S>], keys: Keys) -> Vec<Run<'_>> {
    let rests = lanes.iter().map(|lane| &lane.batch.events()[lane.batch.events().len() - lane.left..]);
    let run = |(nth, rest): (usize, _)| Run::new(rest, keys, nth);
    rests.enumerate().map(run).collect()
}

/// The next event's key of every lane in a tournament (a tree of losers: Knuth, The Art of Computer Programming, 5.4.1).
/// Its matches cost no branches, since which CPU's event is next cannot be foretold, but where two have the same time,
/// which is seldom.
struct Heads {
    keys: Keys,
    /// The loser of the match at 1, those of the halves at 2 and 3, and so on; the winner of all at 0.
    matches: Vec<Key>,
}

impl Heads {
    fn new(keys: Keys, runs: &[Run<'_>]) -> Heads {
        let mut heads = Heads { keys, matches: vec![NEVER; runs.len().next_power_of_two()] };
        heads.matches[0] = heads.winner_of(1, runs);
        heads
    }

    /// Plays the match at a place, and all that lead to it.
    fn winner_of(&mut self, place: usize, runs: &[Run<'_>]) -> Key {
        if let Some(nth) = place.checked_sub(self.matches.len()) {
            return runs.get(nth).map_or(NEVER, |run| run.key(self.keys, nth));
        }
        let [one, other] = [2 * place, 2 * place + 1].map(|place| self.winner_of(place, runs));
        let (winner, loser) = self.play(one, other, runs);
        self.matches[place] = loser;
        winner
    }

    /// Whether no lane has any more.
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.matches[0] == NEVER
    }

    /// Whose event is the next.
    #[inline(always)]
    fn first(&self) -> usize {
        self.keys.lane(self.matches[0])
    }

    /// Gives the lane that was the first the key it goes on with.
    #[inline(always)]
    fn replace(&mut self, nth: usize, key: Key, runs: &[Run<'_>]) {
        let mut winner = key;
        let mut place = (self.matches.len() + nth) / 2;
        while place > 0 {
            (winner, self.matches[place]) = self.play(winner, self.matches[place], runs);
            place /= 2;
        }
        self.matches[0] = winner;
    }

    /// Of two keys the one that is first, and the other.
    #[inline(always)]
    fn play(&self, one: Key, other: Key, runs: &[Run<'_>]) -> (Key, Key) {
        let (first, second) = (one.min(other), one.max(other));
        if one ^ other <= self.keys.lane_mask && self.is_before(second, first, runs) {
            return (second, first);
        }
        (first, second)
    }

    /// The same where keys cannot say: ties go by the place in an I/O's life, then by CPU.
    #[cold]
    fn is_before(&self, one: Key, other: Key, runs: &[Run<'_>]) -> bool {
        let order = |key: Key| {
            let lane = self.keys.lane(key);
            let event = runs.get(lane)?.rest.as_slice().first()?;
            Some((event.time_ns, rank(event), event.cpu, lane))
        };
        order(one) < order(other)
    }
}

/// One input and what was read of it but not yet passed on.
struct Lane<S> {
    source: S,
    batch: Batch,
    /// So many events of the batch are not yet passed on.
    left: usize,
    open: bool,
    passed_ns: u64,
    late: u64,
}

impl<S: Source> Lane<S> {
    fn new(source: S) -> Self {
        Lane { source, batch: Batch::default(), left: 0, open: true, passed_ns: 0, late: 0 }
    }

    /// Reads until there are events to pass on; other items are passed on at once.
    #[cold]
    fn advance(&mut self, take: &mut impl FnMut(Turn) -> bool) -> bool {
        while self.open && self.left == 0 {
            self.batch.clear();
            self.open = self.source.refill(&mut self.batch);
            self.left = self.batch.events().len();
            self.count_late();
            for (_, item) in self.batch.others() {
                if !take(Turn::Other(item)) {
                    return false;
                }
            }
        }
        true
    }

    /// Events of this batch that should have been in an earlier one: its first, since a batch is in order.
    fn count_late(&mut self) {
        let events = self.batch.events();
        self.late += events.iter().take_while(|event| event.time_ns < self.passed_ns).count() as u64;
        self.passed_ns = events.last().map_or(self.passed_ns, |last| last.time_ns.max(self.passed_ns));
    }
}

/// The place of each act in an I/O's life, which decides where clocks cannot. A table, since which act comes next cannot
/// be foretold.
const RANKS: [u8; 32] = {
    let mut ranks = [3; 32];
    ranks[Act::Remap as usize] = 0;
    ranks[Act::Queue as usize] = 1;
    ranks[Act::Split as usize] = 2;
    ranks[Act::Issue as usize] = 4;
    ranks[Act::Complete as usize] = 5;
    ranks
};

#[inline(always)]
fn rank(event: &Event) -> u8 {
    RANKS[event.act as usize % RANKS.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Flags;

    fn event(time_ns: u64, act: Act, cpu: usize, nth: usize) -> Event {
        Event {
            time_ns,
            sector: nth as u64,
            bytes: 4096,
            act,
            flags: Flags::READ,
            pid: 1,
            cpu: cpu as u32,
            ..Event::default()
        }
    }

    /// Gives its events in portions, some of them empty.
    struct Portions {
        events: Vec<Event>,
        portion: usize,
    }

    impl Source for Portions {
        fn refill(&mut self, batch: &mut Batch) -> bool {
            let portion = self.portion.min(self.events.len());
            self.events.drain(..portion).for_each(|event| batch.push_event(event));
            self.portion = (self.portion * 5 + 3) % 11;
            !self.events.is_empty()
        }
    }

    proptest! {
        /// Any number of inputs, each out of order by less than its window, gives what sorting all of it gives.
        #[test]
        fn merged_inputs_are_as_if_sorted_together(
            times in prop::collection::vec(prop::collection::vec(0u64..400, 0..200), 0..9),
            portion in 1usize..100,
            // As far apart as keys tell them apart, and farther.
            shift in prop::sample::select(vec![0, 40, 55]),
        ) {
            let acts = [Act::Queue, Act::Issue, Act::Complete, Act::Remap];
            let mut inputs = Vec::new();
            for (cpu, mut times) in times.into_iter().enumerate() {
                times.sort_unstable();
                // Neighbours change places: an interrupt between another event's clock and its record.
                times.chunks_mut(3).for_each(|neighbours| neighbours.reverse());
                let event = |(nth, time_ns): (usize, u64)| {
                    event(time_ns << shift, acts[(time_ns as usize + nth) % acts.len()], cpu, nth)
                };
                inputs.push(times.into_iter().enumerate().map(event).collect::<Vec<_>>());
            }
            let mut sorted = inputs.clone();
            sorted.iter_mut().for_each(|events| events.sort_by_key(|event| event.time_ns));
            let mut got = Vec::new();
            let sources = inputs.into_iter().map(|events| Portions { events, portion }).collect();
            let merged = merge(sources, |turn| {
                if let Turn::Event(event) = turn {
                    got.push(*event);
                }
                true
            });
            prop_assert_eq!(merged.late, 0);
            // Always the least of the heads: of one time, the earlier place in a life, then the lower CPU.
            let mut heads = vec![0; sorted.len()];
            for event in got {
                let waiting = sorted.iter().zip(&heads).filter_map(|(events, &head)| events.get(head));
                let least = waiting.min_by_key(|e| (e.time_ns, rank(e), e.cpu)).copied();
                prop_assert_eq!(Some(event), least);
                heads[event.cpu as usize] += 1;
            }
            prop_assert!(sorted.iter().zip(&heads).all(|(events, &head)| events.len() == head));
        }
    }
}
