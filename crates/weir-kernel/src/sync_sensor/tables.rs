//! The programs' tables (`bpf/syncs.bpf.c`), mapped into this process.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapHandle};

use crate::live::buckets::BUCKETS;

/// `struct flight`.
#[repr(C)]
pub struct Flight {
    pub tid: AtomicU32,
    pub tgid: AtomicU32,
    pub device: AtomicU32,
    pub without_write: AtomicU32,
    pub start_ns: AtomicU64,
}

/// `struct process`.
#[repr(C)]
pub struct Process {
    pub tgid: AtomicU32,
    pub class: AtomicU32,
    pub is_wanted: AtomicU32,
    pub is_gone: AtomicU32,
    pub device: AtomicU32,
    _pad: AtomicU32,
    pub start_ns: AtomicU64,
    pub syncs: AtomicU64,
    pub pauses: AtomicU64,
    pub pause_ticks: AtomicU64,
}

/// Words of the bits that threads leave.
pub const THREAD_WORDS: usize = 16;

/// `struct device_syncs`.
#[repr(C)]
pub struct DeviceSyncs {
    pub device: AtomicU64,
    pub count: AtomicU64,
    pub sum_ns: AtomicU64,
    pub max_ns: AtomicU64,
    pub left_out: AtomicU64,
    pub bdi: AtomicU64,
    pub bdi_id: AtomicU64,
    pub dirty_pages: AtomicI64,
    pub writeback_pages: AtomicI64,
    pub is_told: AtomicU64,
    pub threads: [AtomicU64; THREAD_WORDS],
    pub buckets: [AtomicU64; BUCKETS],
}

/// Dirty pages of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Dirty and not yet under way.
    pub dirty_bytes: u64,
    /// Under way.
    pub writeback_bytes: u64,
}

/// `struct state`.
#[repr(C)]
pub struct State {
    pub beats: AtomicU64,
    _pad: [AtomicU64; 7],
    pub under_way: AtomicU64,
    _more: [AtomicU64; 7],
    pub lost: [AtomicU64; 4],
    pub processes: AtomicU64,
}

/// Reads one; a value that is seen a look late is only late.
pub fn load(field: &AtomicU64) -> u64 {
    field.load(Ordering::Relaxed)
}

/// Reads one.
pub fn load32(field: &AtomicU32) -> u32 {
    field.load(Ordering::Relaxed)
}

impl Flight {
    /// Makes the place free for another thread.
    pub fn release(&self) {
        self.start_ns.store(0, Ordering::Relaxed);
        self.tid.store(0, Ordering::Release);
    }
}

impl Process {
    /// Makes the place free for another process.
    pub fn release(&self) {
        for field in [&self.class, &self.is_wanted, &self.is_gone, &self.device] {
            field.store(0, Ordering::Relaxed);
        }
        for field in [&self.start_ns, &self.syncs, &self.pauses, &self.pause_ticks] {
            field.store(0, Ordering::Relaxed);
        }
        self.tgid.store(0, Ordering::Release);
    }
}

impl DeviceSyncs {
    /// Bytes that are dirty and bytes under way, where the programs told. Counts of processors that are still to be added
    /// up may make a sum negative.
    pub fn backlog(&self, page_bytes: u64) -> Option<Backlog> {
        let bytes =
            |pages: &AtomicI64| u64::try_from(pages.load(Ordering::Relaxed)).unwrap_or(0) * page_bytes;
        (load(&self.is_told) != 0).then(|| Backlog {
            dirty_bytes: bytes(&self.dirty_pages),
            writeback_bytes: bytes(&self.writeback_pages),
        })
    }

    /// Makes the place free for another device.
    pub fn release(&self) {
        for field in
            [&self.count, &self.sum_ns, &self.max_ns, &self.left_out, &self.bdi, &self.bdi_id, &self.is_told]
                .into_iter()
                .chain(&self.threads)
                .chain(&self.buckets)
        {
            field.store(0, Ordering::Relaxed);
        }
        self.device.store(0, Ordering::Release);
    }
}

/// Structures that consist of atomic integers only, so that any bytes are valid and sharing them is sound.
pub trait Shared {}
impl Shared for Flight {}
impl Shared for Process {}
impl Shared for DeviceSyncs {}
impl Shared for State {}

/// All places of one table, shared with the programs.
pub struct Table<T: Shared> {
    places: *const T,
    count: usize,
    bytes: usize,
}

// SAFETY: the places are atomic integers, and the mapping moves with the value.
unsafe impl<T: Shared> Send for Table<T> {}

impl<T: Shared> Table<T> {
    /// Maps a table.
    ///
    /// # Errors
    /// What the kernel said, or that the table has another form.
    pub fn map(map: &MapHandle) -> std::io::Result<Table<T>> {
        if map.value_size() as usize != size_of::<T>() {
            return Err(std::io::Error::other(format!(
                "the table holds {} bytes a place instead of {}",
                map.value_size(),
                size_of::<T>()
            )));
        }
        let count = map.max_entries() as usize;
        let bytes = (count * size_of::<T>()).next_multiple_of(4096);
        // SAFETY: a shared mapping of a descriptor that the kernel checks; the result is checked below.
        let places = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if places == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Table { places: places.cast(), count, bytes })
    }

    /// All places.
    pub fn places(&self) -> &[T] {
        // SAFETY: the mapping holds `count` places, is aligned to a page, and lives as long as self; Shared types are
        // valid for any bytes and may change under a shared reference.
        unsafe { std::slice::from_raw_parts(self.places, self.count) }
    }
}

impl<T: Shared> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once.
        unsafe { libc::munmap(self.places.cast_mut().cast(), self.bytes) };
    }
}
