//! Real recordings against what is known of them otherwise: the figures of a reference matcher, the log of the
//! application that made the I/O, and the settings of the devices it was made on. `fixtures/traces/README.md` says
//! how the recordings came about.
#![allow(clippy::disallowed_methods, reason = "this test reads fixtures; the library reads nothing")]
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod files;

use std::collections::BTreeMap;
use std::path::PathBuf;

use files::{InMemory, fixture, unpacked};
use weir_blocktrace::merge::{Turn, merge};
use weir_blocktrace::{
    Act, Analysis, Bio, Both, Class, ClassSet, Collector, Event, Flags, Item, Kind, Matcher, Moment, Piece,
    Reason, Request, Sink, Stage,
};
use weir_core::target::DeviceNumber;

const VIRTIO: DeviceNumber = DeviceNumber { major: 254, minor: 0 };
const MAPPED: DeviceNumber = DeviceNumber { major: 253, minor: 0 };
const NULL: DeviceNumber = DeviceNumber { major: 253, minor: 0 };
const SCSI: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

/// Everything that came out of one recording.
#[derive(Default)]
struct Seen {
    folder: String,
    events: Vec<Event>,
    pieces: Vec<Piece>,
    requests: Vec<Request>,
    bios: Vec<Bio>,
    phases: Vec<(u64, String)>,
    analysis: Analysis,
}

impl Sink for Seen {
    fn piece(&mut self, piece: &Piece) {
        self.pieces.push(*piece);
    }
    fn request(&mut self, request: &Request) {
        self.requests.push(*request);
    }
    fn bio(&mut self, bio: &Bio) {
        self.bios.push(*bio);
    }
    fn event(&mut self, event: &Event) {
        self.events.push(*event);
    }
}

impl Seen {
    fn account(&self, device: DeviceNumber) -> &weir_blocktrace::Account {
        &self.analysis.device(device).unwrap_or_else(|| panic!("{}: no {device}", self.folder)).account
    }

    /// Events of one act on a device, of I/O in which all of `flags` are set.
    fn count(&self, device: DeviceNumber, act: Act, flags: Flags) -> usize {
        self.events.iter().filter(|e| e.device == device && e.act == act && e.flags.has(flags)).count()
    }

    /// When a phase began and ended, ns; the recording names them.
    fn phase(&self, name: &str) -> (u64, u64) {
        let at = self.phases.iter().position(|(_, text)| text.contains(name));
        let at = at.unwrap_or_else(|| panic!("{}: no phase {name}: {:?}", self.folder, self.phases));
        (self.phases[at].0, self.phases.get(at + 1).map_or(u64::MAX, |(time_ns, _)| *time_ns))
    }
}

/// One line of an application's log.
#[derive(Debug, Clone)]
struct Op {
    name: String,
    start_ns: u64,
    end_ns: u64,
    offset: u64,
    bytes: u64,
    errno: i32,
}

impl Op {
    fn holds(&self, times: (u64, u64)) -> bool {
        self.start_ns <= times.0 && times.1 <= self.end_ns
    }

    fn took_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// Files of a folder whose name contains `part`, in order.
fn files(folder: &str, part: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|p| p.file_name().is_some_and(|name| name.to_string_lossy().contains(part))).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} has no {part}");
    found
}

/// Decodes, merges and matches the files of a folder whose name contains `part`, and checks what holds for any
/// recording: every event is accounted for.
fn read(folder: &str, part: &str) -> Seen {
    let mut seen = Seen { folder: folder.to_string(), ..Seen::default() };
    let (mut collector, mut matcher) = (Collector::new(), Matcher::default());
    let mut sources = Vec::new();
    for path in files(folder, part) {
        let bytes = unpacked(&path);
        sources.push(InMemory::new(&path.to_string_lossy(), bytes));
    }
    let mut phases = Vec::new();
    merge(sources, |turn| {
        match turn {
            Turn::Event(event) => matcher.event(event, &mut Both(&mut collector, &mut seen)),
            Turn::Other(item) => {
                if let Item::Message { time_ns, text, .. } = item {
                    phases.push((*time_ns, text.clone()));
                }
                collector.item(item);
                matcher.item(item, &mut Both(&mut collector, &mut seen));
            }
        }
        true
    });
    let unmatched = matcher.finish(&mut Both(&mut collector, &mut seen));
    phases.sort();
    seen.phases = phases;
    seen.analysis = collector.finish(unmatched);
    every_event_is_accounted_for(&seen);
    seen
}

