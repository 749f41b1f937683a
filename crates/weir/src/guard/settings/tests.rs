//! Files and flags of the guard.

use super::*;

#[test]
fn what_is_printed_reads_back_the_same() {
    let full = GuardSettings {
        devices: vec!["/var/lib/my\"sql".to_string(), "sda".to_string()],
        target: Target { p99: LatencyTarget::Absolute(Nanos(1_500_001)), keep: 0.9 },
        protect: vec![Protected::Unit("mariadb.service".to_string()), Protected::Pid(7)],
        shadow: true,
        actuator: ActuatorChoice::Bdi,
        may: vec![May::Cgroup],
        spare: vec![Protected::Cgroup("/a".to_string())],
        sensor: SensorChoice::Canary,
        metrics: Some(MetricsAt::Unix(PathBuf::from("/run/m.sock"))),
        metrics_for_others: true,
        log: Some(PathBuf::from("/var/log/guard.log")),
        duration: Some(Nanos::from_secs(90)),
        format: Format::Json,
        history: false,
    };
    assert_eq!(file::parse(&print(&full)), Ok(full));
    // Nobody named and everybody named is the same wish.
    let plain = GuardSettings { protect: vec![Protected::All], ..GuardSettings::default() };
    assert_eq!(file::parse(&print(&GuardSettings::default())), Ok(plain));
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, line, says) in [
        ("shadow = true\nkeap = 0.9\n", 2, "got `keap`"),
        ("\n\nkeep = 1.5\n", 3, "keep: expected a share from 0 to 1, got `1.5`"),
        ("keep = \"much\"\n", 1, "keep: expected a number"),
        ("target-p99 = \"1x\"\n", 1, "must be above 1"),
        ("target-p99 = \"fast\"\n", 1, "expected a time such as 50ms"),
        ("protect = [\"all\", \"mariadb\"]\n", 1, "protect: expected all, a unit"),
        ("lever = \"magic\"\n", 1, "expected auto, vm or bdi, got `magic`"),
        ("may = [\"memory\"]\n", 1, "may: expected cgroup, got `memory`"),
        ("sensor = \"eye\"\n", 1, "expected auto, syscalls, canary or diskstats, got `eye`"),
        ("metrics = \"9750\"\n", 1, "expected an address and port"),
        ("format = \"xml\"\n", 1, "format: expected text or json, got `xml`"),
        ("shadow = 1\n", 1, "shadow: expected true or false"),
        ("shadow = tru\n", 1, ""),
    ] {
        let mistake = file::parse(text).unwrap_err();
        assert!(mistake.line == line && mistake.what.contains(says), "{text:?}: {mistake:?}");
    }
}

#[test]
fn those_who_are_protected_are_named_in_many_ways() {
    for text in ["all", "mariadb.service", "system.slice", "comm:mysqld", "pid:7", "cgroup:/db.slice"] {
        assert_eq!(text.parse::<Protected>().unwrap().to_string(), text);
    }
    for text in ["", "mariadb", "comm:", "pid:x", "pid:0", ".service", "user:7"] {
        assert!(text.parse::<Protected>().is_err(), "{text}");
    }
}
