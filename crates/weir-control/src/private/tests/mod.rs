//! The law on models of a cgroup, and its parts.

mod model;

use super::*;
use model::{Plant, ext4_1, ext4_8, ordered, queue, xfs_1, xfs_8};

use super::constants::SECOND_NS;
use super::harm::Harm;

const MB: u64 = 1_000_000;

#[test]
fn commits_keep_their_rate_and_the_rest_is_the_bulk_writers() {
    // (name, device MB/s, commits MB/s, model, kept, of the left-over)
    for (name, rate, own, answer, kept, bulk) in [
        ("queue", 200.0, 10.0, queue as model::Answer, 0.95, 0.7),
        ("slow queue", 40.0, 4.0, queue, 0.92, 0.4),
        ("journal that waits", 200.0, 10.0, ordered, 0.35, 0.9),
        ("ext4, 1 thread", 40.0, 3.8, ext4_1, 0.93, 0.85),
        ("ext4, 8 threads", 40.0, 5.1, ext4_8, 0.93, 0.85),
        ("xfs, 1 thread", 40.0, 3.4, xfs_1, 0.93, 0.8),
        ("xfs, 8 threads", 40.0, 5.0, xfs_8, 0.935, 0.8),
    ] {
        let mut plant = Plant::new(rate, own, answer);
        plant.run(60);
        let (had_kept, had_bulk) = plant.last(40);
        assert!(
            had_kept >= kept && had_bulk >= bulk,
            "{name}: {had_kept:.3} {had_bulk:.3} {:?} {:?}",
            plant.law.state(),
            plant.said
        );
        assert_eq!(plant.said[0], Transition::Arm, "{name}");
    }
}

#[test]
fn it_holds_within_three_seconds_of_the_floods_beginning() {
    for (name, answer) in [("xfs", xfs_1 as model::Answer), ("ext4", ext4_8)] {
        let mut plant = Plant::new(40.0, 4.0, answer);
        plant.run(6);
        assert!(plant.last(1).0 > 0.85, "{name}: {:?}", plant.last(1));
    }
}

#[test]
fn a_journal_that_waits_for_the_paced_is_seen_and_paced_ever_more_rarely() {
    let mut plant = Plant::new(200.0, 10.0, ordered);
    plant.run(300);
    let hurts = plant.said.iter().filter(|said| **said == Transition::PaceHurts).count();
    // After 20, 40, 80 and 160 s.
    assert_eq!(hurts, 4, "{:?}", plant.said);
    let times = plant
        .said
        .windows(2)
        .filter(|two| two[0] == Transition::Compare && two[1] == Transition::Compare)
        .count();
    assert_eq!(times, hurts, "never without the pace and with it once more: {:?}", plant.said);
    assert!(matches!(plant.law.state(), State::Bounded { .. }), "{:?}", plant.law.state());
    // The other limits have to hold as well.
    assert!(
        plant.law.is_not_enough() && plant.said.last() == Some(&Transition::NotEnough),
        "{:?}",
        plant.said
    );
}

#[test]
fn what_syncs_lose_elsewhere_is_not_taken_from_the_bulk_writer() {
    // Processors that the copy takes: no pace gives them back, but the first did something.
    let busy: model::Answer = |_, _, pace| if pace.is_some() { 0.6 } else { 0.1 };
    let mut plant = Plant::new(40.0, 4.0, busy);
    plant.run(60);
    assert!(plant.said.contains(&Transition::Vain), "{:?}", plant.said);
    assert!(plant.last(30).1 > 0.8, "{:?} {:?}", plant.last(30), plant.said);
}

