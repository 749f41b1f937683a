//! Syncs as they were followed: a track of each thread with its waits, one of each device's queue, and arrows between a
//! sync and the requests it waited for.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use weir_blocktrace::fsync::{Io, Log, LoggedSync, LoggedWait, Phase};
use weir_core::target::DeviceNumber;
use weir_core::units::Bytes;

use super::tracks::{Depth, Flow, Lanes, Note, Slice, Tracks, Unit};

/// What was read beside the syncs.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Time, dirty bytes and bytes in write-back.
    pub memory: Vec<(u64, u64, u64)>,
    /// A time and the wall clock then, ns since the epoch.
    pub wall_clock: Option<(u64, u64)>,
    /// What devices are called; others are shown by number.
    pub devices: HashMap<DeviceNumber, String>,
}

/// Arrows of a sync or of a request: those that begin with it, and those that end there.
#[derive(Debug, Clone, Default)]
struct Arrows {
    begin: Vec<Flow>,
    end: Vec<Flow>,
}

/// Writes a log of syncs for Perfetto.
///
/// # Errors
/// What the writer said.
pub fn syncs<W: Write>(out: W, log: &Log, beside: &Counters) -> io::Result<W> {
    let mut tracks = Tracks::new(out);
    if let Some((time_ns, wall_ns)) = beside.wall_clock {
        tracks.wall_clock(time_ns, wall_ns);
    }
    let mut of_ios = vec![Arrows::default(); log.ios.len()];
    let mut threads = BTreeMap::new();
    for sync in &log.syncs {
        let of_sync = arrows(&mut tracks, sync, &log.ios, &mut of_ios);
        let track = *threads
            .entry(sync.begun.tid)
            .or_insert_with(|| tracks.thread(sync.begun.tgid, sync.begun.tid, &sync.begun.comm));
        let waits: Vec<(&str, u64, u64)> = sync.waits.iter().flat_map(parts).collect();
        let inside: Vec<Slice<'_>> = waits.iter().map(|&(name, from, to)| plain(name, from, to)).collect();
        let last_ns = sync.waits.last().map_or(sync.begun.start_ns, |wait| wait.end_ns);
        let device = sync.begun.device.map_or(String::new(), |device| name_of(beside, device));
        let state = if sync.end_ns.is_some() { "returned" } else { "had not returned" };
        let notes = [("device", Note::Text(&device)), ("state", Note::Text(state))];
        let slice = Slice {
            notes: &notes,
            begins: &of_sync.begin,
            ends: &of_sync.end,
            ..plain(sync.begun.call.name(), sync.begun.start_ns, sync.end_ns.unwrap_or(last_ns))
        };
        tracks.slice(track, &slice, &inside);
    }
    devices(&mut tracks, log, beside, &of_ios);
    memory(&mut tracks, beside);
    tracks.finish()
}

fn plain(name: &str, start_ns: u64, end_ns: u64) -> Slice<'_> {
    Slice { name, start_ns, end_ns, notes: &[], begins: &[], ends: &[] }
}

fn name_of(beside: &Counters, device: DeviceNumber) -> String {
    beside.devices.get(&device).cloned().unwrap_or_else(|| device.to_string())
}

/// An arrow for each request of a sync's own. It begins at what began first: write-back may have sent a page before.
fn arrows<W: Write>(tracks: &mut Tracks<W>, sync: &LoggedSync, ios: &[Io], of_ios: &mut [Arrows]) -> Arrows {
    let mut of_sync = Arrows::default();
    for &place in &sync.ios {
        let (Some(io), Some(of_io)) = (ios.get(place), of_ios.get_mut(place)) else { continue };
        let flow = tracks.flow();
        if began(io) >= sync.begun.start_ns {
            of_sync.begin.push(flow);
            of_io.end.push(flow);
        } else {
            of_io.begin.push(flow);
            of_sync.end.push(flow);
        }
    }
    of_sync
}

