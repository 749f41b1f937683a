//! Records written field by field, as `struct blk_io_trace` and `struct blk_io_trace2` lay them out, in both orders.

use super::*;
use crate::{Act, Event, Flags, Item};
use weir_core::target::DeviceNumber;

/// A layout: version and byte order.
#[derive(Debug, Clone, Copy)]
struct Layout {
    version: u8,
    big_endian: bool,
}

impl Layout {
    fn put(self, record: &mut [u8], at: usize, value: u64, bytes: usize) {
        let little = value.to_le_bytes();
        let big = value.to_be_bytes();
        let field = if self.big_endian { &big[8 - bytes..] } else { &little[..bytes] };
        record[at..at + bytes].copy_from_slice(field);
    }

    /// Fields in the order of version 8: sequence, time, sector, bytes, pid, action, device, CPU, error.
    fn record(self, fields: [u64; 9], payload: &[u8]) -> Vec<u8> {
        let (length, places) = match self.version {
            7 => {
                (48, [(4, 4), (8, 8), (16, 8), (24, 4), (32, 4), (28, 4), (36, 4), (40, 4), (44, 2), (46, 2)])
            }
            _ => {
                (64, [(4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 8), (40, 4), (44, 4), (48, 2), (50, 2)])
            }
        };
        let mut record = vec![0; length];
        self.put(&mut record, 0, 0x6561_7400 | u64::from(self.version), 4);
        let fields = fields.into_iter().chain([payload.len() as u64]);
        for (field, (at, bytes)) in fields.zip(places) {
            self.put(&mut record, at, field, bytes);
        }
        record.extend(payload);
        record
    }

    fn words(self, words: [u32; 2]) -> Vec<u8> {
        let bytes = |word: u32| if self.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        words.into_iter().flat_map(bytes).collect()
    }

    fn format(self) -> Format {
        Format::Blktrace { version: self.version, big_endian: self.big_endian }
    }
}

/// nvme0n1p5 and dm-1, as the kernel numbers devices inside (20 bits of minor number).
const DISK: u64 = 259 << 20 | 5;
const ABOVE: u32 = 253 << 20 | 1;
const CGROUP: u64 = 0x0000_0001_0000_2a2a;

/// A recording, and what is in it.
fn recording(layout: Layout) -> (Vec<u8>, Vec<Item>) {
    let action = |act: u64, categories: u64| categories << 16 | act;
    let notify = |kind: u64| action(kind, 1 << 10);
    let number =
        |device: u64| DeviceNumber { major: (device >> 20) as u32, minor: (device & 0xf_ffff) as u32 };
    let base = Event {
        sector: 0x0123_4567_89ab,
        bytes: 0x2_0000,
        device: number(DISK),
        pid: 4_000_001,
        cpu: 300,
        ..Event::default()
    };
    let fields = |sequence: u64, time_ns: u64, action: u64, error: u64| {
        [sequence, time_ns, base.sector, u64::from(base.bytes), 4_000_001, action, DISK, 300, error]
    };
    let order = |value: u64| if layout.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut remap = order(CGROUP).to_vec();
    // Remaps are big-endian on every machine: device, its successor, and the sector there.
    remap.extend(ABOVE.to_be_bytes());
    remap.extend((DISK as u32).to_be_bytes());
    remap.extend(0x77_0000_0011_u64.to_be_bytes());
    let bytes = [
        layout.record(fields(0, 1, notify(0), 0), b"mysqld\0\0"),
        layout.record(fields(0, 2, notify(1), 0), &layout.words([1_700_000_000, 5])),
        // Sync write with FUA; what the kernel says of the act's own category is not kept.
        layout.record(fields(7, 1 << 40, action(1, 1 << 1 | 1 << 3 | 1 << 4 | 1 << 15), 0), &[]),
        layout.record(fields(8, (1 << 40) + 1, action(15 | 0x100, 1), 0), &remap),
        // -EIO in 16 bits.
        layout.record(fields(9, (1 << 40) + 2, action(8, 1 | 1 << 7), 0xffff - 4), &[]),
    ]
    .concat();
    let time_ns = 1 << 40;
    let items = vec![
        Item::Process { pid: 4_000_001, process: 0, name: "mysqld".to_string() },
        Item::WallClock { time_ns: 2, wall_ns: 1_700_000_000_000_000_005 },
        Item::Begun { time_ns: 2, device: Some(base.device) },
        Item::Event(Event {
            time_ns,
            act: Act::Queue,
            flags: Flags(Flags::WRITE.0 | Flags::SYNC.0 | Flags::FUA.0),
            sequence: 7,
            ..base
        }),
        Item::Event(Event {
            time_ns: time_ns + 1,
            act: Act::Remap,
            flags: Flags::READ,
            cgroup: CGROUP,
            from: number(ABOVE.into()),
            detail: 0x77_0000_0011,
            sequence: 8,
            ..base
        }),
        Item::Event(Event {
            time_ns: time_ns + 2,
            act: Act::Complete,
            flags: Flags::READ,
            error: -5,
            sequence: 9,
            ..base
        }),
    ];
    (bytes, items)
}

