//! Pages of made-up experiments of every design, hostile and empty ones included.

use super::*;
use crate::experiment::synthetic;

/// What every page of weir's keeps to.
fn check(html: &str, wanted: &[&str]) {
    for outside in ["http:", "https:", "src=", "url(", "<script", "<link", "NaN", "inf\""] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.len() < 1_000_000 && html.ends_with("</html>\n"), "{} bytes", html.len());
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|r| r.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an anchor stands twice");
    for wanted in wanted {
        assert!(html.contains(wanted), "no `{wanted}`");
    }
}

#[test]
fn a_sweep_is_drawn_as_a_trade_off_and_over_its_values() {
    let record = synthetic::record();
    let html = experiment(&synthetic::sweep(&record));
    check(
        &html,
        &[
            "id=\"trade-off\"",
            "id=\"against-value\"",
            "id=\"courses\"",
            "15 MB: knee, recommended",
            "as found (20 %)",
            "idle: 7",
            "weir knobs apply vm.dirty_bytes=15000000 --confirm-within 5m",
            "recommended: 15 MB",
        ],
    );
    // Two drawings; nine arms have both axes, the recommended one is ringed, and both axes have intervals.
    assert_eq!(html.matches("class=\"ring\"").count(), 2);
    let drawing = html.split("id=\"trade-off\"").nth(1).and_then(|s| s.split_once("</svg>")).unwrap().0;
    assert_eq!(drawing.matches("class=\"eb ").count(), 2 * 9);
    let cells = html.split("id=\"courses\"").nth(1).and_then(|s| s.split_once("</svg>")).unwrap().0;
    assert_eq!(cells.matches(">#").count(), 30, "a cell for every trial");
}

#[test]
fn the_other_designs_have_their_own_pictures() {
    let record = synthetic::record();
    check(
        &experiment(&synthetic::ladder(&record)),
        &["id=\"steps\"", "id=\"latency\"", "submitting alone", "true p95 is 171 ms"],
    );
    check(
        &experiment(&synthetic::ab(&record, 1.0)),
        &["id=\"pairs\"", "Keep the settings as found", "no difference"],
    );
    check(&experiment(&synthetic::ab(&record, 1.3)), &["--persist udev"]);
    check(
        &experiment(&synthetic::race(&record)),
        &["id=\"race\"", "out after block 1", "confirmed in 10 trials"],
    );
}

#[test]
fn spoilt_hostile_and_empty_experiments_still_make_a_page() {
    let mut record = synthetic::record();
    record.ended_early = Some("<script>SIGINT".to_string());
    check(
        &experiment(&synthetic::spoilt(&record)),
        &["aborted", "&lt;b&gt;EINVAL", "Nothing that was tried meets the goal", "&lt;script&gt;SIGINT"],
    );
    for design in ["sweep", "ladder", "ab", "race", "<script>"] {
        check(&experiment(&synthetic::empty(&record, design)), &["Nothing was measured"]);
    }
}
