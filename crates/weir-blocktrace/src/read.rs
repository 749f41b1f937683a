//! From sources to lives in one go: all that is done with every event of a recording.
//!
//! A generic function is compiled where it is used: in a crate that is compiled for size, for size. The functions here are not
//! generic, so that merge, matcher and collector become one with this crate's settings.

use super::merge::{Source, Turn, merge_sorted};
use super::{Collector, Matcher, Sink, Unmatched};

/// So many turns go by between two questions whether to go on.
pub const TURNS: u64 = 4096;

/// Who takes what is read.
pub enum Taker<'a> {
    /// Statistics and nothing else, which is what most recordings are read for: no step on the way is a call through a
    /// table.
    Statistics(&'a mut Collector),
    /// Anything else.
    Any(&'a mut dyn Sink),
}

/// What is known once all is read.
#[derive(Debug)]
pub struct Read {
    /// What became of every event.
    pub unmatched: Unmatched,
    /// Events that were out of order by more than the window.
    pub late: u64,
    /// Whether the sink broke it off.
    pub broken_off: bool,
}

/// Merges sources that are each in order ([`super::merge::Sorted`]) and matches what they say, to their ends or until
/// `goes_on`, asked every [`TURNS`], or the sink says no.
pub fn read(sources: Vec<&mut dyn Source>, taker: Taker<'_>, goes_on: &mut dyn FnMut() -> bool) -> Read {
    match taker {
        Taker::Statistics(collector) => read_into(sources, collector, goes_on),
        Taker::Any(mut sink) => read_into(sources, &mut sink, goes_on),
    }
}

fn read_into(sources: Vec<&mut dyn Source>, sink: &mut impl Sink, goes_on: &mut dyn FnMut() -> bool) -> Read {
    let mut matcher = Matcher::default();
    let mut turns = 0_u64;
    let merged = merge_sorted(sources, |turn| {
        match turn {
            Turn::Event(event) => matcher.event(event, sink),
            Turn::Other(item) => {
                sink.item(item);
                matcher.item(item, sink);
            }
        }
        turns += 1;
        sink.goes_on().is_continue() && (!turns.is_multiple_of(TURNS) || goes_on())
    });
    let broken_off = sink.goes_on().is_break();
    Read { unmatched: matcher.finish(sink), late: merged.late, broken_off }
}
