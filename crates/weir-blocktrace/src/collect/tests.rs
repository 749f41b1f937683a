//! What the collector makes of lives and events whose truth is known.

use proptest::prelude::*;

use super::*;
use crate::analysis::{Depth, Direction, Parts, SLICES_MAX};
use crate::life::{Kind, Times};
use crate::{Act, Class, Flags, Limits, Matcher, SizeClass, Stage};
use weir_core::stats::Distribution;

const DEVICE: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

/// Q, G, I, M, D, C in µs; what is below zero did not happen.
fn times(us: [i64; 6]) -> Times {
    let moments =
        [Moment::Queue, Moment::GetRequest, Moment::Insert, Moment::Merge, Moment::Issue, Moment::Complete];
    let mut times = Times::default();
    for (moment, us) in moments.into_iter().zip(us).filter(|(_, us)| *us >= 0) {
        times.set(moment, us as u64 * 1000);
    }
    times
}

fn piece(times: Times) -> Piece {
    Piece {
        device: DEVICE,
        flags: Flags::READ,
        sector: 0,
        bytes: 4096,
        request_bytes: 4096,
        pid: 7,
        cgroup: 0,
        kind: Kind::Whole,
        times,
        error: 0,
        requeues: 0,
        data_done_ns: None,
    }
}

fn request(piece: &Piece) -> Request {
    Request {
        device: piece.device,
        flags: piece.flags,
        sector: piece.sector,
        bytes: piece.bytes,
        pid: piece.pid,
        cgroup: piece.cgroup,
        pieces: 1,
        times: piece.times,
        error: piece.error,
        requeues: 0,
        completions: 1,
    }
}

fn event(act: Act, time_us: u64) -> Event {
    Event {
        time_ns: time_us * 1000,
        bytes: 4096,
        act,
        flags: Flags::READ,
        device: DEVICE,
        pid: 7,
        ..Event::default()
    }
}

#[test]
fn parts_hold_each_nanosecond_once() {
    let stages = [Stage::Q2G, Stage::G2I, Stage::G2D, Stage::I2D, Stage::Q2M, Stage::M2D, Stage::D2C];
    // Q, G, I, M, D, C → the stages' µs, then elsewhere.
    let cases: [([i64; 6], [u64; 7], u64); 9] = [
        ([0, 1, 3, -1, 7, 15], [1, 2, 0, 4, 0, 0, 8], 0),
        ([0, 1, -1, -1, 7, 15], [1, 0, 6, 0, 0, 0, 8], 0),
        // A merged piece knows its request's I, which may be before its own Q.
        ([10, -1, 3, 11, 17, 25], [0, 0, 0, 0, 1, 6, 8], 0),
        ([0, -1, -1, -1, -1, 20], [0; 7], 20),
        ([0, 4, -1, -1, -1, 20], [4, 0, 0, 0, 0, 0, 0], 16),
        ([0, -1, 3, -1, 7, 15], [0, 0, 0, 4, 0, 0, 8], 3),
        ([0, -1, -1, -1, 7, 15], [0, 0, 0, 0, 0, 0, 8], 7),
        // Clocks of two CPUs that disagree: G seems to be before Q.
        ([5, 4, -1, -1, 7, 15], [0, 0, 2, 0, 0, 0, 8], 0),
        ([-1, 4, -1, -1, 7, 15], [0; 7], 0),
    ];
    for (us, expected, elsewhere) in cases {
        let mut parts = Parts::default();
        parts.add(&times(us));
        let each = parts.each();
        let got = stages.map(|stage| each.iter().find(|(s, _)| *s == Some(stage)).unwrap().1 / 1000);
        assert_eq!((got, parts.elsewhere_ns / 1000), (expected, elsewhere), "{us:?}");
        let q2c = times(us).stage(Stage::Q2C).unwrap_or(0);
        assert_eq!(parts.total_ns(), q2c, "{us:?}");
    }
}

