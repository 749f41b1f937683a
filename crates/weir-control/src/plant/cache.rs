//! Dirty pages: who may go on writing, and how fast.

use super::spec::CacheSpec;

/// How often the kernel looks at its rates, in nanoseconds.
pub(super) const ESTIMATE_NS: u64 = 200_000_000;
/// Time over which it averages what the device accepts, in nanoseconds.
const AVERAGE_NS: f64 = 4e9;
const PAGE: f64 = 4096.0;
const MAX_PAUSE_NS: u64 = 200_000_000;

/// What a writer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Little is dirty: what it made dirty so far is forgotten.
    Free,
    /// Write on; what it made dirty still counts.
    Go,
    /// Sleep until the first, and be taken to have paid until the second; then write on.
    Pause(u64, u64),
    /// Sleep until then, then ask again.
    Stop(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Cache {
    spec: CacheSpec,
    limit: u64,
    /// Dirty pages of bulk writers, not yet under way.
    pub bulk_dirty: u64,
    /// Of sync threads.
    pub sync_dirty: u64,
    /// Under way, of both.
    pub writeback: u64,
    /// Rate that each writer is given before it is corrected by how near the limit is.
    rate: f64,
    balanced: f64,
    accepted: f64,
    written: u64,
    dirtied: u64,
    estimated_at: u64,
    /// Since when the oldest page of bulk writers is dirty.
    pub oldest_ns: u64,
}

impl Cache {
    pub fn new(spec: CacheSpec, accepted: f64) -> Cache {
        let limit = spec.saved_bytes;
        Cache {
            spec,
            limit,
            bulk_dirty: 0,
            sync_dirty: 0,
            writeback: 0,
            rate: PAGE,
            balanced: accepted / PAGE,
            accepted,
            written: 0,
            dirtied: 0,
            estimated_at: 0,
            oldest_ns: 0,
        }
    }

    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn total(&self) -> u64 {
        self.bulk_dirty + self.sync_dirty + self.writeback
    }

    fn background(&self) -> f64 {
        self.limit as f64 * self.spec.background
    }

    /// Above this, writers are looked at.
    fn free(&self) -> f64 {
        (self.limit as f64 + self.background()) / 2.0
    }

    /// Whether the flusher has to write.
    pub fn over_background(&self) -> bool {
        (self.bulk_dirty + self.sync_dirty) as f64 > self.background()
    }

    /// Bytes the flusher takes from a file at once.
    pub fn chunk(&self) -> u64 {
        let chunk = self.spec.chunk_bytes.max(1);
        let share = (self.accepted / 2.0).min(self.limit as f64 / 8.0) as u64;
        (share + chunk) / chunk * chunk
    }

    pub fn dirty(&mut self, bytes: u64) {
        self.dirtied += bytes;
    }

    pub fn cleaned(&mut self, bytes: u64) {
        self.writeback -= bytes;
        self.written += bytes;
    }

    /// 0 at the limit, 1 half-way to where writers are free, 2 there.
    fn correction(&self) -> f64 {
        let hard = self.limit as f64;
        let total = self.total() as f64;
        if total >= hard {
            return 0.0;
        }
        let middle = (self.free() + hard) / 2.0;
        let x = (middle - total) / (hard - middle).max(1.0);
        (1.0 + x * x * x).clamp(0.0, 2.0)
    }

    /// The longest pause: shorter where little is dirty, so that the device does not run dry meanwhile.
    fn longest_ns(&self) -> u64 {
        let per_eighth = 1.0 + self.accepted / PAGE / 32.0;
        let ticks = (self.total() as f64 / PAGE / per_eighth) as u64 + 1;
        (ticks * self.spec.tick_ns).min(MAX_PAUSE_NS)
    }

    /// A pause as timers make it: from the next tick on.
    fn asleep(&self, now: u64, pause_ns: u64) -> u64 {
        let tick = self.spec.tick_ns.max(1);
        (now / tick + 1) * tick + pause_ns / tick * tick
    }

    /// What happens to a writer that made `bytes` dirty since it was last throttled, which ended at `since`.
    pub fn balance(&self, bytes: u64, since: u64, now: u64) -> Verdict {
        if self.total() as f64 <= self.free() {
            return Verdict::Free;
        }
        let rate = self.rate * self.correction();
        let longest = self.longest_ns();
        if self.total() >= self.limit {
            return Verdict::Stop(self.asleep(now, longest));
        }
        let period = (bytes as f64 / rate.max(PAGE) * 1e9) as u64;
        let pause = (since + period).saturating_sub(now).min(longest);
        if pause < self.spec.tick_ns {
            return Verdict::Go;
        }
        Verdict::Pause(self.asleep(now, pause - self.spec.tick_ns), now + pause)
    }

    /// Bytes that a writer who is free may make dirty until it is looked at again: few where there is little room.
    pub fn poll_bytes(&self) -> u64 {
        let pages = self.limit.saturating_sub(self.total()) / PAGE as u64;
        (PAGE as u64) << (pages.max(1).ilog2() / 2)
    }

    /// Bytes that a bulk writer makes dirty before it is looked at again.
    pub fn stride(&self) -> u64 {
        self.poll_bytes().max(self.spec.stride_bytes)
    }

    /// The kernel's look at its rates, from within a writer that is throttled (`limited`) or from anywhere else.
    pub fn estimate(&mut self, now: u64, limited: bool) {
        let elapsed = (now - self.estimated_at) as f64;
        let (written, dirtied) = (self.written as f64 / elapsed * 1e9, self.dirtied as f64 / elapsed * 1e9);
        (self.written, self.dirtied, self.estimated_at) = (0, 0, now);
        if written > 0.0 || limited {
            self.accepted += (written - self.accepted) * (elapsed / AVERAGE_NS).min(1.0);
        }
        if !limited {
            return;
        }
        // In whole pages, as the kernel does it: a rate that has come down to one page never finds its way up again
        // while writers make most of their pages dirty where they are free. Then every stride costs the longest pause.
        let given = (self.rate * self.correction() / PAGE).floor() + 1.0;
        let balanced = (given * self.accepted / dirtied.max(PAGE)).min(self.accepted / PAGE).floor();
        let rate = (self.rate / PAGE).floor();
        let middle = (self.free() + self.limit as f64) / 2.0;
        // It moves only where both the balance and the limit call for it.
        let target = if (self.total() as f64) < middle {
            self.balanced.min(balanced).min(given).max(rate)
        } else {
            self.balanced.max(balanced).max(given).min(rate)
        };
        let step = (target - rate).abs();
        let step = (step / (rate / (2.0 * step + 1.0)).floor().exp2() / 8.0).ceil();
        let rate = if rate < balanced { rate + step } else { rate - step };
        self.balanced = balanced;
        self.rate = rate.max(1.0) * PAGE;
    }

    /// The same where no writer did it for a while.
    pub fn estimate_idle(&mut self, now: u64) {
        if now - self.estimated_at >= 5 * ESTIMATE_NS {
            self.estimate(now, false);
        }
    }

    /// Whether a writer that is throttled now has to look at the rates first.
    pub fn estimate_due(&self, now: u64) -> bool {
        now - self.estimated_at >= ESTIMATE_NS && self.total() as f64 > self.free()
    }
}
