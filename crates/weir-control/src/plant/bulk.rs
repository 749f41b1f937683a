//! Bulk writers, and the flusher that carries their pages to the queue.

use super::cache::Verdict;
use super::engine::{Agent, Plant};
use super::queue::{Owner, Request};
use super::spec::FloodKind;

/// Pages older than this are written even below the background threshold, in nanoseconds.
const EXPIRE_NS: u64 = 30_000_000_000;
/// How often the kernel looks for them, in nanoseconds.
pub(super) const PERIODIC_NS: u64 = 5_000_000_000;

/// One bulk writer.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer {
    active: bool,
    /// Sleeps until it may write again.
    is_held: bool,
    since: u64,
    dirtied: u64,
    /// When it may write next if it wants less than it can.
    wants_at: u64,
    /// Since the sample before.
    pub bytes: u64,
}

/// How bulk writers were throttled.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub ns: u64,
    pub times: u64,
}

/// The flusher.
#[derive(Debug, Clone, Default)]
pub(super) struct Flusher {
    active: bool,
    /// Waits for a request to end.
    pub blocked: bool,
    /// Left of the chunk it took.
    chunk: u64,
    /// Left of pages that are too old.
    expired: u64,
}

impl Plant {
    /// Makes so many bulk writers write.
    pub(super) fn set_writers(&mut self, writers: u32) {
        self.spec.bulk.writers = writers;
        while self.writers.len() < writers as usize {
            self.writers.push(Writer::default());
        }
        for i in 0..writers {
            let writer = &mut self.writers[i as usize];
            if !writer.active {
                writer.active = true;
                writer.wants_at = self.now;
                let at = self.now + 1 + u64::from(i) * 1_000_000;
                self.at(at, Agent::Writer(i));
            }
        }
    }

    /// A bulk writer goes on.
    pub(super) fn writer_acts(&mut self, i: u32) {
        let now = self.now;
        if self.cache.estimate_due(now) {
            self.cache.estimate(now, true);
        }
        let writer = &mut self.writers[i as usize];
        writer.is_held = false;
        match self.cache.balance(writer.dirtied, writer.since, now) {
            Verdict::Stop(until) => return self.hold_writer(i, until),
            Verdict::Pause(until, paid) if writer.dirtied > 0 => {
                (writer.since, writer.dirtied) = (paid, 0);
                return self.hold_writer(i, until);
            }
            Verdict::Pause(..) | Verdict::Go => {}
            Verdict::Free => (writer.since, writer.dirtied) = (now, 0),
        }
        if i >= self.spec.bulk.writers {
            writer.active = false;
            return;
        }
        let bulk = &self.spec.bulk;
        let speed = match bulk.kind {
            FloodKind::Fresh => bulk.fresh_bytes_per_second,
            FloodKind::Rewriting => bulk.rewriting_bytes_per_second,
        };
        let bytes = self.cache.stride();
        writer.bytes += bytes;
        writer.dirtied += bytes;
        let mut next = now + 1 + (bytes as f64 / speed * 1e9) as u64;
        if bulk.wanted_bytes_per_second > 0.0 {
            writer.wants_at = writer.wants_at.max(now.saturating_sub(1_000_000_000));
            writer.wants_at += (bytes as f64 / bulk.wanted_bytes_per_second * 1e9) as u64;
            next = next.max(writer.wants_at);
        }
        if self.cache.bulk_dirty == 0 {
            self.cache.oldest_ns = now;
        }
        self.cache.bulk_dirty += bytes;
        self.cache.dirty(bytes);
        self.totals.bulk_dirtied += bytes;
        self.kick_flusher();
        self.at(next, Agent::Writer(i));
    }

    /// Whether bulk writers or write-back are at work now.
    pub(super) fn bulk_at_work(&self) -> bool {
        self.flusher.active || self.writers.iter().any(|writer| writer.active && !writer.is_held)
    }

    fn hold_writer(&mut self, i: u32, until: u64) {
        self.writers[i as usize].is_held = true;
        let held = if self.spec.bulk.protected {
            self.ended.held += 1;
            &mut self.ended.held_ns
        } else {
            self.held.times += 1;
            &mut self.held.ns
        };
        *held += until - self.now;
        self.at(until, Agent::Writer(i));
    }

    /// Wakes the flusher where there is work for it.
    pub(super) fn kick_flusher(&mut self) {
        if !self.flusher.active && (self.cache.over_background() || self.flusher.expired > 0) {
            self.flusher.active = true;
            self.at(self.now + self.spec.cache.wake_ns, Agent::Flusher);
        }
    }

    /// The kernel's look for pages that are too old.
    pub(super) fn flush_expired(&mut self) {
        if self.cache.bulk_dirty > 0 && self.now.saturating_sub(self.cache.oldest_ns) >= EXPIRE_NS {
            self.flusher.expired = self.cache.bulk_dirty;
            self.cache.oldest_ns = self.now;
            self.kick_flusher();
        }
    }

    /// One request of write-back.
    pub(super) fn flusher_acts(&mut self) {
        if self.device.full() {
            self.flusher.blocked = true;
            return;
        }
        if self.flusher.chunk == 0 && self.cache.over_background() {
            self.flusher.chunk = self.cache.chunk();
        }
        let left = self.flusher.chunk.max(self.flusher.expired);
        let bytes = left.min(self.cache.bulk_dirty).min(self.spec.cache.request_bytes);
        if bytes == 0 {
            (self.flusher.active, self.flusher.chunk, self.flusher.expired) = (false, 0, 0);
            return;
        }
        self.flusher.chunk = self.flusher.chunk.saturating_sub(bytes);
        self.flusher.expired = self.flusher.expired.saturating_sub(bytes);
        self.write_back(bytes);
        let took = bytes as f64 / self.spec.cache.flusher_bytes_per_second * 1e9;
        self.at(self.now + 1 + took as u64, Agent::Flusher);
    }

    /// Where a journal orders data, a sync of anybody takes a fresh file's pages along.
    pub(super) fn push_entangled(&mut self) {
        let bulk = &self.spec.bulk;
        if self.spec.syncs.entangled <= 0.0 || bulk.writers == 0 || bulk.kind != FloodKind::Fresh {
            return;
        }
        let mut left = (self.cache.bulk_dirty as f64 * self.spec.syncs.entangled) as u64;
        while left > 0 {
            let bytes = left.min(self.spec.cache.request_bytes);
            self.write_back(bytes);
            left -= bytes;
        }
    }

    fn write_back(&mut self, bytes: u64) {
        self.cache.bulk_dirty -= bytes;
        self.cache.writeback += bytes;
        self.submit(Request { bytes, pages: bytes, owner: Owner::Bulk });
    }
}