/// Two reads, the second while the first is at the driver; then a pause, and a write that was split in two.
fn three_ios() -> Collector {
    let mut collector = Collector::new();
    let first = piece(times([0, 1, -1, -1, 10, 40]));
    let second = Piece { sector: 8, ..piece(times([20, 21, -1, -1, 30, 50])) };
    let write = |us, sector| Piece { flags: Flags::WRITE, sector, bytes: 8192, ..piece(times(us)) };
    let halves = [write([100, 101, -1, -1, 105, 115], 1016), write([100, 102, -1, -1, 105, 135], 1032)];
    let (q, d, c) = (Act::Queue, Act::Issue, Act::Complete);
    for (act, us, sector, done) in [
        (q, 0, 0, None),
        (d, 10, 0, None),
        (q, 20, 8, None),
        (d, 30, 8, None),
        (c, 40, 0, Some(first)),
        (c, 50, 8, Some(second)),
        (q, 100, 1016, None),
        (Act::Split, 100, 1016, None),
        (d, 105, 1016, None),
        (d, 105, 1032, None),
        (c, 115, 1016, Some(halves[0])),
        (c, 135, 1032, Some(halves[1])),
    ] {
        let bytes = if us < 100 { 4096 } else { 8192 };
        collector.event(&Event { sector, bytes, ..event(act, us) });
        if let Some(piece) = done {
            collector.piece(&piece);
            collector.request(&request(&piece));
        }
    }
    collector
}

/// One read of 40 µs, 1 ms after the first moment that is told of.
#[test]
fn what_is_weighted_by_time_is_over_all_that_was_recorded() {
    let other = DeviceNumber { major: 9, minor: 9 };
    let begun = |device| Item::Begun { time_ns: 0, device };
    let later = Item::Begun { time_ns: 900_000, device: Some(DEVICE) };
    let ended = Item::Ended { time_ns: 10_000_000 };
    // What is said, how long was recorded, and of that the longest time without a request at the driver.
    for (said, recorded_ns, idle_ns) in [
        (vec![], 40_000, 10_000),
        (vec![begun(None)], 1_040_000, 1_010_000),
        (vec![begun(Some(DEVICE))], 1_040_000, 1_010_000),
        (vec![later, begun(Some(DEVICE))], 1_040_000, 1_010_000),
        (vec![begun(Some(other))], 40_000, 10_000),
        (vec![ended.clone()], 9_000_000, 8_960_000),
        (vec![begun(None), ended], 10_000_000, 8_960_000),
        // Less than the events themselves.
        (vec![Item::Begun { time_ns: 1_020_000, device: None }, Item::Ended { time_ns: 5 }], 40_000, 10_000),
    ] {
        let mut collector = Collector::new();
        said.iter().for_each(|item| collector.item(item));
        let read = piece(times([1000, 1001, -1, -1, 1010, 1040]));
        for (act, us) in [(Act::Queue, 1000), (Act::Issue, 1010), (Act::Complete, 1040)] {
            collector.event(&event(act, us));
        }
        collector.piece(&read);
        collector.request(&request(&read));
        let analysis = collector.finish(Unmatched::default());
        let device = &analysis.devices[0];
        let depth = &device.depth_issue;
        assert_eq!((device.recorded_ns(), device.span_ns()), (recorded_ns, 40_000), "{said:?}");
        assert_eq!((depth.active_ns(), depth.idle_ns()), (30_000, recorded_ns - 30_000), "{said:?}");
        assert_eq!(depth.idle_ns_max, idle_ns, "{said:?}");
        assert!(analysis.recorded_ns() >= recorded_ns, "{said:?}");
    }
}

#[test]
fn a_recording_without_events_is_as_long_as_it_says() {
    let mut collector = Collector::new();
    collector.item(&Item::Begun { time_ns: 5, device: None });
    collector.item(&Item::Ended { time_ns: 65 });
    assert_eq!(collector.finish(Unmatched::default()).recorded_ns(), 60);
}