fn every_event_is_accounted_for(seen: &Seen) {
    assert!(!seen.events.is_empty(), "{}: no events", seen.folder);
    let mut events = BTreeMap::<DeviceNumber, u64>::new();
    seen.events.iter().for_each(|event| *events.entry(event.device).or_default() += 1);
    for (device, count) in events {
        let account = seen.account(device);
        assert_eq!(account.events, count, "{}: events of {device}", seen.folder);
        let sum = account.matched + account.unmatched.values().sum::<u64>();
        assert_eq!(sum, count, "{}: {account:?}", seen.folder);
    }
}

fn ops(folder: &str, name: &str) -> Vec<Op> {
    let text = String::from_utf8(unpacked(&fixture(folder).join(format!("{name}.ops.gz")))).unwrap();
    let found: Vec<_> = text
        .lines()
        .map(|line| {
            let word: Vec<_> = line.split(' ').collect();
            let number = |at: usize| word.get(at).map_or(0, |w| w.parse().unwrap());
            Op {
                name: word[0].to_string(),
                start_ns: number(1),
                end_ns: number(2),
                offset: number(3),
                bytes: number(4),
                errno: number(5) as i32,
            }
        })
        .collect();
    assert!(!found.is_empty(), "{folder}/{name}");
    found
}

fn span(times: &weir_blocktrace::Times) -> (u64, u64) {
    (times.get(Moment::Queue).unwrap(), times.get(Moment::Complete).unwrap())
}

fn does(bio: &Bio, op: &str) -> bool {
    let classes = ClassSet::of(bio.flags, bio.bytes);
    match op {
        "read" | "aior" => classes.has(Class::Read),
        "write" | "aiow" => classes.has(Class::Write),
        "discard" => classes.has(Class::Discard),
        other => panic!("what is {other}?"),
    }
}

/// The bios of a direct log's phase: as many as operations, on one device, in one direction.
fn bios_of(seen: &Seen, device: DeviceNumber, name: &str) -> (Vec<Op>, Vec<Bio>) {
    let wanted = ops(&seen.folder, name);
    let from = wanted.iter().map(|op| op.start_ns).min();
    let to = wanted.iter().map(|op| op.end_ns).max();
    let is_of_phase = |bio: &&Bio| {
        let (queued, done) = span(&bio.times);
        bio.device == device && does(bio, &wanted[0].name) && Some(queued) >= from && Some(done) <= to
    };
    let bios: Vec<_> = seen.bios.iter().filter(is_of_phase).copied().collect();
    assert_eq!(bios.len(), wanted.len(), "{}/{name}: bios and operations", seen.folder);
    (wanted, bios)
}

/// Finds the bio of every operation of a direct log: same direction, place, length and error, and inside the time
/// that the application saw. No bio serves two operations, and none of the phase is left over.
fn bio_of_each(seen: &Seen, device: DeviceNumber, name: &str) -> Vec<(Op, Bio)> {
    let (mut wanted, mut bios) = bios_of(seen, device, name);
    // Of several operations that could be a bio's, the one that ended first: none that ends later loses by that.
    bios.sort_by_key(|bio| span(&bio.times).1);
    wanted.sort_by_key(|op| op.end_ns);
    let mut pairs = Vec::new();
    for bio in bios {
        let at = wanted.iter().position(|op| {
            op.holds(span(&bio.times))
                && (op.offset, op.bytes) == (bio.sector * 512, u64::from(bio.bytes))
                && op.errno == -bio.error
        });
        let at = at.unwrap_or_else(|| panic!("{}/{name}: no operation of {bio:?}", seen.folder));
        pairs.push((wanted.remove(at), bio));
    }
    pairs
}

