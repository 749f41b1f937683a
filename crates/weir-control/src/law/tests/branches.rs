//! One scene a branch.

use super::toy::{MB, SECOND, Scene, Seen, Toy, mean};
use crate::private::Hold;
use crate::{Action, Branch, Decision, Guard, Known, LatencyTarget, Mood, Parameters, SensorSource, Target};
use weir_core::units::Nanos;

const FLOOD: f64 = 2000.0 * MB;

fn guarded(scene: Scene) -> (Toy, Guard) {
    (Toy::new(scene, 7), Guard::new(Parameters::default()))
}

/// A guard that has seen one thread and ten without bulk writers.
fn taught(scene: Scene) -> (Toy, Guard) {
    let (mut toy, mut guard) = guarded(scene.clone());
    for threads in [1.0, 10.0, scene.threads] {
        toy.scene.threads = threads;
        toy.run(&mut guard, 8.0);
    }
    (toy, guard)
}

fn branches(seen: &[Seen]) -> Vec<Branch> {
    let mut all: Vec<Branch> = seen.iter().map(|look| look.decision.branch).collect();
    all.dedup();
    all
}

#[test]
fn one_law_serves_one_thread_and_ten() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.flood = FLOOD;
    for (phase, threads) in [1.0, 10.0, 1.0, 10.0].into_iter().enumerate() {
        toy.scene.threads = threads;
        let seen = toy.run(&mut guard, 30.0);
        let after = &seen[40..];
        let (kept, bulk) = (mean(after, |s| s.kept), mean(after, |s| s.bulk) / MB);
        assert!(kept > 0.9, "phase {phase}: {threads} threads keep {kept}");
        assert!(bulk > 0.78 * 251.0, "phase {phase}: {bulk} MB/s");
        // Who comes back to a concurrency finds its limit at once.
        if phase >= 2 {
            let first = mean(&seen[15..40], |s| s.kept);
            assert!(first > 0.86, "phase {phase}: the limit is not remembered: {first}");
        }
    }
}

#[test]
fn each_of_two_levers_has_limits_of_its_own() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.threads = 1.0;
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 60.0);
    let good = toy.limits.now_bytes;
    let mut armed = |of_cgroup| {
        guard.change_lever(of_cgroup);
        toy.limits.now_bytes = toy.limits.saved_bytes;
        let seen = toy.run(&mut guard, 0.1);
        let decision = &seen[0].decision;
        assert_eq!((decision.branch, decision.inputs.reference), (Branch::Arm, Known::Seen));
        toy.limits.now_bytes
    };
    let (other, again) = (armed(true), armed(false));
    assert!(other.abs_diff(good) > good / 10, "{other} was found for another limit");
    assert!(again.abs_diff(good) < good / 10, "{again} is not {good}, which held");
}

/// As beside a flood on another volume of the same disk, of which this one's writers show nothing.
#[test]
fn what_syncs_do_while_another_device_disturbs_them_is_not_learned() {
    let kept_after = |is_disturbed| {
        let (mut toy, mut guard) = taught(Scene::default());
        toy.scene.threads = 1.0;
        toy.scene.flood = 0.0;
        toy.run(&mut guard, 20.0);
        guard.disturb(is_disturbed);
        toy.scene.syncs /= 4.0;
        let seen = toy.run(&mut guard, 180.0);
        seen.last().unwrap().decision.inputs.kept.unwrap()
    };
    assert!(kept_after(true) < 0.35, "{}", kept_after(true));
    assert!(kept_after(false) > 0.7, "{}", kept_after(false));
}

#[test]
fn a_law_that_is_set_aside_holds_nothing() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.flood = FLOOD;
    guard.set_aside(Hold { covers: true, is_at_work: true, ..Hold::default() });
    toy.limits.now_bytes = toy.limits.saved_bytes;
    let mut seen = toy.run(&mut guard, 10.0);
    toy.scene.flood = 0.0;
    guard.set_aside(Hold { covers: true, ..Hold::default() });
    seen.extend(toy.run(&mut guard, 60.0));
    let does = |look: &Seen| look.decision.mood == Mood::Holding || look.decision.action != Action::Keep;
    assert!(!seen.iter().any(does), "{:?}", branches(&seen));
    guard.set_aside(Hold::default());
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 1.0);
    assert!(branches(&seen).contains(&Branch::Arm), "{:?}", branches(&seen));
}