#[test]
fn depth_seeks_traffic_and_activity_are_those_of_the_events() {
    let analysis = three_ios().finish(Unmatched::default());
    assert_eq!((analysis.start_ns, analysis.end_ns, analysis.events), (0, 135_000, 12));
    let device = &analysis.devices[0];
    // At D: 1 from 10 to 30, 2 to 40, 1 to 50, none to 105, 2 to 115, 1 to 135.
    let depth = &device.depth_issue;
    assert_eq!(depth.time_ns, [65_000, 50_000, 20_000]);
    assert_eq!(depth.area_ns, 90_000_000 / 1000);
    assert_eq!((depth.max, depth.active_periods), (2, 2));
    assert_eq!((depth.idle_ns_max, depth.active_ns_max), (55_000, 40_000));
    // At Q: 1 from 0 to 20, 2 to 40, 1 to 50, none to 100, 2 to 115, 1 to 135.
    let depth = &device.depth_queue;
    assert_eq!(depth.time_ns, [50_000, 50_000, 35_000]);
    assert_eq!((depth.max, depth.active_periods, depth.arrivals, depth.seen_sum), (2, 2, 4, 2));
    let q2c_ns: u128 = analysis.table.of_class(DEVICE, Class::All).stage(Stage::Q2C).sum_ns();
    assert_eq!(depth.area_ns, q2c_ns, "Little's law");
    assert_eq!(device.timeline.slices.iter().map(|s| s.depth_queue_area_ns).sum::<u64>(), q2c_ns as u64);
    // At D: 0→8 follows on, 16→1016 does not, 1032 follows on.
    let seeks = &device.seeks_issue;
    assert_eq!(
        (seeks.count, seeks.sequential, seeks.sum_sectors, seeks.frequent),
        (3, 2, 1000, Some((1000, 1)))
    );
    assert_eq!(device.seeks_queue.count, 2);
    let [read, write, ..] = &device.traffic;
    assert_eq!((read.requests, read.bytes, write.requests, write.bytes), (2, 8192, 2, 16384));
    assert_eq!(device.request_sectors, Some((8, 16)));
    assert_eq!((device.pieces, device.requests, device.events.splits), (4, 4, 1));
    assert_eq!(device.queue_gaps.sum_ns, 100_000);
    assert_eq!(analysis.threads[0].traffic[Direction::Write as usize].bytes, 16384);
}

#[test]
fn requests_given_back_are_not_at_the_driver_however_often_it_is_said() {
    let mut collector = Collector::new();
    for (act, us) in
        [(Act::Issue, 0), (Act::Requeue, 10), (Act::Requeue, 11), (Act::Issue, 30), (Act::Complete, 50)]
    {
        collector.event(&event(act, us));
    }
    collector.request(&Request { requeues: 2, ..request(&piece(times([-1, -1, -1, -1, 30, 50]))) });
    let device = &collector.finish(Unmatched::default()).devices[0];
    assert_eq!(device.depth_issue.time_ns, [20_000, 30_000]);
    assert_eq!((device.requests_requeued, device.events.requeues), (1, 2));
}

/// What the matcher gives up is in flight no longer.
#[test]
fn what_was_given_up_leaves_its_depth() {
    let check = |limits: Limits, acts: &[(Act, u64, u64)], queue: &[u64], issue: &[u64]| {
        let (mut matcher, mut collector) = (Matcher::new(limits), Collector::new());
        for &(act, us, sector) in acts {
            matcher.event(&Event { sector, ..event(act, us) }, &mut collector);
        }
        let unmatched = matcher.finish(&mut collector);
        let device = &collector.finish(unmatched).devices[0];
        let us = |depth: &Depth| depth.time_ns.iter().map(|ns| ns / 1000).collect::<Vec<_>>();
        assert_eq!((us(&device.depth_queue), us(&device.depth_issue)), (queue.to_vec(), issue.to_vec()));
    };
    let whole = |us, sector| {
        let acts = [Act::Queue, Act::GetRequest, Act::Issue, Act::Complete];
        acts.into_iter().zip(us..).map(move |(act, us)| (act, us, sector))
    };
    // A scheduler has held the request since before the recording; then nobody asks for anything.
    let merged = [(Act::Queue, 0, 8), (Act::BackMerge, 5, 8)].into_iter().chain(whole(10, 800));
    let acts: Vec<_> = merged.chain([(Act::Plug, 100, 0)]).collect();
    check(Limits::default(), &acts, &[92, 8], &[99, 1]);
    // Too many in flight: a request at the driver goes, and a piece that waits.
    let begun = whole(0, 8).take(3).chain([(Act::Queue, 10, 16)]);
    let acts: Vec<_> = begun.chain(whole(20, 800)).chain([(Act::Plug, 100, 0)]).collect();
    check(Limits { in_flight: 2, ..Limits::default() }, &acts, &[77, 13, 10], &[81, 19]);
    // At the end there was no time for it to end.
    let acts: Vec<_> = whole(0, 8).take(3).chain([(Act::Plug, 100, 0)]).collect();
    check(Limits::default(), &acts, &[0, 100], &[2, 98]);
}

