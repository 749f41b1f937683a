//! What led to something, in a file of its own: the completions on the devices shortly before and meanwhile, what the devices
//! did second by second, which syncs were under way, and, where a slow sync is the reason, its anatomy.

mod budget;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use weir_blocktrace::fsync::{Begun, LastIos, PastIo, SlowSync};
use weir_core::target::DeviceNumber;

pub use budget::{Budget, Cause, day_of};

use crate::segment::{stamp, time};

/// The name of a snapshot's file, which says when it was taken, Unix time, ms.
pub fn file_name(at_ms: i64) -> String {
    format!("{}-{:03}.json", stamp(at_ms.div_euclid(1000)), at_ms.rem_euclid(1000))
}

/// What such a name says; `None` of a file that is not a snapshot's.
pub fn taken_at_ms(name: &str) -> Option<i64> {
    let (begin, ms) = name.strip_suffix(".json")?.split_once('-')?;
    let at_ms = time(begin)?.checked_mul(1000)?.checked_add(ms.parse().ok()?)?;
    (file_name(at_ms) == name).then_some(at_ms)
}

/// As much of a file as says who asked for it, or whose slow sync it was: a unit has 256 bytes, some of which JSON writes as six.
pub const HEAD_BYTES: usize = 2048;

/// Whether the snapshot that begins so was taken because somebody asked.
pub fn was_asked_for(head: &[u8]) -> bool {
    let wanted = format!("\"trigger\":\"{ASKED}\"");
    head.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

/// The unit of the snapshot that begins so, if a slow sync is the reason; empty where the process had none.
fn unit_of_sync(head: &[u8]) -> Option<String> {
    let after = |text: &str| {
        let at = head.windows(text.len()).position(|window| window == text.as_bytes())?;
        head.get(at + text.len()..)
    };
    after("\"trigger\":\"slow_sync\"")?;
    let unit = after("\"unit\":").map(serde_json::Deserializer::from_slice);
    Some(unit.and_then(|mut unit| String::deserialize(&mut unit).ok()).unwrap_or_default())
}

/// The trigger of one that somebody asked for.
pub const ASKED: &str = "asked";

/// Version of the document.
pub const SCHEMA: &str = "weir.recorder.snapshot/1";

/// A completion, times in microseconds since the document's zero; what is not known is left out.
#[derive(Serialize)]
struct Completion {
    #[serde(serialize_with = "as_text")]
    device: DeviceNumber,
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
    /// The thread inside a sync that submitted it; 0 if none did.
    own_tid: u32,
    owner: u32,
}

impl Completion {
    fn of(io: &PastIo, zero_ns: u64) -> Completion {
        let known = |ns: Option<u64>| ns.map(|ns| since_us(ns, zero_ns));
        Completion {
            device: io.device,
            op: io.flags.op(),
            bytes: io.bytes,
            queued_us: known(io.queue_ns()),
            got_us: known(io.get_ns()),
            issued_us: known(io.issue_ns()),
            completed_us: since_us(io.complete_ns, zero_ns),
            flush: io.flags.is_flush(),
            metadata: io.flags.is_metadata(),
            own_tid: io.own_tid,
            owner: io.owner_tgid,
        }
    }
}

fn since_us(ns: u64, zero_ns: u64) -> i64 {
    (ns as i64 - zero_ns as i64) / 1000
}

/// A sync that had not returned.
#[derive(Serialize)]
struct Waiting<'a> {
    comm: &'a str,
    pid: u32,
    tid: u32,
    call: weir_blocktrace::fsync::Call,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    began_us: i64,
}

impl Waiting<'_> {
    fn of(sync: &Begun, began_us: i64) -> Waiting<'_> {
        Waiting {
            comm: &sync.comm,
            pid: sync.tgid,
            tid: sync.tid,
            call: sync.call,
            device: sync.device.map(|device| device.to_string()),
            began_us,
        }
    }
}

/// What devices did in a second, and how things were at its end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Second {
    /// Its end, Unix time, ms.
    pub at_ms: i64,
    /// Its length, ms.
    pub span_ms: i64,
    /// Counters that grew, and gauges, by device; empty for the machine.
    pub counters: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

