//! Who writes, by the kernel's own accounts of its threads, and onto which device.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use libbpf_rs::{Iter, Link};
use weir_core::target::DeviceNumber;

use crate::fsync::files;
use crate::fsync::record::{text, u32_at, u64_at};
use crate::live::overhead::thread_ns;

/// Threads that have written less are not told of.
pub(super) const TOLD_BYTES: u64 = 64 << 10;
/// `struct told` in `bpf/syncs.bpf.c`.
const TOLD: usize = 48;
/// Asking takes a fraction of a microsecond for each thread of the machine, and at most one part in so many of the time
/// of a processor ...
const ONE_IN: u64 = 1000;
/// ... but a writer must not go unnoticed for longer than this.
const NEXT_MAX_NS: u64 = 1_000_000_000;
/// A process's open files are looked through again after so long, and no more of them than that.
const FILES_STAND_NS: u64 = 1_000_000_000;
const FILES_MAX: usize = 1024;

/// Up to this descriptor, files are taken for messages until they are longer than that.
const STANDARD_ERROR: u32 = 2;
const MESSAGES_MAX: u64 = 1 << 20;

/// A process, told apart from an earlier one of the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    pub pid: u32,
    pub start_ns: u64,
}

/// What a process wrote since the scan before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub comm: String,
    pub bytes: u64,
    /// Since its threads began.
    pub total_bytes: u64,
}

/// Remembers what each thread had written.
#[derive(Default)]
pub struct Writers {
    threads: HashMap<(u32, u64), u64>,
    scanned: bool,
    next_ns: u64,
    room: Vec<u8>,
    places: HashMap<Id, (u64, Vec<DeviceNumber>)>,
}

impl Writers {
    /// Asks, if the last answer did not take too long for that; what was written since the scan before, by process.
    pub fn scan(&mut self, link: &Link, now_ns: u64) -> Option<HashMap<Id, Written>> {
        if now_ns < self.next_ns {
            return None;
        }
        self.room.clear();
        // Not by the clock: on a busy machine somebody else may run meanwhile.
        let before_ns = thread_ns();
        let answer = Iter::new(link).ok()?.read_to_end(&mut self.room);
        self.next_ns = now_ns + (thread_ns().saturating_sub(before_ns) * ONE_IN).min(NEXT_MAX_NS);
        answer.ok()?;
        let room = std::mem::take(&mut self.room);
        let written = self.take(&room);
        self.room = room;
        Some(written)
    }

    /// `told` holds the threads one after the other.
    fn take(&mut self, told: &[u8]) -> HashMap<Id, Written> {
        let mut processes: HashMap<Id, Written> = HashMap::new();
        let mut threads = HashMap::with_capacity(self.threads.len());
        for thread in told.chunks_exact(TOLD) {
            let word = |at| u64_at(thread, at).unwrap_or(0);
            let (tid, tgid) = (u32_at(thread, 0).unwrap_or(0), u32_at(thread, 4).unwrap_or(0));
            let (start_ns, bytes) = (word(8), word(24));
            // What was written before the first scan is nobody's news.
            let unknown = if self.scanned { 0 } else { bytes };
            let before = self.threads.get(&(tid, start_ns)).copied().unwrap_or(unknown);
            threads.insert((tid, start_ns), bytes);
            let id = Id { pid: tgid, start_ns: word(16) };
            let process = processes.entry(id).or_insert_with(|| Written {
                comm: text(&thread[32..TOLD]),
                bytes: 0,
                total_bytes: 0,
            });
            process.bytes += bytes.saturating_sub(before);
            process.total_bytes += bytes;
        }
        self.threads = threads;
        self.scanned = true;
        self.places.retain(|id, _| processes.contains_key(id));
        processes
    }

    /// The devices that a process has files open on for writing.
    pub fn devices(&mut self, id: Id, now_ns: u64) -> &[DeviceNumber] {
        let place = self.places.entry(id).or_default();
        if place.1.is_empty() || now_ns >= place.0 + FILES_STAND_NS {
            *place = (now_ns, devices_of(id.pid));
        }
        &place.1
    }
}

fn devices_of(pid: u32) -> Vec<DeviceNumber> {
    let folder = format!("/proc/{pid}/fd");
    let mut found: Vec<DeviceNumber> = files::numbers(&folder)
        .into_iter()
        .take(FILES_MAX)
        .filter_map(|descriptor| {
            let facts = fs::metadata(format!("{folder}/{descriptor}")).ok()?;
            let number = match facts.mode() & libc::S_IFMT {
                libc::S_IFREG => facts.dev(),
                libc::S_IFBLK => facts.rdev(),
                _ => return None,
            };
            let number = DeviceNumber { major: libc::major(number), minor: libc::minor(number) };
            let position = files::position_to_write(pid, descriptor)?;
            (descriptor > STANDARD_ERROR || position >= MESSAGES_MAX).then(|| files::whole(number))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tid: u32, tgid: u32, start_ns: u64, bytes: u64) -> Vec<u8> {
        let mut thread = [tid.to_ne_bytes(), tgid.to_ne_bytes()].concat();
        [start_ns, 7, bytes].iter().for_each(|word| thread.extend(word.to_ne_bytes()));
        thread.extend(*b"mariadbd\0\0\0\0\0\0\0\0");
        thread
    }

    #[test]
    fn threads_add_up_and_numbers_used_again_are_others() {
        let mut writers = Writers::default();
        let id = Id { pid: 10, start_ns: 7 };
        let cases = [
            ("what was before counts in the total only", vec![told(10, 10, 7, 500)], (0, 500)),
            ("a thread that began since", vec![told(10, 10, 7, 600), told(11, 10, 9, 30)], (130, 630)),
            ("another thread of that number", vec![told(10, 10, 7, 600), told(11, 10, 12, 20)], (20, 620)),
        ];
        for (name, threads, (bytes, total_bytes)) in cases {
            let found = writers.take(&threads.concat());
            let expected = Written { comm: "mariadbd".to_string(), bytes, total_bytes };
            assert_eq!(found.get(&id), Some(&expected), "{name}");
        }
        assert_eq!(writers.take(&[]), HashMap::new());
        assert!(writers.threads.is_empty(), "nothing stays of threads that are gone");
    }
}