#[test]
fn errors_are_kept_apart_up_to_the_largest_that_there_is() {
    let mut collector = Collector::new();
    for nth in 1..=20_000 {
        collector.piece(&Piece { error: -nth, ..piece(times([0, 1, -1, -1, 2, 9])) });
    }
    let errors = &collector.finish(Unmatched::default()).devices[0].errors;
    assert_eq!((errors.len(), errors.values().sum::<u64>(), errors[&5]), (4095, 20_000, 1));
}

#[test]
fn plugs_are_counted_by_task_and_their_time_once() {
    let mut collector = Collector::new();
    for (act, us, pid, detail) in [
        (Act::Plug, 0, 1, 0),
        (Act::Plug, 5, 2, 0),
        (Act::Unplug, 10, 1, 3),
        (Act::UnplugTimer, 20, 2, 4),
        (Act::Unplug, 30, 3, 1),
        (Act::Complete, 100, 1, 0),
    ] {
        collector.event(&Event { pid, detail, ..event(act, us) });
    }
    let plugs = collector.finish(Unmatched::default()).devices[0].plugs;
    assert_eq!((plugs.plugs, plugs.unplugs, plugs.unplugs_by_schedule), (2, 2, 1));
    assert_eq!((plugs.requests, plugs.requests_by_schedule, plugs.plugged_ns), (4, 4, 20_000));
}

#[test]
fn senders_are_named_added_up_and_bounded() {
    let mut collector = Collector::new();
    let send = |collector: &mut Collector, pid| {
        collector.piece(&Piece { pid, ..piece(times([0, 1, -1, -1, 2, 9])) })
    };
    collector.name_thread(1, "mysqld");
    send(&mut collector, 1);
    collector.name_thread(1, "bash");
    send(&mut collector, 1);
    send(&mut collector, 2);
    collector.name_thread(2, "mysqld");
    collector.piece(&piece(times([-1, -1, -1, -1, 2, 9])));
    let analysis = collector.finish(Unmatched::default());
    let told = |senders: Vec<Sender>| -> Vec<(String, u64, u64)> {
        senders.into_iter().map(|s| (s.name, s.members, s.pieces)).collect()
    };
    let expected = [("mysqld", 2, 2), ("(Q not seen)", 0, 1), ("bash", 1, 1)];
    assert_eq!(told(analysis.processes_by_name()), expected.map(|(name, n, m)| (name.to_string(), n, m)));

    let mut collector = Collector::new();
    for pid in 0..5000 {
        (0..1 + u32::from(pid < 100)).for_each(|_| send(&mut collector, pid));
    }
    let threads = collector.finish(Unmatched::default()).threads;
    assert!(threads.len() <= 1025, "{}", threads.len());
    assert_eq!(threads.iter().map(|t| t.pieces).sum::<u64>(), 5100);
    assert_eq!(threads.iter().map(|t| t.members).sum::<u64>(), 5000);
    assert_eq!(threads.last().unwrap().name, senders::OTHERS);
    assert!((0..100).all(|pid| threads.iter().any(|t| t.id == pid && t.pieces == 2)), "the busy ones stay");
}

#[test]
fn devices_are_bounded_and_what_is_left_out_is_counted() {
    let mut collector = Collector::new();
    for minor in 0..1000 {
        collector.event(&Event { device: DeviceNumber { major: 8, minor }, ..event(Act::Queue, 1) });
    }
    let analysis = collector.finish(Unmatched::default());
    assert_eq!((analysis.devices.len(), analysis.events_of_further_devices), (256, 744));
}

