//! Pages of questions: what stands on them, whom they trust, and which files they replace.

use std::fs;

use weir_store::tables::{Fact, Stage, Sync};

use crate::engines::put;
use crate::tables::Fleet;

/// 2026-11-25T00:00:00Z.
const BEGIN_S: i64 = 1_795_564_800;
const SCRIPT: &str = "<script>alert(1)</script>";
const IMAGE: &str = "\"><img src=x>";

/// Eight hosts with two devices of one model for two days. All names are hostile, and a device of the first host is six times as slow.
fn hostile() -> Fleet {
    let fleet = Fleet::new();
    let (mut stages, mut syncs, mut facts) = (vec![], vec![], vec![]);
    for n in 0..8_i64 {
        let host = format!("h{n}{SCRIPT}");
        for device in ["sda", IMAGE] {
            let fact = |name: &str, value: &str| Fact {
                host: host.clone(),
                ts: BEGIN_S,
                device: device.into(),
                name: name.into(),
                value: value.into(),
            };
            facts.extend([fact("model", IMAGE), fact("firmware", SCRIPT), fact("scheduler", "none")]);
            let slower = if n == 0 && device == IMAGE { 6 } else { 1 };
            for (hour, class, bucket) in (0..48_i64).flat_map(|hour| {
                ["read", "write"].into_iter().flat_map(move |class| (0..4).map(move |n| (hour, class, n)))
            }) {
                stages.push(Stage {
                    host: host.clone(),
                    ts: BEGIN_S + 3_600 * hour,
                    device: device.into(),
                    class: class.into(),
                    stage: "d2c".into(),
                    load: 64 << (hour % 2),
                    bucket_low_ns: (65_536 * slower) << bucket,
                    n: 40_000 >> (3 * bucket),
                });
            }
        }
        syncs.extend((0..48).map(|hour| Sync {
            host: host.clone(),
            ts: BEGIN_S + 3_600 * hour,
            load: 8,
            bucket_low_ns: 80_000,
            n: 9_000,
            ..Sync::default()
        }));
    }
    put(&fleet, &stages, |row| ("a".into(), row.ts));
    put(&fleet, &syncs, |row| ("a".into(), row.ts));
    put(&fleet, &facts, |row| ("a".into(), row.ts));
    fleet
}

#[test]
fn names_that_hosts_chose_reach_a_page_as_text_only() {
    let fleet = hostile();
    let path = fleet.path("page.html");
    let file = path.to_str().unwrap();
    fleet.run(&["show", "slow", "--html", file]).says(1, &["1 device is slow"]);
    assert_eq!(crate::mode(&path), 0o600);
    let slow = fs::read_to_string(&path).unwrap();
    for part in [
        "<h1>1 device is slow at equal load, of 16 devices and 8 hosts</h1>",
        "<a href=\"#device-1\">h0&lt;script&gt;",
        "<figure id=\"device-1\">",
        "id=\"map-read-d2c\"",
        "id=\"map-write-d2c\"",
        "id=\"map-sync\"",
        "id=\"by-load\"",
        "&quot;&gt;&lt;img src=x&gt;, &lt;script&gt;alert(1)&lt;/script&gt;, none",
        "p99 1.57 ms, peers' median 262 µs (6.00×), ",
    ] {
        assert!(slow.contains(part), "{part}");
    }
    // Each question replaces the page of the one before.
    for (words, code) in [
        (vec!["latency"], 0),
        (vec!["drift"], 0),
        (vec!["tails"], 0),
        (vec!["capacity"], 0),
        (vec!["change", "--at", "2026-11-26"], 0),
    ] {
        let ran = fleet.run(&[vec!["show"], words.clone(), vec!["--json", "--html", file]].concat());
        ran.says(code, &["weir.fleet."]);
        let page = fs::read_to_string(&path).unwrap();
        assert!(page.contains(&format!("fleet, {}</span>", words[0])), "{words:?}");
        assert_eq!(page.contains("id=\"map-sync\""), words[0] == "latency");
        for hostile in ["<script", "<img", "src=\"", "http:", "https:", "@import", "url("] {
            assert!(!page.contains(hostile) && !slow.contains(hostile), "{words:?}: {hostile}");
        }
    }
}

#[test]
fn a_page_replaces_nothing_but_a_page() {
    let fleet = hostile();
    let path = fleet.path("notes.html");
    fs::write(&path, "mine").unwrap();
    let file = path.to_str().unwrap();
    let refused = fleet.run(&["show", "slow", "--html", file]);
    refused.says(2, &[]);
    assert!(refused.err.contains("is not a page of weir's"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fleet.run(&["show", "slow", "--html", "/nowhere/page.html"]).says(3, &[]);
    fleet.run(&["show", "slow", "--html", file, "--sql"]).says(2, &[]);
    fleet.run(&["show", "last", "--html", file]).says(2, &[]);
    fleet.run(&["show", "slow", "last", "--sql"]).says(2, &[]);
    let none = Fleet::new();
    let page = none.path("page.html");
    for (question, words) in [("slow", "no run `last`"), ("latency", "no tables")] {
        let lacking = none.run(&["show", question, "--html", page.to_str().unwrap()]);
        lacking.says(2, &[]);
        assert!(lacking.err.contains(words), "{}", lacking.err);
    }
}
