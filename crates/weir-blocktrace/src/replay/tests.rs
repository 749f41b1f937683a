//! Devices, windows and reasons.

use super::*;
use crate::class::{Class, ClassSet};
use crate::event::{Act, Event, Flags};
use crate::life::Sink;
use crate::stage::Stage;
use crate::table::{Key, SizeClass};
use weir_core::target::DeviceNumber;

const A: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const B: DeviceNumber = DeviceNumber { major: 8, minor: 16 };

fn event(device: DeviceNumber, act: Act, time_ns: u64, flags: Flags, bytes: u32) -> Event {
    Event { device, act, time_ns, flags, bytes, sector: time_ns, ..Event::default() }
}

fn sent(from_ns: u64, to_ns: Option<u64>, events: &[Event]) -> Sent {
    let mut sent = Sent::new(from_ns, to_ns);
    sent.device_called(A, "sda");
    events.iter().for_each(|event| sent.event(event));
    sent
}

#[test]
fn the_only_device_is_taken_and_one_of_several_has_to_be_named() {
    let [a, b] = [A, B].map(|device| event(device, Act::Queue, 8, Flags::READ, 4096));
    let cases: [(&[Event], Option<&str>, &str); 8] = [
        (&[a], None, "sda (8:0)"),
        (&[a, b], Some("sda"), "sda (8:0)"),
        (&[a, b], Some("/dev/sda"), "sda (8:0)"),
        (&[a, b], Some("8:16"), "8:16"),
        (&[a, b, b], None, "several devices: sda (8:0) with 1, 8:16 with 2"),
        (&[a], Some("sdz"), "no I/O of sdz; it has sda (8:0) with 1"),
        (&[], None, "no I/O that can be played"),
        (&[], Some("sda"), "no I/O that can be played"),
    ];
    for (events, wanted, expected) in cases {
        let said = match sent(0, None, events).choose(wanted) {
            Ok(chosen) => chosen.label,
            Err(why) => why.to_string(),
        };
        assert!(said.contains(expected), "{wanted:?}: {said}");
    }
}

#[test]
fn what_senders_sent_counts_and_what_went_to_the_driver_only_without_it() {
    let at = |act, time_ns| event(A, act, time_ns, Flags::READ, 4096);
    let check = |events: &[Event], from: From, times: &[u64]| {
        let chosen = sent(0, None, events).choose(None).unwrap();
        let found: Vec<u64> = chosen.ios.iter().map(|io| io.at_ns).collect();
        assert_eq!((chosen.from, found.as_slice()), (from, times));
    };
    check(&[at(Act::Issue, 1), at(Act::Queue, 2), at(Act::Issue, 3)], From::Queue, &[2]);
    check(&[at(Act::Issue, 1), at(Act::Complete, 2), at(Act::Issue, 3)], From::Issue, &[1, 3]);
}

/// At one sector; a driver says more than once that it gives a request back, and gives some back that it never had.
#[test]
fn what_the_driver_gave_back_is_played_once() {
    let check = |acts: &str, times: &[u64]| {
        let act = |letter| match letter {
            'D' => Act::Issue,
            'R' => Act::Requeue,
            _ => Act::Complete,
        };
        let event =
            |(time_ns, letter)| Event { sector: 8, ..event(A, act(letter), time_ns, Flags::READ, 4096) };
        let events: Vec<Event> = (1..).zip(acts.chars()).map(event).collect();
        let chosen = sent(0, None, &events).choose(None).unwrap();
        let found: Vec<u64> = chosen.ios.iter().map(|io| io.at_ns).collect();
        assert_eq!(found, times, "{acts}");
    };
    check("DRDC", &[1]);
    check("DRRDRDC", &[1]);
    check("DRDCDC", &[1, 5]);
    check("RDC", &[2]);
    check("DCRDC", &[1, 4]);
    check("DRCDC", &[1, 4]);
}

#[test]
fn a_window_counts_from_the_first_event_of_all() {
    let at = |device, time_ns| event(device, Act::Queue, time_ns, Flags::READ, 4096);
    let events = [at(B, 1_000), at(A, 1_010), at(A, 1_019), at(A, 1_020)];
    let chosen = sent(10, Some(20), &events).choose(None).unwrap();
    assert_eq!(chosen.ios.iter().map(|io| io.at_ns).collect::<Vec<_>>(), [1_010, 1_019]);
}

#[test]
fn what_cannot_be_played_is_counted_by_reason() {
    let at = |flags: u32, bytes| event(A, Act::Queue, 1, Flags(flags), bytes);
    let write = Flags::WRITE.0;
    let journal = at(write | Flags::FLUSH.0 | Flags::FUA.0, 4096);
    let events = [
        at(write | Flags::DISCARD.0, 4096),
        at(Flags::PASSTHROUGH.0, 0),
        at(write | Flags::ZEROES.0, 1 << 20),
        // A zone's reset.
        at(write, 0),
        at(write, u32::MAX),
        Event { sector: u64::MAX, ..at(write, 4096) },
        Event { sector: u64::MAX / 512, ..at(write, 4096) },
        journal,
        // A flush is nowhere.
        Event { sector: u64::MAX, ..at(write | Flags::FLUSH.0, 0) },
    ];
    let chosen = sent(0, None, &events).choose(None).unwrap();
    let left = LeftOut {
        discards: 1,
        passthrough: 1,
        zeroes: 1,
        without_data: 1,
        too_long: 1,
        beyond: 2,
        too_many: 0,
    };
    assert_eq!((chosen.left_out, chosen.ios.len(), left.reasons().len()), (left, 2, 6));
    let first = chosen.ios[0];
    assert!(first.is_write && first.flushes_first && first.is_durable && first.offset == 512);
    assert_eq!((chosen.ios[1].bytes, chosen.ios[1].offset), (0, 0));
}

#[test]
fn stages_are_compared_by_class() {
    let table = |count: u64, ns: u64| {
        let mut table = crate::StageTable::default();
        let classes = ClassSet::of(Flags(Flags::WRITE.0 | Flags::SYNC.0), 4096);
        let cell = table.cell_mut(Key { device: A, classes, size: SizeClass::of(4096) });
        (0..count).for_each(|_| cell.stage_mut(Stage::D2C).record(ns));
        table
    };
    let record =
        ReplayRecord { recorded: table(300, 1000), replayed: Some(table(2, 9000)), ..Default::default() };
    let rows = record.stages();
    let named: Vec<(Class, Stage)> = rows.iter().map(|row| (row.class, row.stage)).collect();
    assert_eq!(named, [(Class::Write, Stage::D2C), (Class::SyncWrite, Stage::D2C)]);
    let (recorded, replayed) = (rows[0].recorded.unwrap(), rows[0].replayed.unwrap());
    assert_eq!((recorded.count, recorded.p99_ns, recorded.p50_ns), (300, Some(1000), 1000));
    assert_eq!((replayed.count, replayed.p99_ns, replayed.mean_ns), (2, None, 9000.0));
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<ReplayRecord>(&text).unwrap(), record);
}