/// As beside a direct writer on a slow disk, whose pace is less than a flood.
#[test]
fn what_syncs_do_beside_bulk_writers_that_are_held_is_not_learned() {
    let kept_after = |is_at_work| {
        let (mut toy, mut guard) = taught(Scene::default());
        toy.scene.threads = 1.0;
        toy.run(&mut guard, 20.0);
        guard.set_aside(Hold { covers: true, is_at_work, ..Hold::default() });
        toy.limits.now_bytes = toy.limits.saved_bytes;
        toy.scene.syncs /= 4.0;
        let seen = toy.run(&mut guard, 180.0);
        seen.last().unwrap().decision.inputs.kept.unwrap()
    };
    assert!(kept_after(true) < 0.35, "{}", kept_after(true));
    assert!(kept_after(false) > 0.7, "{}", kept_after(false));
}

#[test]
fn syncs_alone_and_bulk_alone_are_left_alone() {
    let (mut toy, mut guard) = guarded(Scene::default());
    // Nobody syncs: nothing is touched, whatever is written.
    toy.scene = Scene { threads: 0.0, flood: FLOOD, ..toy.scene };
    let seen = toy.run(&mut guard, 20.0);
    assert!(seen.iter().all(|look| look.decision.action == Action::Keep), "{:?}", branches(&seen));
    assert_eq!(seen.last().unwrap().decision.branch, Branch::Unneeded);
    // Syncs come: within three looks the limit is down.
    toy.scene.threads = 1.0;
    let seen = toy.run(&mut guard, 0.3);
    assert!(seen.iter().any(|look| look.decision.branch == Branch::Arm), "{:?}", branches(&seen));
    assert!(toy.limits.now_bytes < 50_000_000, "{}", toy.limits.now_bytes);
    // They go: bulk writers get what keeps the device busy.
    toy.run(&mut guard, 10.0);
    toy.scene.threads = 0.0;
    let seen = toy.run(&mut guard, 30.0);
    assert!(mean(&seen[30..], |look| look.bulk) > 0.97 * 251.0 * MB);
    assert!(seen.iter().all(|look| look.decision.mood == Mood::Holding), "{:?}", branches(&seen));
    // Who comes back then waits for no more than it takes to write this.
    let left = toy.limits.now_bytes as f64 / toy.scene.rate;
    assert!((0.05..0.15).contains(&left), "{left} s are left to be written");
    // A lone sync is nobody who comes back.
    let before = toy.limits.now_bytes;
    toy.scene.threads = 1.0;
    toy.run_by(&mut guard, 0.002, SECOND / 500);
    toy.scene.threads = 0.0;
    toy.run(&mut guard, 1.0);
    assert!(toy.limits.now_bytes >= before, "{} after {before}", toy.limits.now_bytes);
    // For good: everything is as it was found, after the time given.
    let seen = toy.run(&mut guard, 271.0);
    let released = seen.iter().position(|look| look.decision.action == Action::Release).unwrap();
    assert!((2650..=2710).contains(&released), "released after {released} looks more");
    assert_eq!(toy.limits.now_bytes, toy.limits.saved_bytes);
}

#[test]
fn a_flood_meets_a_limit_that_is_there() {
    let (mut toy, mut guard) = taught(Scene::default());
    let limit = toy.limits.now_bytes;
    assert!(limit < toy.limits.saved_bytes, "nothing was prepared");
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 20.0);
    let worst = seen.iter().map(|look| look.decision.inputs.backlog_bytes).max().unwrap();
    assert!(worst <= limit * 2, "{worst} bytes piled up behind a limit of {limit}");
    // The next one finds the limit that was good, and nothing drifts while nobody floods.
    toy.scene.flood = 0.0;
    toy.run(&mut guard, 1.5);
    let good = toy.limits.now_bytes;
    let seen = toy.run(&mut guard, 58.5);
    assert!(seen.iter().all(|look| look.decision.action == Action::Keep), "{:?}", branches(&seen));
    assert_eq!(toy.limits.now_bytes, good);
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 5.0);
    assert!(mean(&seen[2..], |look| look.kept) > 0.88, "{}", mean(&seen[2..], |look| look.kept));
}

