//! Which causes are worth a snapshot, and how many.

use std::collections::BTreeMap;

use weir_blocktrace::fsync::{Cause as WaitCause, SlowSync};

/// The same cause again within this time is not worth another one.
const AGAIN_AFTER_MS: i64 = 600_000;
/// Snapshots of all causes within so much time.
const SPACED_MS: i64 = 5_000;
/// Bytes of snapshots a day that nobody asked for, ...
const DAY_BYTES: u64 = 16 << 20;
/// ... and that somebody did.
const DAY_BYTES_ASKED: u64 = 64 << 20;
const DAY_MS: i64 = 86_400_000;
/// Causes that are remembered.
const CAUSES_MAX: usize = 256;

/// What the same trouble has in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Who was slow, on what, for which part of the time, behind whom.
    SlowSync(String, String, String, String),
    /// The device that stood still.
    Stall(String),
    /// The device whose limit the guard cut, and why.
    Guard(String, String),
}

impl Cause {
    /// Of a slow sync on a device.
    pub fn of(slow: &SlowSync, device: &str) -> Cause {
        let most = slow.phases.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let part = most.map_or(String::new(), |row| {
            let causes = row.causes.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let cause = causes.map_or(WaitCause::Kernel, |cause| cause.0);
            format!("{} {}", row.phase.name(), cause.name())
        });
        let culprit = slow.culprits.first().map_or(String::new(), |culprit| culprit.process.comm.clone());
        Cause::SlowSync(slow.process.comm.clone(), device.to_string(), part, culprit)
    }
}

/// Which snapshots were taken.
#[derive(Debug, Default)]
pub struct Budget {
    last_ms: BTreeMap<Cause, i64>,
    any_ms: Option<i64>,
    day: i64,
    bytes: u64,
    bytes_asked: u64,
    /// How many were not taken since the last that was.
    pub left_out: u64,
}

/// The day of a time, Unix time, ms: days are UTC's.
pub fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

impl Budget {
    /// Of a recorder that goes on after another: what snapshots of this day have taken, those that nobody asked for and those that
    /// somebody did.
    pub fn resumed(now_ms: i64, bytes: u64, bytes_asked: u64) -> Budget {
        Budget { day: day_of(now_ms), bytes, bytes_asked, ..Budget::default() }
    }

    fn today(&mut self, now_ms: i64) {
        let day = day_of(now_ms);
        if day != self.day {
            (self.day, self.bytes, self.bytes_asked) = (day, 0, 0);
        }
    }

    /// Whether a cause is worth a snapshot now.
    pub fn takes(&mut self, now_ms: i64, cause: &Cause) -> bool {
        self.today(now_ms);
        // A clock that went back must not silence it for long.
        let since = |then: i64| (now_ms - then).unsigned_abs() as i64;
        let is_new = self.last_ms.get(cause).is_none_or(|then| since(*then) >= AGAIN_AFTER_MS);
        let is_spaced = self.any_ms.is_none_or(|then| since(then) >= SPACED_MS);
        if !is_new || !is_spaced || self.bytes >= DAY_BYTES {
            self.left_out += 1;
            return false;
        }
        if self.last_ms.len() >= CAUSES_MAX {
            self.last_ms.retain(|_, then| since(*then) < AGAIN_AFTER_MS);
        }
        if self.last_ms.len() < CAUSES_MAX {
            self.last_ms.insert(cause.clone(), now_ms);
        }
        self.any_ms = Some(now_ms);
        self.left_out = 0;
        true
    }

    /// Forgets a cause whose snapshot could not be kept: the next one is worth another try.
    pub fn put_back(&mut self, cause: &Cause) {
        self.last_ms.remove(cause);
    }

    /// Counts what a snapshot took.
    pub fn took(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Whether one that somebody asks for is written: it waits for no other, but a day has an end.
    pub fn takes_asked(&mut self, now_ms: i64) -> bool {
        self.today(now_ms);
        self.bytes_asked < DAY_BYTES_ASKED
    }

    /// Counts what that took.
    pub fn took_asked(&mut self, bytes: u64) {
        self.bytes_asked += bytes;
    }
}

#[cfg(test)]
pub mod testing {
    //! A slow sync.

    use weir_blocktrace::fsync::{Call, Cause, Phase, Process, Row, SlowSync};

    /// Of a process, all of whose time went to one phase.
    pub fn slow(comm: &str, phase: Phase) -> SlowSync {
        SlowSync {
            start_ns: 5_000_000,
            took_ns: 200_000_000,
            process: Process::new(Some(7), comm),
            tid: 7,
            thread: None,
            call: Call::Fsync,
            device: None,
            phases: vec![Row { phase, share: 1.0, causes: vec![(Cause::Others, 1.0)] }],
            culprits: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_blocktrace::fsync::Phase;

    use super::testing::slow;
    use super::*;

    #[test]
    fn one_that_is_put_back_is_tried_again_but_not_at_once() {
        let (mut budget, stall) = (Budget::default(), Cause::Stall("sda".into()));
        assert!(budget.takes(0, &stall));
        budget.put_back(&stall);
        assert!(!budget.takes(1_000, &stall) && budget.takes(6_000, &stall));
    }

    #[test]
    fn the_same_again_is_left_out_and_days_are_bounded() {
        let mut budget = Budget::default();
        let of = |comm: &str, phase, device: &str| Cause::of(&slow(comm, phase), device);
        let (journal, flush) = (of("db", Phase::Journal, "sda"), of("db", Phase::Flush, "sda"));
        assert!(budget.takes(0, &journal));
        assert!(!budget.takes(100_000, &journal));
        assert!(budget.takes(100_000, &flush));
        assert!(!budget.takes(101_000, &of("other", Phase::Flush, "sda")), "too soon after another");
        assert!(budget.takes(106_000, &Cause::Stall("sda".into())));
        assert!(!budget.takes(112_000, &Cause::Stall("sda".into())));
        assert!(budget.takes(118_000, &Cause::Guard("sda".into(), "tail".into())));
        assert!(budget.takes(AGAIN_AFTER_MS + 1, &journal));
        budget.took(DAY_BYTES);
        assert!(!budget.takes(3 * AGAIN_AFTER_MS, &journal));
        assert_eq!(budget.left_out, 1);
        assert!(budget.takes_asked(3 * AGAIN_AFTER_MS), "asked for, it has a share of its own");
        budget.took_asked(DAY_BYTES_ASKED);
        assert!(!budget.takes_asked(3 * AGAIN_AFTER_MS + 1));
        assert!(budget.takes(DAY_MS, &journal) && budget.takes_asked(DAY_MS));
        // A recorder that starts anew has what is left of the day.
        let mut resumed = Budget::resumed(DAY_MS, DAY_BYTES, DAY_BYTES_ASKED);
        assert!(!resumed.takes(DAY_MS + 1, &journal) && !resumed.takes_asked(DAY_MS + 1));
        assert!(resumed.takes(2 * DAY_MS, &journal) && resumed.takes_asked(2 * DAY_MS));
    }
}
