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
            "baseline (20 %)",
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

/// The remark that names it is the only place.
#[test]
fn a_value_without_a_trial_is_not_among_those_tried() {
    let record = synthetic::record();
    let (all, cut) = (synthetic::sweep(&record), synthetic::cut_short(&record));
    let name = format!(">{}</", words::arm(&all, 9));
    let figures = |study: &Study<'_>| {
        let html = experiment(study);
        html.split_once("id=\"trade-off\"")
            .unwrap()
            .1
            .split_once("</table>")
            .unwrap()
            .0
            .matches(&name)
            .count()
    };
    assert!(figures(&all) > figures(&cut) && figures(&cut) == 0, "{name}: {}", figures(&all));
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
        &["id=\"pairs\"", "Keep the baseline settings", "no difference"],
    );
    check(&experiment(&synthetic::ab(&record, 1.3)), &["--persist udev"]);
    check(
        &experiment(&synthetic::race(&record)),
        &["id=\"race\"", "out after block 1", "confirmed in 10 trials"],
    );
}

#[test]
fn a_scale_is_drawn_with_its_law_its_peak_and_its_latencies() {
    let record = synthetic::record();
    let mut study = synthetic::scale(&record);
    let html = experiment(&study);
    let marks =
        ["highest: 16 connections", "nearly as high: 12 connections", "highest by the law: 16", "fitted law"];
    check(&html, &marks);
    let wide = |html: &str| {
        html.split_once("id=\"over-connections\"").unwrap().1.split_once("</svg>").unwrap().0.to_string()
    };
    let drawing = wide(&html);
    let count = |what: &str| drawing.matches(what).count();
    // Eight numbers of connections with a rate, a median and a tail, each with its interval.
    assert_eq!(["mk s0", "mk s2", "mk s3", "eb s0", "eb s2", "eb s3"].map(count), [8; 6]);
    assert_eq!((count("mk s1"), count("ln s0")), (0, 0), "a law has no points, and joins those of the rates");
    let law = drawing.split_once("\"ln s1\" d=\"").unwrap().1.split('"').next().unwrap();
    let places: Vec<f64> = law.split([' ', 'M', 'L']).filter_map(|n| n.parse().ok()).collect();
    let places: Vec<(f64, f64)> = places.chunks(2).map(|p| (p[0], p[1])).collect();
    let highest = places.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
    let [(one, _), .., (most, _)] = places[..] else { panic!("{law}") };
    assert!(
        (highest - (one + (most - one) * 4.0 / 6.0)).abs() < 1.0,
        "16 is four of the six doublings: {law}"
    );
    assert!(drawing.contains("<desc") && drawing.contains("Scalability Law"));
    // Where no law describes the rates they are joined themselves.
    study.finding.law = None;
    let drawing = wide(&experiment(&study));
    assert!(drawing.contains("ln s0 solid") && !drawing.contains(" law"), "{drawing}");
}

#[test]
fn spoilt_hostile_and_empty_experiments_still_make_a_page() {
    let mut record = synthetic::record();
    record.ended_early = Some("<script>SIGINT".to_string());
    check(
        &experiment(&synthetic::spoilt(&record)),
        &["aborted", "&lt;b&gt;EINVAL", "Nothing that was tried meets the goal", "&lt;script&gt;SIGINT"],
    );
    for design in ["sweep", "ladder", "ab", "race", "scale", "<script>"] {
        check(&experiment(&synthetic::empty(&record, design)), &["Nothing was measured"]);
    }
}