/// What the best of all limits keeps.
fn best_by_hand(toy: &Toy) -> f64 {
    let kept = |limit: u64| {
        let mut toy = Toy::new(toy.scene.clone(), 3);
        toy.limits.now_bytes = limit * 1_000_000;
        (0..20).map(|_| toy.look(SECOND / 10).1).skip(10).sum::<f64>() / 10.0
    };
    (2..100).map(kept).fold(0.0, f64::max)
}

#[test]
fn syncs_held_back_for_their_own_pages_get_a_larger_limit() {
    let (mut toy, mut guard) = taught(Scene { threads: 10.0, own: 12.0 * MB, ..Scene::default() });
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 40.0);
    assert!(branches(&seen).contains(&Branch::OwnWrites), "{:?}", branches(&seen));
    let infeasible = seen.iter().rfind(|look| look.decision.branch == Branch::Infeasible);
    let infeasible = infeasible.unwrap_or_else(|| panic!("never said so: {:?}", branches(&seen)));
    let achievable = infeasible.decision.inputs.achievable_kept.unwrap();
    let late = mean(&seen[250..], |look| look.kept);
    assert!((achievable - late).abs() < 0.1, "said {achievable}, was {late}");
    let best = best_by_hand(&toy);
    assert!(late > 0.85 * best, "{late} of {best}");
}

#[test]
fn a_target_out_of_reach_is_said_to_be_and_bulk_writers_are_not_strangled() {
    // Whatever the limit, this device loses a third to any flood.
    let (mut toy, mut guard) = taught(Scene { threads: 1.0, ..Scene::default() });
    toy.scene.flood = FLOOD;
    toy.scene.syncs = 900.0;
    let seen = toy.run(&mut guard, 60.0);
    let infeasible = seen.iter().filter(|look| look.decision.branch == Branch::Infeasible).count();
    assert!(infeasible > 100, "said so at {infeasible} of 600 looks: {:?}", branches(&seen));
    let moves = seen[300..].iter().filter(|look| look.decision.action != Action::Keep).count();
    assert!(moves < 10, "{moves} moves though nothing helps");
}

/// A raise is told with a reason: where syncs lose there is no room.
#[test]
fn a_limit_that_is_raised_while_syncs_lose_is_searched_for() {
    let mut searched = 0;
    for (threads, rate) in [(1.0, 0.2), (4.0, 0.2), (10.0, 0.3), (10.0, 0.1)] {
        let (mut toy, mut guard) = taught(Scene { threads, ..Scene::default() });
        toy.scene.flood = FLOOD;
        let whole = toy.scene.rate;
        let mut seen = Vec::new();
        for turn in 0..4 {
            toy.scene.rate = if turn % 2 == 0 { whole } else { rate * whole };
            seen.extend(toy.run(&mut guard, 15.0));
        }
        for Decision { branch, inputs, .. } in seen.iter().map(|look| &look.decision) {
            searched += u32::from(*branch == Branch::Search);
            assert!(*branch != Branch::Raise || inputs.kept.is_none_or(|kept| kept > 0.8), "{inputs:?}");
        }
    }
    assert!(searched > 0);
}

#[test]
fn the_database_as_bulk_writer_is_given_what_it_needs() {
    let (mut toy, mut guard) = taught(Scene { threads: 4.0, ..Scene::default() });
    toy.scene = Scene { flood: FLOOD, own: 30.0 * MB, protected_share: 0.97, ..toy.scene };
    let before = toy.limits.now_bytes;
    let seen = toy.run(&mut guard, 10.0);
    assert!(branches(&seen).contains(&Branch::Checkpoint), "{:?}", branches(&seen));
    assert!(toy.limits.now_bytes > before, "{} after {before}", toy.limits.now_bytes);
}

/// Syncs of a slow device are held back for their own pages, too: neither a higher limit nor a lower one is right by itself.
#[test]
fn a_slower_device_gets_the_limit_that_serves_it_best() {
    let (mut toy, mut guard) = taught(Scene { threads: 4.0, own: 1.5 * MB, ..Scene::default() });
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 40.0);
    toy.scene = Scene { rate: 60.0 * MB, own: 20.0 * MB, ..toy.scene };
    let seen = toy.run(&mut guard, 30.0);
    let late = mean(&seen[100..], |look| look.kept);
    let best = best_by_hand(&toy);
    assert!(late > 0.85 * best, "{late} of {best}: {:?}", branches(&seen));
}