/// What a snapshot is of.
#[derive(Debug, Clone, Default)]
pub struct Scene<'a> {
    /// When it is taken, Unix time, ms.
    pub at_ms: i64,
    /// slow_sync, stall, guard or asked.
    pub trigger: &'static str,
    /// Why, as a sentence; empty where the trigger says all.
    pub reason: String,
    /// The device that it is about, by name or number; empty where it is about all.
    pub device: String,
    /// The unit whose sync it is about.
    pub unit: String,
    /// Since this, CLOCK_MONOTONIC, times are told, ns, ...
    pub zero_ns: u64,
    /// ... and the same in Unix time, ms.
    pub zero_ms: i64,
    /// The sync that it is about.
    pub sync: Option<&'a SlowSync>,
    /// Syncs under way when they were last looked at.
    pub under_way: &'a [Begun],
    /// The last seconds.
    pub seconds: &'a [Second],
    /// The last completions.
    pub last: LastIos<'a>,
    /// Names of the processes that own I/O, by id.
    pub owners: BTreeMap<u32, String>,
}

fn as_text<S: Serializer>(value: &DeviceNumber, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Completions that are made one by one as they are written: they may be tens of thousands.
struct Completions<'a> {
    ios: &'a [&'a PastIo],
    zero_ns: u64,
}

impl Serialize for Completions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ios.iter().map(|io| Completion::of(io, self.zero_ns)))
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    at_ms: i64,
    trigger: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    zero_ms: i64,
    device: &'a str,
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sync: Option<&'a SlowSync>,
    under_way: Vec<Waiting<'a>>,
    seconds: &'a [Second],
    owners: &'a BTreeMap<u32, String>,
    /// Completions that did not fit.
    left_out: usize,
    completions: Completions<'a>,
}

/// The document.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn document(scene: &Scene<'_>) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Document {
        schema: SCHEMA,
        at_ms: scene.at_ms,
        trigger: scene.trigger,
        reason: &scene.reason,
        zero_ms: scene.zero_ms,
        device: &scene.device,
        unit: &scene.unit,
        sync: scene.sync,
        under_way: scene
            .under_way
            .iter()
            .map(|sync| Waiting::of(sync, since_us(sync.start_ns, scene.zero_ns)))
            .collect(),
        seconds: scene.seconds,
        owners: &scene.owners,
        left_out: scene.last.left_out,
        completions: Completions { ios: &scene.last.ios, zero_ns: scene.zero_ns },
    })?;
    bytes.push(b'\n');
    // It may have to wait.
    bytes.shrink_to_fit();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use weir_blocktrace::fsync::{Call, Io, IoFlags};

    use super::*;

    #[test]
    fn completions_stand_by_the_time_of_the_sync() {
        let io = |complete_ns| {
            PastIo::from(&Io {
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
            })
        };
        let ios = [io(6_000_000), io(7_000_000)];
        let sync = budget::testing::slow("db", weir_blocktrace::fsync::Phase::Journal);
        let device = Some(DeviceNumber { major: 8, minor: 0 });
        let waits =
            Begun { tid: 7, tgid: 9, comm: "db".into(), call: Call::Fsync, device, start_ns: 4_000_000 };
        let scene = Scene {
            at_ms: 1,
            trigger: "slow_sync",
            unit: "db\"\u{1}.service".to_string(),
            zero_ns: sync.start_ns,
            sync: Some(&sync),
            under_way: std::slice::from_ref(&waits),
            last: LastIos { ios: ios.iter().collect(), left_out: 1 },
            ..Scene::default()
        };
        let bytes = document(&scene).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&value["left_out"], &value["completions"][0]["completed_us"]), (&1.into(), &1000.into()));
        assert_eq!(value["completions"][1]["issued_us"], 1000);
        assert!(value["completions"][0].get("got_us").is_none());
        assert_eq!(value["sync"]["took_ns"], 200_000_000);
        assert_eq!(
            (&value["under_way"][0]["began_us"], &value["under_way"][0]["device"]),
            (&(-1000).into(), &"8:0".into())
        );
        let head = &bytes[..HEAD_BYTES.min(bytes.len())];
        assert_eq!((was_asked_for(head), unit_of_sync(head).as_deref()), (false, Some("db\"\u{1}.service")));
        let scene = Scene { at_ms: i64::MAX, trigger: ASKED, ..Scene::default() };
        let bytes = document(&scene).unwrap();
        assert!(was_asked_for(&bytes) && unit_of_sync(&bytes).is_none());
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert!(value.get("sync").is_none() && value.get("reason").is_none(), "{value}");
    }

    #[test]
    fn a_name_says_when_and_other_files_have_none_such() {
        for at_ms in [0, 1_795_576_200_042, 1_795_576_200_999] {
            assert_eq!(taken_at_ms(&file_name(at_ms)), Some(at_ms));
        }
        for other in [
            "1.json",
            "20261125T031000Z.json",
            "20261125T031000Z-42.json",
            "20261125T031000Z-+42.json",
            "notes.json",
            "",
        ] {
            assert_eq!(taken_at_ms(other), None, "{other}");
        }
    }
}
