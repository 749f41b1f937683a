//! Single syncs and the requests beside them, kept for a picture of them all.

use std::collections::HashMap;

use super::analyst::Analyst;
use super::cause::Relation;
use super::part::{Begun, Io, Part};
use super::phase::Phase;
use weir_core::target::DeviceNumber;

/// Syncs and requests that are kept; a picture of more cannot be looked at.
const SYNCS_MAX: usize = 100_000;
const IOS_MAX: usize = 500_000;
/// Waits of one sync, and requests of its own.
const WAITS_MAX: usize = 1_000;

/// Syncs and requests in order of their ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Syncs; short ones that were only counted are not among them.
    pub syncs: Vec<LoggedSync>,
    /// Requests that completed.
    pub ios: Vec<Io>,
    /// Syncs and requests for which there was no space.
    pub left_out: u64,
}

/// A sync with its waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSync {
    /// Whose, of what, and since when.
    pub begun: Begun,
    /// When it returned; `None` if it had not.
    pub end_ns: Option<u64>,
    /// Its waits, in order.
    pub waits: Vec<LoggedWait>,
    /// Requests of its own that it waited for, as places in [`Log::ios`].
    pub ios: Vec<usize>,
}

/// A wait of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedWait {
    /// From when, ns.
    pub start_ns: u64,
    /// Until when, ns.
    pub end_ns: u64,
    /// How much of it, at its end, the task could have run.
    pub runnable_ns: u64,
    /// What it belongs to.
    pub phase: Phase,
}

/// A log under way.
#[derive(Debug, Default)]
pub(super) struct Book {
    log: Log,
    open: HashMap<(u32, u64), Entry>,
    closed: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    sync: LoggedSync,
    own: Vec<Key>,
}

/// What distinguishes a request from all others.
type Key = (DeviceNumber, u64, u64, u64, u32);

fn key(io: &Io) -> Key {
    (io.device, io.complete_ns, io.get_ns, io.queue_ns, io.bytes)
}

impl Book {
    pub fn io(&mut self, io: &Io) {
        if self.log.ios.len() < IOS_MAX { self.log.ios.push(*io) } else { self.log.left_out += 1 }
    }

    pub fn close(&mut self, part: &Part, end_ns: u64) {
        let Some(mut entry) = self.open.remove(&(part.tid, part.start_ns)) else {
            self.log.left_out += 1;
            return;
        };
        entry.sync.end_ns = Some(end_ns);
        self.closed.push(entry);
    }

    fn entry(&mut self, part: &Part) -> Option<&mut Entry> {
        let id = (part.tid, part.start_ns);
        if !self.open.contains_key(&id) && self.open.len() + self.closed.len() >= SYNCS_MAX {
            return None;
        }
        Some(self.open.entry(id).or_insert_with(|| Entry {
            sync: LoggedSync { begun: Begun::of(part), end_ns: None, waits: Vec::new(), ios: Vec::new() },
            own: Vec::new(),
        }))
    }

    fn finish(self) -> Log {
        let mut log = self.log;
        let places: HashMap<Key, usize> = log.ios.iter().enumerate().map(|(at, io)| (key(io), at)).collect();
        for entry in self.closed.into_iter().chain(self.open.into_values()) {
            let mut sync = entry.sync;
            sync.ios = entry.own.iter().filter_map(|own| places.get(own).copied()).collect();
            sync.ios.sort_unstable();
            sync.ios.dedup();
            log.syncs.push(sync);
        }
        log.syncs.sort_by_key(|sync| (sync.end_ns.unwrap_or(u64::MAX), sync.begun.start_ns, sync.begun.tid));
        log
    }
}

impl Analyst {
    /// Keeps single syncs and requests from now on, up to 100,000 and 500,000 of them.
    pub fn keep_log(&mut self) {
        self.book = Some(Box::default());
    }

    /// What was kept; nothing is from now on. Empty without [`Analyst::keep_log`].
    pub fn take_log(&mut self) -> Log {
        self.book.take().map_or_else(Log::default, |book| book.finish())
    }

    /// Writes down what a sync did between two times.
    pub(super) fn write_down(&mut self, part: &Part, from_ns: u64, until_ns: u64) {
        let Some(mut book) = self.book.take() else { return };
        if let Some(entry) = book.entry(part) {
            for wait in &part.waits {
                let (start_ns, end_ns) = (wait.start_ns.max(from_ns), wait.end_ns.min(until_ns));
                if end_ns <= start_ns || entry.sync.waits.len() >= WAITS_MAX {
                    continue;
                }
                let phase = wait.site.map_or(Phase::Unknown, |site| self.phase_of(site));
                let runnable_ns = wait.runnable_ns.saturating_sub(wait.end_ns - end_ns);
                match entry.sync.waits.last_mut() {
                    // A wait that was under way at a tick comes in two parts.
                    Some(last) if last.end_ns == start_ns && last.phase == phase && last.runnable_ns == 0 => {
                        (last.end_ns, last.runnable_ns) = (end_ns, runnable_ns);
                    }
                    _ => entry.sync.waits.push(LoggedWait { start_ns, end_ns, runnable_ns, phase }),
                }
                let own = self.completions(part, start_ns, end_ns).into_iter();
                let own = own.filter(|completion| completion.relation == Relation::Own);
                entry.own.extend(own.map(|completion| key(&completion.io)));
                entry.own.truncate(WAITS_MAX);
            }
        }
        self.book = Some(book);
    }
}
