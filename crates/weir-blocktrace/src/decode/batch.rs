//! Decoded items on their way from a decoder to the matcher.

use crate::{Event, Item};

/// Items in the order of the recording: events side by side, and the few others with their places between them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Batch {
    events: Vec<Event>,
    /// The latest time so far, and whether an event came that was before it: asked of all of them in the end, it would
    /// fetch their memory once more.
    latest_ns: u64,
    has_disorder: bool,
    /// Number of events before it, and the item.
    others: Vec<(usize, Item)>,
}

impl Batch {
    /// The events alone.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Items that are no events, each with the number of events before it.
    pub fn others(&self) -> &[(usize, Item)] {
        &self.others
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.others.is_empty()
    }

    /// Appends an event.
    #[inline]
    pub fn push_event(&mut self, event: Event) {
        self.note_time(event.time_ns);
        self.events.push(event);
    }

    #[inline(always)]
    fn note_time(&mut self, time_ns: u64) {
        self.has_disorder |= time_ns < self.latest_ns;
        self.latest_ns = self.latest_ns.max(time_ns);
    }

    /// Appends events; of an iterator whose length is known to the compiler, without room being asked for each.
    #[inline(always)]
    pub(super) fn append(&mut self, events: impl Iterator<Item = Event>) {
        let (mut latest_ns, mut has_disorder) = (self.latest_ns, self.has_disorder);
        let note = |event: Event| {
            has_disorder |= event.time_ns < latest_ns;
            latest_ns = latest_ns.max(event.time_ns);
            event
        };
        self.events.extend(events.map(note));
        (self.latest_ns, self.has_disorder) = (latest_ns, has_disorder);
    }

    /// Appends any item.
    pub fn push(&mut self, item: Item) {
        match item {
            Item::Event(event) => self.push_event(event),
            other => self.others.push((self.events.len(), other)),
        }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.others.clear();
        self.latest_ns = 0;
        self.has_disorder = false;
    }

    /// All items in order.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        let mut others = self.others.iter().peekable();
        let mut events = self.events.iter().enumerate();
        let mut held = events.next();
        std::iter::from_fn(move || {
            let place = held.map_or(usize::MAX, |(place, _)| place);
            if let Some((_, item)) = others.next_if(|(before, _)| *before <= place) {
                return Some(item.clone());
            }
            let (_, event) = held?;
            held = events.next();
            Some(Item::Event(*event))
        })
    }

    /// Appends all of `events`.
    pub(crate) fn append_events(&mut self, events: &mut Vec<Event>) {
        events.iter().for_each(|event| self.note_time(event.time_ns));
        self.events.append(events);
    }

    /// Moves the last `count` events, or all there are, to `kept`.
    pub(crate) fn keep_back(&mut self, count: usize, kept: &mut Vec<Event>) {
        kept.extend(self.events.drain(self.events.len().saturating_sub(count)..));
    }

    /// Puts the events in order of time, those of the same time in the order they have. Says whether they were so
    /// already.
    pub(crate) fn sort_by_time(&mut self) -> bool {
        let sorted = !self.has_disorder;
        if !sorted {
            self.events.sort_by_key(|event| event.time_ns);
            self.has_disorder = false;
        }
        sorted
    }
}
