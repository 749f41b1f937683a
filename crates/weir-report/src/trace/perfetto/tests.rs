//! Traces decoded again by the published field numbers, on their own: what a viewer needs is in them.
#![allow(clippy::disallowed_methods, reason = "these tests read fixtures; the library reads nothing")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::Path;

use weir_blocktrace::decode::{Batch, Decoder, HEAD_BYTES};
use weir_blocktrace::fsync::{Analyst, Call, FileId, Io, IoFlags, Part, Sampling, Wait};
use weir_blocktrace::merge::Source;
use weir_blocktrace::read::{Taker, read};
use weir_blocktrace::{Both, Class, Collector, Sink, Stage};
use weir_core::target::DeviceNumber;

use super::{Counters, Recording, syncs};

/// A field as it stands in the bytes.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Default)]
struct Fields(Vec<(u64, Value)>);

impl Fields {
    fn of(bytes: &[u8]) -> Fields {
        let (mut at, mut fields) = (0, Vec::new());
        let varint = |at: &mut usize| {
            let (mut value, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[*at];
                *at += 1;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        while at < bytes.len() {
            let key = varint(&mut at);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut at)),
                1 => {
                    at += 8;
                    Value::Number(u64::from_le_bytes(bytes[at - 8..at].try_into().unwrap()))
                }
                2 => {
                    let length = varint(&mut at) as usize;
                    at += length;
                    Value::Bytes(bytes[at - length..at].to_vec())
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push((key >> 3, value));
        }
        Fields(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| value)
    }

    fn numbers(&self, field: u64) -> Vec<u64> {
        self.all(field)
            .map(|value| match value {
                Value::Number(number) => *number,
                Value::Bytes(_) => panic!("field {field} is no number"),
            })
            .collect()
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.numbers(field).first().copied()
    }

    fn messages(&self, field: u64) -> Vec<Fields> {
        self.all(field)
            .map(|value| match value {
                Value::Bytes(bytes) => Fields::of(bytes),
                Value::Number(_) => panic!("field {field} is no message"),
            })
            .collect()
    }

    fn text(&self, field: u64) -> Option<String> {
        self.all(field).next().map(|value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            Value::Number(_) => panic!("field {field} is no text"),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Shown {
    track: u64,
    name: String,
    start_ns: u64,
    end_ns: u64,
    depth: usize,
}

/// A trace as a viewer takes it.
#[derive(Debug, Default)]
struct Trace {
    /// Name and parent by number.
    tracks: BTreeMap<u64, (String, Option<u64>)>,
    threads: BTreeMap<u64, (u64, u64)>,
    slices: Vec<Shown>,
    counters: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Slices where each arrow begins and ends.
    flows: BTreeMap<u64, (Vec<usize>, Vec<usize>)>,
    clocks: Vec<(u64, u64)>,
}

impl Trace {
    /// Sorts by time, as the viewer does, and complains of what it would drop.
    fn of(bytes: &[u8]) -> Trace {
        let mut trace = Trace::default();
        let mut events = Vec::new();
        for packet in Fields::of(bytes).messages(1) {
            assert_eq!(packet.number(10), Some(1), "every packet has its writer");
            for track in packet.messages(60) {
                trace.describe(&track);
            }
            for snapshot in packet.messages(6) {
                let clocks = snapshot.messages(1);
                trace.clocks.extend(clocks.iter().map(|c| (c.number(1).unwrap(), c.number(2).unwrap())));
            }
            for event in packet.messages(11) {
                events.push((packet.number(8).unwrap(), event));
            }
        }
        events.sort_by_key(|(at_ns, _)| *at_ns);
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at_ns, event) in events {
            trace.event(at_ns, &event, &mut open);
        }
        assert!(open.values().all(Vec::is_empty), "a slice has no end");
        trace
    }

    fn describe(&mut self, track: &Fields) {
        let uuid = track.number(1).unwrap();
        let parent = track.number(5);
        assert!(parent.is_none_or(|parent| self.tracks.contains_key(&parent)), "a parent comes first");
        let mut name = track.text(2).unwrap_or_default();
        for thread in track.messages(4) {
            name = thread.text(5).unwrap();
            self.threads.insert(uuid, (thread.number(1).unwrap(), thread.number(2).unwrap()));
        }
        if let Some(counter) = track.messages(8).first() {
            assert!(matches!(counter.number(3), Some(2 | 3)), "a unit");
            self.counters.insert(uuid, Vec::new());
        }
        assert!(self.tracks.insert(uuid, (name, parent)).is_none(), "a track is described once");
    }

    fn event(&mut self, at_ns: u64, event: &Fields, open: &mut HashMap<u64, Vec<usize>>) {
        let track = event.number(11).unwrap();
        assert!(self.tracks.contains_key(&track), "no track {track}");
        let stack = open.entry(track).or_default();
        match event.number(9).unwrap() {
            1 => {
                let depth = stack.len();
                stack.push(self.slices.len());
                for flow in event.numbers(47) {
                    self.flows.entry(flow).or_default().0.push(self.slices.len());
                }
                for flow in event.numbers(48) {
                    self.flows.entry(flow).or_default().1.push(self.slices.len());
                }
                let name = event.text(23).unwrap();
                self.slices.push(Shown { track, name, start_ns: at_ns, end_ns: u64::MAX, depth });
            }
            2 => self.slices[stack.pop().expect("an end without a begin")].end_ns = at_ns,
            4 => self.counters.get_mut(&track).unwrap().push((at_ns, event.number(30).unwrap())),
            kind => panic!("event of type {kind}"),
        }
    }

    /// Of arrows each has one begin and, not before it, one end.
    fn check_flows(&self) {
        for (flow, (begins, ends)) in &self.flows {
            assert_eq!((begins.len(), ends.len()), (1, 1), "flow {flow}");
            let (from, to) = (&self.slices[begins[0]], &self.slices[ends[0]]);
            assert!(from.start_ns <= to.start_ns, "flow {flow}: {from:?} to {to:?}");
            assert_ne!(from.track, to.track);
        }
    }

    /// Every slice lies in the one it is below.
    fn check_nesting(&self) {
        let mut tops: HashMap<u64, Vec<&Shown>> = HashMap::new();
        for slice in &self.slices {
            let stack = tops.entry(slice.track).or_default();
            stack.truncate(slice.depth);
            assert_eq!(stack.len(), slice.depth);
            assert!(stack.last().is_none_or(|above| above.end_ns >= slice.end_ns), "{slice:?}");
            stack.push(slice);
        }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Shown> {
        self.slices.iter().filter(move |slice| slice.name == name)
    }

    /// The first name on the way up from a track.
    fn root(&self, mut track: u64) -> &str {
        while let Some(parent) = self.tracks[&track].1 {
            track = parent;
        }
        &self.tracks[&track].0
    }

    fn most(&self, name: &str) -> u64 {
        let track =
            self.tracks.iter().find(|(_, (own, _))| own == name).unwrap_or_else(|| panic!("{name}")).0;
        self.counters[track].iter().map(|(_, value)| *value).max().unwrap()
    }
}

struct InMemory(Decoder, Vec<u8>);

impl Source for InMemory {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        self.0.finish(&std::mem::take(&mut self.1), batch).unwrap();
        false
    }
}

/// A recording among the fixtures as a trace, and its analysis.
fn fixture(folder: &str, device: DeviceNumber, name: &str) -> (Trace, Collector) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces").join(folder);
    let mut sources = Vec::new();
    for cpu in 0..2 {
        let file = std::fs::File::open(folder.join(format!("{name}.blktrace.{cpu}.gz"))).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        sources.push(InMemory(Decoder::new(name, &bytes[..HEAD_BYTES]).unwrap(), bytes));
    }
    let (mut recording, mut collector) = (Recording::new(Vec::new()), Collector::new());
    recording.device_called(device, name);
    let mut both = Both(&mut collector, &mut recording);
    let sources = sources.iter_mut().map(|source| source as &mut dyn Source).collect();
    read(sources, Taker::Any(&mut both), &mut || true);
    let written = recording.finish().unwrap();
    (Trace::of(&written.out), collector)
}

#[test]
fn recordings_become_tracks_of_queues_and_of_threads_that_sync() {
    for (folder, device, name) in [
        ("ext4-none", DeviceNumber { major: 254, minor: 0 }, "vda"),
        ("ext4-mq-deadline", DeviceNumber { major: 254, minor: 0 }, "vda"),
        ("ext4-fua", DeviceNumber { major: 8, minor: 0 }, "sda"),
    ] {
        let (trace, collector) = fixture(folder, device, name);
        trace.check_nesting();
        trace.check_flows();
        let analysis = collector.finish(Default::default());
        let cell = |class| analysis.table.of_class(device, class);
        // Every I/O of the analysis is a slice of its device's queue, with the same stages.
        let queue = format!("{name} queue");
        let ios = trace.slices.iter().filter(|s| s.depth == 0 && trace.root(s.track) == queue).count() as u64;
        let expected = cell(Class::All).ios + cell(Class::Flush).ios + cell(Class::Passthrough).ios;
        assert_eq!(ios, expected, "{folder}");
        // Of merged ones that is the time until the merge and from there, whatever else the table holds of their request.
        for stage in [Stage::D2C, Stage::Q2M, Stage::M2D] {
            let in_table: u64 =
                [Class::All, Class::Flush].map(|class| cell(class).stage(stage).count()).iter().sum();
            assert_eq!(trace.named(stage.name()).count() as u64, in_table, "{folder} {stage:?}");
        }
        let inserted = trace.named(Stage::I2D.name()).count() as u64;
        assert!(
            inserted
                <= cell(Class::All).stage(Stage::I2D).count() + cell(Class::Flush).stage(Stage::I2D).count()
        );
        assert!(inserted > 0 || folder != "ext4-mq-deadline");
        // A flush command that is sent for others has no sender.
        let is_sent = |flush: &&Shown| trace.root(flush.track) == "threads that sync";
        let flushes = trace.named("flush").filter(is_sent).count() as u64;
        assert_eq!(flushes, cell(Class::Flush).stage(Stage::Q2C).count(), "{folder}");
        // Those that somebody waited for have an arrow.
        assert!(!trace.flows.is_empty(), "{folder}");
        let senders: BTreeSet<&str> =
            trace.flows.values().map(|f| trace.root(trace.slices[f.0[0]].track)).collect();
        assert_eq!(senders, BTreeSet::from(["threads that sync"]), "{folder}");
        assert!(
            trace.most(&format!("{name} I/Os in flight"))
                >= trace.most(&format!("{name} I/Os in the device"))
        );
        assert_eq!(trace.clocks.len() % 2, 0);
    }
}

const MS: u64 = 1_000_000;
const DISK: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

fn io(queue_ms: u64, complete_ms: u64, inode: u64) -> Io {
    Io {
        device: DISK,
        complete_ns: complete_ms * MS,
        issue_ns: queue_ms * MS + MS / 2,
        get_ns: queue_ms * MS + MS / 4,
        queue_ns: queue_ms * MS,
        file: Some(FileId { file_system: DISK, inode }),
        owner_tgid: 70 + inode as u32,
        own_tid: 0,
        bytes: 4096,
        flags: IoFlags(1),
        raw_device: None,
    }
}

#[test]
fn syncs_have_their_waits_and_arrows_to_their_own_requests_alone() {
    let mut analyst = Analyst::new(Sampling { stack_every_ns: MS, slow_ns: None });
    analyst.keep_log();
    let journal = analyst.site(&["__schedule", "jbd2_log_wait_commit", "ext4_sync_file"]);
    // Sent before the sync, another file's, and sent by it.
    [io(5, 12, 1), io(11, 14, 2), io(12, 18, 1)].into_iter().for_each(|io| analyst.io(io));
    let wait = |from, to, runnable_ms| Wait {
        start_ns: from * MS,
        end_ns: to * MS,
        runnable_ns: runnable_ms * MS,
        site: Some(journal),
        by_chance: false,
    };
    let part = |waits, end_ns| Part {
        tid: 6,
        tgid: 5,
        comm: "db\x1b[2J".to_string(),
        call: Call::Fsync,
        device: Some(DISK),
        file: Some(FileId { file_system: DISK, inode: 1 }),
        start_ns: 10 * MS,
        end_ns,
        seen_from_ns: 0,
        waits,
    };
    // As a tick finds it, then as it ends.
    analyst.under_way(&[part(vec![wait(11, 15, 0)], None)], 15 * MS, false);
    analyst.part(&part(vec![wait(11, 20, 1)], Some(21 * MS)));
    let log = analyst.take_log();
    assert_eq!((log.syncs.len(), log.ios.len(), log.left_out), (1, 3, 0));
    assert_eq!(log.syncs[0].ios, [0, 2]);
    assert_eq!(analyst.take_log().syncs, [], "it is kept no longer");

    let beside = Counters {
        memory: vec![(10 * MS, 4096, 0), (20 * MS, 0, 8192)],
        wall_clock: Some((10 * MS, 1_700_000_000_000_000_000)),
        devices: HashMap::from([(DISK, "loop0".to_string())]),
    };
    let trace = Trace::of(&syncs(Vec::new(), &log, &beside).unwrap());
    trace.check_nesting();
    trace.check_flows();
    assert_eq!(trace.threads.values().collect::<Vec<_>>(), [&(5, 6)]);
    let of =
        |name: &str| trace.named(name).map(|s| (s.start_ns / MS, s.end_ns / MS, s.depth)).collect::<Vec<_>>();
    assert_eq!(of("fsync"), [(10, 21, 0)]);
    assert_eq!(of("journal"), [(11, 19, 1)], "a wait that a tick cut is one again");
    assert_eq!(of("no free CPU"), [(19, 20, 1)]);
    assert_eq!(of("write 4 KiB"), [(5, 12, 0), (11, 14, 0), (12, 18, 0)]);
    let ends = |flow: &(Vec<usize>, Vec<usize>)| {
        (trace.slices[flow.0[0]].start_ns / MS, trace.slices[flow.1[0]].start_ns / MS)
    };
    let arrows: BTreeSet<_> = trace.flows.values().map(ends).collect();
    assert_eq!(arrows, BTreeSet::from([(5, 10), (10, 12)]));
    assert_eq!(trace.most("loop0 requests in flight"), 2);
    assert_eq!((trace.most("dirty pages"), trace.most("pages in write-back")), (4096, 8192));
    assert!(trace.tracks.values().any(|(name, _)| name == "db\u{fffd}[2J"));
    assert_eq!(trace.clocks, [(6, 10 * MS), (1, 1_700_000_000_000_000_000)]);
}
