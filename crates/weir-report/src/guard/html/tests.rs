//! Pages of made-up histories, hostile and empty ones included.

use super::*;
use crate::guard::synthetic;
use weir_control::SensorSource;

/// What every page of weir's keeps to.
fn check(html: &str, wanted: &[&str]) {
    for outside in ["http:", "https:", "src=", "url(", "<script", "<link", "NaN", "inf\"", "<BPF>"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.len() < 1_000_000 && html.ends_with("</html>\n"), "{} bytes", html.len());
    for wanted in wanted {
        assert!(html.contains(wanted), "no `{wanted}`");
    }
}

fn drawn(history: &History) -> String {
    guard(&synthetic::record(history), history)
}

#[test]
fn a_guarded_flood_is_seen_with_its_decisions_and_what_they_cost() {
    let html = drawn(&synthetic::history(false));
    check(
        &html,
        &[
            "<h1>Syncs kept 92\u{a0}% of their rate under a flood</h1>",
            "4 of 60 s with syncs were over the target.",
            "Bulk writers wrote 140 MB/s; the device wrote 190 MB/s on average and 190 MB/s in its best second",
            "vm.dirty_bytes went between 8.00 MB and 40.0 MB (baseline 4.79 GB): cut 4 times, raised once, released once.",
            "flood, guarded",
            "baseline: 4.79 GB",
            "<th scope=\"row\">before</th>",
            "<th scope=\"row\">after</th>",
            "60.5 s: cut to 12.0 MB: p99 700 ms is over the target of 460 ms (n=312)",
            "80.0 s: raised to 8.40 MB: there is room",
            "<td>oldest-sync</td>",
            "&lt;BPF&gt; is not permitted",
        ],
    );
    // Two drawings; each decision of the device is a mark that says why.
    assert_eq!(html.matches("s: cut to 20.0 MB: a sync has been under way").count(), 2);
    // The machine slept for five seconds: both drawings break each of their lines there.
    let path = html.split("id=\"course-0\"").nth(1).unwrap();
    assert!(path.matches("class=\"ln s0").count() >= 4, "a line is drawn through time that nobody saw");
}

/// A cgroup is throttled in place of dirty pages: its limits are bytes of a tenth of a second.
#[test]
fn the_limit_of_a_cgroup_is_a_rate_wherever_it_stands() {
    let mut history = synthetic::history(false);
    for decision in history.decisions.iter_mut().filter_map(|noted| noted.decision.as_mut()) {
        decision.inputs.of_cgroup = true;
    }
    for second in &mut history.devices[0].seconds {
        let of_cgroup = second.holding;
        *second = weir_control::Second { of_cgroup, ..*second };
    }
    let html = drawn(&history);
    check(
        &html,
        &[
            "vm.dirty_bytes stayed at the baseline: 4.79 GB. The limit of the throttled cgroup went between 80.0 MB/s \
             and 400 MB/s: cut 4 times, raised once, released once.",
            "lowest rate",
            "80.0 MB/s–400 MB/s",
            "limit of the throttled cgroup",
            "released to no limit",
        ],
    );
    for wrong in ["went between 8.00 MB", "lowest limit", "8.00 MB–40.0 MB"] {
        assert!(!html.contains(wrong), "{wrong}");
    }
}

#[test]
fn a_shadow_says_that_it_touched_nothing() {
    check(
        &drawn(&synthetic::history(true)),
        &[
            "In shadow: unguarded syncs kept",
            "touched nothing",
            "vm.dirty_bytes would have gone between",
            "would be cut to 20.0 MB: a sync",
        ],
    );
}

#[test]
fn a_day_and_an_empty_history_have_pages() {
    let mut day = synthetic::history(false);
    let seconds = day.devices[0].seconds.clone();
    let again =
        |n: u64| seconds.iter().map(move |s| weir_control::Second { at_ms: s.at_ms + n * 120_000, ..*s });
    day.devices[0].seconds = (0..720).flat_map(again).collect();
    let decisions = day.decisions.clone();
    day.decisions = (0..720)
        .flat_map(|n| decisions.iter().map(move |d| Noted { at_ms: d.at_ms + n * 120_000, ..d.clone() }))
        .collect();
    check(&drawn(&day), &["under 720 floods", "Columns of 138 s", "later ones, in the record"]);

    let mut empty = synthetic::history(false);
    empty.devices[0].seconds.clear();
    empty.devices[0].sensor = SensorSource::Diskstats;
    empty.decisions.clear();
    check(&drawn(&empty), &["No flood came", "Nothing had to be decided", "stayed at the baseline"]);
}
