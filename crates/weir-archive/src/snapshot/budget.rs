//! Which causes are worth a snapshot, and how many.

use std::collections::BTreeMap;

use weir_blocktrace::fsync::{Cause as WaitCause, SlowSync};

/// The same cause again within this time is not worth another one.
const AGAIN_AFTER_MS: i64 = 600_000;
/// Snapshots of all causes within so much time.
const SPACED_MS: i64 = 5_000;
/// Bytes of snapshots a day that nobody asked for, ...
const DAY_BYTES: u64 = 16 << 20;
/// ... of those the ones of slow syncs, which any account can have, ...
const DAY_BYTES_OF_SYNCS: u64 = DAY_BYTES / 4 * 3;
/// ... and the ones of a unit, ...
const DAY_BYTES_OF_UNIT: u64 = DAY_BYTES_OF_SYNCS / 3;
/// ... and that somebody did.
const DAY_BYTES_ASKED: u64 = 64 << 20;
const DAY_MS: i64 = 86_400_000;
/// Causes that are remembered.
const CAUSES_MAX: usize = 256;

/// What the same trouble has in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Who was slow, on what, for which part of the time, behind whom.
    SlowSync {
        /// The unit; empty where there is none.
        unit: String,
        /// The process, where there is no unit: a process calls itself as it likes.
        comm: String,
        /// On which device.
        device: String,
        /// The part of the time, and its cause.
        part: String,
        /// Behind whom.
        culprit: String,
    },
    /// The device that stood still.
    Stall(String),
    /// The device whose limit the guard cut, and why.
    Guard(String, String),
}

impl Cause {
    /// Of a slow sync of a unit on a device.
    pub fn of(slow: &SlowSync, unit: &str, device: &str) -> Cause {
        let most = slow.phases.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let part = most.map_or(String::new(), |row| {
            let causes = row.causes.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let cause = causes.map_or(WaitCause::Kernel, |cause| cause.0);
            format!("{} {}", row.phase.name(), cause.name())
        });
        let culprit = slow.culprits.first().map_or(String::new(), |culprit| culprit.process.comm.clone());
        let comm = if unit.is_empty() { slow.process.comm.clone() } else { String::new() };
        Cause::SlowSync { unit: unit.to_string(), comm, device: device.to_string(), part, culprit }
    }

    /// The unit of a slow sync.
    fn unit(&self) -> Option<&str> {
        match self {
            Cause::SlowSync { unit, .. } => Some(unit),
            Cause::Stall(_) | Cause::Guard(..) => None,
        }
    }
}

/// Which snapshots were taken.
#[derive(Debug, Default)]
pub struct Budget {
    last_ms: BTreeMap<Cause, i64>,
    any_ms: Option<i64>,
    day: i64,
    bytes: u64,
    bytes_of_syncs: u64,
    /// Of those, by outer unit: one inside of it anybody calls as he likes.
    bytes_of_units: BTreeMap<String, u64>,
    bytes_asked: u64,
    /// How many were not taken since the last that was.
    pub left_out: u64,
}

/// The day of a time, Unix time, ms: days are UTC's.
pub fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

impl Budget {
    /// Of a recorder that goes on after another on a day whose snapshots [`Budget::found`] is told.
    pub fn resumed(now_ms: i64) -> Budget {
        Budget { day: day_of(now_ms), ..Budget::default() }
    }

    /// Counts a snapshot of this day that is there, of which the first [`super::HEAD_BYTES`] are known.
    pub fn found(&mut self, head: &[u8], bytes: u64) {
        if super::was_asked_for(head) {
            self.took_asked(bytes);
        } else {
            self.spend(super::unit_of_sync(head).as_deref(), bytes);
        }
    }

    fn today(&mut self, now_ms: i64) {
        let day = day_of(now_ms);
        if day != self.day {
            (self.day, self.bytes, self.bytes_of_syncs, self.bytes_asked) = (day, 0, 0, 0);
            self.bytes_of_units.clear();
        }
    }

    fn has_bytes(&self, cause: &Cause) -> bool {
        let of_unit = |unit: &str| self.bytes_of_units.get(outer(unit)).copied().unwrap_or(0);
        self.bytes < DAY_BYTES
            && cause.unit().is_none_or(|unit| {
                self.bytes_of_syncs < DAY_BYTES_OF_SYNCS && of_unit(unit) < DAY_BYTES_OF_UNIT
            })
    }

