//! What was written is read, in order of time, from any portions; what is broken is named with its place.

use proptest::prelude::*;

use super::*;
use crate::decode::{Batch, Decoder, Format, HEAD_BYTES};
use crate::{Act, Collector, Event, Flags, Item, Matcher};
use weir_core::target::DeviceNumber;

const BASE_NS: u64 = 1_000_000_000;

fn event(act: Act, time_ns: u64, cpu: u32) -> Event {
    Event {
        time_ns: BASE_NS + time_ns,
        sector: 8 * time_ns,
        bytes: 4096,
        act,
        flags: Flags::READ,
        device: DeviceNumber { major: 259, minor: 70_000 },
        cpu,
        identity: 0xffff_8880_0000_0000 + time_ns,
        ..Event::default()
    }
}

/// One of each kind, as the format can hold them.
fn every_kind() -> Vec<Event> {
    let from = DeviceNumber { major: 8, minor: 17 };
    let by = |act, time_ns| Event { pid: 4_000_000, ..event(act, time_ns, 0) };
    vec![
        Event { from, detail: 77, ..by(Act::Remap, 1) },
        by(Act::Queue, 2),
        Event { other: 9, detail: 1 << 40, ..by(Act::Split, 3) },
        by(Act::GetRequest, 4),
        by(Act::Plug, 5).without_sector(0),
        Event { other: 5, ..event(Act::Insert, 6, 0) },
        by(Act::BackMerge, 7),
        by(Act::FrontMerge, 8),
        event(Act::RequestMerge, 9, 0),
        by(Act::Unplug, 10).without_sector(3),
        by(Act::UnplugTimer, 11).without_sector(2),
        Event { other: 5, ..event(Act::Issue, 12, 0) },
        event(Act::Requeue, 13, 0),
        Event { error: -5, ..event(Act::Complete, 14, 0) },
    ]
}

impl Event {
    fn without_sector(self, detail: u64) -> Event {
        Event { sector: 0, detail, ..self }
    }
}