#[test]
fn what_was_lost_at_the_least_pace_is_forgotten_once_syncs_keep_their_rate() {
    let bad: model::Answer = |_, _, pace| match pace.unwrap_or(f64::INFINITY) {
        pace if pace > 10e6 => 0.2,
        pace if pace > 3e6 => 0.6,
        pace if pace > 1.5e6 => 0.75,
        _ => 0.85,
    };
    let mut plant = Plant::new(40.0, 4.0, bad);
    let to_least = |plant: &mut Plant| {
        let end_ns = plant.now_ns + 60 * SECOND_NS;
        while !matches!(plant.law.state(), State::Paced { pace: 1_000_000 }) {
            plant.run(1);
            assert!(plant.now_ns < end_ns, "{:?} {:?}", plant.law.state(), plant.said);
        }
        plant.run(4);
        assert!(!plant.law.is_not_enough(), "{:?}", plant.said);
    };
    to_least(&mut plant);
    plant.answer = |_, _, _| 0.99;
    plant.run(15).answer = bad;
    to_least(&mut plant);
    plant.run(10);
    assert!(plant.law.is_not_enough(), "{:?}", plant.said);
}

#[test]
fn the_other_limits_hold_no_longer_than_private_ones_are_not_enough() {
    let (good, bad): (model::Answer, model::Answer) = (|_, _, _| 0.99, |_, _, _| 0.5);
    let mut plant = Plant::new(40.0, 4.0, bad);
    plant.can_pace = false;
    let is_not_enough_after = |plant: &mut Plant, answer, seconds| {
        plant.answer = answer;
        plant.run(seconds);
        plant.law.is_not_enough()
    };
    assert!(is_not_enough_after(&mut plant, bad, 30));
    assert!(is_not_enough_after(&mut plant, good, 15), "it may pass");
    assert!(!is_not_enough_after(&mut plant, good, 15), "{:?}", plant.said);
    assert_eq!(plant.said.iter().filter(|said| **said == Transition::Enough).count(), 1);
    // One good look before syncs pause for long is no such time.
    let mut paused = Plant::new(40.0, 4.0, bad);
    paused.can_pace = false;
    assert!(is_not_enough_after(&mut paused, bad, 30));
    is_not_enough_after(&mut paused, good, 2);
    paused.need = Need::Pausing;
    is_not_enough_after(&mut paused, good, 25);
    paused.need = Need::Here;
    assert!(is_not_enough_after(&mut paused, good, 3), "{:?}", paused.said);
    // The second time it is believed later.
    assert!(is_not_enough_after(&mut plant, bad, 30));
    assert!(is_not_enough_after(&mut plant, good, 30));
    assert!(!is_not_enough_after(&mut plant, good, 40), "{:?}", plant.said);
}

#[test]
fn what_was_in_vain_is_tried_where_syncs_lose_far_more() {
    let busy: model::Answer = |_, _, pace| if pace.is_some() { 0.7 } else { 0.6 };
    let mut plant = Plant::new(40.0, 4.0, busy);
    while plant.said.last() != Some(&Transition::Vain) {
        plant.run(1);
        assert!(plant.now_ns < 60 * SECOND_NS, "{:?}", plant.said);
    }
    plant.answer = |_, _, pace| if pace.is_some_and(|pace| pace < 12e6) { 0.97 } else { 0.3 };
    plant.run(8);
    assert!(plant.last(5).0 > 0.7, "{:?} {:?} {:?}", plant.last(5), plant.law.state(), plant.said);
}

#[test]
fn a_loss_that_passes_costs_the_bulk_writer_little() {
    // As in a guest: for the first seconds commits lose half whatever the pace is.
    for seconds in [4, 8, 15] {
        let mut plant = Plant::new(40.0, 4.0, xfs_1);
        (plant.lost_elsewhere, plant.backlog) = ((0.5, seconds * SECOND_NS), 140e6);
        plant.run(30);
        let (kept, bulk) = plant.last(10);
        assert!(kept > 0.9 && bulk > 0.8, "{seconds}: {kept:.3} {bulk:.3} {:?}", plant.said);
        assert!(plant.last(25).1 > 0.6, "{seconds}: {:?} {:?}", plant.last(25), plant.said);
    }
}

#[test]
fn where_a_pace_hurts_a_bound_is_found_though_the_flood_came_first() {
    let mut plant = Plant::new(200.0, 10.0, ordered);
    plant.backlog = 800e6;
    plant.run(40);
    assert_eq!(plant.said[1], Transition::Pace, "{:?}", plant.said);
    assert!(matches!(plant.law.state(), State::Bounded { .. }), "{:?}", plant.said);
    plant.run(60);
    assert!(matches!(plant.law.state(), State::Bounded { .. }), "{:?}", plant.said);
}

