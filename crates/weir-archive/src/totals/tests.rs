//! Labels are bounded, nothing is lost, and no sum falls.

use proptest::prelude::*;

use super::*;
use crate::stall::Stall;
use crate::tables::{Behind, Sync, Wait};

/// An interval in which processes synced: name, count, ns.
fn interval(of: &[(String, i64, i64)]) -> Syncs {
    let mut syncs = Syncs::default();
    for (comm, count, ns) in of {
        let (comm, unit) = (comm.clone(), "a.service".to_string());
        syncs.syncs.push(Sync {
            comm: comm.clone(),
            unit: unit.clone(),
            bucket_low_ns: 1 << 20,
            count: *count,
            ..Sync::default()
        });
        syncs.waits.push(Wait {
            comm,
            unit,
            part: "flush".into(),
            cause: "device".into(),
            ns: *ns,
            ..Wait::default()
        });
    }
    syncs
}

fn taken(totals: &mut Totals, syncs: &Syncs) {
    totals.take(&Rows { span_ms: 10_000, syncs: Some(syncs), ..Rows::default() });
}

proptest! {
    #[test]
    fn nothing_is_lost_and_no_sum_ever_falls(
        intervals in prop::collection::vec(prop::collection::vec((0_u32..60, 1_i64..1000), 0..40), 1..30),
    ) {
        let mut totals = Totals::default();
        let mut highest: BTreeMap<Who, u64> = BTreeMap::new();
        let mut expected = 0;
        for of in &intervals {
            let rows: Vec<_> = of.iter().map(|(pid, n)| (format!("p{pid}"), *n, n * 1_000_000)).collect();
            expected += of.iter().map(|(_, n)| *n as u64).sum::<u64>();
            let others_before = totals.syncs.others().latency.total();
            taken(&mut totals, &interval(&rows));
            prop_assert!(totals.syncs.named().len() <= PROCESSES_MAX);
            prop_assert!(totals.syncs.others().latency.total() >= others_before);
            for (who, sums) in totals.syncs.named() {
                let now = sums.latency.total();
                let before = highest.insert(who.clone(), now).unwrap_or(0);
                prop_assert!(now >= before, "{who:?} fell from {before} to {now}");
            }
        }
        let sum = highest.values().sum::<u64>() + totals.syncs.others().latency.total();
        prop_assert_eq!(sum, expected);
    }
}

#[test]
fn the_largest_have_names_and_go_on_where_they_were() {
    let mut totals = Totals::default();
    let crowd: Vec<_> = (0..PROCESSES_MAX).map(|n| (format!("p{n}"), 10, 1_000_000)).collect();
    taken(&mut totals, &interval(&crowd));
    let count = |totals: &Totals, name: &str| {
        let who = ("a.service".to_string(), name.to_string());
        totals.syncs.named().get(&who).map(|sums| sums.latency.total())
    };
    // One as small as they are gets no place; one that is far larger takes it from the least.
    taken(&mut totals, &interval(&[("small".into(), 1, 1_000_000)]));
    assert_eq!((count(&totals, "small"), totals.syncs.others().latency.total()), (None, 1));
    taken(&mut totals, &interval(&[("large".into(), 5, 1_000_000_000)]));
    assert_eq!(count(&totals, "large"), Some(5));
    assert_eq!(totals.syncs.others().latency.total(), 1, "what p0 had is not the others'");
    let gone =
        (0..PROCESSES_MAX).map(|n| format!("p{n}")).find(|name| count(&totals, name).is_none()).unwrap();
    taken(&mut totals, &interval(&[(gone.clone(), 7, 9_000_000_000)]));
    assert_eq!(count(&totals, &gone), Some(17));
}

#[test]
fn every_bucket_of_the_archive_lies_in_one_class() {
    let mut histogram = Histogram::default();
    for (low_ns, count) in
        [(0, 1), ((1 << 15) - 4096, 1), (1 << 15, 1), (15 << 27, 2), (1 << 35, 1), (1 << 40, 1)]
    {
        histogram.count(low_ns, count);
    }
    let cumulative: BTreeMap<u64, u64> = histogram.cumulative().collect();
    for (bound, expected) in [(1 << 15, 2), (1 << 16, 3), (1 << 30, 3), (1 << 31, 5), (1 << 35, 5)] {
        assert_eq!(cumulative[&bound], expected, "{bound}");
    }
    assert_eq!(histogram.total(), 7);
}

#[test]
fn counters_grow_gauges_stand_and_names_are_harmless() {
    let mut totals = Totals::default();
    let row = |device: &str, name: &str, value| Counter {
        device: device.into(),
        name: name.into(),
        value,
        ..Counter::default()
    };
    let behind = Behind { culprit: "d\x1bd".into(), way: "reads".into(), ns: 5, ..Behind::default() };
    let syncs = Syncs { behind: vec![behind], ..Syncs::default() };
    for _ in 0..2 {
        let counters =
            [row("sda", "reads", 3), row("", "dirty_bytes", 4096), row("", "pressure_io_some_us", 7)];
        let events = [Event { kind: "knob".into(), ..Event::default() }];
        totals.take(&Rows { counters: &counters, events: &events, syncs: Some(&syncs), ..Rows::default() });
    }
    assert_eq!(totals.devices.named()["sda"].0["reads"], 6);
    assert_eq!((totals.machine["pressure_io_some_us"], totals.events["knob"]), (14, 2));
    assert_eq!(totals.gauges[&(String::new(), "dirty_bytes".to_string())], 4096);
    assert_eq!(totals.behind.named().keys().next().unwrap().1, "d\u{fffd}d");
    totals.take(&Rows::default());
    assert!(totals.gauges.is_empty(), "a row of 0 is left out");
}

#[test]
fn a_stall_counts_once_when_it_begins() {
    let begun = Stall::Begun { device: "sda".into(), since_ms: 1, for_ns: 1, in_flight: 1 }.event();
    let ended = Stall::Ended { device: "sda".into(), since_ms: 1, took_ns: 9 }.event();
    let mut totals = Totals::default();
    for (events, count) in [(&[begun][..], 1), (&[ended], 1)] {
        totals.take(&Rows { span_ms: 10_000, events, ..Rows::default() });
        assert_eq!(totals.events["stall"], count);
    }
}
