//! Perfetto's TrackEvents: tracks, slices on them, flows between slices, counters. Field numbers are those of
//! `protos/perfetto/trace` in <https://github.com/google/perfetto> (trace_packet.proto, track_event.proto,
//! track_descriptor.proto, counter_descriptor.proto, thread_descriptor.proto, clock_snapshot.proto).

use std::collections::BTreeSet;
use std::io::{self, Write};

use weir_core::printable;

use super::wire::Message;

/// Trace.
const PACKET: u32 = 1;

/// TracePacket.
mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// TrackDescriptor; of a thread, ThreadDescriptor; of a counter, CounterDescriptor.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const THREAD: u32 = 4;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const THREAD_PROCESS: u32 = 1;
    pub const THREAD_ID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
    pub const COUNTER_UNIT: u32 = 3;
    pub const UNIT_COUNT: u64 = 2;
    pub const UNIT_BYTES: u64 = 3;
}

/// TrackEvent; DebugAnnotation.
mod event {
    pub const ANNOTATION: u32 = 4;
    pub const KIND: u32 = 9;
    pub const TRACK: u32 = 11;
    pub const NAME: u32 = 23;
    pub const VALUE: u32 = 30;
    pub const FLOW: u32 = 47;
    pub const FLOW_END: u32 = 48;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const COUNTER: u64 = 4;
    pub const ANNOTATION_UINT: u32 = 3;
    pub const ANNOTATION_TEXT: u32 = 6;
    pub const ANNOTATION_NAME: u32 = 10;
}

/// ClockSnapshot and its clocks: Perfetto shows times by the clock of boot.
mod clock {
    pub const CLOCKS: u32 = 1;
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
    pub const REALTIME: u64 = 1;
    pub const BOOTTIME: u64 = 6;
}

/// All packets are of one writer.
const SEQUENCE: u64 = 1;

/// A track, by its number in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(u64);

/// An arrow from one slice to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow(u64);

/// What a slice is told with.
#[derive(Debug, Clone, Copy)]
pub enum Note<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

/// A stretch of time.
#[derive(Debug, Clone)]
pub struct Slice<'a> {
    /// What it is.
    pub name: &'a str,
    /// From when, ns.
    pub start_ns: u64,
    /// Until when, ns.
    pub end_ns: u64,
    /// What more is known of it.
    pub notes: &'a [(&'a str, Note<'a>)],
    /// Arrows that begin here.
    pub begins: &'a [Flow],
    /// Arrows that end here.
    pub ends: &'a [Flow],
}

/// A trace that is being written.
#[derive(Debug)]
pub struct Tracks<W> {
    out: W,
    failed: io::Result<()>,
    tracks: u64,
    flows: u64,
}

