//! Cuts a wait by the completions on the device it waited for.
//!
//! The rule: the time between two completions of a device belongs to the request that completes at its end, for that
//! is what the device was busy with, or delayed for. So a wait is cut at each completion; a piece that ends with
//! another's request was spent behind that one's owner; a piece that ends with a request of the sync's own is
//! cut further by that request's life: before it was made (held), until it went to the driver (queue), in the
//! device. After the last completion comes the kernel's own work: the wake-up, a journal thread, a lock.
//!
//! A device serves several requests at once, and then another's completion need not have delayed ours. Therefore the
//! last part of a wait before a completion of its own, as long as the fastest request of that kind and size took
//! in the device, is always the device's, never another's.

use serde::{Deserialize, Serialize};

use super::part::Io;
use weir_core::target::DeviceNumber;

/// Why a piece of a wait passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// The device, or what holds requests back before it, served somebody else.
    Others,
    /// The same for other files of the same process.
    OwnOthers,
    /// The sync's own I/O was not yet a request: throttled, or not yet submitted.
    Held,
    /// From the request to the driver: plug, scheduler, hardware queue.
    Queue,
    /// In the device and its driver.
    Device,
    /// In the device, as a flush of its cache.
    DeviceFlush,
    /// No I/O of the device completed any more: wake-ups, work of kernel threads, locks.
    Kernel,
    /// Not known: of the devices that serve the sync no request was ever seen (a file system over the network, persistent memory).
    Unseen,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// In the order of reports.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Others,
        Cause::OwnOthers,
        Cause::Held,
        Cause::Queue,
        Cause::Device,
        Cause::DeviceFlush,
        Cause::Kernel,
        Cause::Unseen,
    ];

    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Others => "others' I/O",
            Cause::OwnOthers => "own I/O",
            Cause::Held => "held",
            Cause::Queue => "queue",
            Cause::Device => "device",
            Cause::DeviceFlush => "flush",
            Cause::Kernel => "kernel",
            Cause::Unseen => "not seen",
        }
    }
}

/// Whose a request is. Where no page of a file tells, it is that of any who send such to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A process whose pages are written back.
    Process(u32),
    /// Readers of a disk.
    Reads(DeviceNumber),
    /// Writers past the page cache, and kernel threads that write for others.
    DirectWrites(DeviceNumber),
    /// Those who free blocks: fstrim, file systems mounted with `discard`.
    Discards(DeviceNumber),
    /// As direct writes, where a layer under the sync's file system writes copies of its own.
    PassedOn(DeviceNumber),
    /// Dirty pages of files that nobody was seen to write.
    Unseen,
}

/// How a request stands to a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Its data, its journal, its flush.
    Own,
    /// Another file of its process.
    OwnProcess,
    /// Somebody else's.
    Other(Owner),
}

/// A piece of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub cause: Cause,
    pub owner: Option<Owner>,
    pub length_ns: u64,
}

/// A completion as [`cut`] sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion {
    pub io: Io,
    pub relation: Relation,
    /// The least that a request like this has taken in the device.
    pub fastest_ns: u64,
}

/// Cuts the wait `[start_ns, end_ns]`; `completions` are those in it, by time. The pieces add up to the wait.
pub(super) fn cut(start_ns: u64, end_ns: u64, completions: &[Completion], mut piece: impl FnMut(Piece)) {
    let mut emit = |cause, owner, length_ns| {
        if length_ns > 0 {
            piece(Piece { cause, owner, length_ns });
        }
    };
    let last_ns = completions.last().map_or(start_ns, |last| last.io.complete_ns.clamp(start_ns, end_ns));
    emit(Cause::Kernel, None, end_ns - last_ns);
    let mut claim_ns = u64::MAX;
    for (i, at) in completions.iter().enumerate().rev() {
        let to_ns = at.io.complete_ns.clamp(start_ns, end_ns);
        let from_ns = i
            .checked_sub(1)
            .map_or(start_ns, |before| completions[before].io.complete_ns.clamp(start_ns, to_ns));
        match at.relation {
            Relation::Own => {
                claim_ns = claim_ns.min(at.io.complete_ns.saturating_sub(at.fastest_ns));
                own(from_ns, to_ns, &at.io, &mut emit);
            }
            Relation::OwnProcess => {
                let mine_ns = claim_ns.clamp(from_ns, to_ns);
                emit(Cause::Device, None, to_ns - mine_ns);
                emit(Cause::OwnOthers, None, mine_ns - from_ns);
            }
            Relation::Other(owner) => {
                let mine_ns = claim_ns.clamp(from_ns, to_ns);
                emit(Cause::Device, None, to_ns - mine_ns);
                emit(Cause::Others, Some(owner), mine_ns - from_ns);
            }
        }
    }
}

/// Cuts a piece that ends with a request of the sync's own by that request's life.
fn own(from_ns: u64, to_ns: u64, io: &Io, emit: &mut impl FnMut(Cause, Option<Owner>, u64)) {
    let get_ns = io.get_ns.clamp(from_ns, to_ns);
    let issue_ns = if io.issue_ns == 0 { get_ns } else { io.issue_ns.clamp(get_ns, to_ns) };
    emit(Cause::Held, None, get_ns - from_ns);
    emit(Cause::Queue, None, issue_ns - get_ns);
    let in_device = if io.flags.is_flush() { Cause::DeviceFlush } else { Cause::Device };
    emit(in_device, None, to_ns - issue_ns);
}