fn words(events: &[Event]) -> Vec<u64> {
    let mut words = Vec::new();
    assert!(events.iter().all(|event| encode(event, BASE_NS, &mut words)));
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn header() -> Header {
    Header { base_ns: BASE_NS, wall_ns: 5, kernel: "6.18".into(), ..Header::default() }
}

fn events_block(cpu: u32, words: &[u64], dropped: u64) -> Vec<u8> {
    [&block(BlockKind::Events, cpu, words.len() * 8, 0, dropped)[..], &bytes(words)].concat()
}

fn round(time_ns: u64) -> Vec<u8> {
    block(BlockKind::Round, 0, 0, time_ns, 0).to_vec()
}

fn end(end: &End) -> Vec<u8> {
    text_block(BlockKind::End, end).unwrap()
}

fn recording(blocks: &[Vec<u8>]) -> Vec<u8> {
    [preamble(&header()).unwrap(), blocks.concat()].concat()
}

/// Reads in portions of so many bytes.
fn read(bytes: &[u8], portion: usize) -> Result<Vec<Item>, Fault> {
    let (mut reader, mut items, mut from) = (Reader::default(), Vec::new(), 0);
    for to in (0..bytes.len()).step_by(portion).skip(1).chain([bytes.len()]) {
        from += reader.decode(&bytes[from..to], &mut items)?;
    }
    reader.finish(&bytes[from..], &mut items)?;
    Ok(items)
}

fn events(items: &[Item]) -> Vec<Event> {
    items.iter().filter_map(|item| if let Item::Event(event) = item { Some(*event) } else { None }).collect()
}

#[test]
fn every_kind_comes_back_from_any_portions() {
    let whole = recording(&[events_block(0, &words(&every_kind()), 0), round(100), end(&End::default())]);
    for portion in [1, 7, 8, 31, 1 << 20] {
        let items = read(&whole, portion).unwrap();
        assert_eq!(items[0], Item::WallClock { time_ns: BASE_NS, wall_ns: 5 });
        assert_eq!(events(&items), every_kind(), "portions of {portion}");
        assert_eq!(items[1], Item::Begun { time_ns: BASE_NS, device: None });
        assert_eq!(items.last(), Some(&Item::Dropped { events: 0 }), "the recorder counts what it loses");
        assert_eq!(items.len(), 3 + every_kind().len());
    }
}

#[test]
fn begin_and_end_are_those_that_the_recorder_says() {
    let header = Header { base_ns: BASE_NS, begun_ns: 70, ..Header::default() };
    let recording = |ended_ns| {
        let end = text_block(BlockKind::End, &End { ended_ns, ..End::default() }).unwrap();
        [preamble(&header).unwrap(), end].concat()
    };
    for (ended_ns, expected) in
        [(Some(500), Some(BASE_NS + 500)), (Some(u64::MAX), Some(u64::MAX)), (None, None)]
    {
        let items = read(&recording(ended_ns), 1 << 20).unwrap();
        assert_eq!(items[1], Item::Begun { time_ns: BASE_NS + 70, device: None });
        let ended = items
            .iter()
            .find_map(|item| if let Item::Ended { time_ns } = item { Some(*time_ns) } else { None });
        assert_eq!(ended, expected);
    }
}

#[test]
fn an_empty_note_does_not_end_a_recording() {
    let note = block(BlockKind::Note, 0, 0, 0, 0).to_vec();
    let whole = recording(&[note, events_block(0, &words(&every_kind()), 0), end(&End::default())]);
    for portion in [1, 32, 1 << 20] {
        assert_eq!(events(&read(&whole, portion).unwrap()), every_kind(), "portions of {portion}");
    }
}

#[test]
fn cpus_come_in_order_of_time_and_rounds_hold_back() {
    let queue = |time_ns, cpu| event(Act::Queue, time_ns, cpu);
    let (first, second) = ([queue(1, 0), queue(5, 0), queue(9, 0)], [queue(2, 1), queue(4, 1), queue(12, 1)]);
    let third = [queue(11, 0), queue(13, 0)];
    let whole = recording(&[
        events_block(0, &words(&first), 0),
        events_block(1, &words(&second), 2),
        round(10),
        events_block(0, &words(&third), 3),
        end(&End { dropped_by_cpu: vec![3, 4], missed: 1, ..End::default() }),
    ]);
    let items = read(&whole, 4096).unwrap();
    let times: Vec<u64> = events(&items).iter().map(|event| event.time_ns - BASE_NS).collect();
    assert_eq!(times, [1, 2, 4, 5, 9, 11, 12, 13]);
    let dropped = items.iter().map(|item| if let Item::Dropped { events } = item { *events } else { 0 });
    assert_eq!(dropped.sum::<u64>(), 3 + 4 + 1);
}

/// However little each round gives out, it is no work for all that waits: a megabyte took ten seconds.
#[test]
fn rounds_without_number_give_out_what_is_due() {
    const CPUS: u32 = 4000;
    let queue = |time_ns, cpu| event(Act::Queue, time_ns, cpu);
    let late: Vec<Vec<u8>> =
        (1..CPUS).map(|cpu| events_block(cpu, &words(&[queue(1_000_000, cpu)]), 0)).collect();
    let early: Vec<Event> = (1..5000).map(|time_ns| queue(time_ns, 0)).collect();
    let rounds: Vec<Vec<u8>> = (1..20_000).map(round).collect();
    let whole = recording(&[
        late.concat(),
        events_block(0, &words(&early), 0),
        rounds.concat(),
        end(&End::default()),
    ]);
    let times: Vec<u64> =
        events(&read(&whole, 1 << 16).unwrap()).iter().map(|event| event.time_ns - BASE_NS).collect();
    let expected: Vec<u64> = (1..5000).chain((1..CPUS).map(|_| 1_000_000)).collect();
    assert_eq!(times, expected);
}

/// Reads to the end or to a fault: what came out by then, too.
fn read_until_fault(bytes: &[u8], portion: usize) -> (Vec<Event>, Option<Fault>) {
    let (mut reader, mut items, mut from) = (Reader::default(), Vec::new(), 0);
    for to in (0..bytes.len()).step_by(portion).skip(1).chain([bytes.len()]) {
        match reader.decode(&bytes[from..to], &mut items) {
            Ok(taken) => from += taken,
            Err(fault) => return (events(&items), Some(fault)),
        }
    }
    let ended = reader.finish(&bytes[from..], &mut items);
    (events(&items), ended.err())
}

#[test]
fn what_is_no_record_within_a_block_is_named_with_its_place() {
    let queue = |time_ns, cpu| event(Act::Queue, time_ns, cpu);
    let (first, last, other) = (queue(2, 0), queue(4, 0), queue(3, 1));
    let holed = [&words(&[first])[..], &[0; 5], &words(&[last])].concat();
    let start = preamble(&header()).unwrap().len() + BLOCK_HEAD_BYTES;
    let hole = (start + 40) as u64;
    // Behind words that were given out already, and in a block that is not the CPU's first.
    let later = start + 40 + BLOCK_HEAD_BYTES;
    let none = [&events_block(1, &words(&[other]), 0)[..], &end(&End::default())].concat();
    for (blocks, at, expected) in [
        (vec![events_block(0, &holed, 0), none.clone()], hole, vec![first, other]),
        (vec![events_block(0, &holed, 0), round(3), none.clone()], hole, vec![first]),
        (
            vec![events_block(0, &words(&[first]), 0), events_block(0, &holed[5..], 0), none.clone()],
            later as u64,
            vec![first, other],
        ),
        (
            vec![events_block(0, &words(&[first]), 0), round(3), events_block(0, &holed[5..], 0), none],
            (later + BLOCK_HEAD_BYTES) as u64,
            vec![first, other],
        ),
    ] {
        let whole = recording(&blocks);
        for portion in [1, 8, 31, 4096] {
            let (events, fault) = read_until_fault(&whole, portion);
            let fault = fault.unwrap();
            assert!(fault.offset == at && fault.reason.contains("no record"), "{portion}: {fault}, not {at}");
            assert_eq!(events, expected, "{portion}");
        }
        let mut decoder = Decoder::new("a", &whole[..HEAD_BYTES]).unwrap();
        let used = decoder.decode(&whole[..start + 8], &mut Batch::default()).unwrap();
        let fault = decoder.finish(&whole[used..], &mut Batch::default()).unwrap_err();
        assert_eq!(fault.offset, at, "{fault}");
    }
}

/// A recorder that ended no round for long: the last record that is there may be there in part.
#[test]
fn more_than_is_kept_between_rounds_loses_no_event() {
    let all: Vec<Event> = (1..40_000).map(|time_ns| event(Act::Queue, time_ns, 0)).collect();
    let all_words = words(&all);
    let whole = recording(&[events_block(0, &all_words, 0), round(100_000), end(&End::default())]);
    for portion in [1 << 16, 100_000] {
        let (events, fault) = read_until_fault(&whole, portion);
        assert!(fault.is_none() && events == all, "{} events, {fault:?}", events.len());
    }
    // One that is never all there.
    let cut = recording(&[events_block(0, &all_words[..9], 0), round(9), end(&End::default())]);
    let (events, fault) = read_until_fault(&cut, 4096);
    let (fault, start) = (fault.unwrap(), preamble(&header()).unwrap().len() + BLOCK_HEAD_BYTES);
    assert!(events.len() == 1 && fault.offset == start as u64 + 40, "{fault}");
    assert!(fault.reason.contains("not all there"), "{fault}");
}

#[test]
fn an_issue_tells_its_own_g_and_a_process_its_cgroup() {
    let name = *b"mysqld\0\0garbage!";
    let half = |at: usize| u64::from_ne_bytes(name[at..at + 8].try_into().unwrap());
    let mut all = vec![(Kind::Process as u64) << TIME_BITS | 1, 42, half(0), half(8), 70 << 32 | 77];
    all.extend(words(&[Event { pid: 77, ..event(Act::Queue, 2, 0) }]));
    let at = all.len();
    all.extend(words(&[Event { other: 9, ..event(Act::Issue, 1000, 0) }]));
    all[at + 4] |= 600 << 32;
    let items = read(&recording(&[events_block(0, &all, 0), end(&End::default())]), 4096).unwrap();
    assert!(items.contains(&Item::Process { pid: 77, process: 70, name: "mysqld".into() }));
    let events = events(&items);
    assert_eq!((events[0].act, events[0].cgroup), (Act::Queue, 42));
    assert_eq!((events[1].act, events[1].time_ns, events[1].identity), (Act::GetRequest, BASE_NS + 400, 9));
    assert_eq!((events[2].act, events[2].identity), (Act::Issue, events[1].other));
}

/// Preamble and blocks with every number turned round; text stays as it is.
fn of_the_other_order(cpu: u32, words: &[u64]) -> Vec<u8> {
    let turn = |bytes: Vec<u8>, width: usize| -> Vec<u8> {
        bytes.chunks_exact(width).flat_map(|chunk| chunk.iter().rev().copied().collect::<Vec<_>>()).collect()
    };
    let mut whole = preamble(&header()).unwrap();
    let numbers = turn(whole[8..PREAMBLE_BYTES].to_vec(), 4);
    whole[8..PREAMBLE_BYTES].copy_from_slice(&numbers);
    whole.extend(turn(events_block(cpu, words, 0), 8));
    let text = encode::padded(serde_json::to_vec(&End::default()).unwrap());
    whole.extend(turn(block(BlockKind::End, 0, text.len(), 0, 0).to_vec(), 8));
    [whole, text].concat()
}

#[test]
fn the_other_byte_order_reads_the_same() {
    let name = u64::from_ne_bytes(*b"postgres");
    // Names are bytes, which have no order: as the other machine holds them, their words look turned round.
    let process = [(Kind::Process as u64) << TIME_BITS | 1, 42, name.swap_bytes(), 0, 4_000_000];
    let items = read(&of_the_other_order(0, &[&process[..], &words(&every_kind())].concat()), 4096).unwrap();
    assert!(items.contains(&Item::Process { pid: 4_000_000, process: 0, name: "postgres".into() }));
    let with_cgroup = |event: Event| Event { cgroup: if event.pid == 0 { 0 } else { 42 }, ..event };
    assert_eq!(events(&items), every_kind().into_iter().map(with_cgroup).collect::<Vec<_>>());
}

#[test]
fn what_was_cut_off_is_read_up_to_the_cut_and_said() {
    let queue = |time_ns| event(Act::Queue, time_ns, 0);
    let whole =
        recording(&[events_block(0, &words(&[queue(1), queue(2)]), 0), round(9), end(&End::default())]);
    let start = preamble(&header()).unwrap().len();
    for length in start..whole.len() {
        let (mut reader, mut items) = (Reader::default(), Vec::new());
        let used = reader.decode(&whole[..length], &mut items).unwrap();
        reader.finish(&whole[used..length], &mut items).unwrap();
        let there = (length - start).saturating_sub(BLOCK_HEAD_BYTES) / 40;
        assert_eq!(events(&items).len(), there.min(2), "{length} bytes");
        assert!(reader.note().is_some_and(|note| note.contains(&format!("byte {length}"))), "{length}");
    }
    for length in 0..start {
        assert!(read(&whole[..length], 4096).unwrap_err().reason.contains("header"), "{length} bytes");
    }
}

#[test]
fn what_is_no_recording_is_named_with_its_place() {
    let start = preamble(&header()).unwrap();
    let (at, of) = (start.len() as u64, |rest: Vec<u8>| [start.clone(), rest].concat());
    let patched = |at: usize, number: u32| {
        let mut bytes = start.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        bytes
    };
    let huge = block(BlockKind::End, 0, 1 << 40, 0, 0).to_vec();
    let cases = [
        (b"not a recording, but long enough".to_vec(), 0, "not a recording"),
        (patched(8, 7), 0, "byte order"),
        (patched(12, 2), 0, "version 2"),
        (patched(16, u32::MAX), 0, "a header of 4294967295 bytes"),
        ([&start[..PREAMBLE_BYTES], &vec![b'{'; start.len()]].concat(), 24, "the header cannot be read"),
        (of(vec![0; 64]), at, "no block begins here"),
        (
            of(events_block(0, &words(&[event(Act::Queue, 1, 0)]), 0)[..40].to_vec()).tap_length(at, 41),
            at,
            "41 bytes",
        ),
        (of(huge), at, "a text of 1099511627776 bytes"),
    ];
    for (bytes, offset, reason) in cases {
        let fault = read(&bytes, 4096).unwrap_err();
        assert!(fault.offset == offset && fault.reason.contains(reason), "{reason}: {fault}");
    }
}

trait TapLength {
    fn tap_length(self, at: u64, length: u64) -> Self;
}

impl TapLength for Vec<u8> {
    /// Writes another length into the block at `at`.
    fn tap_length(mut self, at: u64, length: u64) -> Self {
        let at = at as usize + 8;
        self[at..at + 8].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(mut noise in prop::collection::vec(any::<u8>(), 0..600), at in 0usize..600, portion in 1usize..700) {
        let _ = read(&noise, portion);
        let mut whole = recording(&[events_block(0, &words(&every_kind()), 0), round(9), end(&End::default())]);
        noise.truncate(20);
        for (place, byte) in whole.iter_mut().skip(at).zip(noise) {
            *place = byte;
        }
        let _ = read(&whole, portion);
    }
}

#[test]
fn it_is_one_of_the_formats_that_are_recognised() {
    let whole = recording(&[events_block(0, &words(&every_kind()), 0), end(&End::default())]);
    let mut decoder = Decoder::new("a.weirtrace", &whole[..HEAD_BYTES]).unwrap();
    assert_eq!(decoder.format(), Format::Weir { big_endian: cfg!(target_endian = "big") });
    let mut batch = Batch::default();
    let used = decoder.decode(&whole, &mut batch).unwrap();
    decoder.finish(&whole[used..], &mut batch).unwrap();
    assert_eq!(batch.events(), every_kind());

    let broken = [&whole[..], &[0; 64]].concat();
    let fault = Decoder::new("b", &broken).unwrap().decode(&broken, &mut batch).unwrap_err();
    assert_eq!((fault.file.as_str(), fault.offset), ("b", whole.len() as u64), "{fault}");
}

/// Of several devices none seems to miss what the others have.
#[test]
fn blktrace_s_numbers_are_each_device_s_own() {
    let (mut writer, mut bytes) = (BlktraceWriter::default(), Vec::new());
    for time_ns in 1..=6 {
        let device = DeviceNumber { major: 8, minor: 16 * (time_ns as u32 % 2) };
        assert!(writer.event(&Event { device, ..event(Act::Plug, time_ns, 0) }, &mut bytes));
    }
    let (mut batch, mut matcher) = (Batch::default(), Matcher::default());
    Decoder::new("a.blktrace.0", &bytes).unwrap().finish(&bytes, &mut batch).unwrap();
    let mut collector = Collector::new();
    batch.events().iter().for_each(|event| matcher.event(event, &mut collector));
    let analysis = collector.finish(matcher.finish(&mut Collector::new()));
    assert_eq!((analysis.devices.len(), analysis.events_dropped()), (2, 0));
}

/// What is written for other tools is decoded as it was: only what version 7 has no room for is lost.
#[test]
fn blktrace_s_records_come_back() {
    let (mut writer, mut bytes) = (BlktraceWriter::default(), Vec::new());
    let first = event(Act::Queue, 0, 0);
    let items = [
        Item::Process { pid: 77, process: 0, name: "fsync".into() },
        Item::WallClock { time_ns: BASE_NS, wall_ns: 7_000_000_009 },
    ];
    items.iter().for_each(|item| writer.item(item, &first, &mut bytes));
    let written: Vec<Event> =
        every_kind().into_iter().filter(|event| event.act != Act::RequestMerge).collect();
    assert!(written.iter().all(|event| writer.event(event, &mut bytes)));
    let mut decoder = Decoder::new("a.blktrace.0", &bytes).unwrap();
    assert!(matches!(decoder.format(), Format::Blktrace { version: 7, .. }));
    let mut batch = Batch::default();
    decoder.decode(&bytes, &mut batch).unwrap();
    let expected =
        written.iter().zip(1..).map(|(event, sequence)| Event { identity: 0, other: 0, sequence, ..*event });
    assert_eq!(batch.events(), expected.collect::<Vec<_>>());
    assert_eq!(batch.items().take(2).collect::<Vec<_>>(), items);
}
