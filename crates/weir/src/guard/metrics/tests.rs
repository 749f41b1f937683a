//! The page, read by the rules of the format.

use std::collections::BTreeMap;

use weir_control::{Cost, Sensor, Target, Totals, state};

use super::*;
use crate::daemon::openmetrics::testing::parse;
use crate::guard::testing;

fn device(name: &str, standing: Standing) -> DeviceState {
    let mut totals = Totals::default();
    totals.count(weir_control::Branch::OldestSync, false);
    totals.count(weir_control::Branch::Raise, true);
    let second = weir_control::Second {
        private_dirty_bytes: Some(8_000_000),
        private_pace: Some(33_000_000),
        p50_us: Some(400),
        p99_us: Some(92_000),
        max_us: Some(100_000),
        limit_bytes: 8_000_000,
        target_us: Some(460_000),
        kept: Some(0.97),
        holding: true,
        ..Default::default()
    };
    DeviceState {
        private_cgroups: 2,
        private_actuator: None,
        name: name.to_string(),
        number: Default::default(),
        standing,
        sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 100_000_000, lost: 0 },
        actuator: "vm.dirty_bytes".to_string(),
        saved_bytes: 3_900_000_000,
        floor_bytes: 4 << 20,
        second,
        decision: testing::decision(0),
        writers: Vec::new(),
        totals,
    }
}

fn state() -> State {
    State {
        schema: state::SCHEMA.to_string(),
        weir_version: "0.1.0".to_string(),
        pid: 1,
        since: String::new(),
        at: String::new(),
        at_ms: 0,
        shadow: false,
        target: Target::default(),
        protect: "all".to_string(),
        devices: vec![
            device("sda", Standing::Guarding),
            // No name of the kernel's, but nothing may break the page.
            device("a\"b\\c\nd", Standing::StoodDown { why: String::new() }),
        ],
        decisions: Vec::new(),
        cost: Cost { cpu_ns: 1_500_000_000, cpu_share: 0.002, rss_bytes: 9 << 20, late_looks: 3 },
        remarks: Vec::new(),
    }
}

#[test]
fn the_page_keeps_the_format() {
    let families = parse(&exposition(&state(), 1_795_000_000.5));
    let value = |family: &str, name: &str, wanted: &[(&str, &str)]| {
        let has = |labels: &BTreeMap<String, String>| {
            wanted.iter().all(|(label, value)| labels.get(*label).is_some_and(|v| v == value))
        };
        let found = families[family].samples.iter().find(|(n, labels, _)| n == name && has(labels));
        found.unwrap_or_else(|| panic!("{name} {wanted:?} is missing")).2
    };
    let sda = ("device", "sda");
    for (family, suffix, labels, expected) in [
        ("weir_guard_limit_bytes", "", vec![sda], 8e6),
        ("weir_guard_sync_seconds", "", vec![sda, ("quantile", "0.99")], 0.092),
        ("weir_guard_sync_target_seconds", "", vec![sda], 0.46),
        ("weir_guard_cpu_seconds", "_total", vec![], 1.5),
        (
            "weir_guard_limit_changes",
            "_total",
            vec![sda, ("branch", "oldest-sync"), ("direction", "cut")],
            1.0,
        ),
        ("weir_guard_limit_changes", "_total", vec![sda, ("branch", "raise"), ("direction", "raise")], 1.0),
        ("weir_guard_standing", "", vec![sda, ("weir_guard_standing", "guarding")], 1.0),
        ("weir_guard_standing", "", vec![sda, ("weir_guard_standing", "gone")], 0.0),
        (
            "weir_guard_standing",
            "",
            vec![("device", "a\"b\\c\nd"), ("weir_guard_standing", "stood-down")],
            1.0,
        ),
        ("weir_guard_sensor", "", vec![sda, ("weir_guard_sensor", "syscalls")], 1.0),
        ("weir_guard_private_cgroups", "", vec![sda], 2.0),
        ("weir_guard_private_pace_bytes", "", vec![sda], 33e6),
        ("weir_guard_start_seconds", "", vec![], 1_795_000_000.5),
    ] {
        assert_eq!(value(family, &format!("{family}{suffix}"), &labels), expected, "{family} {labels:?}");
    }
}

#[test]
fn what_is_not_known_has_no_sample() {
    let mut state = state();
    state.devices.truncate(1);
    state.devices[0].second = Default::default();
    let families = parse(&exposition(&state, 0.0));
    for family in ["weir_guard_sync_target_seconds", "weir_guard_sync_kept_ratio"] {
        assert!(families[family].samples.is_empty(), "{family}");
    }
    let names: Vec<&str> =
        families["weir_guard_sync_seconds"].samples.iter().map(|(name, _, _)| name.as_str()).collect();
    assert_eq!(names, ["weir_guard_sync_seconds_count", "weir_guard_sync_seconds_sum"]);
}