#[test]
fn both_versions_in_both_byte_orders_say_the_same() {
    for (version, big_endian) in [(7, false), (7, true), (8, false), (8, true)] {
        let layout = Layout { version, big_endian };
        let (bytes, items) = recording(layout);
        for chunk in [1, 50, bytes.len()] {
            let mut decoder = Decoder::new("sda", &bytes[..HEAD_BYTES.min(bytes.len())]).unwrap();
            assert_eq!(decoder.format(), layout.format());
            let mut batch = Batch::default();
            let (mut from, mut to) = (0, 0);
            while to < bytes.len() {
                to = (to + chunk).min(bytes.len());
                from += decoder.decode(&bytes[from..to], &mut batch).unwrap();
            }
            decoder.finish(&bytes[from..], &mut batch).unwrap();
            assert_eq!(batch.items().collect::<Vec<_>>(), items, "{layout:?} by {chunk}");
        }
    }
}

/// What Linux 7.2's tracer makes of records of version 8: 48 bytes of each that say version 7, and so many of those behind
/// them as the payload has.
fn cut(layout: Layout, records: &[(u64, u64, Vec<u8>)], context: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time_ns, action, payload) in records {
        let fields = [0, *time_ns, 0x0123_4567, 0x2000, 77, *action, DISK, 3, 0xffff - 4];
        let mut record = layout.record(fields, payload);
        layout.put(&mut record, 0, 0x6561_7407, 4);
        bytes.extend(context);
        bytes.extend(&record[..48 + payload.len()]);
    }
    bytes
}

