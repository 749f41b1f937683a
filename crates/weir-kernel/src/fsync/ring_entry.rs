//! What the programs write into the ring and the tables, as bytes; the structures are in `src/bpf/fsync_state.h`.

use weir_blocktrace::fsync::{Call, FileId, Io, IoFlags};
use weir_core::target::DeviceNumber;

/// Length of `struct sync`.
pub(super) const SYNC_BYTES: usize = HEAD_BYTES + WAITS * WAIT_BYTES + 72;
const HEAD_BYTES: usize = 120;
const WAIT_BYTES: usize = 32;
const WAITS: usize = 8;
const IO_BYTES: usize = 72;
const FRAMES_AT: usize = 24;
const SLEEPS_AT: usize = SYNC_BYTES - 16;
const COMM_BYTES: usize = 16;

const RECORD_SYNC: u32 = 1;
const RECORD_IO: u32 = 2;
const RECORD_STACK: u32 = 3;
const LOOKED_INTO: u8 = 1;
const SKIMMED: u8 = 2;

/// Whether the stack of a wait was taken; `NO_STACK` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackTaken {
    No,
    ByChance,
    ForSure,
}

/// A wait as the kernel stamped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawWait {
    pub start_ns: u64,
    pub end_ns: u64,
    pub runnable_ns: u64,
    pub stack: StackTaken,
}

/// `struct sync`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawSync {
    pub tid: u32,
    pub tgid: u32,
    pub comm: String,
    pub call: Call,
    pub device: Option<DeviceNumber>,
    pub file: Option<FileId>,
    pub start_ns: u64,
    pub end_ns: Option<u64>,
    pub waiting_since_ns: Option<u64>,
    /// And looked into.
    pub under_way: bool,
    /// Under way, but only its ends are stamped.
    pub skimmed: bool,
    /// How often its task had slept when it began, where only its ends are stamped; `None` in records of the ring.
    pub sleeps: Option<u64>,
    /// 0 where all of it was looked into.
    pub seen_from_ns: u64,
    pub waits: Vec<RawWait>,
}

/// A record of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RingEntry {
    Sync(RawSync),
    Io(Io),
    Stack { tid: u32, wait_start_ns: u64, frames: Vec<u64> },
}

/// Reads a record; `None` if it is none that the programs write.
pub(super) fn record(bytes: &[u8]) -> Option<RingEntry> {
    match u32_at(bytes, 0)? {
        RECORD_SYNC => Some(RingEntry::Sync(sync(bytes)?)),
        RECORD_IO => Some(RingEntry::Io(io(bytes)?)),
        RECORD_STACK => {
            let held = usize::try_from(u64_at(bytes, 16)?).ok()?;
            let frames = (0..held).map(|i| u64_at(bytes, FRAMES_AT + 8 * i)).take_while(|f| *f != Some(0));
            Some(RingEntry::Stack {
                tid: u32_at(bytes, 4)?,
                wait_start_ns: u64_at(bytes, 8)?,
                frames: frames.collect::<Option<Vec<u64>>>()?,
            })
        }
        _ => None,
    }
}

/// Reads a `struct sync`, whole or cut behind its last wait.
pub(super) fn sync(bytes: &[u8]) -> Option<RawSync> {
    let inode = u64_at(bytes, 24)?;
    let file_system = u32_at(bytes, 16)?;
    let held = usize::from(*bytes.get(21)?).min(WAITS);
    let wait = |i: usize| {
        let at = HEAD_BYTES + i * WAIT_BYTES;
        Some(RawWait {
            start_ns: u64_at(bytes, at)?,
            end_ns: u64_at(bytes, at + 8)?,
            runnable_ns: u64_at(bytes, at + 16)?,
            stack: stack_taken(u64_at(bytes, at + 24)?)?,
        })
    };
    Some(RawSync {
        tid: u32_at(bytes, 4)?,
        tgid: u32_at(bytes, 8)?,
        comm: text(bytes.get(80..80 + COMM_BYTES)?),
        call: call(*bytes.get(20)?)?,
        device: device(u32_at(bytes, 12)?),
        file: (inode != 0).then_some(FileId { file_system: number(file_system), inode }),
        start_ns: u64_at(bytes, 32)?,
        end_ns: (*bytes.get(23)? != 0).then_some(u64_at(bytes, 40)?),
        waiting_since_ns: Some(u64_at(bytes, 48)?).filter(|ns| *ns != 0),
        under_way: *bytes.get(22)? == LOOKED_INTO,
        skimmed: *bytes.get(22)? == SKIMMED,
        sleeps: u64_at(bytes, SLEEPS_AT),
        seen_from_ns: u64_at(bytes, 112)?,
        waits: (0..held).map(wait).collect::<Option<Vec<RawWait>>>()?,
    })
}