/// Each commit saw a flush or durable write from its beginning to its true end, and one that needs data written saw that.
fn commits_are_durable(seen: &Seen, device: DeviceNumber, name: &str) {
    for op in ops(&seen.folder, name).iter().filter(|op| op.name == name) {
        let inside = || seen.bios.iter().filter(|bio| bio.device == device && op.holds(span(&bio.times)));
        let durable = |bio: &Bio| bio.flags.has(Flags::FLUSH) || bio.flags.has(Flags::FUA);
        assert!(inside().any(durable), "{}/{name}: {op:?} saw no flush and no FUA", seen.folder);
        let data = inside().any(|bio| {
            ClassSet::of(bio.flags, bio.bytes).has(Class::Write) && u64::from(bio.bytes) >= op.bytes
        });
        assert!(data, "{}/{name}: {op:?} saw no write", seen.folder);
    }
}

fn all_is_matched(seen: &Seen) {
    for device in &seen.analysis.devices {
        assert!(device.account.unmatched.is_empty(), "{}: {:?}", seen.folder, device.account);
    }
}

/// Rows of the reference matcher: count, then min, mean, p50, p99, max in milliseconds as it printed them (`-` where it
/// printed none).
fn check_reference(seen: &Seen, device: DeviceNumber, rows: &[(Class, Stage, &str)]) {
    for (class, stage, row) in rows {
        let cell = seen.analysis.table.of_class(device, *class);
        let d = cell.stage(*stage);
        let word: Vec<_> = row.split(' ').collect();
        assert_eq!(d.count().to_string(), word[0], "{}: {class:?} {stage:?}", seen.folder);
        let [p50, p99] = d.quantiles([0.5, 0.99]).map(|ns| ns as f64);
        let found = [d.min_ns() as f64, d.mean_ns(), p50, p99, d.max_ns() as f64];
        for (found_ns, printed) in found.into_iter().zip(&word[1..]).filter(|(_, printed)| **printed != "-") {
            let digits = printed.split('.').nth(1).unwrap().len();
            let found = format!("{:.digits$}", found_ns / 1e6);
            assert_eq!(found, *printed, "{}: {class:?} {stage:?} of {row}", seen.folder);
        }
    }
}

const EXT4_REFERENCE: [(Class, Stage, &str); 10] = [
    (Class::Flush, Stage::Q2C, "97 0.224410 0.343914 0.300840 1.916610 1.916610"),
    (Class::Flush, Stage::D2C, "205 0.174070 0.377104 0.285770 0.714930 14.833350"),
    (Class::All, Stage::Q2C, "341 0.120360 2.156182 0.214340 36.067850 41.805630"),
    (Class::All, Stage::D2C, "341 0.084440 1.890538 0.167350 35.904880 35.933530"),
    (Class::All, Stage::Q2D, "341 0.033400 0.265644 0.046960 2.998840 15.212210"),
    (Class::All, Stage::Q2G, "282 0.005230 0.077937 0.014480 2.938390 2.992430"),
    (Class::All, Stage::G2DAll, "282 0.017800 0.231007 0.031290 5.643510 15.204240"),
    (Class::All, Stage::G2I, "228 0.008150 0.081349 0.012960 2.133310 5.938470"),
    (Class::All, Stage::Q2M, "59 0.001060 0.006583 0.005110 0.075080 0.075080"),
    (Class::All, Stage::M2D, "59 0.028110 0.052101 0.032650 0.241300 0.241300"),
];

#[test]
fn ext4_on_mq_deadline_equals_the_reference() {
    let seen = read("reference-ext4", "blktrace");
    all_is_matched(&seen);
    check_reference(&seen, VIRTIO, &EXT4_REFERENCE);
    check_reference(
        &seen,
        VIRTIO,
        &[(Class::All, Stage::I2D, "287 0.002630 0.021316 0.017480 0.160540 0.425930")],
    );
    let dump = read("reference-ext4", ".bin");
    check_reference(&dump, VIRTIO, &EXT4_REFERENCE);
}