#[test]
fn a_loss_that_passes_while_it_is_compared_is_not_the_paces() {
    for seconds in 3..12 {
        let mut plant = Plant::new(40.0, 4.0, ext4_1);
        plant.run(20).lost_elsewhere = (0.6, (20 + seconds) * SECOND_NS);
        plant.run(40);
        assert!(!plant.said.contains(&Transition::PaceHurts), "{seconds}: {:?}", plant.said);
        assert!(plant.last(15).0 > 0.9, "{seconds}: {:?} {:?}", plant.last(15), plant.said);
    }
}

#[test]
fn who_writes_past_the_page_cache_is_paced_whatever_hurt_before() {
    let mut plant = Plant::new(200.0, 10.0, ordered);
    plant.run(20);
    assert!(matches!(plant.law.state(), State::Bounded { .. }), "{:?}", plant.said);
    (plant.is_direct, plant.answer) = (true, queue);
    plant.run(3);
    assert!(matches!(plant.law.state(), State::Paced { .. }), "{:?}", plant.said);
}

#[test]
fn the_next_flood_begins_with_the_pace_that_was_good() {
    let mut plant = Plant::new(40.0, 4.0, xfs_1);
    plant.run(60).is_writing = false;
    plant.run(40).is_writing = true;
    let before = plant.said.len();
    plant.run(6);
    assert_eq!(plant.said.get(before), Some(&Transition::Arm), "{:?}", plant.said);
    let (kept, bulk) = plant.last(5);
    assert!(kept > 0.88 && bulk > 0.85, "{kept:.3} {bulk:.3} {:?}", plant.said);
}

#[test]
fn a_sync_that_waits_is_no_pause() {
    let mut plant = Plant::new(40.0, 4.0, xfs_1);
    plant.run(5).need = Need::Pausing;
    plant.oldest_ns = SECOND_NS / 2;
    plant.run(1);
    assert!(!plant.said.contains(&Transition::Loosen), "{:?}", plant.said);
}

#[test]
fn who_writes_past_the_page_cache_is_paced_at_once() {
    let mut plant = Plant::new(40.0, 4.0, xfs_1);
    plant.is_direct = true;
    plant.run(2);
    assert!(matches!(plant.law.state(), State::Paced { .. }), "{:?}", plant.said);
}

/// Of a flood that has lasted for a while, with its state before.
fn probed(can_pace: bool) -> (Plant, State) {
    let mut plant = Plant::new(40.0, 4.0, xfs_1);
    plant.can_pace = can_pace;
    plant.run(30).wants_probe = true;
    for _ in 0..20 {
        let before = plant.law.state();
        plant.look();
        if plant.said.last() == Some(&Transition::Probe) {
            plant.wants_probe = false;
            return (plant, before);
        }
    }
    panic!("no probe: {:?}", plant.said);
}

#[test]
fn a_probe_lasts_a_second_and_what_was_before_returns() {
    for can_pace in [true, false] {
        let (mut plant, before) = probed(can_pace);
        let most =
            Wish { budget_bytes: Some(2 << 20), pace: can_pace.then_some(4_100_000), ..Wish::default() };
        let wish = plant.law.wish();
        assert!(wish.pace <= most.pace && wish.budget_bytes <= most.budget_bytes, "{wish:?}");
        assert_eq!(plant.law.probed_from(), Some(plant.now_ns + SECOND_NS / 5));
        (0..12).for_each(|_| plant.look());
        assert_eq!((plant.said.last(), plant.law.state()), (Some(&Transition::Probed), before));
        assert_eq!(plant.law.probed_from(), None);
    }
}

#[test]
fn whatever_ends_a_probe_early_leaves_nothing_of_it() {
    type Change = fn(&mut Plant);
    let cases: [(Change, &[Transition]); 3] = [
        (|plant| plant.need = Need::Pausing, &[Transition::Probed, Transition::Loosen]),
        (|plant| plant.is_gone = true, &[Transition::Gone]),
        (|plant| plant.need = Need::Nobody, &[Transition::Unneeded]),
    ];
    for (change, expected) in cases {
        let (mut plant, _) = probed(true);
        let said = plant.said.len();
        change(&mut plant);
        (0..2).for_each(|_| plant.look());
        assert_eq!(&plant.said[said..], expected);
        assert_eq!((plant.law.probed_from(), plant.law.wish().pace), (None, None));
    }
}