/// A wait, and at its end the time without a free processor.
fn parts(wait: &LoggedWait) -> impl Iterator<Item = (&'static str, u64, u64)> {
    let woken_ns = wait.end_ns.saturating_sub(wait.runnable_ns).max(wait.start_ns);
    let parts =
        [(wait.phase.name(), wait.start_ns, woken_ns), (Phase::RunQueue.name(), woken_ns, wait.end_ns)];
    parts.into_iter().filter(|(_, from_ns, to_ns)| from_ns < to_ns)
}

/// When a request began, as far as that was seen.
fn began(io: &Io) -> u64 {
    let known = [io.queue_ns, io.get_ns, io.issue_ns].into_iter().filter(|ns| *ns != 0);
    known.min().map_or(io.complete_ns, |ns| ns.min(io.complete_ns))
}

fn devices<W: Write>(tracks: &mut Tracks<W>, log: &Log, beside: &Counters, of_ios: &[Arrows]) {
    let mut found = BTreeMap::new();
    for (io, arrows) in log.ios.iter().zip(of_ios) {
        let (track, lanes, depth, _) = found.entry(io.device).or_insert_with(|| {
            let name = name_of(beside, io.device);
            let track = tracks.track(&format!("{name} queue"), None);
            (track, Lanes::new("I/O", track), Depth::default(), name)
        });
        let _ = track;
        let start_ns = began(io);
        depth.add(start_ns, io.complete_ns);
        let lane = lanes.take(tracks, start_ns, io.complete_ns);
        let name = what(io);
        let mut notes = vec![("bytes", Note::Number(io.bytes.into()))];
        if io.owner_tgid != 0 {
            notes.push(("owner", Note::Number(io.owner_tgid.into())));
        }
        if io.own_tid != 0 {
            notes.push(("sent by thread", Note::Number(io.own_tid.into())));
        }
        let stages = stages(io);
        let inside: Vec<Slice<'_>> = stages.iter().map(|&(name, from, to)| plain(name, from, to)).collect();
        let slice = Slice {
            notes: &notes,
            begins: &arrows.begin,
            ends: &arrows.end,
            ..plain(&name, start_ns, io.complete_ns)
        };
        tracks.slice(lane, &slice, &inside);
    }
    for (track, _, depth, name) in found.into_values() {
        let counter = tracks.counter(&format!("{name} requests in flight"), Unit::Count, Some(track));
        depth.write(tracks, counter);
    }
}

fn what(io: &Io) -> String {
    let verb = match () {
        () if io.flags.is_flush() => return "flush".to_string(),
        () if io.flags.is_read() => "read",
        () if io.flags.op() == 1 => "write",
        () => "command",
    };
    let metadata = if io.flags.is_metadata() { " metadata" } else { "" };
    format!("{verb}{metadata} {}", Bytes(io.bytes.into()))
}

/// The stages of a request that are known.
fn stages(io: &Io) -> Vec<(&'static str, u64, u64)> {
    let mut found = Vec::new();
    let mut add = |name, from_ns: u64, to_ns: u64| {
        if from_ns != 0 && from_ns <= to_ns {
            found.push((name, from_ns, to_ns));
        }
    };
    if io.issue_ns == 0 {
        return found;
    }
    if io.get_ns != 0 {
        add("Q2G", io.queue_ns, io.get_ns);
        add("G2D", io.get_ns, io.issue_ns);
    } else {
        add("Q2D", io.queue_ns, io.issue_ns);
    }
    add("D2C", io.issue_ns, io.complete_ns);
    found
}

fn memory<W: Write>(tracks: &mut Tracks<W>, beside: &Counters) {
    if beside.memory.is_empty() {
        return;
    }
    let dirty = tracks.counter("dirty pages", Unit::Bytes, None);
    let writeback = tracks.counter("pages in write-back", Unit::Bytes, None);
    for &(at_ns, dirty_bytes, writeback_bytes) in &beside.memory {
        tracks.count(dirty, at_ns, dirty_bytes);
        tracks.count(writeback, at_ns, writeback_bytes);
    }
}
