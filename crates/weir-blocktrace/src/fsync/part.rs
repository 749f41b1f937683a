//! What is known of syncs and of the requests that completed beside them.

use serde::{Deserialize, Serialize};

use super::phase::SiteId;
use weir_core::target::DeviceNumber;

/// A system call that returns when something is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// A write to a file opened with O_SYNC or O_DSYNC, or with RWF_SYNC or RWF_DSYNC.
    SyncWrite,
    /// sync_file_range(2): no journal, no flush.
    SyncFileRange,
    /// msync(2) with MS_SYNC.
    Msync,
    /// syncfs(2).
    Syncfs,
    /// sync(2).
    Sync,
}

impl Call {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Call::Fsync => "fsync",
            Call::Fdatasync => "fdatasync",
            Call::SyncWrite => "O_SYNC write",
            Call::SyncFileRange => "sync_file_range",
            Call::Msync => "msync",
            Call::Syncfs => "syncfs",
            Call::Sync => "sync",
        }
    }
}

/// An inode of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The number that stat(2) says as `st_dev`; btrfs says another there for each subvolume.
    pub file_system: DeviceNumber,
    /// Inode.
    pub inode: u64,
}

/// A time off the CPU inside a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When the task left the CPU.
    pub start_ns: u64,
    /// When it was back on one.
    pub end_ns: u64,
    /// How much of it, at its end, the task could have run but had no CPU.
    pub runnable_ns: u64,
    /// Where it slept, if its stack was taken.
    pub site: Option<SiteId>,
    /// Whether that was left to chance, as it is of short waits of most syncs; see [`super::Sampling`].
    pub by_chance: bool,
}

/// A sync, or the next stretch of one. Stretches of the same sync have the same `tid` and `start_ns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Thread.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// The thread's name.
    pub comm: String,
    /// What was called.
    pub call: Call,
    /// The disk under the file; `None` where the kernel did not say (sync(2)).
    pub device: Option<DeviceNumber>,
    /// The file.
    pub file: Option<FileId>,
    /// When the call began.
    pub start_ns: u64,
    /// When it returned; `None` while it is under way.
    pub end_ns: Option<u64>,
    /// What it did before this was not looked at; 0 where all was.
    pub seen_from_ns: u64,
    /// Its waits, in order; those of earlier parts need not be repeated.
    pub waits: Vec<Wait>,
}

/// What lies under a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beneath {
    /// The devices that serve its requests: itself, or those under a device-mapper or md device.
    pub leaves: Vec<DeviceNumber>,
    /// Those of the leaves that are one of several ways to another leaf (NVMe), with that one: a way completes the requests, and senders
    /// are counted by the other.
    pub paths: Vec<(DeviceNumber, DeviceNumber)>,
    /// A layer writes copies of what it gets (dm-crypt, md's RAID 4 to 6): they tell neither their file nor their writer.
    pub has_copies: bool,
}

/// A sync, as far as it is known from its beginning on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Thread.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// The thread's name.
    pub comm: String,
    /// What was called.
    pub call: Call,
    /// The disk under the file, where it is known.
    pub device: Option<DeviceNumber>,
    /// When the call began, CLOCK_MONOTONIC.
    pub start_ns: u64,
}

impl Begun {
    /// The sync that a stretch is of.
    pub(super) fn of(part: &Part) -> Begun {
        Begun {
            tid: part.tid,
            tgid: part.tgid,
            comm: part.comm.clone(),
            call: part.call,
            device: part.device,
            start_ns: part.start_ns,
        }
    }
}

/// Short syncs of a process that were counted only: of one call, and of one length class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skimmed {
    /// The process.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// What was called.
    pub call: Call,
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub took_ns: u64,
}

/// A request's `cmd_flags` (include/linux/blk_types.h; unchanged from 5.10 to 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoFlags(pub u32);

impl IoFlags {
    const META: u32 = 1 << 12;

    /// The operation: 0 read, 1 write, 2 flush, 3 discard.
    pub fn op(self) -> u8 {
        self.0 as u8
    }

    /// Whether it is a cache flush.
    pub fn is_flush(self) -> bool {
        self.op() == 2
    }

    /// Whether it reads.
    pub fn is_read(self) -> bool {
        self.op() == 0
    }

    /// Whether it frees blocks or makes them zeros: discard, secure erase, write zeroes.
    pub fn is_discard(self) -> bool {
        matches!(self.op(), 3 | 5 | 9)
    }

    /// Whether it holds metadata: journals, logs, trees.
    pub fn is_metadata(self) -> bool {
        self.0 & IoFlags::META != 0
    }
}

/// A request, or a part of one, that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// The disk.
    pub device: DeviceNumber,
    /// C.
    pub complete_ns: u64,
    /// D; 0 if not known.
    pub issue_ns: u64,
    /// G; 0 if not known.
    pub get_ns: u64,
    /// Q; 0 if not known.
    pub queue_ns: u64,
    /// The file whose page it wrote or read first.
    pub file: Option<FileId>,
    /// The process that dirtied that file last; 0 if not known.
    pub owner_tgid: u32,
    /// The thread inside a sync that submitted it; 0 if none did.
    pub own_tid: u32,
    /// Length.
    pub bytes: u32,
    /// Operation and flags.
    pub flags: IoFlags,
    /// The device (a partition, say) whose own pages it wrote: metadata of the file system there, as a rule.
    pub raw_device: Option<DeviceNumber>,
}