/// The thread of a `struct sync` that waits for nothing, and since when it has begun nothing.
pub(super) fn idle_since(bytes: &[u8]) -> Option<(u32, u64)> {
    let (is_under_way, stalled_ns) = (*bytes.get(22)? != 0, u64_at(bytes, 64)?);
    (!is_under_way && stalled_ns == 0)
        .then_some((u32_at(bytes, 4)?, u64_at(bytes, 32)?.max(u64_at(bytes, 40)?)))
}

/// A `struct sync` for a task that was inside a call, asleep, before the programs came.
pub(super) fn begun_before(tid: u32, tgid: u32, comm: &str, call: u8, disk: u32, now_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0; SYNC_BYTES];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &RECORD_SYNC.to_ne_bytes());
    put(4, &tid.to_ne_bytes());
    put(8, &tgid.to_ne_bytes());
    put(12, &disk.to_ne_bytes());
    put(20, &[call, 0, LOOKED_INTO, 0]);
    put(32, &now_ns.to_ne_bytes());
    put(48, &now_ns.to_ne_bytes());
    let comm = comm.as_bytes();
    put(80, &comm[..comm.len().min(COMM_BYTES - 1)]);
    bytes
}

fn io(bytes: &[u8]) -> Option<Io> {
    if bytes.len() < IO_BYTES {
        return None;
    }
    let inode = u64_at(bytes, 40)?;
    let file = FileId { file_system: number(u32_at(bytes, 48)?), inode };
    Some(Io {
        device: number(u32_at(bytes, 4)?),
        complete_ns: u64_at(bytes, 8)?,
        issue_ns: u64_at(bytes, 16)?,
        get_ns: u64_at(bytes, 24)?,
        queue_ns: u64_at(bytes, 32)?,
        file: (inode != 0).then_some(file),
        owner_tgid: u32_at(bytes, 52)?,
        own_tid: u32_at(bytes, 56)?,
        bytes: u32_at(bytes, 60)?,
        flags: IoFlags(u32_at(bytes, 64)?),
        raw_device: device(u32_at(bytes, 68)?),
    })
}

/// The numbers of the enumeration in `fsync_state.h`.
pub(super) fn call(number: u8) -> Option<Call> {
    Some(match number {
        1 => Call::Fsync,
        2 => Call::Fdatasync,
        3 | 4 => Call::SyncWrite,
        5 => Call::SyncFileRange,
        6 => Call::Msync,
        7 => Call::Syncfs,
        8 => Call::Sync,
        _ => return None,
    })
}

fn stack_taken(number: u64) -> Option<StackTaken> {
    Some(match number {
        0 => StackTaken::No,
        1 => StackTaken::ByChance,
        2 => StackTaken::ForSure,
        _ => return None,
    })
}

/// The kernel's own packing of a device number (include/linux/kdev_t.h).
pub(crate) fn number(packed: u32) -> DeviceNumber {
    DeviceNumber { major: packed >> 20, minor: packed & 0xf_ffff }
}

fn device(packed: u32) -> Option<DeviceNumber> {
    (packed != 0).then(|| number(packed))
}

pub(super) fn packed(number: DeviceNumber) -> u32 {
    number.major << 20 | number.minor
}

/// A name padded with zeros.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let disk = packed(DeviceNumber { major: 259, minor: 3 });
        let bytes = begun_before(7, 6, "a name longer than it may be", 2, disk, 99);
        let sync = sync(&bytes).unwrap();
        assert_eq!((sync.tid, sync.tgid, sync.call, sync.start_ns), (7, 6, Call::Fdatasync, 99));
        assert_eq!(sync.comm, "a name longer t");
        assert_eq!(sync.device, Some(DeviceNumber { major: 259, minor: 3 }));
        assert_eq!((sync.under_way, sync.end_ns, sync.waiting_since_ns), (true, None, Some(99)));
        assert_eq!(size_of::<super::super::kernel::types::sync>(), SYNC_BYTES);
        assert_eq!(size_of::<super::super::kernel::types::wait>(), WAIT_BYTES);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        for length in 0..SYNC_BYTES {
            for kind in 0..5_u32 {
                let mut bytes = vec![0xff; length];
                bytes.iter_mut().zip(kind.to_ne_bytes()).for_each(|(to, from)| *to = from);
                let is_whole_io = kind == RECORD_IO && length >= IO_BYTES;
                assert_eq!(record(&bytes).is_some(), is_whole_io, "{length} bytes of kind {kind}");
            }
        }
    }
}
