//! Several inputs in one order of time, in bounded memory.
//!
//! Each input is nearly in order: a per-CPU file because an interrupt may write between another event's clock and
//! its record, a stream of ftrace because its CPUs are mixed. A window of events is therefore kept back from every
//! input and sorted with what comes next; an event that is later still is passed on at once and counted.

use std::hint::select_unpredictable;

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
    let mut lanes: Vec<Lane<S>> =
        sources.into_iter().enumerate().map(|(nth, source)| Lane::new(nth, source)).collect();
    let mut going = lanes.iter_mut().all(|lane| lane.advance(&mut take));
    let keys: Vec<Key> = lanes.iter_mut().map(Lane::start).collect();
    let mut heads = Heads::new(&keys);
    let mut order = [(0, 0); BLOCK];
    while going {
        // First who comes when, then the events: what happens to one does not wait for whose turn the next is.
        let (count, ran_out) = put_in_order(&mut lanes, &mut heads, &mut order);
        going = count > 0
            && order
                .iter()
                .take(count)
                .all(|&(nth, at)| take(Turn::Event(&lanes[nth as usize].batch.events()[at as usize])));
        if let Some(nth) = ran_out {
            going = going && lanes[nth].advance(&mut take);
            heads.replace(nth, lanes[nth].start());
        }
    }
    let late = lanes.iter().map(|lane| lane.late).sum();
    Merged { sources: lanes.into_iter().map(|lane| lane.source).collect(), late }
}

/// Puts into `order` which lanes' events are next, and which of them: a block of them, or until a lane runs out. Gives
/// back how many these are, and that lane.
fn put_in_order<S: Source>(
    lanes: &mut [Lane<S>],
    heads: &mut Heads,
    order: &mut [(u32, u32); BLOCK],
) -> (usize, Option<usize>) {
    let mut first = heads.first();
    for (count, turn) in order.iter_mut().enumerate() {
        if first.is_never() {
            return (count, None);
        }
        let nth = first.lane();
        let lane = &mut lanes[nth];
        *turn = (nth as u32, lane.next as u32);
        lane.next += 1;
        if lane.next == lane.batch.events().len() {
            return (count + 1, Some(nth));
        }
        first = heads.replace(nth, lane.following);
        lane.following = lane.key_at(lane.next + 1);
    }
    (BLOCK, None)
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

/// Where an event stands among others.
#[derive(Debug, Clone, Copy)]
struct Key {
    time_ns: u64,
    /// Place in an I/O's life, CPU, and lane, from the highest bits to the lowest: no two keys are alike.
    ties: u64,
}

/// Of a lane that has no more events; no event has this key.
const NEVER: Key = Key { time_ns: u64::MAX, ties: u64::MAX };
/// No event is before it.
const FIRST: Key = Key { time_ns: 0, ties: 0 };
/// Bits of a key that say which lane it is of: more than files can be open.
const LANE_BITS: u32 = 24;

impl Key {
    #[inline(always)]
    fn of(event: &Event, lane: usize) -> Key {
        let rank = u64::from(rank(event)) << (u32::BITS + LANE_BITS);
        Key { time_ns: event.time_ns, ties: rank | u64::from(event.cpu) << LANE_BITS | lane as u64 }
    }

    #[inline(always)]
    fn lane(self) -> usize {
        (self.ties & ((1 << LANE_BITS) - 1)) as usize
    }

    #[inline(always)]
    fn is_never(self) -> bool {
        self.ties == NEVER.ties
    }

    #[inline(always)]
    fn is_before(self, other: Key) -> bool {
        let whole = |key: Key| u128::from(key.time_ns) << u64::BITS | u128::from(key.ties);
        whole(self) < whole(other)
    }
}

/// The one or the other without a branch.
#[inline(always)]
fn either(is_one: bool, one: Key, other: Key) -> Key {
    Key {
        time_ns: select_unpredictable(is_one, one.time_ns, other.time_ns),
        ties: select_unpredictable(is_one, one.ties, other.ties),
    }
}

/// The next event's key of every lane in a tournament (a tree of losers: Knuth, The Art of Computer Programming, 5.4.1).
/// Its matches cost no branches, since which CPU's event is next cannot be foretold.
struct Heads {
    /// Who lost the match at 1, those of the halves at 2 and 3, and so on; whoever won them all at 0.
    keys: Vec<Key>,
}

impl Heads {
    fn new(lanes: &[Key]) -> Heads {
        // Who has not played yet wins every match.
        let mut heads = Heads { keys: vec![FIRST; lanes.len().next_power_of_two()] };
        for nth in 0..heads.keys.len() {
            heads.replace(nth, lanes.get(nth).copied().unwrap_or(NEVER));
        }
        heads
    }

    /// The next key of all, if there is one.
    #[inline(always)]
    fn first(&self) -> Key {
        self.keys[0]
    }

    /// Gives a lane, whose key was the first, its next one; what is the first now.
    #[inline(always)]
    fn replace(&mut self, nth: usize, key: Key) -> Key {
        let mut winner = key;
        let keys = &mut self.keys[..];
        let mut place = (keys.len() + nth) / 2;
        while place > 0
            && let Some(held) = keys.get_mut(place)
        {
            let other = *held;
            let is_first = winner.is_before(other);
            *held = either(is_first, other, winner);
            winner = either(is_first, winner, other);
            place /= 2;
        }
        self.keys[0] = winner;
        winner
    }
}

/// One input and what was read of it but not yet passed on.
struct Lane<S> {
    nth: usize,
    source: S,
    batch: Batch,
    /// The next event to pass on.
    next: usize,
    /// The key of the one after it, made before it is asked for.
    following: Key,
    open: bool,
    passed_ns: u64,
    late: u64,
}

impl<S: Source> Lane<S> {
    fn new(nth: usize, source: S) -> Self {
        let batch = Batch::default();
        Lane { nth, source, batch, next: 0, following: NEVER, open: true, passed_ns: 0, late: 0 }
    }

    /// The key of the next event.
    fn start(&mut self) -> Key {
        self.following = self.key_at(self.next + 1);
        self.key_at(self.next)
    }

    #[inline(always)]
    fn key_at(&self, at: usize) -> Key {
        self.batch.events().get(at).map_or(NEVER, |event| Key::of(event, self.nth))
    }

    /// Reads until there are events to pass on; other items are passed on at once.
    #[cold]
    fn advance(&mut self, take: &mut impl FnMut(Turn) -> bool) -> bool {
        while self.open && self.next == self.batch.events().len() {
            self.batch.clear();
            self.next = 0;
            self.open = self.source.refill(&mut self.batch);
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
    use crate::trace::Flags;

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
        ) {
            let acts = [Act::Queue, Act::Issue, Act::Complete, Act::Remap];
            let mut inputs = Vec::new();
            for (cpu, mut times) in times.into_iter().enumerate() {
                times.sort_unstable();
                // Neighbours change places: an interrupt between another event's clock and its record.
                times.chunks_mut(3).for_each(|neighbours| neighbours.reverse());
                let event = |(nth, time_ns): (usize, u64)| {
                    event(time_ns, acts[(time_ns as usize + nth) % acts.len()], cpu, nth)
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