#[test]
fn dm_delay_equals_the_reference() {
    let seen = read("reference-dm-delay", "blktrace");
    all_is_matched(&seen);
    let mapped = [
        (Class::Read, Stage::Q2C, "40 20.471 23.488 - - 25.083"),
        (Class::Write, Stage::Q2C, "40 41.889 43.646 - - 48.603"),
    ];
    let leg = [
        (Class::All, Stage::Q2C, "80 0.187220 0.704578 0.606290 2.088820 2.088820"),
        (Class::All, Stage::D2C, "80 0.179270 0.640760 0.493210 1.848870 1.848870"),
        (Class::All, Stage::Q2D, "80 0.003280 0.063818 0.007950 1.591540 1.591540"),
        (Class::All, Stage::Q2G, "80 0.002030 0.048802 0.005040 1.583140 1.583140"),
        (Class::All, Stage::G2D, "80 0.001250 0.015016 0.002930 0.201190 0.201190"),
    ];
    check_reference(&seen, MAPPED, &mapped);
    check_reference(&seen, VIRTIO, &leg);
    check_reference(&read("reference-dm-delay", ".bin"), MAPPED, &mapped);
    // Here a line of the log is a batch of four.
    for (name, delay_ms) in [("read20ms", 20), ("write40ms", 40)] {
        for batch in ops("reference-dm-delay", name) {
            let inside: Vec<_> =
                seen.bios.iter().filter(|b| b.device == MAPPED && batch.holds(span(&b.times))).collect();
            let bytes: u64 = inside.iter().map(|bio| u64::from(bio.bytes)).sum();
            assert_eq!((inside.len(), bytes), (4, batch.bytes), "{batch:?}");
            assert!(
                inside.iter().all(|bio| span(&bio.times).1 - span(&bio.times).0 >= delay_ms * 990_000),
                "{batch:?}"
            );
        }
    }
}

/// What the delay is, and what the application waited for: each bio takes the delay at least and ends before the
/// application goes on; the slowest of a batch explains the application's wait.
#[test]
fn dm_delay_is_found_through_both_devices() {
    let seen = read("dm-delay", "blktrace");
    all_is_matched(&seen);
    for (name, delay_ms) in [("read", 20), ("write", 40)] {
        let mut batches = BTreeMap::<u64, (u64, u64)>::new();
        for (op, bio) in bio_of_each(&seen, MAPPED, name) {
            let (from, to) = span(&bio.times);
            assert!(to - from >= delay_ms * 990_000, "{op:?}: {bio:?}");
            assert_eq!((bio.remaps, bio.pieces), (1, 1), "{bio:?}");
            let slowest = batches.entry(op.start_ns).or_insert((0, op.took_ns()));
            slowest.0 = slowest.0.max(to - from);
        }
        let mut explained: Vec<f64> =
            batches.values().map(|(bio_ns, op_ns)| *bio_ns as f64 / *op_ns as f64).collect();
        explained.sort_by(f64::total_cmp);
        assert!(explained[explained.len() / 2] > 0.98, "{name}: {explained:?}");
    }
    assert!(seen.bios.iter().all(|bio| bio.device == MAPPED), "a leg is no bio of its own");
    assert_eq!(seen.pieces.iter().filter(|piece| piece.device == VIRTIO).count(), 120);
}

#[test]
fn merged_bios_keep_their_own_lives() {
    let seen = read("merges", "blktrace");
    all_is_matched(&seen);
    for (name, act) in [("back", Act::BackMerge), ("front", Act::FrontMerge)] {
        let bios = bio_of_each(&seen, VIRTIO, name);
        let (from, to) = seen.phase(name);
        let inside = |time_ns: Option<u64>| time_ns.is_some_and(|t| t >= from && t < to);
        let pieces: Vec<_> = seen.pieces.iter().filter(|p| inside(p.times.get(Moment::Queue))).collect();
        let merged = pieces.iter().filter(|p| p.kind == Kind::Merged).count();
        let requests: Vec<_> = seen.requests.iter().filter(|r| inside(r.times.get(Moment::Issue))).collect();
        // Batches of 32 neighbours: one request each, whose other 31 bios were merged.
        assert_eq!((bios.len(), pieces.len(), merged, requests.len()), (256, 256, 248, 8), "{name}");
        assert!(requests.iter().all(|r| r.pieces == 32 && r.bytes == 32 * 4096), "{name}: {requests:?}");
        assert_eq!(seen.events.iter().filter(|e| e.act == act && inside(Some(e.time_ns))).count(), 248);
    }
    let read: u64 = seen.bios.iter().filter(|bio| does(bio, "read")).map(|bio| u64::from(bio.bytes)).sum();
    let wanted: u64 = ops("merges", "readahead").iter().map(|op| op.bytes).sum();
    assert!(read >= wanted, "{read} bytes were read of {wanted}");
}

