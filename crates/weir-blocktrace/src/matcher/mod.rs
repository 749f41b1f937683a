//! From events to the lives of I/Os.
//!
//! A bio waits, from its Q on, under its first sector (or its identity, where the recording has one). G takes it
//! into a request, M and F into one that waits already; X cuts it, A leads it to a device below. A request is found by
//! its start (I, D) or its end (M) until it is issued, then by the first sector not yet done (C, R). What fits several
//! of the same sector and direction goes to the one that came first, but for G, M and F: a thread has one bio at a
//! time between Q and G, so these belong to the latest of their thread.
//!
//! Nothing waits for ever: see [`Limits`].

mod account;
mod close;
mod complete;
mod device;
mod index;
mod life;
mod queue;
mod request;
mod slab;

use std::collections::HashMap;

pub use account::{Account, Reason, Unmatched};
use device::{DEVICES_MAX, Device};
use index::{Index, Key};
use life::{BioLife, Part, RequestLife};
use slab::{Id, Slab};

use super::{Act, Event, Item, Sink};
use weir_core::target::DeviceNumber;

/// When an I/O that does not end is given up, so that memory is bounded by what is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nothing happened to it for so long, ns: longer than the kernel's own time-out with all its retries.
    pub silent_ns: u64,
    /// So many parts and requests are in flight at once; the oldest go first.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { silent_ns: 300_000_000_000, in_flight: 1 << 18 }
    }
}

const RECENT: usize = 16;

/// Puts the lives of I/Os together from events in order of time; see [`super::merge`].
#[derive(Debug)]
pub struct Matcher {
    limits: Limits,
    index: Index,
    bios: Slab<BioLife, false>,
    parts: Slab<Part>,
    requests: Slab<RequestLife, false>,
    devices: Vec<Device>,
    numbers: HashMap<DeviceNumber, u16>,
    /// Devices of late, by some bits of their numbers, so that the map is rarely asked.
    recent: [(DeviceNumber, u16); RECENT],
    /// Bios, with their generations, that are done on the devices below, and end so once the act of the event is over.
    done_below: Vec<(Id, u32)>,
    /// What the recorder says it lost.
    dropped: u64,
    /// Events of devices beyond [`DEVICES_MAX`].
    beyond: u64,
    ticks: u32,
    now_ns: u64,
    /// When to look again for what has been silent for long, and at how many parts, of those in flight then, nobody has
    /// looked yet.
    next_look_ns: u64,
    unlooked: usize,
}

impl Default for Matcher {
    fn default() -> Self {
        Matcher::new(Limits::default())
    }
}

/// What was found under a key.
#[derive(Debug, Clone, Copy)]
struct Found {
    id: Id,
    /// Others fitted as well.
    ambiguous: bool,
    /// Nothing else is under the key.
    alone: bool,
}