#[test]
fn slices_and_blocks_hold_what_the_table_holds() {
    let mut collector = Collector::new();
    for n in 0..20_000_i64 {
        let start_us = n * 777;
        let us = [0, 2, 5, -1, 9, 100 + n % 300].map(|t| if t < 0 { t } else { start_us + t });
        let flags = if n % 3 == 0 { Flags::WRITE } else { Flags::READ };
        collector.piece(&Piece { flags, bytes: 4096 << (n % 2), ..piece(times(us)) });
    }
    let analysis = collector.finish(Unmatched::default());
    let device = &analysis.devices[0];
    assert!((120..=SLICES_MAX).contains(&device.timeline.slices.len()), "{}", device.timeline.slices.len());
    assert!((32..=64).contains(&device.blocks.slices.len()), "{}", device.blocks.slices.len());
    let all = analysis.table.of_class(DEVICE, Class::All);
    assert_eq!(device.timeline.slices.iter().map(|s| s.pieces.iter().sum::<u64>()).sum::<u64>(), all.ios);
    for stage in [Stage::Q2G, Stage::G2I, Stage::I2D, Stage::D2C, Stage::Q2C] {
        let sketches = device.blocks.slices.iter().flat_map(|block| &block.cells);
        let (count, sum_ns) = sketches
            .map(|(_, stages)| &stages[stage as usize])
            .fold((0, 0), |(n, ns), sketch| (n + sketch.counts.count(), ns + u128::from(sketch.sum_ns)));
        let whole = all.stage(stage);
        assert_eq!((count, sum_ns), (whole.count(), whole.sum_ns()), "{stage:?}");
    }
    let size = SizeClass::of(8192);
    let of_size = device.parts_of(|key| key.size == size);
    assert_eq!(of_size.pieces, 10_000);
}

/// Lives on two devices, in order of their ends.
fn lives() -> impl Strategy<Value = Vec<Piece>> {
    let life = (0_i64..400_000, 1_i64..3000, 0_u32..2, 0_u32..3, any::<bool>(), 9_u32..15);
    prop::collection::vec(life, 1..200).prop_map(|lives| {
        let mut pieces: Vec<Piece> = lives
            .into_iter()
            .map(|(start, length, minor, pid, writes, size)| Piece {
                device: DeviceNumber { major: 8, minor },
                flags: if writes { Flags::WRITE } else { Flags::READ },
                bytes: 1 << size,
                pid: pid + 10 * minor,
                ..piece(times([start, start, -1, -1, start + length / 2, start + length]))
            })
            .collect();
        pieces.sort_by_key(|piece| piece.times.get(Moment::Complete));
        pieces
    })
}

fn feed(collector: &mut Collector, piece: &Piece) {
    let time_ns = piece.times.get(Moment::Complete).unwrap();
    collector.event(&Event { time_ns, device: piece.device, ..event(Act::Complete, 0) });
    collector.piece(piece);
    collector.request(&request(piece));
}

proptest! {
    #[test]
    fn collectors_of_two_devices_merge_to_the_one_of_both(pieces in lives()) {
        let (mut both, mut parts) = (Collector::new(), [Collector::new(), Collector::new()]);
        for piece in &pieces {
            feed(&mut both, piece);
            feed(&mut parts[piece.device.minor as usize], piece);
        }
        let [mut merged, other] = parts;
        merged.merge(other);
        prop_assert_eq!(merged.finish(Unmatched::default()), both.finish(Unmatched::default()));
    }

    #[test]
    fn collectors_of_two_halves_merge_to_the_whole(pieces in lives(), cut in 0_usize..200) {
        let (mut whole, mut first, mut second) = (Collector::new(), Collector::new(), Collector::new());
        for (n, piece) in pieces.iter().enumerate() {
            feed(&mut whole, piece);
            feed(if n < cut { &mut first } else { &mut second }, piece);
        }
        first.merge(second);
        let (merged, whole) = (first.finish(Unmatched::default()), whole.finish(Unmatched::default()));
        let sorted = |d: &Distribution| d.buckets();
        for device in whole.table.devices() {
            for class in [Class::All, Class::Read, Class::Write] {
                let (a, b) = (merged.table.of_class(device, class), whole.table.of_class(device, class));
                prop_assert_eq!(a.ios, b.ios);
                prop_assert!(Stage::ALL.iter().all(|s| sorted(a.stage(*s)) == sorted(b.stage(*s))));
            }
        }
        prop_assert_eq!(merged.threads.len(), whole.threads.len());
        for (a, b) in merged.devices.iter().zip(&whole.devices) {
            prop_assert_eq!(&a.parts, &b.parts);
            prop_assert_eq!(a.traffic, b.traffic);
            let pieces = |d: &crate::analysis::Device| {
                d.timeline.slices.iter().map(|s| s.pieces.iter().sum::<u64>()).sum::<u64>()
            };
            prop_assert_eq!(pieces(a), pieces(b));
        }
    }
}
