//! Recordings as they should be, and as somebody who means no good writes them.

use super::*;

const MIB: u64 = 1 << 20;
const GROUND: Ground = Ground { bytes: 64 * MIB, base: 0, block: 4096 };
const RULES: Rules = Rules { speed: 1.0, space: None, gap_ns_max: 1_000_000_000 };

fn read(at_ns: u64, offset: u64, bytes: u32) -> Recorded {
    Recorded { at_ns, offset, bytes, ..Recorded::default() }
}

fn write(at_ns: u64, offset: u64, bytes: u32) -> Recorded {
    Recorded { is_write: true, ..read(at_ns, offset, bytes) }
}

fn plan(ios: &[Recorded], rules: &Rules) -> Plan {
    Plan::new(ios.to_vec(), rules, &GROUND).unwrap()
}

fn ops(plan: &Plan) -> Vec<Op> {
    let mut ops = Vec::new();
    plan.clone().source().fill(&mut ops, 1000);
    ops
}

fn places(plan: &Plan) -> Vec<(u64, u64, u32)> {
    ops(plan).iter().map(|op| (op.at_ns, op.offset, op.len)).collect()
}

#[test]
fn times_count_from_the_first_and_scale_by_speed() {
    let ios = [read(5_000, 0, 4096), read(7_000, 8192, 4096), read(7_000, 4096, 4096), read(9_000, 0, 512)];
    for (speed, expected) in
        [(1.0, [0, 2_000, 2_000, 4_000]), (2.0, [0, 1_000, 1_000, 2_000]), (0.5, [0, 4_000, 4_000, 8_000])]
    {
        let plan = plan(&ios, &Rules { speed, ..RULES });
        let times: Vec<u64> = ops(&plan).iter().map(|op| op.at_ns).collect();
        assert_eq!(times, expected, "{speed}");
        assert_eq!((plan.fitted.span_ns, plan.fitted.ios, plan.fitted.rounded), (expected[3], 4, 1));
    }
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(Plan::new(ios.to_vec(), &Rules { speed, ..RULES }, &GROUND).is_err(), "{speed}");
    }
}

#[test]
fn each_kind_is_played_as_what_it_was() {
    let durable = Recorded { is_durable: true, ..write(3, 8192, 4096) };
    let journal = Recorded { flushes_first: true, ..Recorded { at_ns: 4, ..durable } };
    let odd_read = Recorded { flushes_first: true, is_durable: true, ..read(5, 0, 4096) };
    let ios = [read(1, 0, 4096), write(2, 4096, 4096), durable, journal, odd_read, write(6, 0, 0)];
    let plan = plan(&ios, &RULES);
    let (sync, dsync) = (OpKind::Sync(SyncMode::Fdatasync), Then::Commit(SyncMode::RwfDsync));
    let kinds: Vec<(OpKind, Then)> = ops(&plan).iter().map(|op| (op.kind, op.then)).collect();
    let expected = [
        (OpKind::Read, Then::Nothing),
        (OpKind::Write, Then::Nothing),
        (OpKind::Write, dsync),
        (sync, Then::Nothing),
        (OpKind::Write, dsync),
        (OpKind::Read, Then::Nothing),
        (sync, Then::Nothing),
    ];
    assert_eq!(kinds, expected);
    let f = &plan.fitted;
    assert_eq!((f.reads, f.writes, f.durable, f.flushed_writes, f.flushes, f.operations), (2, 3, 2, 1, 1, 7));
}

