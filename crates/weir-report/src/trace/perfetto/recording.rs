//! A recording's I/Os as tracks: one of each device's queue, one of each thread that syncs.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::ControlFlow;

use weir_blocktrace::{Bio, Event, Flags, Item, Kind, Moment, Piece, Request, Sink, Stage};
use weir_core::target::DeviceNumber;
use weir_core::units::Bytes;

use super::tracks::{Depth, Lanes, Note, Slice, Track, Tracks, Unit};
use crate::trace::live::what;

/// I/Os in one file: some 300 MB, more than a browser shows.
pub const IOS_MAX: u64 = 1_000_000;
/// Threads with a track, and names of threads that are remembered.
const THREADS_MAX: usize = 1 << 16;

/// Writes a recording for Perfetto; a [`Sink`] beside or instead of the collector.
#[derive(Debug)]
pub struct Recording<W> {
    tracks: Tracks<W>,
    devices: BTreeMap<DeviceNumber, Device>,
    names: HashMap<DeviceNumber, String>,
    threads: BTreeMap<u32, Lanes>,
    /// The track above those of threads.
    senders: Option<Track>,
    thread_names: HashMap<u32, String>,
    ios: u64,
    left_out: u64,
}

#[derive(Debug)]
struct Device {
    name: String,
    track: Track,
    lanes: Lanes,
    inside: Depth,
    in_device: Depth,
}

/// What became of a recording.
#[derive(Debug)]
pub struct Written<W> {
    /// The writer.
    pub out: W,
    /// I/Os in the file.
    pub ios: u64,
    /// I/Os beyond [`IOS_MAX`], or of which only one time is known.
    pub left_out: u64,
}

impl<W: Write> Recording<W> {
    /// Writes to `out`. Devices without a name are shown by number.
    pub fn new(out: W) -> Recording<W> {
        Recording {
            tracks: Tracks::new(out),
            devices: BTreeMap::new(),
            names: HashMap::new(),
            threads: BTreeMap::new(),
            senders: None,
            thread_names: HashMap::new(),
            ios: 0,
            left_out: 0,
        }
    }

    /// Writes the counters, which are known at the end only.
    pub fn finish(mut self) -> io::Result<Written<W>> {
        for (_, device) in self.devices {
            let below = Some(device.track);
            let inside = self.tracks.counter(&format!("{} I/Os in flight", device.name), Unit::Count, below);
            device.inside.write(&mut self.tracks, inside);
            let name = format!("{} I/Os in the device", device.name);
            let in_device = self.tracks.counter(&name, Unit::Count, below);
            device.in_device.write(&mut self.tracks, in_device);
        }
        Ok(Written { out: self.tracks.finish()?, ios: self.ios, left_out: self.left_out })
    }

    fn device(&mut self, number: DeviceNumber) -> &mut Device {
        self.devices.entry(number).or_insert_with(|| {
            let name = self.names.get(&number).cloned().unwrap_or_else(|| number.to_string());
            let track = self.tracks.track(&format!("{name} queue"), None);
            let lanes = Lanes::new("I/O", track);
            Device { name, track, lanes, inside: Depth::default(), in_device: Depth::default() }
        })
    }

    /// The thread that waits for an I/O, from when it sent it to the end; the arrow leads to the device's slice.
    fn thread(
        &mut self,
        piece: &Piece,
        name: &str,
        start_ns: u64,
        end_ns: u64,
    ) -> Option<super::tracks::Flow> {
        let is_new = !self.threads.contains_key(&piece.pid);
        if !is_waited_for(piece) || !is_sender_known(piece) || (is_new && self.threads.len() >= THREADS_MAX) {
            return None;
        }
        if is_new {
            let above = *self.senders.get_or_insert_with(|| self.tracks.track("threads that sync", None));
            let comm = self.thread_names.get(&piece.pid).map_or("", String::as_str);
            let track = self.tracks.track(format!("{comm} {}", piece.pid).trim_start(), Some(above));
            self.threads.insert(piece.pid, Lanes::new("waits for", track));
        }
        let lane = self.threads.get_mut(&piece.pid)?.take(&mut self.tracks, start_ns, end_ns);
        let flow = self.tracks.flow();
        let slice = Slice { name, start_ns, end_ns, notes: &[], begins: &[flow], ends: &[] };
        self.tracks.slice(lane, &slice, &[]);
        Some(flow)
    }
}

