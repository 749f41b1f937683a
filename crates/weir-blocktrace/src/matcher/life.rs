//! What is in flight: bios, the parts they are cut into, and the requests these travel in.

use super::Reason;
use super::index::Direction;
use super::slab::{Id, NONE};
use crate::{Event, Flags, Kind};

/// A moment that has not been.
pub(super) const NEVER: u64 = crate::life::ABSENT;
/// log2 of a sector's bytes.
const SECTOR_BITS: u32 = 9;

/// A bio on one device, from its Q (or from the remap that brought it there).
#[derive(Debug, Clone, Copy)]
pub(super) struct BioLife {
    pub device: u16,
    pub flags: Flags,
    pub sector: u64,
    pub bytes: u32,
    pub pid: u32,
    pub cgroup: u64,
    /// Its Q; [`NEVER`] where it was not seen.
    pub queued_ns: u64,
    /// The end of its last part so far.
    pub end_ns: u64,
    pub error: i32,
    /// Parts made and parts not done.
    pub parts: u32,
    pub open: u32,
    /// The first of its parts that wait.
    pub waiting: Id,
    /// Why a part was given up: the bio has no end.
    pub lost: Option<Reason>,
    /// A remap brought it here and its Q may still come.
    pub awaits_queue: bool,
    /// The bio above that it serves, where that is known and still in flight.
    pub above: Id,
    pub above_generation: u32,
    /// Remaps of it and its descendants, those still in flight, and the bytes done below.
    pub remaps: u32,
    pub below_open: u32,
    pub below_bytes: u64,
    pub below_end_ns: u64,
    /// Events of it that belong to no request.
    pub events: u32,
}

impl BioLife {
    /// A bio as an event before its dispatch shows it.
    #[inline]
    pub(super) fn of(event: &Event, device: u16, queued_ns: u64) -> BioLife {
        BioLife {
            device,
            flags: event.flags,
            sector: event.sector,
            bytes: event.bytes,
            pid: event.pid,
            cgroup: event.cgroup,
            queued_ns,
            end_ns: 0,
            error: 0,
            parts: 0,
            open: 0,
            waiting: NONE,
            lost: None,
            awaits_queue: false,
            above: NONE,
            above_generation: 0,
            remaps: 0,
            below_open: 0,
            below_bytes: 0,
            below_end_ns: 0,
            events: 0,
        }
    }

    /// Whether all of it has been done on devices below.
    pub(super) fn is_done_below(&self) -> bool {
        self.remaps > 0 && self.below_open == 0 && self.below_bytes >= u64::from(self.bytes)
    }
}

/// A bio or what was cut from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub bio: Id,
    pub sector: u64,
    pub bytes: u32,
    pub kind: Kind,
    pub direction: Direction,
    pub identity: u64,
    /// The request it is in; [`NONE`] while it waits.
    pub request: Id,
    /// The next part in its request, or of its bio's parts that wait; and the one before among these.
    pub next: Id,
    pub before: Id,
    pub got_ns: u64,
    pub merged_ns: u64,
    /// Insertion of the request it had before that was merged into this one.
    pub inserted_ns: u64,
    /// Where its next piecewise remap starts; [`NEVER`] where none is expected.
    pub cursor: u64,
    /// Last time anything happened to it while it waited.
    pub last_ns: u64,
}

impl Part {
    /// All of a bio, as the event says it; nothing has happened to it yet.
    #[inline]
    pub(super) fn whole(bio: Id, event: &Event, direction: Direction) -> Part {
        Part {
            bio,
            sector: event.sector,
            bytes: event.bytes,
            kind: Kind::Whole,
            direction,
            identity: 0,
            request: NONE,
            next: NONE,
            before: NONE,
            got_ns: NEVER,
            merged_ns: NEVER,
            inserted_ns: NEVER,
            cursor: NEVER,
            last_ns: event.time_ns,
        }
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        end_of(self.sector, self.bytes)
    }
}

/// Where a request stands, and thus under which keys it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// By start, by end.
    Got,
    /// By the first sector not yet done.
    Issued,
    /// Data done; its flush sequence is not.
    Ending,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLife {
    pub device: u16,
    pub direction: Direction,
    pub state: State,
    pub flags: Flags,
    /// What was asked for at G; the driver's command says less where the block layer does part of it.
    pub asked: Flags,
    pub sector: u64,
    pub bytes: u32,
    /// While issued: what is not yet done.
    pub rest_sector: u64,
    pub rest_bytes: u32,
    pub first: Id,
    pub last: Id,
    pub parts: u32,
    pub inserted_ns: u64,
    pub issued_ns: u64,
    pub data_done_ns: u64,
    pub requeues: u16,
    pub completions: u16,
    pub error: i32,
    /// Thread of its first event here.
    pub pid: u32,
    pub identity: u64,
    pub first_bio: u64,
    pub events: u32,
    pub last_ns: u64,
}

impl RequestLife {
    /// A request as an event shows it, without parts.
    #[inline]
    pub(super) fn of(event: &Event, device: u16, direction: Direction) -> RequestLife {
        RequestLife {
            device,
            direction,
            state: State::Got,
            flags: event.flags,
            asked: event.flags,
            sector: event.sector,
            bytes: event.bytes,
            rest_sector: event.sector,
            rest_bytes: event.bytes,
            first: NONE,
            last: NONE,
            parts: 0,
            inserted_ns: NEVER,
            issued_ns: NEVER,
            data_done_ns: NEVER,
            requeues: 0,
            completions: 0,
            error: 0,
            pid: event.pid,
            identity: 0,
            first_bio: 0,
            events: 0,
            last_ns: event.time_ns,
        }
    }

    /// Whether its last completion with data is not its end. A request that empties the cache first always takes its
    /// way through the flush machinery, which completes it once more; one that is only to be durable does where the
    /// driver was not asked for that (Linux block/blk-flush.c, `blk_flush_complete_seq`).
    pub(super) fn has_flush_sequence(&self) -> bool {
        self.bytes > 0 && (self.asked.has(Flags::FLUSH) || self.is_flushed_after())
    }

    /// Whether a flush after its data makes it durable.
    pub(super) fn is_flushed_after(&self) -> bool {
        self.asked.has(Flags::FUA) && !self.flags.has(Flags::FUA)
    }
}

/// The sector behind the last. Data is not to be trusted to make sense, so it wraps.
#[inline]
pub(super) fn end_of(sector: u64, bytes: u32) -> u64 {
    sector.wrapping_add(u64::from(bytes >> SECTOR_BITS))
}

/// Direction of a bio before its dispatch.
#[inline]
pub(super) fn direction_of_bio(flags: Flags, bytes: u32) -> Direction {
    if flags.has(Flags::FLUSH) && bytes == 0 { Direction::FlushBio } else { direction_of_data(flags) }
}

/// Direction of a request at the driver.
#[inline]
pub(super) fn direction_of_request(flags: Flags, bytes: u32) -> Direction {
    if flags.has(Flags::FLUSH) && bytes == 0 { Direction::FlushCommand } else { direction_of_data(flags) }
}

#[inline]
fn direction_of_data(flags: Flags) -> Direction {
    if flags.has(Flags::PASSTHROUGH) {
        Direction::Passthrough
    } else if flags.has(Flags::DISCARD) {
        Direction::Discard
    } else if flags.has(Flags::WRITE) {
        Direction::Write
    } else {
        Direction::Read
    }
}

/// Where it is looked for: a passthrough command has no sector that means anything.
#[inline]
pub(super) fn place_of(direction: Direction, sector: u64) -> u64 {
    if direction == Direction::Passthrough { 0 } else { sector }
}
