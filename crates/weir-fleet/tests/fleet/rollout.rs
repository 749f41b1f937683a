//! Changes that are rolled out step by step, and taken back where they do harm.

use super::{Hosts, Ran};

fn roll(hosts: &Hosts, more: &[&str]) -> Ran {
    let arguments =
        ["--hosts", "db[1:5]", "--canary", "1,50%,all", "--probe", "/data", "--probe-time", "10ms"];
    hosts.run(&[&arguments[..], more, &["knobs", "apply", "vm.dirty_bytes=15MB"]].concat())
}

fn in_force(hosts: &Hosts) -> String {
    (1..=5).filter(|n| hosts.has(&format!("db{n}"), "applied")).map(|n| n.to_string()).collect()
}

#[test]
fn a_change_that_holds_is_confirmed_everywhere() {
    let hosts = Hosts::new();
    roll(&hosts, &[]).says(0, &["5 of 5 hosts done", "kept"]);
    assert_eq!(in_force(&hosts), "12345");
    assert!((1..=5).all(|n| hosts.has(&format!("db{n}"), "confirmed")));
    let asked = std::fs::read_to_string(hosts.path("db1").join("knobs")).unwrap();
    assert!(asked.contains("knobs apply vm.dirty_bytes=15MB --confirm-within="), "{asked}");
    assert!(hosts.left().is_empty());
}

#[test]
fn harm_on_one_host_takes_the_change_back_on_all() {
    let hosts = Hosts::new();
    hosts.set("db3", "harmed", "");
    let ran = roll(&hosts, &[]);
    ran.says(
        1,
        &[
            "0 of 5 hosts done",
            "below a bar: 100 commits/s after it, at least 1000 before",
            "rolled back",
            "not made",
        ],
    );
    assert_eq!(in_force(&hosts), "");
    assert!(!hosts.has("db1", "confirmed"));
    assert!(!hosts.has("db4", "knobs"), "the third step never came");
    assert!(hosts.left().is_empty());
    // Whoever calls that no harm gets the change.
    roll(&hosts, &["--worse", "2000"]).says(0, &["kept"]);
}

#[test]
fn harm_that_passes_by_itself_is_a_neighbours() {
    for (probes, code, change, after) in
        [("3", 0, "kept", "100 100 100 1000"), ("6", 1, "rolled back", "100 100 100 100 100 100")]
    {
        let hosts = Hosts::new();
        hosts.set("db3", "harmed", probes);
        let ran = roll(&hosts, &[]);
        ran.says(code, &[]);
        let row = ran.out.lines().find(|line| line.starts_with("db3 ")).unwrap();
        assert!(row.contains(change) && row.contains(&format!("1000 1000  {after}  ")), "{row}");
    }
}

#[test]
fn a_host_that_fails_takes_the_change_back_on_all() {
    for (file, why) in [
        ("refuses", "no knob is called so"),
        ("foreign", "weir has a change in force there"),
        ("probe-fails", "the probe failed: no space left"),
    ] {
        let hosts = Hosts::new();
        hosts.set("db2", file, "");
        roll(&hosts, &[]).says(3, &[why, "rolled back"]);
        assert_eq!(in_force(&hosts), "", "{file}");
        let asked = std::fs::read_to_string(hosts.path("db2").join("knobs")).unwrap();
        assert!(!asked.contains("rollback"), "nothing was changed there that could be taken back: {asked}");
        assert!(hosts.left().is_empty());
    }
}

#[test]
fn only_what_a_hosts_journal_keeps_is_called_kept() {
    for file in ["restarts", "vanishes"] {
        let hosts = Hosts::new();
        hosts.set("db1", file, "");
        let ran = roll(&hosts, &[]);
        let (change, why) = match file {
            "restarts" => ("no longer in force", "failed: the change is no longer in force there"),
            _ => ("not known", "unreachable: no answer in time"),
        };
        ran.says(3, &["4 of 5 hosts done", change, why]);
        let row = ran.out.lines().find(|line| line.starts_with("db1 ")).unwrap();
        assert!(!row.contains("kept") && !row.contains("guardian"), "{row}");
        assert_eq!(ran.out.matches("kept").count(), 4, "{}", ran.out);
    }
}

#[test]
fn what_may_be_in_force_after_an_error_is_taken_back() {
    let hosts = Hosts::new();
    hosts.set("db2", "killed", "");
    roll(&hosts, &[]).says(3, &["failed: exit code 137", "rolled back"]);
    assert_eq!(in_force(&hosts), "");
    // Nothing is rolled back where the journal has nothing: that would meet somebody else's change.
    let hosts = Hosts::new();
    hosts.set("db2", "fails", "");
    let ran = roll(&hosts, &[]);
    ran.says(3, &["failed: changing knobs needs root"]);
    let row = ran.out.lines().find(|line| line.starts_with("db2 ")).unwrap();
    assert!(row.contains("not made"), "{row}");
    let asked = std::fs::read_to_string(hosts.path("db2").join("knobs")).unwrap();
    assert!(!asked.contains("rollback"), "{asked}");
}

#[test]
fn a_change_over_this_one_is_left_alone() {
    let hosts = Hosts::new();
    for (host, file) in [("db1", "busy"), ("db2", "harmed")] {
        hosts.set(host, file, "");
    }
    roll(&hosts, &[]).says(3, &["left to its guardian", "a later change lies over it"]);
    let asked = std::fs::read_to_string(hosts.path("db1").join("knobs")).unwrap();
    assert!(!asked.contains("rollback"), "{asked}");
}

#[test]
fn a_host_that_has_the_values_already_is_left_alone() {
    let hosts = Hosts::new();
    hosts.set("db2", "already", "");
    roll(&hosts, &[]).says(0, &["5 of 5 hosts done", "not made", "done: nothing to change"]);
    let asked = std::fs::read_to_string(hosts.path("db2").join("knobs")).unwrap();
    assert!(!asked.contains("knobs confirm") && !asked.contains("rollback"), "{asked}");
}

#[test]
fn only_changes_of_knobs_are_rolled_out() {
    let hosts = Hosts::new();
    for (command, words) in [
        ("doctor", "--canary goes with"),
        ("knobs apply x=1 --dry-run", "does not go with --dry-run"),
        ("knobs apply x=1 --confirm-within 5m", "does not go with"),
    ] {
        let words_of: Vec<&str> = command.split(' ').collect();
        let ran = hosts.run(&[&["--hosts", "a", "--canary", "1", "--probe", "/x"][..], &words_of].concat());
        assert!(ran.code == Some(2) && ran.err.contains(words), "{command}: {}", ran.err);
    }
}