    /// Whether a cause is worth a snapshot now.
    pub fn takes(&mut self, now_ms: i64, cause: &Cause) -> bool {
        self.today(now_ms);
        // A clock that went back must not silence it for long.
        let since = |then: i64| (now_ms - then).unsigned_abs() as i64;
        let is_new = self.last_ms.get(cause).is_none_or(|then| since(*then) >= AGAIN_AFTER_MS);
        let is_spaced = self.any_ms.is_none_or(|then| since(then) >= SPACED_MS);
        if !is_new || !is_spaced || !self.has_bytes(cause) {
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

    /// Counts what a snapshot of a cause took.
    pub fn took(&mut self, cause: &Cause, bytes: u64) {
        self.spend(cause.unit(), bytes);
    }

    fn spend(&mut self, unit_of_sync: Option<&str>, bytes: u64) {
        self.bytes += bytes;
        if let Some(unit) = unit_of_sync {
            self.bytes_of_syncs += bytes;
            *self.bytes_of_units.entry(outer(unit).to_string()).or_default() += bytes;
        }
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

/// The unit that is systemd's.
fn outer(unit: &str) -> &str {
    unit.split_once('/').map_or(unit, |(outer, _)| outer)
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
        let of = |comm: &str, phase, device: &str| Cause::of(&slow(comm, phase), "", device);
        let (journal, flush) = (of("db", Phase::Journal, "sda"), of("db", Phase::Flush, "sda"));
        assert!(budget.takes(0, &journal));
        assert!(!budget.takes(100_000, &journal));
        assert!(budget.takes(100_000, &flush));
        assert!(!budget.takes(101_000, &of("other", Phase::Flush, "sda")), "too soon after another");
        assert!(budget.takes(106_000, &Cause::Stall("sda".into())));
        assert!(!budget.takes(112_000, &Cause::Stall("sda".into())));
        assert!(budget.takes(118_000, &Cause::Guard("sda".into(), "tail".into())));
        assert!(budget.takes(AGAIN_AFTER_MS + 1, &journal));
        budget.took(&Cause::Stall("sda".into()), DAY_BYTES);
        assert!(!budget.takes(3 * AGAIN_AFTER_MS, &journal));
        assert_eq!(budget.left_out, 1);
        assert!(budget.takes_asked(3 * AGAIN_AFTER_MS), "asked for, it has a share of its own");
        budget.took_asked(DAY_BYTES_ASKED);
        assert!(!budget.takes_asked(3 * AGAIN_AFTER_MS + 1));
        assert!(budget.takes(DAY_MS, &journal) && budget.takes_asked(DAY_MS));
        // A recorder that starts anew has what is left of the day.
        let mut resumed = Budget::resumed(DAY_MS);
        resumed.found(br#"{"schema":"x","at_ms":1,"trigger":"stall""#, DAY_BYTES);
        resumed.found(br#"{"schema":"x","at_ms":1,"trigger":"asked""#, DAY_BYTES_ASKED);
        assert!(!resumed.takes(DAY_MS + 1, &journal) && !resumed.takes_asked(DAY_MS + 1));
        assert!(resumed.takes(2 * DAY_MS, &journal) && resumed.takes_asked(2 * DAY_MS));
    }

    /// A process calls itself, and groups of its own, as it likes; what stalls and the guard need is not its.
    #[test]
    fn slow_syncs_of_a_unit_leave_bytes_for_those_of_others_and_for_stalls() {
        let mut now_ms = 0;
        let mut takes = |budget: &mut Budget, cause: &Cause| {
            now_ms += SPACED_MS;
            budget.takes(now_ms, cause)
        };
        let of = |comm: &str, unit: &str| Cause::of(&slow(comm, Phase::Journal), unit, "sda");
        let mut budget = Budget::default();
        assert!(takes(&mut budget, &of("a", "user@1000.service/a.service")));
        assert!(!takes(&mut budget, &of("b", "user@1000.service/a.service")), "the same under another name");
        budget.took(&of("a", "user@1000.service/a.service"), DAY_BYTES_OF_UNIT);
        assert!(!takes(&mut budget, &of("c", "user@1000.service/c.service")), "it is the same unit outside");
        assert!(takes(&mut budget, &of("db", "db.service")));
        for unit in ["session-1.scope", ""] {
            budget.took(&of("x", unit), DAY_BYTES_OF_UNIT);
        }
        assert!(!takes(&mut budget, &of("etcd", "etcd.service")), "syncs have had their share");
        assert!(takes(&mut budget, &Cause::Stall("sda".into())));
        assert!(takes(&mut budget, &Cause::Guard("sda".into(), "tail".into())));
        // A recorder that starts anew knows it from the files.
        let head = |unit: &str| {
            let zero = r#""zero_ms":1,"device":"sda""#;
            format!(
                "{{\"schema\":\"x\",\"at_ms\":1,\"trigger\":\"slow_sync\",{zero},\"unit\":\"{unit}\",\"sync\":{{"
            )
        };
        let mut resumed = Budget::resumed(0);
        resumed.found(head("user@1000.service/a.service").as_bytes(), DAY_BYTES_OF_UNIT);
        assert!(!takes(&mut resumed, &of("c", "user@1000.service/c.service")));
        assert!(takes(&mut resumed, &of("db", "db.service")));
    }
}