#[test]
fn records_cut_from_version_8_keep_what_is_left_of_them() {
    let payload = |words: usize| vec![0x11; 8 * words];
    let records = [
        (1, 1 << 20 | 1 << 16 | 1, vec![]),
        (2, 1 << 16 | 13, payload(1)),
        (3, 1 << 16 | 15 | 0x100, payload(3)),
        (4, 1 << 20 | 10, payload(1)),
        (5, 1 << 23 | 1 << 16 | 8, vec![]),
        (6, 1 << 26 | 2, vec![b'm'; 128]),
        (7, 1 << 23 | 1 << 16 | 8 | 0x100, payload(1)),
    ];
    let acts = [
        (1, Act::Queue),
        (2, Act::Split),
        (3, Act::Unknown),
        (4, Act::Unplug),
        (5, Act::Complete),
        (7, Act::Complete),
    ];
    for (big_endian, context) in [(false, &[][..]), (true, &[]), (false, &[9; 16])] {
        let mut bytes = cut(Layout { version: 8, big_endian }, &records, context);
        bytes.extend(b"CPU:1 [LOST 12 EVENTS]\n");
        let all = bytes.len();
        bytes.extend(cut(Layout { version: 8, big_endian }, &records[4..5], context));
        for chunk in [1, 50, bytes.len()] {
            let mut decoder = Decoder::new("sda", &bytes[..HEAD_BYTES.min(bytes.len())]).unwrap();
            let mut batch = Batch::default();
            let (mut from, mut to) = (0, 0);
            while to < bytes.len() {
                to = (to + chunk).min(bytes.len());
                from += decoder.decode(&bytes[from..to], &mut batch).unwrap();
            }
            decoder.finish(&bytes[from..], &mut batch).unwrap();
            let found: Vec<_> = batch.events().iter().map(|event| (event.time_ns, event.act)).collect();
            assert_eq!(
                found,
                [&acts[..], &[(5, Act::Complete)]].concat(),
                "{big_endian} by {chunk} of {all}"
            );
            let first = batch.events()[0];
            let said = (first.sector, first.bytes, first.pid, first.cpu, first.error, first.device.major);
            assert_eq!(said, (0x0123_4567, 0x2000, 77, 3, 0, 259));
            assert_eq!(batch.events()[1].detail, 0x0123_4567 + 16);
            let lost = batch.items().filter(|item| *item == Item::Dropped { events: 12 }).count();
            assert_eq!(lost, 1);
        }
    }
}

#[test]
fn a_record_of_another_layout_or_cut_off_is_named_with_its_place() {
    for (version, big_endian) in [(7, true), (8, false)] {
        let (bytes, items) = recording(Layout { version, big_endian });
        let cut = &bytes[..bytes.len() - 1];
        let mut decoder = Decoder::new("sda", cut).unwrap();
        let mut batch = Batch::default();
        let fault = decoder.finish(cut, &mut batch).unwrap_err();
        let record = if version == 7 { 48 } else { 64 };
        assert_eq!(fault.offset as usize, bytes.len() - record, "{fault}");
        assert!(fault.reason.contains(&format!("it has {} bytes", record - 1)), "{fault}");
        assert_eq!(batch.items().collect::<Vec<_>>(), items[..items.len() - 1]);

        let (foreign, _) = recording(Layout { version, big_endian: !big_endian });
        let mixed = [bytes.clone(), foreign].concat();
        let mut decoder = Decoder::new("sda", &mixed).unwrap();
        let fault = decoder.decode(&mixed, &mut Batch::default()).unwrap_err();
        assert_eq!(fault.offset as usize, bytes.len(), "{fault}");
    }
}

/// A cut record has no payload that says where the rest of a split begins, so that is computed from what it has.
#[test]
fn a_cut_split_at_the_last_sector_is_one_all_the_same() {
    let layout = Layout { version: 8, big_endian: false };
    let mut record = layout.record([1, 5, u64::MAX, 4096, 9, 13, DISK, 0, 0], &[]);
    record.truncate(48);
    record[0] = 7;
    let mut decoder = Decoder::new("a", &record).unwrap();
    let mut batch = Batch::default();
    assert!(decoder.is_cut() && decoder.decode(&record, &mut batch).is_ok());
    assert_eq!(batch.events()[0].detail, u64::MAX);
}

#[test]
fn a_name_is_no_longer_than_any_thread_s() {
    for big_endian in [false, true] {
        let layout = Layout { version: 8, big_endian };
        let fields = [0, 1, 0, 0, 7, 1 << 26, DISK, 0, 0];
        let bytes = layout.record(fields, "\u{e9}".repeat(30_000).as_bytes());
        let mut decoder = Decoder::new("sda", &bytes[..HEAD_BYTES]).unwrap();
        let mut batch = Batch::default();
        decoder.decode(&bytes, &mut batch).unwrap();
        let items: Vec<Item> = batch.items().collect();
        let [Item::Process { pid: 7, name, .. }] = &items[..] else { panic!("{items:?}") };
        assert!((60..=64).contains(&name.len()) && name.chars().all(|c| c == '\u{e9}'), "{name}");
    }
}
