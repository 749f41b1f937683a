//! Pages of a made-up fleet, and what hostile names come to.

use weir_store::verdict::{Cause, Figure};

use super::*;

const BEGIN_S: i64 = 1_775_001_600;
const SCRIPT: &str = "<script>alert(1)</script>";
const IMAGE: &str = "\"><img src=x>";

/// A fleet of so many hosts of which one device is slow, another is slower than its peers and not named, and names are hostile.
pub fn answer(hosts: usize) -> Answer {
    let mut windows = Vec::new();
    let mut loads = Vec::new();
    for n in 0..hosts {
        let host = format!("h{n:03}");
        let device = if n == 1 { SCRIPT } else { "sda" };
        let ratio = match n {
            1 => 6.0,
            3 => 1.25,
            _ => 1.0,
        };
        let peers = format!("NV-A1{IMAGE}, 1.0, none");
        for at in 0..24 {
            windows.push(Window {
                peers: peers.clone(),
                host: host.clone(),
                device: device.into(),
                what: "write d2c".into(),
                ts: BEGIN_S + 10_800 * at,
                load: 64 << (at % 3),
                requests: 120_000,
                peers_n: 30,
                p50_ns: 8e4 * ratio,
                p99_ns: 2e5 * ratio,
                peers_p50_ns: 8e4,
                peers_p99_ns: 2e5,
                peers_low_ns: 1.8e5,
                peers_high_ns: 2.2e5,
                ratio,
                others: 7,
                others_most: 1.25,
            });
        }
        loads.extend([64, 128, 256].map(|load| AtLoad {
            peers: peers.clone(),
            host: host.clone(),
            device: device.into(),
            what: "write d2c".into(),
            load,
            requests: 900_000,
            peers_n: 30,
            p50_ns: 8e4 * ratio,
            p99_ns: 2e5 * ratio,
            peers_p99_ns: 2e5,
            peers_low_ns: 1.8e5,
            peers_high_ns: 2.2e5,
        }));
    }
    let peers = format!("NV-A1{IMAGE}, 1.0, none");
    let figure = Figure {
        peers: peers.clone(),
        host: "h001".into(),
        device: SCRIPT.into(),
        what: "write d2c".into(),
        permille: 990,
        bins: 12,
        slow_bins: 12,
        peers_n: 30,
        own_ns: 1.2e6,
        usual_ns: 2e5,
    };
    let slow = Slow {
        host: "h001".into(),
        device: SCRIPT.into(),
        peers,
        peers_n: 30,
        cause: Cause::DeviceTail,
        figure,
    };
    Answer {
        question: "slow".into(),
        from_s: BEGIN_S,
        until_s: BEGIN_S + 3 * 86_400,
        slot_s: 10_800,
        peers: 6,
        sentence: "1 devices and 0 hosts are slow at equal load".into(),
        remarks: vec![format!("not judged: 1 device without a thousand requests: h000 {SCRIPT}")],
        listing: Listing {
            head: ["host", "device", "cause", "peers"].map(String::from).to_vec(),
            words: vec![true; 4],
            rows: vec![vec!["h001".into(), SCRIPT.into(), "device".into(), slow.peers.clone()]],
        },
        slow: vec![slow],
        windows,
        loads,
        folder: format!("/srv/{SCRIPT}"),
        weir_version: "0".into(),
    }
}