/// Whether its sender syncs: it flushes, or writes what somebody waits for.
fn is_waited_for(piece: &Piece) -> bool {
    let has = |flag| piece.flags.has(flag);
    has(Flags::FLUSH) || has(Flags::FUA) || (has(Flags::WRITE) && has(Flags::SYNC))
}

/// Whether its thread sent it: without a Q that is the one that issued it, a worker or another sender.
fn is_sender_known(piece: &Piece) -> bool {
    piece.pid != 0 && piece.times.get(Moment::Queue).is_some()
}

/// When an I/O began, as far as that was seen, and its end.
fn ends(piece: &Piece) -> Option<(u64, u64)> {
    let moments = [Moment::Queue, Moment::GetRequest, Moment::Insert, Moment::Merge, Moment::Issue];
    let start_ns = moments.into_iter().filter_map(|moment| piece.times.get(moment)).min()?;
    let end_ns = piece.times.get(Moment::Complete)?;
    (start_ns <= end_ns).then_some((start_ns, end_ns))
}

/// The stages an I/O went through, each with its ends, without gaps and overlaps.
fn stages(piece: &Piece) -> Vec<(Stage, u64, u64)> {
    let all: &[Stage] = match piece.kind {
        Kind::Merged => &[Stage::Q2M, Stage::M2D, Stage::D2C],
        _ => &[Stage::Q2G, Stage::G2I, Stage::G2D, Stage::I2D, Stage::D2C],
    };
    let ends = |stage: &Stage| {
        piece.times.stage(*stage)?;
        let (from, to) = stage.ends();
        Some((*stage, piece.times.get(from)?, piece.times.get(to)?))
    };
    let mut until_ns = 0;
    let mut found: Vec<_> = all.iter().filter_map(ends).collect();
    found.retain(|(_, from_ns, to_ns)| {
        let follows = *from_ns >= until_ns;
        until_ns = if follows { *to_ns } else { until_ns };
        follows
    });
    found
}

impl<W: Write> Sink for Recording<W> {
    fn piece(&mut self, piece: &Piece) {
        let Some((start_ns, end_ns)) = ends(piece).filter(|_| self.ios < IOS_MAX) else {
            self.left_out += 1;
            return;
        };
        self.ios += 1;
        let what = what(piece);
        let name = if piece.bytes > 0 { format!("{what} {}", Bytes(piece.bytes.into())) } else { what };
        let flow = self.thread(piece, &name, start_ns, end_ns);
        self.device(piece.device);
        let Some(device) = self.devices.get_mut(&piece.device) else { return };
        device.inside.add(start_ns, end_ns);
        if let Some(issue_ns) = piece.times.get(Moment::Issue) {
            device.in_device.add(issue_ns, end_ns);
        }
        let lane = device.lanes.take(&mut self.tracks, start_ns, end_ns);
        let sender = self.thread_names.get(&piece.pid).map_or("", String::as_str);
        let mut notes =
            vec![("sector", Note::Number(piece.sector)), ("bytes", Note::Number(piece.bytes.into()))];
        if is_sender_known(piece) {
            notes.extend([("thread", Note::Number(piece.pid.into())), ("sender", Note::Text(sender))]);
        }
        if piece.error != 0 {
            notes.push(("errno", Note::Number(piece.error.unsigned_abs().into())));
        }
        let part = |&(stage, from_ns, to_ns): &(Stage, u64, u64)| Slice {
            name: stage.name(),
            start_ns: from_ns,
            end_ns: to_ns,
            notes: &[],
            begins: &[],
            ends: &[],
        };
        let inside: Vec<Slice<'_>> = stages(piece).iter().map(part).collect();
        let arrows: Vec<_> = flow.into_iter().collect();
        let slice = Slice { name: &name, start_ns, end_ns, notes: &notes, begins: &[], ends: &arrows };
        self.tracks.slice(lane, &slice, &inside);
    }

    fn request(&mut self, _request: &Request) {}

    fn bio(&mut self, _bio: &Bio) {}

    fn event(&mut self, _event: &Event) {}

    fn item(&mut self, item: &Item) {
        match item {
            Item::Process { pid, name, .. }
                if self.thread_names.len() < THREADS_MAX || self.thread_names.contains_key(pid) =>
            {
                self.thread_names.insert(*pid, name.clone());
            }
            Item::WallClock { time_ns, wall_ns } => self.tracks.wall_clock(*time_ns, *wall_ns),
            _ => {}
        }
    }

    fn device_called(&mut self, device: DeviceNumber, name: &str) {
        self.names.insert(device, name.to_string());
    }

    fn goes_on(&self) -> ControlFlow<()> {
        if self.tracks.is_well() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
