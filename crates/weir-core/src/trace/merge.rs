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

/// How many events of an input are kept back to be sorted with later ones.
pub const WINDOW: usize = 64;
/// The same, once the input has shown to be out of order.
pub const WINDOW_OF_DISORDER: usize = 4096;

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
    let mut heads = Heads::new(lanes.iter().map(Lane::key));
    while going && let Some(nth) = heads.first() {
        let lane = &mut lanes[nth];
        going = lane.pass_one(&mut take);
        heads.replace(nth, lane.key());
    }
    let late = lanes.iter().map(|lane| lane.late).sum();
    Merged { sources: lanes.into_iter().map(|lane| lane.source).collect(), late }
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

/// Where an event stands among others: time, place in an I/O's life, CPU.
type Key = u128;

/// Of a lane that has no more events; no event has this key.
const NEVER: Key = Key::MAX;

#[inline(always)]
fn key_of(event: &Event) -> Key {
    Key::from(event.time_ns) << 64 | Key::from(u64::from(rank(event)) << 32 | u64::from(event.cpu))
}

/// The next event's key of every lane, and which of them is first: a tournament. Its matches cost no branches, since
/// which CPU's event is next cannot be foretold.
struct Heads {
    keys: Vec<Key>,
    /// Winners: of everything at 1, of the halves at 2 and 3, and so on.
    winners: Vec<u32>,
}

impl Heads {
    fn new(keys: impl Iterator<Item = Key>) -> Heads {
        let mut keys: Vec<Key> = keys.collect();
        let places = keys.len().next_power_of_two().max(2);
        keys.resize(places, NEVER);
        let mut heads = Heads { winners: vec![0; places], keys };
        for nth in 0..places {
            heads.replace(nth, heads.keys[nth]);
        }
        heads
    }

    /// The lane whose event is next.
    #[inline]
    fn first(&self) -> Option<usize> {
        let nth = self.winners[1] as usize;
        (self.keys[nth] != NEVER).then_some(nth)
    }

    #[inline(always)]
    fn replace(&mut self, nth: usize, key: Key) {
        self.keys[nth] = key;
        // At the bottom, the players are neighbours; above, winners of matches. Ties go to the lane given first.
        let mut place = (self.keys.len() + nth) / 2;
        let (left, right) = (nth & !1, nth | 1);
        let mut winner = if self.keys[right] < self.keys[left] { right } else { left } as u32;
        self.winners[place] = winner;
        while place > 1 {
            let (left, right) = (self.winners[place & !1], self.winners[place | 1]);
            let is_right = self.keys[right as usize] < self.keys[left as usize];
            winner = if is_right { right } else { left };
            place /= 2;
            self.winners[place] = winner;
        }
    }
}

/// One input and what was read of it but not yet passed on.
struct Lane<S> {
    source: S,
    batch: Batch,
    /// The next event to pass on.
    next: usize,
    open: bool,
    passed_ns: u64,
    late: u64,
}

impl<S: Source> Lane<S> {
    fn new(source: S) -> Self {
        Lane { source, batch: Batch::default(), next: 0, open: true, passed_ns: 0, late: 0 }
    }

    #[inline]
    fn key(&self) -> Key {
        self.batch.events().get(self.next).map_or(NEVER, key_of)
    }

    /// Passes on one event, and reads on where there are no more.
    #[inline]
    fn pass_one(&mut self, take: &mut impl FnMut(Turn) -> bool) -> bool {
        let Some(event) = self.batch.events().get(self.next) else { return true };
        self.next += 1;
        take(Turn::Event(event)) && (self.next < self.batch.events().len() || self.advance(take))
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
