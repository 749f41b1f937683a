//! blktrace's records, versions 7 and 8, either byte order.
//!
//! Layout: the kernel's include/uapi/linux/blktrace_api.h, `struct blk_io_trace` (48 bytes) and, in version 8,
//! `struct blk_io_trace2` (64 bytes). ftrace's `blk` tracer writes the same in its `bin` mode, each record behind 16
//! bytes of context unless `nocontext-info` is set, and says in a line of text where it lost events. Unplug, split and
//! remap payloads are big-endian on every machine; cgroup ids and the wall clock are in the recording machine's order.
//!
//! Linux 7.2's `bin` mode says version 7 and writes the first 48 bytes of version 8 (kernel/trace/blktrace.c,
//! `blk_trace_synthesize_old_trace`), then as many of the bytes behind them as the payload has. So it tells neither errors nor
//! payloads: a *cut* record.

use super::{Batch, Format, Stop};
use crate::{Act, Event, Flags, Item};
use weir_core::target::DeviceNumber;

const MAGIC: u32 = 0x6561_7400;
const VERSION_MASK: u32 = 0xff;
const HEADER_BYTES_7: usize = 48;
const HEADER_BYTES_8: usize = 64;
/// So many records are looked at together: they stay in the first cache.
const RUN: usize = 128;
/// ftrace's context: thread, CPU and time, which the record has, too.
const CONTEXT_BYTES: usize = 16;
/// What ftrace says of losses: `CPU:1 [LOST 12 EVENTS]`, or without a number.
const LOST: &[u8] = b"CPU:";
const LOST_BYTES_MAX: usize = 64;
/// What a cut record has of its payload: the fields behind its 48 bytes, of which the second tells the length. The text of
/// a message is the longest there is (BLK_TN_MAX_MSG), behind a cgroup's id.
const CUT_PAYLOAD_MAX: usize = 8 + 128;

/// In the act: a cgroup id is at the start of the payload.
const CGROUP: u32 = 0x100;
const CATEGORY_SHIFT: u32 = 16;
const CATEGORY_NOTIFY: u64 = 1 << 10;
const NOTIFY_PROCESS: u32 = 0;
/// As much as is read of a thread's name. The kernel's have 16 bytes; a record holds 65,535.
const NAME_BYTES_MAX: usize = 64;
const NOTIFY_WALL_CLOCK: u32 = 1;
const NOTIFY_MESSAGE: u32 = 2;
const MINOR_BITS: u32 = 20;
const NS_PER_S: u64 = 1_000_000_000;

/// Categories that say what an I/O is, not what happened to it.
const KINDS: u32 = Flags::READ.0
    | Flags::WRITE.0
    | Flags::FLUSH.0
    | Flags::SYNC.0
    | Flags::PASSTHROUGH.0
    | Flags::AHEAD.0
    | Flags::METADATA.0
    | Flags::DISCARD.0
    | Flags::FUA.0
    | Flags::ZEROES.0;

/// Decoder of one file or stream.
#[derive(Debug)]
pub(super) struct Blktrace {
    version: u8,
    big_endian: bool,
    /// Each record stands behind ftrace's context.
    has_context: bool,
    /// Records say version 7 and are cut from version 8.
    is_cut: bool,
    /// The wall clock, until the first event shows whether it speaks of the same clock.
    wall_clock: WallClock,
}

/// `blkparse -d` counts the time of events from the first of them and that of all else from the machine's start, so
/// that its wall clock, which comes first, says nothing about its events. Then, and only then, it is later than they.
#[derive(Debug, Default)]
enum WallClock {
    #[default]
    Unseen,
    Held {
        time_ns: u64,
        wall_ns: u64,
        device: u32,
    },
    Usable,
    Unusable,
}

/// The fixed part of a record, in this machine's order.
struct Header {
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    act: u32,
    categories: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    payload_bytes: usize,
}