impl Matcher {
    /// A matcher that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Matcher {
            limits,
            index: Index::new(),
            bios: Slab::new(),
            parts: Slab::new(),
            requests: Slab::new(),
            devices: Vec::new(),
            numbers: HashMap::new(),
            recent: [(DeviceNumber::default(), u16::MAX); RECENT],
            done_below: Vec::new(),
            dropped: 0,
            beyond: 0,
            ticks: 0,
            now_ns: 0,
            next_look_ns: 0,
            unlooked: 0,
        }
    }

    /// Takes any item; those that are no events only count where they speak of losses.
    pub fn item(&mut self, item: &Item, sink: &mut impl Sink) {
        match item {
            Item::Event(event) => self.event(event, sink),
            Item::Dropped { events } => {
                self.dropped = self.dropped.saturating_add(*events);
                self.devices.iter_mut().for_each(Device::has_gaps);
            }
            Item::Process { .. }
            | Item::WallClock { .. }
            | Item::Message { .. }
            | Item::Begun { .. }
            | Item::Ended { .. } => {}
        }
    }

    /// Takes the next event, tells the sink of it, and of what it completes.
    pub fn event(&mut self, event: &Event, sink: &mut impl Sink) {
        let Some(device) = self.device(event) else {
            self.beyond += 1;
            return;
        };
        self.devices[usize::from(device)].count(event);
        self.now_ns = self.now_ns.max(event.time_ns);
        // Which act comes next is hard to predict, so it is asked for once, and what is told of it is told where it is known.
        match event.act {
            Act::Queue => self.take(event, device, sink, Self::queue),
            Act::GetRequest => self.take(event, device, sink, Self::get_request),
            Act::Insert => self.take(event, device, sink, Self::insert),
            Act::Issue => self.take(event, device, sink, Self::issue),
            Act::Complete => self.take(event, device, sink, Self::complete),
            Act::BackMerge | Act::FrontMerge => self.take(event, device, sink, Self::merge),
            Act::RequestMerge => self.take(event, device, sink, Self::merge_requests),
            Act::Split => self.take(event, device, sink, Self::split),
            Act::Remap => self.take(event, device, sink, Self::remap),
            Act::Requeue => self.take(event, device, sink, Self::requeue),
            Act::Unknown => self.take(event, device, sink, |this, _, device, _| {
                this.devices[usize::from(device)].unmatched(Reason::UnknownAct, 1);
            }),
            // They belong to no I/O.
            Act::Plug
            | Act::Unplug
            | Act::UnplugTimer
            | Act::SleepRequest
            | Act::Bounce
            | Act::Abort
            | Act::DriverData => self.take(event, device, sink, |this, _, device, _| {
                this.devices[usize::from(device)].matched += 1;
            }),
        }
    }

    /// Tells the sink of an event, and does what its act asks for.
    #[inline(always)]
    fn take<S: Sink>(
        &mut self,
        event: &Event,
        device: u16,
        sink: &mut S,
        act: impl FnOnce(&mut Self, &Event, u16, &mut S),
    ) {
        sink.event(event);
        self.give_up_some(sink);
        self.end_in_place(sink);
        act(self, event, device, sink);
        self.end_in_place(sink);
    }

    /// Parts and requests in flight: what memory grows with.
    pub fn in_flight(&self) -> usize {
        self.parts.len() + self.requests.len()
    }

    /// Says that no event follows: gives up what is still in flight, and says what became of every event.
    pub fn finish(mut self, sink: &mut impl Sink) -> Unmatched {
        self.give_up_all(sink);
        let mut unmatched = Unmatched { dropped: self.dropped, ..Unmatched::default() };
        for device in &self.devices {
            unmatched.devices.insert(device.number, device.account());
        }
        if self.beyond > 0 {
            let beyond = Account {
                events: self.beyond,
                unmatched: [(Reason::TooManyDevices, self.beyond)].into(),
                ..Account::default()
            };
            unmatched.devices.entry(DeviceNumber::default()).or_default().merge(&beyond);
        }
        unmatched
    }

    #[inline]
    fn device(&mut self, event: &Event) -> Option<u16> {
        let place = event.device.major.wrapping_mul(7).wrapping_add(event.device.minor) as usize % RECENT;
        let (number, device) = self.recent[place];
        if number == event.device && device != u16::MAX {
            return Some(device);
        }
        self.find_device(event, place)
    }

    #[cold]
    fn find_device(&mut self, event: &Event, place: usize) -> Option<u16> {
        let device = match self.numbers.get(&event.device) {
            Some(&device) => device,
            None if self.devices.len() < DEVICES_MAX => {
                let device = self.devices.len() as u16;
                self.devices.push(Device::new(event.device, event.time_ns));
                self.numbers.insert(event.device, device);
                device
            }
            None => return None,
        };
        self.recent[place] = (event.device, device);
        Some(device)
    }

    /// Of all under `key` the one that fits best: the first of them, or the latest.
    #[inline]
    fn pick(&self, key: Key, fit: impl Fn(&Self, Id) -> Fit) -> Option<Found> {
        let (first, more) = self.index.first(key)?;
        if !more {
            let found = Found { id: first, ambiguous: false, alone: true };
            return fit(self, first).accepted().then_some(found);
        }
        self.pick_of_many(key, fit)
    }

    /// The same among requests, once those are given up that have been in flight for far too long.
    #[inline]
    fn pick_fresh(
        &mut self,
        key: Key,
        device: u16,
        sink: &mut impl Sink,
        fit: impl Fn(&Self, Id) -> Fit,
    ) -> Option<Found> {
        match self.index.first(key)? {
            (id, false) => fit(self, id).accepted().then_some(Found { id, ambiguous: false, alone: true }),
            (_, true) => {
                self.lose_stale(key, device, sink);
                self.pick(key, fit)
            }
        }
    }

    #[cold]
    fn pick_of_many(&self, key: Key, fit: impl Fn(&Self, Id) -> Fit) -> Option<Found> {
        let mut best: Option<(Fit, Found)> = None;
        for id in self.index.all(key) {
            let candidate = fit(self, id);
            if !candidate.accepted() {
                continue;
            }
            match &mut best {
                Some((fit, found)) if *fit == candidate => {
                    found.ambiguous = true;
                    if candidate.latest_wins {
                        found.id = id;
                    }
                }
                Some((fit, _)) if fit.score >= candidate.score => {}
                _ => best = Some((candidate, Found { id, ambiguous: false, alone: false })),
            }
        }
        best.map(|(_, found)| found)
    }

    #[inline]
    fn note_ambiguous(&mut self, device: u16, found: &Found) {
        self.devices[usize::from(device)].ambiguous += u64::from(found.ambiguous);
    }
}

/// How well something fits an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    /// 0: not at all.
    score: u8,
    latest_wins: bool,
}

impl Fit {
    const NO: Fit = Fit { score: 0, latest_wins: false };

    /// The first that fits so well.
    fn first(score: u8) -> Fit {
        Fit { score, latest_wins: false }
    }

    fn accepted(self) -> bool {
        self.score > 0
    }
}