impl<W: Write> Tracks<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Tracks<W> {
        Tracks { out, failed: Ok(()), tracks: 0, flows: 0 }
    }

    /// Whether nothing has failed yet.
    pub fn is_well(&self) -> bool {
        self.failed.is_ok()
    }

    /// The writer, or how it failed.
    pub fn finish(mut self) -> io::Result<W> {
        self.failed?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Says what the wall clock was at a time.
    pub fn wall_clock(&mut self, time_ns: u64, wall_ns: u64) {
        let clock = |id, at_ns| Message::default().number(clock::ID, id).number(clock::TIMESTAMP, at_ns);
        let snapshot = Message::default()
            .message(clock::CLOCKS, &clock(clock::BOOTTIME, time_ns))
            .message(clock::CLOCKS, &clock(clock::REALTIME, wall_ns));
        self.packet(Message::default().message(packet::CLOCK_SNAPSHOT, &snapshot));
    }

    /// A track, below another one or at the top.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        self.describe(parent, |it| it.text(descriptor::NAME, &printable::line(name)))
    }

    /// The track of a thread.
    pub fn thread(&mut self, tgid: u32, tid: u32, name: &str) -> Track {
        let thread = Message::default()
            .number(descriptor::THREAD_PROCESS, tgid.into())
            .number(descriptor::THREAD_ID, tid.into())
            .text(descriptor::THREAD_NAME, &printable::line(name));
        self.describe(None, |it| it.message(descriptor::THREAD, &thread))
    }

    /// The track of a counter.
    pub fn counter(&mut self, name: &str, unit: Unit, parent: Option<Track>) -> Track {
        let unit = match unit {
            Unit::Count => descriptor::UNIT_COUNT,
            Unit::Bytes => descriptor::UNIT_BYTES,
        };
        let counter = Message::default().number(descriptor::COUNTER_UNIT, unit);
        self.describe(parent, |it| {
            it.text(descriptor::NAME, &printable::line(name)).message(descriptor::COUNTER, &counter)
        })
    }

    /// An arrow, to be given to the slice where it begins, and after that to those where it ends.
    pub fn flow(&mut self) -> Flow {
        self.flows += 1;
        Flow(self.flows)
    }

    /// A slice with others inside it, in order of time.
    pub fn slice(&mut self, track: Track, slice: &Slice<'_>, inside: &[Slice<'_>]) {
        self.begin(track, slice);
        for part in inside {
            self.begin(track, part);
            self.end(track, part.end_ns);
        }
        self.end(track, slice.end_ns);
    }

    /// A counter's value from now on.
    pub fn count(&mut self, track: Track, at_ns: u64, value: u64) {
        self.event(
            at_ns,
            Message::default()
                .number(event::KIND, event::COUNTER)
                .number(event::TRACK, track.0)
                .number(event::VALUE, value),
        );
    }

    fn describe(&mut self, parent: Option<Track>, fields: impl Fn(Message) -> Message) -> Track {
        self.tracks += 1;
        let mut descriptor = fields(Message::default().number(descriptor::UUID, self.tracks));
        if let Some(parent) = parent {
            descriptor = descriptor.number(descriptor::PARENT, parent.0);
        }
        self.packet(Message::default().message(packet::TRACK_DESCRIPTOR, &descriptor));
        Track(self.tracks)
    }

    fn begin(&mut self, track: Track, slice: &Slice<'_>) {
        let mut event = Message::default()
            .number(event::KIND, event::BEGIN)
            .number(event::TRACK, track.0)
            .text(event::NAME, &printable::line(slice.name));
        for (name, note) in slice.notes {
            let annotation = Message::default().text(event::ANNOTATION_NAME, name);
            let annotation = match note {
                Note::Number(value) => annotation.number(event::ANNOTATION_UINT, *value),
                Note::Text(text) => annotation.text(event::ANNOTATION_TEXT, &printable::line(text)),
            };
            event = event.message(event::ANNOTATION, &annotation);
        }
        event = slice.begins.iter().fold(event, |event, flow| event.fixed(event::FLOW, flow.0));
        event = slice.ends.iter().fold(event, |event, flow| event.fixed(event::FLOW_END, flow.0));
        self.event(slice.start_ns, event);
    }

    fn end(&mut self, track: Track, at_ns: u64) {
        self.event(at_ns, Message::default().number(event::KIND, event::END).number(event::TRACK, track.0));
    }

    fn event(&mut self, at_ns: u64, event: Message) {
        let packet = Message::default().number(packet::TIMESTAMP, at_ns);
        self.packet(packet.message(packet::TRACK_EVENT, &event));
    }

    fn packet(&mut self, packet: Message) {
        if self.failed.is_ok() {
            let packet = packet.number(packet::SEQUENCE, SEQUENCE);
            self.failed = self.out.write_all(Message::default().message(PACKET, &packet).encoded());
        }
    }
}

/// Tracks side by side for what overlaps: slices of one track must lie in each other. Perfetto shows tracks of one name
/// below one parent as one.
#[derive(Debug)]
pub struct Lanes {
    name: String,
    parent: Track,
    /// Until when each is taken.
    taken: BTreeSet<(u64, Track)>,
}

impl Lanes {
    /// None yet, below `parent`.
    pub fn new(name: &str, parent: Track) -> Lanes {
        Lanes { name: name.to_string(), parent, taken: BTreeSet::new() }
    }

    /// A lane that is free from `start_ns` on, of those that are the one that was in use last; taken until `end_ns`.
    pub fn take<W: Write>(&mut self, tracks: &mut Tracks<W>, start_ns: u64, end_ns: u64) -> Track {
        let free = self.taken.range(..=(start_ns, Track(u64::MAX))).next_back().copied();
        let track = match free {
            Some(free) => {
                self.taken.remove(&free);
                free.1
            }
            None => tracks.track(&self.name, Some(self.parent)),
        };
        self.taken.insert((end_ns, track));
        track
    }
}

/// How many of something there were at each time, from when each began and ended, in any order.
#[derive(Debug, Default)]
pub struct Depth(Vec<(u64, i8)>);

impl Depth {
    /// One of them.
    pub fn add(&mut self, start_ns: u64, end_ns: u64) {
        self.0.extend([(start_ns, 1), (end_ns, -1)]);
    }

    /// Writes the counter, one value a time.
    pub fn write<W: Write>(mut self, tracks: &mut Tracks<W>, track: Track) {
        self.0.sort_unstable();
        let mut depth = 0_i64;
        for (nth, (at_ns, step)) in self.0.iter().enumerate() {
            depth += i64::from(*step);
            if self.0.get(nth + 1).is_none_or(|next| next.0 != *at_ns) {
                tracks.count(track, *at_ns, depth.max(0) as u64);
            }
        }
    }
}