#[test]
fn without_io_max_dirty_pages_are_bounded_further() {
    let mut plant = Plant::new(40.0, 4.0, queue);
    plant.can_pace = false;
    plant.run(60);
    let State::Bounded { time_ns } = plant.law.state() else { panic!("{:?}", plant.said) };
    assert!(time_ns < 80_000_000 && !plant.said.contains(&Transition::Pace), "{:?}", plant.said);
}

/// As where a user's copy joins a paced backup, and the user's manager has no io controller.
#[test]
fn one_that_cannot_be_paced_costs_the_others_nothing_and_the_other_limits_join() {
    let mut plant = Plant::new(40.0, 4.0, xfs_1);
    plant.run(30);
    let before = plant.said.len();
    plant.can_pace = false;
    plant.answer = |_, _, _| 0.5;
    plant.run(15);
    assert!(matches!(plant.law.state(), State::Paced { .. }) && plant.law.is_not_enough());
    let others = [Transition::Raise, Transition::NotEnough];
    assert!(plant.said[before..].iter().all(|said| others.contains(said)), "{:?}", plant.said);
    // Alone again, it is judged by what syncs lose.
    plant.can_pace = true;
    plant.run(1);
    assert_eq!(plant.said.last(), Some(&Transition::Cut), "{:?}", plant.said);
}

/// Of a file that another cgroup has in memory.
#[test]
fn who_writes_pages_of_others_is_held_by_its_processor_time() {
    let flooded = |answer| {
        let mut plant = Plant::new(40.0, 4.0, answer);
        plant.answer = |_, _, _| 1.0;
        plant.is_writing = false;
        plant.run(5).answer = answer;
        (plant.escapes, plant.can_quota, plant.is_writing) = (true, true, true);
        plant
    };
    // What syncs lose grows with the pace.
    let mut plant = flooded(|_, _, pace| 1.0 - pace.unwrap_or(40e6) / 200e6);
    plant.run(5);
    assert_eq!((plant.said.last(), plant.law.wish().pace), (Some(&Transition::Quota), Some(0)));
    // 400 MB are dirty by then, and written at 40 MB/s.
    plant.run(12);
    assert!(plant.elsewhere < 5e6, "{} {:?}", plant.elsewhere, plant.said);
    assert!(plant.said.contains(&Transition::Drained) && plant.law.wish().pace > Some(0));
    plant.run(150);
    let (kept, _) = plant.last(20);
    let pace = plant.law.wish().pace.unwrap() as f64;
    assert!((0.9..0.97).contains(&kept), "{kept} {:?}", plant.said);
    assert!((6e6..20e6).contains(&pace), "{pace} {:?}", plant.said);
    // Whatever comes, it is not let go of without a limit while it writes.
    let said = plant.said.len();
    plant.need = Need::Pausing;
    plant.run(20);
    assert!(plant.law.wish().by_quota && plant.law.wish().pace.is_some());
    plant.need = Need::Here;
    plant.answer = |_, _, _| 0.4;
    plant.rate = 20e6;
    plant.run(60);
    plant.answer = |_, _, _| 1.0;
    plant.rate = 40e6;
    plant.run(60);
    assert!(plant.law.wish().by_quota && plant.law.wish().pace.is_some(), "{:?}", &plant.said[said..]);
    assert!(plant.last(20).0 > 0.9, "{:?}", &plant.said[said..]);
    plant.is_writing = false;
    plant.run(35);
    assert_eq!((plant.said.last(), plant.law.wish()), (Some(&Transition::Ended), Wish::default()));
    // Where nothing limits it, it is left alone.
    let mut plant = flooded(|_, _, _| 1.0);
    plant.can_quota = false;
    plant.run(9);
    assert!(plant.said.ends_with(&[Transition::Escapes]), "{:?}", plant.said);
    // Where syncs lose nothing, its processor time is limited as soon as they do.
    let mut plant = flooded(|_, _, _| 1.0);
    plant.rate = 2000e6;
    plant.run(20);
    assert!(plant.law.holds() && !plant.law.wish().by_quota, "{:?}", plant.said);
    plant.rate = 40e6;
    plant.run(5);
    assert!(plant.said.contains(&Transition::Quota), "{:?}", plant.said);
}