#[test]
fn split_bios_end_with_their_last_part() {
    let seen = read("splits", "blktrace");
    all_is_matched(&seen);
    for (name, parts) in [("read", 8), ("write", 4)] {
        for (op, bio) in bio_of_each(&seen, VIRTIO, name) {
            assert_eq!(bio.pieces, parts, "{op:?}: {bio:?}");
            // A batch may hold the same block twice; a Q belongs to one bio.
            let mine = |p: &&Piece| p.times.get(Moment::Queue) == bio.times.get(Moment::Queue);
            let parts_of_it: Vec<_> = seen.pieces.iter().filter(mine).collect();
            let bytes: u64 = parts_of_it.iter().map(|p| u64::from(p.bytes)).sum();
            assert_eq!(bytes, op.bytes, "{op:?}: {parts_of_it:?}");
            assert_eq!(parts_of_it.iter().map(|p| span(&p.times).1).max(), Some(span(&bio.times).1));
        }
    }
}

#[test]
fn same_sectors_in_flight_are_told_apart_by_direction_and_order() {
    let seen = read("same-sector", "blktrace");
    all_is_matched(&seen);
    assert_eq!(seen.bios.len(), 4 * 40 + 2 * 40 + 2 * 40);
    assert!(seen.account(SCSI).ambiguous > 0, "some were in flight together");
    for (name, threads) in [("read", 4), ("mixed-read", 2), ("mixed-write", 2)] {
        let (mut wanted, bios) = bios_of(&seen, SCSI, name);
        wanted.sort_by_key(|op| op.start_ns);
        // Threads wait for each other before every round. Within a round nothing tells which end is whose.
        for round in wanted.chunks(threads) {
            let from = round.iter().map(|op| op.start_ns).min().unwrap();
            let to = round.iter().map(|op| op.end_ns).max().unwrap();
            let whole = Op { start_ns: from, end_ns: to, ..round[0].clone() };
            let of_round =
                bios.iter().filter(|bio| whole.holds(span(&bio.times)) && bio.sector * 512 == whole.offset);
            assert_eq!(of_round.count(), threads, "{name}: {whole:?}");
        }
    }
}

#[test]
fn requeues_discards_passthrough_parts_and_errors() {
    let seen = read("scsi-debug", "blktrace");
    all_is_matched(&seen);
    for name in ["read", "discard", "requeue", "short", "medium-error"] {
        bio_of_each(&seen, SCSI, name);
    }
    let during = |name: &str| {
        let (from, to) = seen.phase(name);
        seen.requests.iter().filter(move |r| r.times.get(Moment::Issue).is_some_and(|t| t >= from && t < to))
    };
    // The device answers every seventh command with "busy": of 64 writes and their repetitions, ten.
    let (requeued, issues): (Vec<_>, usize) = (
        during("requeue").filter(|r| r.requeues > 0).collect(),
        seen.count(SCSI, Act::Issue, Flags::WRITE) - 2,
    );
    assert_eq!((requeued.len(), issues), (10, 64 + 10), "{requeued:?}");
    // Every fifth read of 16 KiB brings half, and the repetition counts as a command too.
    let in_parts = during("short").filter(|r| r.completions == 2).count();
    assert_eq!(in_parts, seen.count(SCSI, Act::Requeue, Flags::READ));
    assert!(in_parts >= 4, "{in_parts}");
    // Blocks 0x1234 to 0x123d cannot be read; the application was told so four times.
    assert_eq!(seen.analysis.device(SCSI).unwrap().errors, BTreeMap::from([(61, 4)]));
    let passthrough = seen.count(SCSI, Act::Issue, Flags::PASSTHROUGH) as u64;
    assert!(passthrough > 10);
    assert_eq!(seen.analysis.table.of_class(SCSI, Class::Passthrough).stage(Stage::D2C).count(), passthrough);
    assert_eq!(seen.analysis.table.of_class(SCSI, Class::Discard).stage(Stage::Q2C).count(), 2);
}