impl Blktrace {
    /// The format of a file that starts like this, if it is blktrace's.
    pub(super) fn recognise(head: &[u8]) -> Option<(Format, Blktrace)> {
        let at = |offset: usize| head.get(offset..).and_then(version_of).map(|found| (found, offset > 0));
        let ((version, big_endian), has_context) = at(0).or_else(|| at(CONTEXT_BYTES))?;
        let first = &head[if has_context { CONTEXT_BYTES } else { 0 }..];
        let is_cut = version == 7 && if big_endian { is_cut::<true>(first) } else { is_cut::<false>(first) };
        let decoder = Blktrace { version, big_endian, has_context, is_cut, wall_clock: WallClock::default() };
        Some((Format::Blktrace { version, big_endian }, decoder))
    }

    /// Whether its records say version 7 and are cut from version 8.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Decodes the whole records in `bytes`.
    pub(super) fn decode(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Stop> {
        // A loop of its own for each layout, so that none is asked for at every field.
        match (self.version, self.big_endian, self.is_cut) {
            (7, false, false) => self.decode_as::<HEADER_BYTES_7, false, false>(bytes, batch),
            (7, true, false) => self.decode_as::<HEADER_BYTES_7, true, false>(bytes, batch),
            (7, false, true) => self.decode_as::<HEADER_BYTES_7, false, true>(bytes, batch),
            (7, true, true) => self.decode_as::<HEADER_BYTES_7, true, true>(bytes, batch),
            (_, false, _) => self.decode_as::<HEADER_BYTES_8, false, false>(bytes, batch),
            (_, true, _) => self.decode_as::<HEADER_BYTES_8, true, false>(bytes, batch),
        }
    }

    fn decode_as<const HEADER: usize, const BIG: bool, const CUT: bool>(
        &mut self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<usize, Stop> {
        let context = if self.has_context { CONTEXT_BYTES } else { 0 };
        let mut used = 0;
        loop {
            if context == 0 && !matches!(self.wall_clock, WallClock::Held { .. }) {
                used += self.decode_plain::<HEADER, BIG, CUT>(&bytes[used..], batch);
            }
            if CUT && let Some(length) = cut_payload::<BIG>(&bytes[used..], context) {
                if length > bytes.len() - used {
                    return Ok(used);
                }
                used += length;
                continue;
            }
            let Some(record) = bytes.get(used + context..).and_then(<[u8]>::first_chunk::<HEADER>) else {
                return Ok(used);
            };
            let magic = u32_of::<BIG>(record, 0);
            if magic != self.magic() {
                match lost_events(&bytes[used..]) {
                    Some((events, length)) => {
                        batch.push(Item::Dropped { events });
                        used += length;
                        continue;
                    }
                    None => return Err(Stop { at: used as i64, reason: wrong_magic(magic, self.version) }),
                }
            }
            let start = used + context + HEADER;
            let payload_bytes = Header::of::<HEADER, BIG, CUT>(record).payload_bytes;
            let Some(payload) = bytes.get(start..start + payload_bytes) else { return Ok(used) };
            self.record::<HEADER, BIG, CUT>(record, payload, batch);
            used = start + payload_bytes;
        }
    }

    /// Decodes the events at the start of `bytes` that are a record and nothing more, as most are; gives back how many
    /// bytes these were. How many come together is found first, so that they are appended without a question each.
    #[inline(always)]
    fn decode_plain<const HEADER: usize, const BIG: bool, const CUT: bool>(
        &self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> usize {
        let (records, _) = bytes.as_chunks::<HEADER>();
        let magic = self.magic();
        let is_plain = |record: &[u8; HEADER]| {
            let header = Header::of::<HEADER, BIG, CUT>(record);
            let is_whole = header.payload_bytes == 0 && !(CUT && is_told_by_payload(header.act));
            u32_of::<BIG>(record, 0) == magic && is_whole && header.is_event()
        };
        let some = &records[..records.len().min(RUN)];
        let count = some.iter().position(|record| !is_plain(record)).unwrap_or(some.len());
        batch.append(some[..count].iter().map(|record| event(&Header::of::<HEADER, BIG, CUT>(record))));
        count * HEADER
    }

    fn magic(&self) -> u32 {
        MAGIC | u32::from(self.version)
    }

    #[inline(never)]
    fn record<const HEADER: usize, const BIG: bool, const CUT: bool>(
        &mut self,
        record: &[u8; HEADER],
        payload: &[u8],
        batch: &mut Batch,
    ) {
        let header = Header::of::<HEADER, BIG, CUT>(record);
        if header.is_event() {
            if let WallClock::Held { time_ns, wall_ns, device } = self.wall_clock {
                self.judge_wall_clock([time_ns, wall_ns], device, header.time_ns, batch);
            }
            let event = event_with::<BIG>(&header, payload);
            batch.push_event(if CUT { without_payload(event) } else { event });
        } else if let Some(item) = self.note::<BIG>(&header, payload) {
            batch.push(item);
        }
    }

    /// The kernel writes the wall clock when it begins to trace a device (kernel/trace/blktrace.c, `trace_note_time`); what weir
    /// makes of recordings of many devices names none.
    #[cold]
    fn judge_wall_clock(
        &mut self,
        [time_ns, wall_ns]: [u64; 2],
        number: u32,
        event_ns: u64,
        batch: &mut Batch,
    ) {
        self.wall_clock = WallClock::Unusable;
        if time_ns <= event_ns {
            self.wall_clock = WallClock::Usable;
            batch.push(Item::WallClock { time_ns, wall_ns });
            batch.push(Item::Begun { time_ns, device: (number != 0).then(|| device(number)) });
        }
    }

    /// The wall clock, where it is already known to be that of the events.
    fn wall_clock(&mut self, time_ns: u64, wall_ns: u64, device: u32) -> Option<Item> {
        match self.wall_clock {
            WallClock::Unseen | WallClock::Held { .. } => {
                self.wall_clock = WallClock::Held { time_ns, wall_ns, device };
                None
            }
            WallClock::Usable => Some(Item::WallClock { time_ns, wall_ns }),
            WallClock::Unusable => None,
        }
    }

    /// What a notify record says; nothing where it is too short for its kind, or of a kind unknown.
    #[cold]
    fn note<const BIG: bool>(&mut self, header: &Header, payload: &[u8]) -> Option<Item> {
        // Linux 6.1 sets the cgroup bit on messages, with an id in front of the text.
        let (_, text) = cgroup_of::<BIG>(header.act, payload);
        match header.act & !CGROUP {
            NOTIFY_PROCESS => {
                let name = until_nul(&text[..text.len().min(NAME_BYTES_MAX)]);
                Some(Item::Process { pid: header.pid, process: 0, name })
            }
            NOTIFY_WALL_CLOCK => {
                let seconds = u64::from(u32_of::<BIG>(text.first_chunk::<8>()?, 0));
                let ns = u64::from(u32_of::<BIG>(text.first_chunk::<8>()?, 4));
                self.wall_clock(header.time_ns, seconds * NS_PER_S + ns, header.device)
            }
            NOTIFY_MESSAGE => Some(Item::Message {
                time_ns: header.time_ns,
                device: device(header.device),
                pid: header.pid,
                text: until_nul(text).trim_end_matches('\n').to_string(),
            }),
            _ => None,
        }
    }
}

/// Why a file that is not recognised is not one of blktrace's.
pub(super) fn why_not(head: &[u8]) -> &'static str {
    let magic = head.first_chunk::<4>().map(|first| [u32::from_le_bytes(*first), u32::from_be_bytes(*first)]);
    match magic {
        None => "too short for a recording",
        Some(orders) if orders.iter().any(|magic| magic & !VERSION_MASK == MAGIC) => {
            "blktrace records of a version other than 7 and 8"
        }
        Some(_) => "not a recording of a kind known here: blktrace's magic is missing",
    }
}

/// Version and byte order of the record that starts here, if one does.
fn version_of(head: &[u8]) -> Option<(u8, bool)> {
    let first = *head.first_chunk::<4>()?;
    let orders = [(u32::from_le_bytes(first), false), (u32::from_be_bytes(first), true)];
    orders.into_iter().find_map(|(magic, big_endian)| {
        let version = (magic & VERSION_MASK) as u8;
        (magic & !VERSION_MASK == MAGIC && matches!(version, 7 | 8)).then_some((version, big_endian))
    })
}

/// Whether the record that starts here is cut from version 8, which has a device, with its major number, where version 7
/// has a CPU.
fn is_cut<const BIG: bool>(head: &[u8]) -> bool {
    head.first_chunk::<HEADER_BYTES_7>().is_some_and(|record| u32_of::<BIG>(record, 40) >> MINOR_BITS != 0)
}

/// The length of what a cut record has behind it, where that stands here and no record: one or the end of `bytes` follows.
#[inline(never)]
fn cut_payload<const BIG: bool>(bytes: &[u8], context: usize) -> Option<usize> {
    let length = usize::from(u16_of::<BIG>(bytes.first_chunk::<4>()?, 2));
    let is_record =
        |at: usize| bytes.get(at + context..)?.first_chunk::<4>().map(|next| version_of(next).is_some());
    let is_followed =
        is_record(length).unwrap_or(true) || bytes.get(length..).is_some_and(|next| next.starts_with(LOST));
    let is_payload = (4..=CUT_PAYLOAD_MAX).contains(&length) && is_record(0) == Some(false) && is_followed;
    is_payload.then_some(length)
}

/// Acts of which the payload says more than the record.
fn is_told_by_payload(act: u32) -> bool {
    matches!(act_of(act & !CGROUP), Act::Split | Act::Remap | Act::Unplug | Act::UnplugTimer)
}

/// What is known of an event whose payload is cut off: a split's rest begins where its front ends; where a bio was remapped
/// from is not known, so that nothing can follow from it.
fn without_payload(event: Event) -> Event {
    match event.act {
        Act::Split => Event { detail: event.sector.saturating_add(u64::from(event.bytes) / 512), ..event },
        Act::Remap => Event { act: Act::Unknown, ..event },
        _ => event,
    }
}

/// What ftrace's line about losses says, and the line's length. One without a number speaks of one event at least.
#[cold]
fn lost_events(bytes: &[u8]) -> Option<(u64, usize)> {
    let line = &bytes[..bytes.len().min(LOST_BYTES_MAX)];
    let length = line.iter().position(|&byte| byte == b'\n')? + 1;
    let line = std::str::from_utf8(line.strip_prefix(LOST)?.get(..length - 1 - LOST.len())?).ok()?;
    let (_, lost) = line.split_once("[LOST ")?;
    let events = lost.strip_suffix("EVENTS]")?.trim();
    let events = if events.is_empty() { 1 } else { events.parse().ok()? };
    Some((events, length))
}

fn wrong_magic(magic: u32, version: u8) -> String {
    let expected = MAGIC | u32::from(version);
    format!("no record starts here: expected 0x{expected:08x}, got 0x{magic:08x}")
}

impl Header {
    /// Whether it is an event rather than a note.
    #[inline(always)]
    fn is_event(&self) -> bool {
        self.categories & CATEGORY_NOTIFY == 0
    }

    #[inline(always)]
    fn of<const HEADER: usize, const BIG: bool, const CUT: bool>(record: &[u8; HEADER]) -> Header {
        let version_7 = HEADER == HEADER_BYTES_7 && !CUT;
        let at = |v7: usize, v8: usize| if version_7 { v7 } else { v8 };
        let (act, categories) = if version_7 {
            let action = u32_of::<BIG>(record, 28);
            (action & 0xffff, u64::from(action >> CATEGORY_SHIFT))
        } else {
            let action = u64_of::<BIG>(record, 32);
            (action as u32 & 0xffff, action >> CATEGORY_SHIFT)
        };
        Header {
            sequence: u32_of::<BIG>(record, 4),
            time_ns: u64_of::<BIG>(record, 8),
            sector: u64_of::<BIG>(record, 16),
            bytes: u32_of::<BIG>(record, 24),
            act,
            categories,
            pid: u32_of::<BIG>(record, at(32, 28)),
            device: u32_of::<BIG>(record, at(36, 40)),
            cpu: u32_of::<BIG>(record, at(40, 44)),
            error: if CUT { 0 } else { u16_of::<BIG>(record, at(44, 48)) },
            payload_bytes: if CUT { 0 } else { usize::from(u16_of::<BIG>(record, at(46, 50))) },
        }
    }
}

#[inline(always)]
fn event(header: &Header) -> Event {
    Event {
        time_ns: header.time_ns,
        sector: header.sector,
        bytes: header.bytes,
        act: act_of(header.act & !CGROUP),
        flags: Flags(header.categories as u32 & KINDS),
        device: device(header.device),
        pid: header.pid,
        cpu: header.cpu,
        // A negative errno in 16 bits.
        error: i32::from(header.error as i16),
        sequence: header.sequence,
        ..Event::default()
    }
}

fn event_with<const BIG: bool>(header: &Header, payload: &[u8]) -> Event {
    let (cgroup, payload) = cgroup_of::<BIG>(header.act, payload);
    let event = event(header);
    let (detail, from) = detail(event.act, payload);
    Event { cgroup, detail, from, ..event }
}

fn detail(act: Act, payload: &[u8]) -> (u64, DeviceNumber) {
    let none = (0, DeviceNumber::default());
    match act {
        Act::Unplug | Act::UnplugTimer | Act::Split => {
            payload.first_chunk::<8>().map_or(none, |bytes| (u64::from_be_bytes(*bytes), none.1))
        }
        Act::Remap => payload
            .first_chunk::<16>()
            .map_or(none, |bytes| (u64_of::<true>(bytes, 8), device(u32_of::<true>(bytes, 0)))),
        _ => none,
    }
}

/// The cgroup's id where the act says that there is one, and the payload behind it.
fn cgroup_of<const BIG: bool>(act: u32, payload: &[u8]) -> (u64, &[u8]) {
    match payload.split_first_chunk::<8>() {
        Some((id, rest)) if act & CGROUP != 0 => (u64_of::<BIG>(id, 0), rest),
        _ => (0, payload),
    }
}

fn act_of(act: u32) -> Act {
    // In the order of the numbers; 0 is none.
    const ACTS: [Act; 18] = [
        Act::Unknown,
        Act::Queue,
        Act::BackMerge,
        Act::FrontMerge,
        Act::GetRequest,
        Act::SleepRequest,
        Act::Requeue,
        Act::Issue,
        Act::Complete,
        Act::Plug,
        Act::Unplug,
        Act::UnplugTimer,
        Act::Insert,
        Act::Split,
        Act::Bounce,
        Act::Remap,
        Act::Abort,
        Act::DriverData,
    ];
    ACTS.get(act as usize).copied().unwrap_or(Act::Unknown)
}

fn device(number: u32) -> DeviceNumber {
    DeviceNumber { major: number >> MINOR_BITS, minor: number & ((1 << MINOR_BITS) - 1) }
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[inline(always)]
fn u16_of<const BIG: bool>(bytes: &[u8], at: usize) -> u16 {
    let field = bytes[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) }
}

#[inline(always)]
fn u32_of<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let field = bytes[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
}

#[inline(always)]
fn u64_of<const BIG: bool>(bytes: &[u8], at: usize) -> u64 {
    let field = bytes[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u64::from_be_bytes(field) } else { u64::from_le_bytes(field) }
}