/// Nobody syncs, or until a moment ago.
#[test]
fn who_writes_pages_of_others_is_not_stopped_while_syncs_pause() {
    for begins_in_a_pause in [true, false] {
        let mut plant = Plant::new(40.0, 4.0, |_, _, _| 1.0);
        plant.is_writing = false;
        plant.run(5);
        (plant.escapes, plant.can_quota, plant.is_writing) = (true, true, true);
        if !begins_in_a_pause {
            plant.run(5);
            assert_eq!(plant.law.wish().pace, Some(0), "{:?}", plant.said);
        }
        (plant.need, plant.is_judged) = (Need::Pausing, false);
        plant.run(45);
        assert_ne!(plant.law.wish().pace, Some(0), "{begins_in_a_pause}: {:?}", plant.said);
        assert!(plant.law.holds(), "{begins_in_a_pause}: {:?}", plant.said);
    }
}

/// It may have most of its files there.
#[test]
fn who_writes_to_another_device_too_does_not_write_pages_of_others() {
    let seen = |elsewhere_bytes| {
        let mut harm = Harm::default();
        let group = Group {
            sent_bytes: 10_000_000,
            written_bytes: Some(1_000_000),
            elsewhere_bytes,
            ..Group::default()
        };
        (0..30).for_each(|_| harm.push(100_000_000, &[group]));
        harm.escapes(false)
    };
    assert_eq!((seen(0), seen(9_000_000)), (true, false));
}

/// It fills memory before it is held, and is in its next write from then on.
#[test]
fn who_wrote_pages_of_others_before_it_was_held_is_known_by_that() {
    let mut plant = Plant::new(40.0, 4.0, |_, _, _| 0.1);
    plant.run(3);
    plant.law.let_go();
    (plant.is_writing, plant.can_quota) = (false, true);
    plant.run(5);
    (plant.group.is_at_work, plant.group.before_bytes) = (true, 900_000_000);
    plant.waits_in_a_write(30);
    assert_eq!(plant.said.last(), Some(&Transition::Quota), "{:?}", plant.said);
}

#[test]
fn a_device_that_becomes_slower_or_faster_is_followed() {
    let mut plant = Plant::new(200.0, 10.0, queue);
    plant.run(40);
    plant.rate = 60e6;
    plant.run(20);
    assert!(plant.last(10).0 > 0.9, "{:?} {:?}", plant.last(10), plant.said);
    plant.rate = 200e6;
    plant.run(120);
    assert!(plant.last(20).1 > 0.6, "{:?} {:?} {:?}", plant.last(20), plant.law.state(), plant.said);
}

