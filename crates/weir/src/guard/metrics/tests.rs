//! The page, read by the rules of the format.

use std::collections::BTreeMap;

use super::*;
use crate::daemon::openmetrics::testing::parse;
use crate::guard::testing::state;

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
