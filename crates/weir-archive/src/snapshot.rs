//! What led to a slow sync, in a file of its own: its anatomy, and the completions on its device meanwhile and shortly before.
//! Which slow syncs are worth one, and how many.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_blocktrace::fsync::{Cause, Io, SlowSync};

/// Version of the document.
pub const SCHEMA: &str = "weir.recorder.snapshot/1";

/// The same cause again within this time is not worth another one.
const AGAIN_AFTER_MS: i64 = 600_000;
/// Snapshots of all causes within so much time.
const SPACED_MS: i64 = 5_000;
/// Bytes of snapshots a day.
const DAY_BYTES: u64 = 16 << 20;
const DAY_MS: i64 = 86_400_000;
/// Causes that are remembered.
const CAUSES_MAX: usize = 256;

/// What the same trouble has in common: who was slow, on what, for which part of the time, behind whom.
type Key = (String, String, String, String);

/// Which snapshots were taken.
#[derive(Debug, Default)]
pub struct Budget {
    last_ms: BTreeMap<Key, i64>,
    any_ms: Option<i64>,
    day: i64,
    bytes: u64,
    /// How many were not taken since the last that was.
    pub left_out: u64,
}

impl Budget {
    /// Whether a slow sync is worth a snapshot now.
    pub fn takes(&mut self, now_ms: i64, slow: &SlowSync, device: &str) -> bool {
        let key = key(slow, device);
        let day = now_ms.div_euclid(DAY_MS);
        if day != self.day {
            (self.day, self.bytes) = (day, 0);
        }
        // A clock that went back must not silence it for long.
        let since = |then: i64| (now_ms - then).unsigned_abs() as i64;
        let is_new = self.last_ms.get(&key).is_none_or(|then| since(*then) >= AGAIN_AFTER_MS);
        let is_spaced = self.any_ms.is_none_or(|then| since(then) >= SPACED_MS);
        if !is_new || !is_spaced || self.bytes >= DAY_BYTES {
            self.left_out += 1;
            return false;
        }
        if self.last_ms.len() >= CAUSES_MAX {
            self.last_ms.retain(|_, then| since(*then) < AGAIN_AFTER_MS);
        }
        if self.last_ms.len() < CAUSES_MAX {
            self.last_ms.insert(key, now_ms);
        }
        self.any_ms = Some(now_ms);
        self.left_out = 0;
        true
    }

    /// Counts what a snapshot took.
    pub fn took(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

fn key(slow: &SlowSync, device: &str) -> Key {
    let most = slow.phases.iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let part = most.map_or(String::new(), |row| {
        let cause =
            row.causes.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Cause::Kernel, |cause| cause.0);
        format!("{} {}", row.phase.name(), cause.name())
    });
    let culprit = slow.culprits.first().map_or(String::new(), |culprit| culprit.process.comm.clone());
    (slow.process.comm.clone(), device.to_string(), part, culprit)
}

/// A completion, times in microseconds since the sync began; what is not known is left out.
#[derive(Serialize)]
struct Completion {
    device: String,
    op: u8,
    bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    got_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_us: Option<i64>,
    completed_us: i64,
    flush: bool,
    metadata: bool,
    own: bool,
    owner: u32,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    at_ms: i64,
    device: &'a str,
    unit: &'a str,
    sync: &'a SlowSync,
    /// Completions that did not fit.
    left_out: usize,
    completions: Vec<Completion>,
}

/// The document: a slow sync and the completions beside it, the last ones first to stay where there are more than `most`.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn document(
    at_ms: i64,
    slow: &SlowSync,
    device: &str,
    unit: &str,
    ios: &[Io],
    most: usize,
) -> serde_json::Result<Vec<u8>> {
    let left_out = ios.len().saturating_sub(most);
    let since = |ns: u64| (ns as i64 - slow.start_ns as i64) / 1000;
    let known = |ns: u64| (ns != 0).then(|| since(ns));
    let completion = |io: &Io| Completion {
        device: io.device.to_string(),
        op: io.flags.op(),
        bytes: io.bytes,
        queued_us: known(io.queue_ns),
        got_us: known(io.get_ns),
        issued_us: known(io.issue_ns),
        completed_us: since(io.complete_ns),
        flush: io.flags.is_flush(),
        metadata: io.flags.is_metadata(),
        own: io.own_tid == slow.tid,
        owner: io.owner_tgid,
    };
    let completions = ios[left_out..].iter().map(completion).collect();
    let mut bytes = serde_json::to_vec(&Document {
        schema: SCHEMA,
        at_ms,
        device,
        unit,
        sync: slow,
        left_out,
        completions,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use weir_blocktrace::fsync::{Call, IoFlags, Phase, Process, Row};
    use weir_core::target::DeviceNumber;

    use super::*;

    fn slow(comm: &str, phase: Phase) -> SlowSync {
        SlowSync {
            start_ns: 5_000_000,
            took_ns: 200_000_000,
            process: Process::new(Some(7), comm),
            tid: 7,
            call: Call::Fsync,
            device: None,
            phases: vec![Row { phase, share: 1.0, causes: vec![(Cause::Others, 1.0)] }],
            culprits: vec![],
        }
    }

    #[test]
    fn the_same_again_is_left_out_and_days_are_bounded() {
        let mut budget = Budget::default();
        let (journal, flush) = (slow("db", Phase::Journal), slow("db", Phase::Flush));
        assert!(budget.takes(0, &journal, "sda"));
        assert!(!budget.takes(100_000, &journal, "sda"));
        assert!(budget.takes(100_000, &flush, "sda"));
        assert!(!budget.takes(101_000, &slow("other", Phase::Flush), "sda"), "too soon after another");
        assert!(budget.takes(106_000, &journal, "sdb"));
        assert!(budget.takes(AGAIN_AFTER_MS + 1, &journal, "sda"));
        budget.took(DAY_BYTES);
        assert!(!budget.takes(3 * AGAIN_AFTER_MS, &journal, "sda"));
        assert_eq!(budget.left_out, 1);
        assert!(budget.takes(DAY_MS, &journal, "sda"));
    }

    #[test]
    fn completions_stand_by_the_time_of_the_sync() {
        let io = |complete_ns| Io {
            device: DeviceNumber { major: 8, minor: 0 },
            complete_ns,
            issue_ns: complete_ns - 1_000_000,
            get_ns: 0,
            queue_ns: 0,
            file: None,
            owner_tgid: 9,
            own_tid: 7,
            bytes: 4096,
            flags: IoFlags(1),
            raw_device: None,
        };
        let ios = [io(3_000_000), io(6_000_000), io(7_000_000)];
        let bytes = document(1, &slow("db", Phase::Journal), "sda", "db.service", &ios, 2).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&value["left_out"], &value["completions"][0]["completed_us"]), (&1.into(), &1000.into()));
        assert_eq!(value["completions"][1]["issued_us"], 1000);
        assert!(value["completions"][0].get("got_us").is_none());
        assert_eq!(value["sync"]["took_ns"], 200_000_000);
    }
}
