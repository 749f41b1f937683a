//! What a comparison says of devices of which more is known than their latencies.

use std::collections::BTreeMap;

use super::*;
use crate::{ClassSet, Flags, Intervals, Key, SizeClass, StageTable};

const DEVICE: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const OPTIONS: Options = Options { devices: [None, None], margin: 0.05, seed: 1 };

/// What a live session says of 40 seconds with 1,000 reads each that take about so long.
fn live(d2c_us: u64) -> Analysis {
    staged(&[(Stage::D2C, d2c_us)])
}

/// The same of these stages, µs.
fn staged(stages: &[(Stage, u64)]) -> Analysis {
    let key = Key { device: DEVICE, classes: ClassSet::of(Flags::READ, 4096), size: SizeClass::of(4096) };
    let (mut intervals, mut whole) = (Intervals::default(), StageTable::default());
    for second in 1..=40_u64 {
        let mut table = StageTable::default();
        let cell = table.cell_mut(key);
        for nth in 0..1000 {
            let scattered = |us: u64| us * (990 + (nth + second) % 21);
            stages.iter().for_each(|&(stage, us)| cell.stage_mut(stage).record(scattered(us)));
        }
        cell.ios = 1000;
        intervals.push(second * 1_000_000_000, &table);
        whole.merge(&table);
    }
    intervals.finish(40_000_000_000, whole, &BTreeMap::new())
}

fn verdict(a: &Analysis, b: &Analysis) -> (Diff, String) {
    let diff = diff(a, b, &OPTIONS).unwrap();
    let words = diff.verdict.join("\n");
    (diff, words)
}

#[test]
fn a_live_session_s_depth_is_its_rate_times_its_latency() {
    let (diff, words) = verdict(&live(1000), &live(8000));
    let depths = diff.devices.each_ref().map(|side| side.depth_at_driver.map(f64::round));
    assert_eq!(depths, [Some(1.0), Some(8.0)]);
    assert!(words.contains("D2C 8.0 × as long in B as in A"), "{words}");
    assert!(words.contains("B's device had 8.00 requests at once, A's 1.00"), "{words}");
    assert!(!words.contains("the hardware or its cache"), "{words}");
}

/// A recording that goes on after its load has ended has the same depth while there was work.
#[test]
fn idle_time_does_not_hide_that_one_side_had_more_at_once() {
    let recorded = |d2c_us, depth: u64, idle_ns| {
        let mut analysis = live(d2c_us);
        let mut time_ns = vec![idle_ns, 0, 0, 0];
        time_ns[depth as usize] = 1_000_000_000;
        let area_ns = u128::from(depth) * 1_000_000_000;
        analysis.devices[0].depth_issue =
            crate::analysis::Depth { time_ns, area_ns, arrivals: 9, ..Default::default() };
        analysis
    };
    let (diff, words) = verdict(&recorded(3000, 3, 4_000_000_000), &recorded(1000, 1, 4_000_000_000));
    assert_eq!(diff.devices.each_ref().map(|side| side.depth_at_driver), [Some(0.6), Some(0.2)]);
    assert_eq!(diff.devices.each_ref().map(|side| side.depth_at_work), [Some(3.0), Some(1.0)]);
    assert!(words.contains("B's device had 1.00 requests at once, A's 3.00"), "{words}");
    // Idle time alone makes no difference of depth.
    let (_, words) = verdict(&recorded(3000, 2, 0), &recorded(1000, 2, 4_000_000_000));
    assert!(words.contains("the hardware or its cache"), "{words}");
}

/// Device-mapper has no driver of its own, and Little's law nothing to compute its depth from.
#[test]
fn a_device_without_d_has_no_depth_at_the_driver() {
    let (diff, _) = verdict(&staged(&[(Stage::Q2C, 500)]), &live(1000));
    assert_eq!(diff.devices.each_ref().map(|side| side.depth_at_driver.is_some()), [false, true]);
}

/// A live session of requests has neither I2D nor G2D, whatever the scheduler.
#[test]
fn a_scheduler_is_said_only_where_both_sides_tell() {
    use Stage::{D2C, G2C, G2D, G2DAll, I2D, Q2C, Q2D};
    let requests = staged(&[(G2DAll, 20), (D2C, 100), (G2C, 120)]);
    let detail = |queued| staged(&[(queued, 20), (D2C, 100), (Q2C, 121), (Q2D, 21)]);
    let recorded =
        |queued| staged(&[(queued, 20), (D2C, 100), (Q2C, 121), (Q2D, 21), (G2DAll, 20), (G2C, 120)]);
    let shares = |diff: &Diff| diff.devices.each_ref().map(|side| side.inserted_share);
    for queued in [I2D, G2D] {
        let (diff, words) = verdict(&recorded(queued), &requests);
        assert_eq!(shares(&diff), [Some(f64::from(u8::from(queued == I2D))), None]);
        assert!(!words.contains("scheduler"), "{words}");
    }
    for (a, b, from) in [
        (recorded(I2D), recorded(G2D), "request"),
        (detail(I2D), detail(G2D), "queue"),
        (recorded(I2D), detail(G2D), "queue"),
    ] {
        let (diff, words) = verdict(&a, &b);
        assert_eq!(shares(&diff), [Some(1.0), Some(0.0)]);
        assert!(words.contains("A's I/Os go through a scheduler (G2I and I2D), B's go straight"), "{words}");
        assert!(words.contains(&format!("(G2D): from {from} to driver ")), "{words}");
    }
}

#[test]
fn errors_and_losses_are_said_and_no_device_with_errors_is_called_healthy() {
    let (a, mut b) = (live(1000), live(1000));
    let (_, words) = verdict(&a, &b);
    assert!(words.contains("B is as healthy as A") && !words.contains("error"), "{words}");

    let key = *b.table.cells().next().unwrap().0;
    b.table.cell_mut(key).errors = 12;
    b.dropped = 3;
    b.devices[0].account.dropped = 1_000;
    let (diff, words) = verdict(&a, &b);
    assert_eq!((diff.devices[1].errors, diff.devices[1].events_dropped), (12, 1_003));
    assert!(words.contains("the same within") && !words.contains("healthy"), "{words}");
    assert!(words.contains("0 of A's 40,000 I/Os and 12 of B's 40,000 ended with an error"), "{words}");
    assert!(words.contains("0 events of A and 1,003 of B are missing"), "{words}");
}