#[test]
fn limits_end_when_nobody_needs_them() {
    type Change = fn(&mut Plant);
    let cases: [(Change, u64, Transition, State); 7] = [
        (|plant| plant.need = Need::Pausing, 1, Transition::Loosen, State::Loose),
        (|plant| plant.need = Need::Nobody, 1, Transition::Unneeded, State::Watching),
        (|plant| plant.is_writing = false, 32, Transition::Ended, State::Watching),
        (|plant| plant.is_gone = true, 1, Transition::Gone, State::Watching),
        (|plant| plant.group.memory_stall_ns = 50_000_000, 17, Transition::MemoryStalls, State::Watching),
        (|plant| plant.escapes = true, 7, Transition::Escapes, State::Watching),
        (|plant| plant.group.refault_bytes = 20 * MB, 7, Transition::WorkingSet, State::Watching),
    ];
    for (change, seconds, transition, state) in cases {
        let mut plant = Plant::new(40.0, 4.0, xfs_8);
        plant.run(20);
        change(&mut plant);
        plant.run(seconds);
        assert_eq!(plant.said.last(), Some(&transition), "{:?}", plant.said);
        let is_spared = matches!(plant.law.state(), State::Spared { .. });
        assert!(plant.law.state() == state || is_spared, "{transition}: {:?}", plant.law.state());
        assert_eq!(plant.law.wish().pace, None, "{transition}");
    }
    let mut plant = Plant::new(40.0, 4.0, xfs_8);
    plant.run(20).need = Need::Pausing;
    plant.run(5).need = Need::Here;
    let before = plant.said.len();
    plant.run(1);
    assert_eq!(plant.said.get(before), Some(&Transition::Tighten), "{:?}", plant.said);
    plant.group.memory_stall_ns = 50_000_000;
    plant.run(20);
    plant.group.memory_stall_ns = 0;
    plant.run(610);
    let after = plant.said.iter().skip_while(|said| **said != Transition::MemoryStalls).nth(1);
    assert_eq!(after, Some(&Transition::Again), "{:?}", plant.said);
}

#[test]
fn a_group_that_waits_for_memory_gets_more_twice() {
    let mut plant = Plant::new(40.0, 4.0, xfs_8);
    plant.run(20);
    assert_eq!(plant.law.wish().room_bytes, 0);
    plant.group.memory_stall_ns = 50_000_000;
    for room in [16 << 20, 64 << 20] {
        plant.run(4);
        assert_eq!(plant.law.wish().room_bytes, room, "{:?}", plant.said);
    }
    // Where that is enough, it stays held.
    plant.group.memory_stall_ns = 0;
    plant.run(30);
    assert!(plant.law.wish().budget_bytes.is_some(), "{:?}", plant.said);
    assert_eq!(plant.law.wish().room_bytes, 64 << 20);
}

#[test]
fn memory_high_is_above_what_is_held_and_below_what_was_found() {
    let memory = |held: u64, cache: u64| Memory {
        current: held + cache,
        anon: held / 2,
        kernel: held / 4,
        shmem: held / 4,
        file: cache + held / 4,
        ..Memory::default()
    };
    for (held, cache) in [(0, 0), (3 << 20, 100 << 20), (800 << 20, 1 << 30), (5 << 30, 0)] {
        let needed = needed(&memory(held, cache), 4 * MB, 0.2);
        assert!(
            needed >= held + held / 8 + 20 * MB && needed <= held + held / 8 + (30 << 20),
            "{held} {needed}"
        );
        assert_eq!(followed(None, needed, Some(1 << 20)), 1 << 20, "never above what was found");
        let first = followed(None, needed, None);
        assert_eq!(followed(Some(first), needed, None), first, "it stays");
        assert!(followed(Some(first), first + 1, None) > first, "upward at once");
        assert!(followed(Some(2 * first), needed, None) < 2 * first);
    }
    // memory.stat and memory.current are read one after the other.
    let torn = Memory { current: 1, anon: 5 << 20, ..Memory::default() };
    assert_eq!(torn.held(), 5 << 20);
}

#[test]
fn a_cgroup_that_is_not_the_bulk_writers_alone_is_left_alone() {
    let good =
        Candidate { path: "/backup".to_string(), has_high: true, has_pace: true, ..Candidate::default() };
    assert_eq!(may_hold(&good), Ok(()));
    for (candidate, refusal) in [
        (Candidate { is_root: true, ..good.clone() }, Refusal::Root),
        (Candidate { is_spared: true, ..good.clone() }, Refusal::Spared),
        (Candidate { has_high: false, ..good.clone() }, Refusal::NoController),
        (Candidate { is_threaded: true, ..good.clone() }, Refusal::Threaded),
        (Candidate { is_limited: true, ..good.clone() }, Refusal::Limited),
        (
            Candidate { shared_with: Some("mariadbd".into()), ..good.clone() },
            Refusal::Shared("mariadbd".into()),
        ),
        (Candidate { limited_below: Some("/backup/a".into()), ..good }, Refusal::Nested("/backup/a".into())),
    ] {
        assert_eq!(may_hold(&candidate), Err(refusal));
    }
}
