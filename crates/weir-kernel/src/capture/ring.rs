//! The rings that the programs write and user space reads, one a CPU; `src/bpf/record.bpf.c` is their other end.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_blocktrace::recording::{BLOCK_HEAD_BYTES, BlockKind, Kind, block};

/// Bytes behind each ring that its last record may run into (SPILL).
pub const SPILL_BYTES: usize = 64;
/// Sizes that a ring can have: an array map's value was at most 4 MiB in kernels before 6.6.
pub const RING_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=2 << 20;
/// Words of a lane: head, dropped, padding; tail, padding. The tail has a cache line of its own.
const LANE_WORDS: usize = 16;
const DROPPED: usize = 1;
const TAIL: usize = 8;

/// A shared mapping of an array map.
struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is only touched through atomics and through the ranges that their order hands over.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: BorrowedFd, bytes: usize) -> io::Result<Mapping> {
        use std::os::fd::AsRawFd;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let address = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, map.as_raw_fd(), 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Mapping { start, words: bytes / 8 })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < self.words);
        // SAFETY: within the mapping, which lives as long as self and is aligned to pages.
        unsafe { self.start.add(at).as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what new() mapped, once; nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}

/// All rings.
pub struct Rings {
    lanes: Mapping,
    rings: Mapping,
    cpus: usize,
    /// Of one ring; a power of two.
    ring_bytes: usize,
}

/// What a turn over one ring brought.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drained {
    /// Bytes of records.
    pub bytes: usize,
    /// Events.
    pub events: u64,
    /// The time of the first record left there, where any was left.
    pub left_ns: Option<u64>,
    /// A record was begun and is not complete.
    pub blocked: bool,
}

impl Rings {
    /// Maps the maps `lanes` and `rings`.
    pub fn new(lanes: BorrowedFd, rings: BorrowedFd, cpus: usize, ring_bytes: usize) -> io::Result<Rings> {
        // mmap takes whole pages, and the map's memory is rounded up to them.
        let page = page_bytes();
        let lanes = Mapping::new(lanes, (cpus * LANE_WORDS * 8).next_multiple_of(page))?;
        let rings = Mapping::new(rings, (cpus * (ring_bytes + SPILL_BYTES)).next_multiple_of(page))?;
        Ok(Rings { lanes, rings, cpus, ring_bytes })
    }

    /// CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Events that found this CPU's ring full.
    pub fn dropped(&self, cpu: usize) -> u64 {
        self.lanes.word(cpu * LANE_WORDS + DROPPED).load(Ordering::Relaxed)
    }

    /// How full this CPU's ring is, bytes.
    pub fn waiting_bytes(&self, cpu: usize) -> usize {
        let head = self.lanes.word(cpu * LANE_WORDS).load(Ordering::Relaxed);
        let tail = self.tail(cpu).load(Ordering::Relaxed);
        head.wrapping_sub(tail) as usize
    }

    /// Size of each ring, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Appends a block with this CPU's complete records, at most `bytes_max` of them; nothing if there are none.
    pub fn drain(&mut self, cpu: usize, bytes_max: usize, out: &mut Vec<u8>) -> Drained {
        let head = self.lanes.word(cpu * LANE_WORDS).load(Ordering::Acquire);
        let mut tail = self.tail(cpu).load(Ordering::Relaxed);
        let mut drained = Drained::default();
        let place = out.len();
        out.extend_from_slice(&[0; BLOCK_HEAD_BYTES]);
        while tail < head && drained.bytes < bytes_max {
            let (bytes, events) = self.run(cpu, tail, (head - tail) as usize, bytes_max - drained.bytes);
            if bytes == 0 {
                drained.blocked = true;
                break;
            }
            self.take(cpu, tail, bytes, out);
            tail += bytes as u64;
            drained.bytes += bytes;
            drained.events += events;
            self.tail(cpu).store(tail, Ordering::Release);
        }
        if tail < head {
            drained.left_ns = Kind::time_of(self.first_word(cpu, tail).load(Ordering::Acquire));
        }
        if drained.bytes == 0 {
            out.truncate(place);
        } else {
            let head = block(BlockKind::Events, cpu as u32, drained.bytes, 0, self.dropped(cpu));
            out[place..place + BLOCK_HEAD_BYTES].copy_from_slice(&head);
        }
        drained
    }

    /// Length of the complete records that lie one after the other from `tail` on, up to the ring's end or a little
    /// over it; and how many events they are.
    fn run(&self, cpu: usize, tail: u64, there: usize, bytes_max: usize) -> (usize, u64) {
        let offset = tail as usize & (self.ring_bytes - 1);
        let (mut bytes, mut events) = (0, 0);
        while bytes < there && bytes < bytes_max && offset + bytes < self.ring_bytes {
            // Acquire: the words of a record are written before its first.
            let first = self.first_word(cpu, tail + bytes as u64).load(Ordering::Acquire);
            let Some(kind) = Kind::of(first) else { break };
            bytes += kind.words() * 8;
            // A thread's name is no event.
            events += u64::from(kind != Kind::Process);
        }
        (bytes, events)
    }

    /// Copies a run out and leaves zeros, which is how the programs' next lap finds it.
    fn take(&mut self, cpu: usize, tail: u64, bytes: usize, out: &mut Vec<u8>) {
        let at = self.index(cpu, tail);
        assert!(at + bytes / 8 <= self.rings.words);
        // SAFETY: the run is within the mapping; its records are complete, and the programs write there again only
        // after the tail has moved past it, so for now this is the only user of these bytes.
        let run =
            unsafe { std::slice::from_raw_parts_mut(self.rings.start.add(at).as_ptr().cast::<u8>(), bytes) };
        out.extend_from_slice(run);
        run.fill(0);
    }

    fn tail(&self, cpu: usize) -> &AtomicU64 {
        self.lanes.word(cpu * LANE_WORDS + TAIL)
    }

    fn first_word(&self, cpu: usize, position: u64) -> &AtomicU64 {
        self.rings.word(self.index(cpu, position))
    }

    fn index(&self, cpu: usize, position: u64) -> usize {
        (cpu * (self.ring_bytes + SPILL_BYTES) + (position as usize & (self.ring_bytes - 1))) / 8
    }
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointer and changes nothing.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