#[test]
fn a_slower_device_gets_a_smaller_limit_at_once_and_a_faster_one_more() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 30.0);
    let before = toy.limits.now_bytes;
    toy.limits.floor_bytes = 1 << 20;
    toy.scene.rate = 100.0 * MB;
    let seen = toy.run(&mut guard, 20.0);
    assert!(toy.limits.now_bytes < before, "{} after {before}", toy.limits.now_bytes);
    assert!(mean(&seen[40..], |look| look.kept) > 0.8);
    toy.scene.rate = 251.0 * MB;
    let seen = toy.run(&mut guard, 40.0);
    assert!(mean(&seen[100..], |look| look.bulk) > 0.65 * 251.0 * MB, "{:?}", branches(&seen));
}

/// What failed on the slow device is tried again when it is not believed any more.
#[test]
fn a_device_that_is_fast_again_gets_its_limit_back() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 30.0);
    let before = toy.limits.now_bytes;
    toy.limits.floor_bytes = 1 << 20;
    toy.scene.rate = 60.0 * MB;
    toy.run(&mut guard, 10.0);
    assert!(toy.limits.now_bytes < before / 2, "{} after {before}", toy.limits.now_bytes);
    toy.scene.rate = 251.0 * MB;
    let seen = toy.run(&mut guard, 24.0);
    let after = toy.limits.now_bytes as f64 / before as f64;
    assert!((0.7..1.4).contains(&after), "{after} times the limit that held before: {:?}", branches(&seen));
}

#[test]
fn a_silent_sensor_freezes_and_then_releases() {
    let (mut toy, mut guard) = taught(Scene { flood: 0.0, ..Scene::default() });
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 10.0);
    // (silent for so many seconds, branch, mood)
    for (seconds, silent, mood) in [
        (9, false, Mood::Holding),
        (10, true, Mood::Holding),
        (59, true, Mood::Holding),
        (60, true, Mood::Released),
    ] {
        toy.scene.silent_ns = seconds * SECOND;
        let decision = toy.run(&mut guard, 0.1).remove(0).decision;
        assert_eq!(decision.branch == Branch::Silent, silent, "{seconds} s: {decision:?}");
        assert_eq!(decision.mood, mood, "{seconds} s");
    }
    assert_eq!(toy.limits.now_bytes, toy.limits.saved_bytes);
}

#[test]
fn a_flood_that_does_no_harm_gets_everything() {
    let (mut toy, mut guard) =
        taught(Scene { rate: 1000.0 * MB, syncs: 10_000.0, bears: 100.0, ..Scene::default() });
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 30.0);
    let bulk = mean(&seen[50..], |look| look.bulk);
    assert!(bulk > 0.97 * 1000.0 * MB, "{bulk}");
    assert!(mean(&seen[50..], |look| look.kept) > 0.97);
}

#[test]
fn what_was_never_seen_undisturbed_is_learned_by_a_short_probe() {
    // The flood was there before the guard.
    let (mut toy, mut guard) = guarded(Scene { flood: FLOOD, ..Scene::default() });
    toy.limits.now_bytes = 30_000_000;
    let seen = toy.run(&mut guard, 30.0);
    assert_eq!(seen[20].decision.inputs.reference, Known::Bounded, "{:?}", seen[20].decision);
    let probed = seen.iter().filter(|look| look.decision.branch == Branch::Probe).count();
    assert!(probed <= 20, "{probed} looks were probes");
    assert!(mean(&seen[150..], |look| look.kept) > 0.85, "{:?}", branches(&seen));
}

#[test]
fn a_canary_is_enough_to_hold() {
    let scene = Scene { syncs: 5.0, threads: 0.5, source: SensorSource::Canary, ..Scene::default() };
    let (mut toy, mut guard) = guarded(scene);
    toy.run(&mut guard, 30.0);
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 60.0);
    assert!(toy.limits.now_bytes < 100_000_000, "{} {:?}", toy.limits.now_bytes, branches(&seen));
}

