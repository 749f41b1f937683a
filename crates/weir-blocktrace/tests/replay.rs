//! From recordings in each of the formats to the load that they are: real ones held against what is known of them, and
//! one of weir's own format, written here.
#![allow(clippy::disallowed_methods, reason = "this test reads fixtures; the library reads nothing")]
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod files;

use files::{InMemory, fixture, unpacked};
use weir_blocktrace::merge::{Turn, merge};
use weir_blocktrace::recording::{BlockKind, End, Header, block, encode, preamble, text_block};
use weir_blocktrace::replay::{Chosen, From, NotChosen, Sent};
use weir_blocktrace::{Act, Event, Flags, Sink};
use weir_core::target::DeviceNumber;
use weir_core::workload::replay::{Fitted, Ground, Plan, Recorded, Rules};
use weir_core::workload::{OpKind, OpSource};

const GROUND: Ground = Ground { bytes: 1 << 30, base: 0, block: 512 };
const RULES: Rules = Rules { speed: 1.0, space: None, gap_ns_max: 60_000_000_000 };

fn sent(files: Vec<Vec<u8>>) -> Sent {
    let sources = files.into_iter().map(|bytes| InMemory::new("file", bytes)).collect();
    let mut sent = Sent::new(0, None);
    merge(sources, |turn| {
        if let Turn::Event(event) = turn {
            sent.event(event);
        }
        true
    });
    sent
}

fn chosen(files: &[&str], device: Option<&str>) -> Chosen {
    sent(files.iter().map(|path| unpacked(&fixture(path))).collect()).choose(device).unwrap()
}

fn fitted(chosen: &Chosen, block: u64) -> Fitted {
    let plan = Plan::new(chosen.ios.clone(), &RULES, &Ground { block, ..GROUND }).unwrap();
    let fitted = plan.fitted.clone();
    let mut ops = Vec::new();
    plan.source().fill(&mut ops, usize::MAX);
    assert_eq!(ops.len() as u64, fitted.operations);
    assert!(ops.is_sorted_by_key(|op| op.at_ns));
    let data = ops.iter().filter(|op| !matches!(op.kind, OpKind::Sync(_)));
    assert_eq!(data.map(|op| u64::from(op.len)).sum::<u64>(), fitted.bytes);
    fitted
}

/// 40 writes by O_DSYNC, fsync and fdatasync each on a disk with FUA, and 8 MiB of buffered writes.
#[test]
fn blktraces_files_are_played_with_fua_and_flushes() {
    let files = ["ext4-fua/sda.blktrace.0.gz", "ext4-fua/sda.blktrace.1.gz"];
    let chosen = chosen(&files, Some("8:0"));
    let fitted = fitted(&chosen, 512);
    assert_eq!(chosen.from, From::Queue);
    // Each fsync and fdatasync of an overwrite is a flush; each O_DSYNC write, and the journal's commit after the
    // buffered ones, is a FUA write with a flush first.
    assert_eq!((fitted.flushes, fitted.durable, fitted.flushed_writes), (80, 41, 41), "{fitted:?}");
    assert!(fitted.bytes >= (8 << 20) + 120 * 4096 && fitted.rounded == 0, "{fitted:?}");
    assert!(fitted.writes > 120 && fitted.ios == fitted.reads + fitted.writes + fitted.flushes, "{fitted:?}");
    assert_eq!(chosen.ios.len() as u64, fitted.ios);
}

/// 150 random overwrites with fsync after 24 MB of buffered writes, as `blkparse -d` merges them: both forms agree.
#[test]
fn a_dump_of_blkparse_is_the_same_load() {
    let files = ["reference-ext4/vda.blktrace.0.gz", "reference-ext4/vda.blktrace.1.gz"];
    let (of_files, of_dump) = (chosen(&files, None), chosen(&["reference-ext4/vda.bin.gz"], None));
    let mut fitted = [fitted(&of_files, 512), fitted(&of_dump, 512)];
    assert!(fitted[0].bytes > 24_000_000 && fitted[0].flushes + fitted[0].flushed_writes >= 150);
    // The dump's clock begins at its first event.
    fitted.iter_mut().for_each(|f| f.span_ns /= 1000);
    assert_eq!(fitted[0], fitted[1]);
}

/// 100 reads each, with ftrace's context before each record and without.
#[test]
fn ftraces_blk_tracer_is_played() {
    for (file, reads, writes) in [("ftrace/read.bin.gz", 100, 0), ("ftrace/write.bin.gz", 0, 100)] {
        let chosen = chosen(&[file], None);
        let fitted = fitted(&chosen, 512);
        assert_eq!((chosen.from, chosen.left_out), (From::Queue, Default::default()), "{file}");
        assert_eq!((fitted.reads, fitted.writes), (reads, writes), "{file}: {fitted:?}");
    }
}

/// dm-delay over a disk: each device has its own I/Os, and one has to be named.
#[test]
fn of_several_devices_one_is_played() {
    let files = ["dm-delay/dm-0.blktrace.0.gz", "dm-delay/dm-0.blktrace.1.gz", "dm-delay/vda.blktrace.0.gz"];
    let load = || sent(files.iter().map(|path| unpacked(&fixture(path))).collect());
    let refused = load().choose(None).unwrap_err();
    assert!(matches!(&refused, NotChosen::Several(list) if list.contains("253:0 with")), "{refused}");
    let upper = load().choose(Some("253:0")).unwrap();
    let lower = load().choose(Some("254:0")).unwrap();
    assert!(!upper.ios.is_empty() && !lower.ios.is_empty());
}

fn of_weir(events: &[Event]) -> Vec<u8> {
    let mut words = Vec::new();
    assert!(events.iter().all(|event| encode(event, 0, &mut words)));
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let header = Header { kernel: "6.18".into(), ..Header::default() };
    [
        preamble(&header).unwrap(),
        block(BlockKind::Events, 0, words.len(), 0, 0).to_vec(),
        words,
        text_block(BlockKind::End, &End::default()).unwrap(),
    ]
    .concat()
}

#[test]
fn weirs_own_recordings_are_played_and_what_they_claim_is_bounded() {
    let device = DeviceNumber { major: 259, minor: 1 };
    let event = |act, time_ns, sector, bytes, flags| Event {
        act,
        time_ns,
        sector,
        bytes,
        flags: Flags(flags),
        device,
        identity: time_ns + 1,
        ..Event::default()
    };
    let (read, write) = (Flags::READ.0, Flags::WRITE.0);
    let hour_ns = 3_600_000_000_000;
    let events = [
        event(Act::Queue, 1_000, 8, 4096, read),
        event(Act::Issue, 1_500, 8, 4096, read),
        event(Act::Queue, 2_000, 1 << 40, 4096, write | Flags::FUA.0),
        event(Act::Queue, hour_ns, 16, 512, write),
        event(Act::Queue, hour_ns + 1, 1 << 55, 4096, write),
        event(Act::Queue, hour_ns + 2, 24, 1 << 30, write),
    ];
    let chosen = sent(vec![of_weir(&events)]).choose(None).unwrap();
    assert_eq!((chosen.left_out.beyond, chosen.left_out.too_long, chosen.ios.len()), (1, 1, 3));
    let expected = Recorded { at_ns: 1_000, offset: 4096, bytes: 4096, ..Recorded::default() };
    assert_eq!(chosen.ios[0], expected);
    let fitted = fitted(&chosen, 4096);
    assert_eq!((fitted.moved, fitted.rounded, fitted.durable, fitted.gaps), (1, 1, 1, 1));
    assert_eq!(fitted.span_ns, 1_000 + RULES.gap_ns_max);
}