#[test]
fn offsets_come_into_the_target_as_asked() {
    let ios = [read(0, 4096, 8192), read(1, 64 * MIB + 4096, 4096), read(2, 128 * MIB - 4096, 4096)];
    let at = |space| places(&plan(&ios, &Rules { space, ..RULES })).iter().map(|p| p.1).collect::<Vec<_>>();
    assert_eq!(at(None), [4096, 4096, 64 * MIB - 4096], "wrapped where it does not fit");
    assert_eq!(at(Some(Space::Scale)), [0, 32 * MIB, 64 * MIB - 4096]);
    let refused = Plan::new(ios.to_vec(), &Rules { space: Some(Space::Recorded), ..RULES }, &GROUND);
    assert!(refused.unwrap_err().what.contains("reaches to 128 MiB and the target has 64 MiB"));
    let small = [ios[0]];
    assert_eq!(plan(&small, &RULES).fitted.space, Space::Recorded);
    // A part of the target in front stays untouched.
    let behind = Ground { base: MIB, ..GROUND };
    let moved = Plan::new(ios.to_vec(), &RULES, &behind).unwrap();
    assert_eq!(places(&moved)[0].1, MIB + 4096);
    assert!(places(&moved).iter().all(|p| p.1 >= MIB && p.1 + u64::from(p.2) <= 64 * MIB));
}

#[test]
fn odd_lengths_grow_to_whole_blocks_and_are_counted() {
    let plan = plan(&[read(0, 512, 512), read(1, 4096, 4096), write(2, 1024, 4096)], &RULES);
    assert_eq!(places(&plan), [(0, 0, 4096), (1, 4096, 4096), (2, 0, 8192)]);
    assert_eq!((plan.fitted.rounded, plan.fitted.moved), (2, 0));
    let job = plan.job(Job::default(), Replay::default(), None, 3);
    assert_eq!(job.block, BlockSize::Split(vec![(Bytes(4096), 2.0), (Bytes(8192), 1.0)]));
    assert!((job.read_percent - 200.0 / 3.0).abs() < 1e-9 && job.depth == 64 && job.is_open_loop());
}

#[test]
fn long_ones_are_played_in_parts_and_bound_the_buffers() {
    let plan = plan(&[write(0, 4096, 2 * MIB as u32 + 4096)], &RULES);
    let part = MIB as u32;
    assert_eq!(places(&plan), [(0, 4096, part), (0, 4096 + MIB, part), (0, 4096 + 2 * MIB, 4096)]);
    assert_eq!((plan.fitted.in_parts, plan.fitted.operations, plan.fitted.ios), (1, 3, 1));
    let depth = |asked, recorded| plan.job(Job::default(), Replay::default(), asked, recorded).depth;
    assert_eq!((depth(None, 1), depth(None, u64::MAX), depth(Some(7), 9000)), (64, 256, 7));
}

#[test]
fn absurd_claims_are_bounded_and_said() {
    let ios = [
        read(u64::MAX, OFFSET_MAX, u32::MAX),
        read(500, OFFSET_MAX - 1, 1),
        read(0, u64::MAX, 4096),
        read(400, 0, 4096),
    ];
    for space in [None, Some(Space::Scale)] {
        let plan = plan(&ios, &Rules { space, ..RULES });
        let f = &plan.fitted;
        // The one at the end of time comes last, and a second after the one before.
        assert_eq!(ops(&plan).last().unwrap().at_ns, 1_000_000_500);
        assert_eq!((f.gaps, f.out_of_order, f.shortened), (1, 2, 1), "{space:?}");
        assert_eq!(f.gaps_ns, u64::MAX - 500 - RULES.gap_ns_max);
        for (_, offset, len) in places(&plan) {
            assert!(
                offset + u64::from(len) <= GROUND.bytes && u64::from(len) <= MIB,
                "{space:?}: {offset}, {len}"
            );
        }
    }
    assert!(Plan::new(Vec::new(), &RULES, &GROUND).unwrap_err().what.contains("no I/O that can be played"));
    for ground in [Ground { bytes: 100, ..GROUND }, Ground { base: 512, ..GROUND }] {
        assert!(Plan::new(ios.to_vec(), &RULES, &ground).is_err(), "{ground:?}");
    }
    let flushes = plan(&[write(1, 0, 0)], &RULES);
    assert_eq!((flushes.fitted.flushes, flushes.fitted.operations, ops(&flushes).len()), (1, 1, 1));
}
