//! Several inputs in one order of time, in bounded memory.
//!
//! Each input is nearly in order: a per-CPU file because an interrupt may write between another event's clock and
//! its record, a stream of ftrace because its CPUs are mixed. A window of events is therefore kept back from every
//! input and sorted with what comes next; an event that is later still is passed on at once and counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::decode::Batch;
use super::{Event, Item};

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
pub fn merge<S: Source>(sources: Vec<S>, mut take: impl FnMut(Turn) -> bool) -> Merged<S> {
    let mut lanes: Vec<Lane<S>> = sources.into_iter().map(Lane::new).collect();
    let mut heads = BinaryHeap::new();
    let mut going = true;
    for (nth, lane) in lanes.iter_mut().enumerate() {
        going = going && lane.advance(&mut take);
        heads.extend(lane.key(nth).map(Reverse));
    }
    while going && let Some(mut top) = heads.peek_mut() {
        // The lane whose turn it is goes on in its place at the top, which costs half of leaving and coming back.
        let nth = top.0.lane();
        going = lanes[nth].pass_one(&mut take);
        match lanes[nth].key(nth) {
            Some(key) => top.0 = key,
            None => drop(PeekMut::pop(top)),
        }
    }
    let late = lanes.iter().map(|lane| lane.late).sum();
    Merged { sources: lanes.into_iter().map(|lane| lane.source).collect(), late }
}

/// The order of events: time, place in an I/O's life, CPU; and the lane in which the event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time_ns: u64,
    rank_cpu_lane: u64,
}

impl Key {
    #[inline]
    fn of(event: &Event, lane: usize) -> Key {
        let rank = u64::from(rank(event)) << 56;
        Key {
            time_ns: event.time_ns,
            rank_cpu_lane: rank | u64::from(event.cpu & 0xff_ffff) << 32 | lane as u64,
        }
    }

    fn lane(self) -> usize {
        self.rank_cpu_lane as u32 as usize
    }
}

/// One input and what was read of it but not yet passed on.
struct Lane<S> {
    source: S,
    batch: Batch,
    /// The next event to pass on, and the end of those that may be: what follows waits for later ones.
    next: usize,
    end: usize,
    open: bool,
    in_order: bool,
    passed_ns: u64,
    late: u64,
}

impl<S: Source> Lane<S> {
    fn new(source: S) -> Self {
        Lane {
            source,
            batch: Batch::default(),
            next: 0,
            end: 0,
            open: true,
            in_order: true,
            passed_ns: 0,
            late: 0,
        }
    }

    #[inline]
    fn key(&self, lane: usize) -> Option<Key> {
        let event = self.batch.events().get(self.next).filter(|_| self.next < self.end)?;
        Some(Key::of(event, lane))
    }

    /// Passes on one event, and reads on where there are no more.
    #[inline]
    fn pass_one(&mut self, take: &mut impl FnMut(Turn) -> bool) -> bool {
        let event = &self.batch.events()[self.next];
        self.late += u64::from(event.time_ns < self.passed_ns);
        self.passed_ns = self.passed_ns.max(event.time_ns);
        self.next += 1;
        take(Turn::Event(event)) && (self.next < self.end || self.advance(take))
    }

    /// Reads until there are events to pass on; other items are passed on at once.
    #[cold]
    fn advance(&mut self, take: &mut impl FnMut(Turn) -> bool) -> bool {
        while self.open && self.next == self.end {
            self.batch.drop_events(self.next);
            self.next = 0;
            self.open = self.source.refill(&mut self.batch);
            for (_, item) in self.batch.others() {
                if !take(Turn::Other(item)) {
                    return false;
                }
            }
            self.batch.drop_others();
            self.in_order &= self.batch.sort_by_time();
            let window = if self.in_order { WINDOW } else { WINDOW_OF_DISORDER };
            self.end = self.batch.events().len().saturating_sub(if self.open { window } else { 0 });
        }
        true
    }
}

/// The place of an act in an I/O's life, which decides where clocks cannot.
fn rank(event: &Event) -> u8 {
    use super::Act;
    match event.act {
        Act::Remap => 0,
        Act::Queue => 1,
        Act::Split => 2,
        Act::Issue => 4,
        Act::Complete => 5,
        _ => 3,
    }
}
