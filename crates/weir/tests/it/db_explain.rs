//! `weir db explain`: what limits a server of weir's own, and the test of it.

use std::fs;
use std::io::Write;

use serde_json::Value;
use weir_db::sandbox::{Binaries, Flavour};

use crate::weir::Weir;

const LINE: [&str; 10] =
    ["--tables", "1", "--table-size", "500", "--threads", "2", "--duration", "2s", "--format", "json"];

fn is_installed(flavour: Flavour, test: &str) -> bool {
    let found = Binaries::find(flavour, None);
    if let Err(error) = &found {
        _ = writeln!(std::io::stderr(), "not run: {test}: {error}");
    }
    found.is_ok()
}

#[test]
fn both_servers_get_a_verdict_with_what_it_stands_on() {
    for (server, flavour) in [("mariadb", Flavour::Mariadb), ("postgres", Flavour::Postgres)] {
        if !is_installed(flavour, "both_servers_get_a_verdict_with_what_it_stands_on") {
            continue;
        }
        let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
        let dir = folder.path().join("d").display().to_string();
        let line = [&["db", "explain", server, "--dir", &dir, "--no-tests"][..], &LINE].concat();
        let ended = weir.run(folder.path(), &line);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "{server} left something behind");
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        let verdict = &result["verdict"];
        assert_eq!(verdict["tested"], serde_json::json!([]), "{server}: {verdict}");
        assert!(verdict["headline"].as_str().unwrap().starts_with("limited by"), "{server}: {verdict}");
        let parts = verdict["profile"]["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part[1].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{server}: {parts:?}");
        // The server's counters are those of its vitals, by one reader.
        let shown = weir.run(folder.path(), &["results", "show", "last", "--format", "record"]);
        let record: Value = serde_json::from_str(&shown.stdout).unwrap();
        let counters = &record["extra"]["watched"]["counters"];
        assert!(counters["log_bytes"].as_u64() > Some(0), "{server}: {counters}");
        assert!(counters["checkpoint_age"].as_f64().is_some(), "{server}: {counters}");
    }
}

#[test]
fn changes_are_tried_in_pairs_and_held_against_the_verdict() {
    let test = "changes_are_tried_in_pairs_and_held_against_the_verdict";
    if !is_installed(Flavour::Mariadb, test) {
        return;
    }
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let dir = folder.path().join("d").display().to_string();
    let changes = ["--change", "flush-off,in-memory", "--pairs", "2", "--trial", "5s"];
    let line = [&["db", "explain", "mariadb", "commit", "--dir", &dir][..], &changes, &LINE].concat();
    let ended = weir.run(folder.path(), &line);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("2 pairs of runs with each change are few"), "{}", ended.stderr);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let tested = result["verdict"]["tested"].as_array().unwrap();
    for (found, change) in tested.iter().zip(["flush-off", "in-memory"]) {
        assert_eq!((found["change"].as_str(), found["pairs"].as_u64()), (Some(change), Some(2)), "{found}");
        assert_eq!(found["bound"], result["verdict"]["bounds"]["faster_disk"], "{found}");
        assert!(found["ratio"]["low"].as_f64() > Some(0.0), "{found}");
    }
    assert_eq!(tested.len(), 2);
    for (wrong, words) in [
        (&["--pairs", "1"][..], "an interval needs 2"),
        (&["--trial", "1s"], "an interval needs 5"),
        (&["--pairs", "3", "--budget", "1m"], "cannot be used with"),
    ] {
        let ended =
            weir.run(folder.path(), &[&["db", "explain", "mariadb", "--dir", &dir][..], wrong].concat());
        assert_eq!(ended.code, 2, "{wrong:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{wrong:?}: {}", ended.stderr);
    }
}