#[test]
fn a_shadow_says_where_it_would_begin_and_judges_no_limit_that_was_never_in_force() {
    let (mut toy, _) = guarded(Scene::default());
    let mut guard = Guard::shadow(Parameters::default());
    let mut look = |toy: &mut Toy| {
        let (sample, ..) = toy.look(SECOND / 10);
        guard.step(&sample)
    };
    for _ in 0..80 {
        look(&mut toy);
    }
    toy.scene.flood = FLOOD;
    let decisions: Vec<_> = (0..300).map(|_| look(&mut toy)).collect();
    let armed = decisions.iter().filter(|decision| decision.branch == Branch::Arm).count();
    let later = decisions[20..].iter().filter(|decision| decision.action != Action::Keep).count();
    assert_eq!((armed, later), (1, 0), "{:?}", decisions[0]);
    assert!(decisions[100..].iter().all(|decision| decision.inputs.limit_bytes == toy.limits.saved_bytes));
    let lost = [Branch::Share, Branch::OldestSync];
    let told = decisions[100..].iter().filter(|decision| lost.contains(&decision.branch)).count();
    assert!(told > 100, "said at {told} looks that syncs lose");
}

/// Until writers are named, the protected are all that is known to have written.
#[test]
fn a_bulk_writer_that_is_not_named_yet_is_no_checkpoint() {
    let (mut toy, mut guard) = taught(Scene { protected_share: 1.0, ..Scene::default() });
    toy.scene.flood = FLOOD;
    let mut seen = toy.run(&mut guard, 1.0);
    toy.scene.protected_share = 0.05;
    seen.extend(toy.run(&mut guard, 5.0));
    assert!(!branches(&seen).contains(&Branch::Checkpoint), "{:?}", branches(&seen));
}

#[test]
fn who_waits_elsewhere_than_in_syncs_is_protected_by_the_rate() {
    let (mut toy, mut guard) = taught(Scene { elsewhere: true, ..Scene::default() });
    toy.scene.flood = FLOOD;
    let seen = toy.run(&mut guard, 40.0);
    let kept = mean(&seen[50..], |look| look.kept);
    assert!(kept > 0.9, "{kept} kept: {:?}", branches(&seen));
    let bulk = mean(&seen[50..], |look| look.bulk) / MB;
    assert!(bulk > 0.78 * 251.0, "{bulk} MB/s");
}

#[test]
fn a_load_that_comes_less_often_by_itself_is_found_to_and_bulk_writers_keep_their_rate() {
    let (mut toy, mut guard) = taught(Scene::default());
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 30.0);
    toy.scene.pace = 0.5;
    let seen = toy.run(&mut guard, 120.0);
    let (kept, bulk) = (mean(&seen[200..], |look| look.kept), mean(&seen[200..], |look| look.bulk) / MB);
    // What the search costs, and what it costs again after a minute.
    assert!(bulk > 0.7 * 251.0, "{bulk} MB/s: {:?}", branches(&seen));
    assert!(kept > 0.9, "{kept} kept");
}

#[test]
fn a_limit_that_is_not_what_holds_bulk_writers_back_is_not_raised() {
    let (mut toy, _) = guarded(Scene { bears: 100.0, ..Scene::default() });
    let target = Target { p99: LatencyTarget::Absolute(Nanos(SECOND)), keep: 0.5 };
    let mut guard = Guard::new(Parameters { target, ..Parameters::default() });
    toy.run(&mut guard, 8.0);
    toy.scene.flood = FLOOD;
    toy.run(&mut guard, 3.0);
    toy.scene.flood = 0.0;
    toy.run(&mut guard, 60.0);
    toy.scene.flood = FLOOD;
    // The rest of the device is somebody else's.
    toy.scene.rate = 100.0 * MB;
    toy.run(&mut guard, 3.0);
    let before = toy.limits.now_bytes;
    let seen = toy.run(&mut guard, 12.0);
    let raised = toy.limits.now_bytes;
    assert!(raised <= before, "{raised} after {before}: {:?}", branches(&seen));
}

#[test]
fn a_flood_that_comes_while_syncs_pause_makes_no_device_slower() {
    let (mut toy, mut guard) = taught(Scene { threads: 10.0, ..Scene::default() });
    let before = toy.scene.clone();
    toy.scene = Scene { threads: 0.0, ..before.clone() };
    toy.run(&mut guard, 0.7);
    toy.scene = Scene { flood: FLOOD, rate: 10.0 * MB, ..before };
    // The limit that was there fills before another one holds.
    let seen: Vec<Branch> = (0..4)
        .map(|_| {
            let (sample, ..) = toy.look(SECOND / 10);
            guard.step(&sample).branch
        })
        .collect();
    assert!(!seen.contains(&Branch::Share), "{seen:?}");
}
