//! Sync threads: write, be throttled perhaps, wait for the data, wait for the journal.

use weir_core::stats::{CoarseHistogram, Histogram};

use super::cache::Verdict;
use super::engine::{Agent, Plant};
use super::queue::{Owner, Request};

/// Where a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Gone, or not there yet.
    Away,
    /// Its next commit begins.
    Begin,
    /// Throttled for its pages.
    Held,
    /// Its data is on the way.
    Data,
    /// The journal is.
    Log,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    stage: Stage,
    direct: bool,
    /// When the commit began.
    began: u64,
    /// When its sync began.
    synced: u64,
    /// Until when it was throttled last.
    since: u64,
    /// Made dirty since.
    dirtied: u64,
    /// So much may be dirtied until it is looked at: nothing once it was throttled.
    unseen: u64,
}

/// What ended, and how long threads were throttled.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    /// Durations of syncs.
    pub syncs: CoarseHistogram,
    /// Durations of commits, from the write's begin.
    pub commits: Histogram,
    pub held_ns: u64,
    pub held: u64,
    pub dirtied: u64,
}

impl Thread {
    pub fn new() -> Thread {
        Thread {
            stage: Stage::Away,
            direct: false,
            began: 0,
            synced: 0,
            since: 0,
            dirtied: 0,
            unseen: 128 << 10,
        }
    }

    /// When its sync began, while one is under way.
    pub fn syncing_since(&self) -> Option<u64> {
        match self.stage {
            Stage::Log => Some(self.synced),
            Stage::Data if !self.direct => Some(self.synced),
            _ => None,
        }
    }

    /// When its commit began, while one is under way.
    pub fn committing_since(&self) -> Option<u64> {
        matches!(self.stage, Stage::Held | Stage::Data | Stage::Log).then_some(self.began)
    }
}

impl Plant {
    /// Makes so many threads sync.
    pub(super) fn set_threads(&mut self, threads: u32) {
        self.spec.syncs.threads = threads;
        while self.threads.len() < threads as usize {
            self.threads.push(Thread::new());
        }
        for i in 0..threads {
            let thread = &mut self.threads[i as usize];
            if thread.stage == Stage::Away {
                thread.stage = Stage::Begin;
                // Threads do not start in one instant.
                let at = self.now + 1 + u64::from(i) * 20_000;
                self.at(at, Agent::Sync(i));
            }
        }
    }

    /// A thread goes on.
    pub(super) fn sync_acts(&mut self, i: u32) {
        let now = self.now;
        let wanted = i < self.spec.syncs.threads;
        let data = self.spec.syncs.data_bytes;
        let thread = &mut self.threads[i as usize];
        match thread.stage {
            Stage::Away => {}
            Stage::Begin if !wanted => thread.stage = Stage::Away,
            Stage::Begin => {
                thread.direct = self.spec.syncs.direct;
                thread.began = now;
                if thread.direct {
                    self.sync_submits(i, data);
                    return;
                }
                thread.dirtied += data;
                self.cache.sync_dirty += data;
                self.cache.dirty(data);
                self.ended.dirtied += data;
                let seen = thread.dirtied >= thread.unseen;
                self.kick_flusher();
                if seen {
                    self.sync_balances(i);
                } else {
                    self.sync_submits(i, data);
                }
            }
            Stage::Held => self.sync_balances(i),
            Stage::Data => {
                if thread.direct {
                    thread.synced = now;
                }
                thread.stage = Stage::Log;
                self.log_begins(i);
            }
            Stage::Log => self.sync_ends(i),
        }
    }

    fn sync_balances(&mut self, i: u32) {
        let thread = &mut self.threads[i as usize];
        let (until, paid) = match self.cache.balance(thread.dirtied, thread.since, self.now) {
            Verdict::Free => {
                (thread.since, thread.dirtied, thread.unseen) = (self.now, 0, self.cache.poll_bytes());
                return self.sync_submits(i, self.spec.syncs.data_bytes);
            }
            Verdict::Go => return self.sync_submits(i, self.spec.syncs.data_bytes),
            Verdict::Pause(until, paid) => (until, paid),
            Verdict::Stop(until) => (until, until),
        };
        thread.stage = Stage::Held;
        (thread.since, thread.dirtied, thread.unseen) = (paid, 0, 0);
        self.ended.held += 1;
        self.ended.held_ns += until - self.now;
        self.at(until, Agent::Sync(i));
    }

    /// The data of a commit goes to the queue; for pages of the cache that is when the sync begins.
    fn sync_submits(&mut self, i: u32, data: u64) {
        let thread = &mut self.threads[i as usize];
        thread.stage = Stage::Data;
        thread.synced = self.now;
        let pages = if thread.direct { 0 } else { data };
        self.cache.sync_dirty -= pages;
        self.cache.writeback += pages;
        self.submit(Request { bytes: data, pages, owner: Owner::Sync(i) });
    }

    fn log_begins(&mut self, i: u32) {
        self.push_entangled();
        match self.spec.syncs.log_bytes {
            0 => self.sync_ends(i),
            bytes => self.submit(Request { bytes, pages: 0, owner: Owner::Sync(i) }),
        }
    }

    fn sync_ends(&mut self, i: u32) {
        let now = self.now;
        let thread = &mut self.threads[i as usize];
        thread.stage = Stage::Begin;
        self.ended.syncs.record(now - thread.synced);
        self.ended.commits.record(now - thread.began);
        self.totals.commits += 1;
        let think = self.spec.syncs.think_ns as f64 * (0.5 + self.random.uniform());
        let cpu = self.spec.syncs.cpu_ns as f64 * (0.5 + self.random.uniform());
        self.at(now + 1 + (think + cpu) as u64, Agent::Sync(i));
    }
}