#[test]
fn commits_are_seen_to_their_true_end() {
    for (folder, device) in [("ext4-none", VIRTIO), ("ext4-mq-deadline", VIRTIO), ("ext4-fua", SCSI)] {
        let seen = read(folder, "blktrace");
        all_is_matched(&seen);
        for name in ["fsync", "fdatasync", "dsync"] {
            commits_are_durable(&seen, device, name);
        }
        let log = ops(folder, "write");
        let (first, last) = (&log[0], &log[log.len() - 1]);
        let whole = Op { end_ns: last.end_ns, ..first.clone() };
        let written = seen.bios.iter().filter(|bio| does(bio, "write") && whole.holds(span(&bio.times)));
        let written: u64 = written.map(|bio| u64::from(bio.bytes)).sum();
        assert!(written >= last.bytes, "{folder}: {written} bytes were written before the fsync was done");
        // Without FUA a journal's commit takes two flushes and a write, and ends with a completion of no bytes.
        let sequences: Vec<_> = seen.pieces.iter().filter(|p| p.data_done_ns.is_some()).collect();
        let commits = seen.count(device, Act::Queue, Flags(Flags::FLUSH.0 | Flags::FUA.0));
        assert!(commits > 5, "{folder}: {commits}");
        if folder != "ext4-fua" {
            assert_eq!(sequences.len(), commits, "{folder}");
        }
        for piece in sequences {
            let (done_ns, end_ns) = (piece.data_done_ns.unwrap(), span(&piece.times).1);
            let flushes = seen.events.iter().filter(|e| {
                e.act == Act::Complete
                    && e.flags.has(Flags::FLUSH)
                    && e.time_ns > done_ns
                    && e.time_ns <= end_ns
            });
            assert!(flushes.count() > 0, "{folder}: a flush lies between the data and the end of {piece:?}");
        }
    }
}

#[test]
fn what_the_recorder_lost_is_said_and_the_rest_is_right() {
    let seen = read("drops", "blktrace");
    for name in ["before", "after"] {
        assert_eq!(bio_of_each(&seen, NULL, name).len(), 400);
    }
    let account = seen.account(NULL);
    let wanted = ops("drops", "during");
    let queued = seen.count(NULL, Act::Queue, Flags::WRITE);
    assert!(
        queued < wanted.len(),
        "the recorder stood still, and {queued} of {} were recorded",
        wanted.len()
    );
    // Its numbers have no gap, but reads went on for a second behind the writes whose ends were lost.
    assert_eq!(account.unmatched.keys().collect::<Vec<_>>(), [&Reason::NoC], "{account:?}");
    for bio in seen.bios.iter().filter(|bio| does(bio, "write")) {
        let op = wanted.iter().find(|op| op.offset == bio.sector * 512 && op.holds(span(&bio.times)));
        assert!(op.is_some(), "no operation of {bio:?}");
    }
}

#[test]
fn bios_across_two_targets_end_with_their_last_part() {
    let seen = read("dm-linear", "blktrace");
    all_is_matched(&seen);
    let border = 4 << 20;
    let (mut across, mut pieces) = (0, 0);
    for (op, bio) in bio_of_each(&seen, MAPPED, "read").into_iter().chain(bio_of_each(&seen, MAPPED, "write"))
    {
        let is_across = op.offset < border && op.offset + op.bytes > border;
        across += usize::from(is_across);
        pieces += seen.pieces.iter().filter(|p| p.device == VIRTIO && op.holds(span(&p.times))).count();
        assert_eq!(bio.remaps, 1 + u32::from(is_across), "{op:?}: {bio:?}");
    }
    assert_eq!(across, seen.count(MAPPED, Act::Split, Flags::READ), "the log says which cross the border");
    assert!(pieces > 0);
    // 64 writes of 256 KiB and 80 reads of 416 KiB, in parts of 128 KiB and cut where a target ends.
    let legs = seen.pieces.iter().filter(|piece| piece.device == VIRTIO).count();
    assert_eq!(legs, seen.count(VIRTIO, Act::GetRequest, Flags(0)));
}

#[test]
fn the_kernels_own_tracer_says_the_same() {
    let seen = read("ftrace", ".bin");
    for name in ["read", "write"] {
        assert_eq!(bio_of_each(&seen, VIRTIO, name).len(), 100);
    }
}