#[test]
fn the_page_links_the_verdict_to_its_parts() {
    let page = fleet(&answer(40));
    for part in [
        "<h1>1 devices and 0 hosts are slow at equal load</h1>",
        "<a href=\"#device-1\">h001</a>",
        "<figure id=\"device-1\">",
        "id=\"map-write-d2c\"",
        "id=\"by-load\"",
        "p99 1.20 ms, peers' median 200 µs (6.00×)",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn names_that_hosts_chose_are_inert() {
    let page = fleet(&answer(40));
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;")
            && page.contains("&quot;&gt;&lt;img src=x&gt;")
    );
    assert!(!page.contains("<script") && !page.contains("<img"));
    let attributes =
        page.split("aria-label=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    assert!(attributes.clone().count() == 2 && attributes.clone().all(|text| !text.contains(['<', '>'])));
}

#[test]
fn a_question_without_devices_is_a_sentence_and_a_table() {
    let answer = Answer { question: "drift".into(), sentence: "0 facts differ".into(), ..Answer::default() };
    let page = fleet(&answer);
    assert!(page.contains("0 facts differ") && !page.contains("<svg") && !page.contains("<table"), "{page}");
}

/// More devices than have parts, the same one over and over.
pub fn many() -> Answer {
    let mut many = answer(40);
    many.slow = vec![many.slow[0].clone(); 30];
    many.listing.rows = vec![many.listing.rows[0].clone(); 30];
    many
}

#[test]
fn at_most_so_many_devices_have_parts() {
    let page = fleet(&many());
    assert_eq!(page.matches("<figure id=\"device-").count(), PARTS_MOST);
    assert!(page.contains("6 more are in the table"), "{PARTS_MOST}");
}

/// A run over so many hosts: one is slow, one was not reached, and names are hostile.
pub fn ran(hosts: usize) -> Run {
    let commits = |n: usize| Commits {
        host: if n == 1 { SCRIPT.to_string() } else { format!("h{n:03}") },
        rate: if n == 1 { 16.0 } else { 700.0 + 3.0 * n as f64 },
        p95_ns: if n == 1 { 7e7 } else { 2e6 + 2e4 * n as f64 },
        is_slow: n == 1,
    };
    let row = |n: usize| {
        vec![if n == 1 { SCRIPT.to_string() } else { format!("h{n:03}") }, "703".into(), "GOOD".into()]
    };
    Run {
        id: "20261125-120000-000-aaaa".into(),
        started_at: "2026-11-25T12:00:00Z".into(),
        headline: "1 of 20 hosts is slow".into(),
        lede: format!("doctor --quick /srv/{IMAGE}: {hosts} of {} hosts done in 31.0 s", hosts + 1),
        remarks: vec!["started within 12.0 ms of each other".into()],
        slow: Some(SlowHosts {
            rule: "A host is slow if ...".into(),
            listing: Listing {
                head: ["host", "commits/s", "cause"].map(String::from).to_vec(),
                words: vec![true, false, true],
                rows: vec![vec![SCRIPT.into(), "16.0".into(), "throttled".into()]],
            },
            evidence: vec![format!("{SCRIPT}: a volume throttled to 16 write IOPS")],
            without_peers: vec!["h003".into()],
        }),
        hosts: Listing {
            head: ["host", "commits/s", "verdict"].map(String::from).to_vec(),
            words: vec![true, false, true],
            rows: (0..hosts).map(row).collect(),
        },
        commits: (0..hosts).map(commits).collect(),
        has_commits: true,
        undrawn: vec!["h002".into()],
        probes: Vec::new(),
        folder: "/srv/fleet".into(),
        weir_version: "0".into(),
    }
}

/// A rollout over so many hosts that one of them took back.
pub fn rolled_out(hosts: usize) -> Run {
    let probed = |n: usize| {
        let before = 700.0 + 3.0 * n as f64;
        let after = if n == 2 { 17.0 } else { before * 1.02 };
        Probed {
            host: format!("h{n:03}"),
            before: (before * 0.97, before * 1.03),
            after: (after * 0.96, after * 1.05),
            is_kept: n != 2,
        }
    };
    Run {
        headline: "The change, of 5 hosts: rolled back on 5".into(),
        lede: "knobs apply vm.dirty_bytes=15MB: 0 of 5 hosts done in 31.0 s".into(),
        slow: None,
        commits: Vec::new(),
        probes: (0..hosts).map(probed).collect(),
        ..ran(hosts)
    }
}

#[test]
fn the_page_of_a_run_has_its_hosts_and_names_the_slow() {
    let page = run(&ran(20));
    for part in [
        "<h1>1 of 20 hosts is slow</h1>",
        "20 of 21 hosts done in 31.0 s",
        "<figure id=\"commits\">",
        "a volume throttled to 16 write IOPS",
        "too few hosts of their kind",
        "&lt;script&gt;alert(1)&lt;/script&gt;: 70.0 ms at 16 commits/s",
        "Started within 12.0 ms",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("<img"));
    let page = run(&rolled_out(5));
    assert!(page.contains("<figure id=\"probes\">") && !page.contains("id=\"slow\""), "{page}");
    assert!(page.contains("<title>h002: 17.1 commits/s"), "{page}");
}

#[test]
fn a_run_without_figures_is_a_table() {
    let page = run(&Run { commits: Vec::new(), slow: None, ..ran(3) });
    assert!(!page.contains("<svg") && page.contains("h002"), "{page}");
}
