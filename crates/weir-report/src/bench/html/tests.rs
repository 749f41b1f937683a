//! Pages of synthetic but realistic runs, hostile ones included.

use super::*;
use weir_core::result::record::{Class, ClassRecord, EngineRecord, Interval, IntervalClass, JobRecord};
use weir_core::stats::Histogram;
use weir_core::stats::histogram::bucket_low;

/// A deterministic scatter in 0..1.
fn noise(i: u64) -> f64 {
    let mixed = (i ^ (i >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// Latencies around `middle_ns` with a long tail, and the interval they make.
fn interval_of(second: u64, n: u64, middle_ns: f64, total: &mut Histogram) -> IntervalClass {
    let mut h = Histogram::new();
    for k in 0..n {
        let u = noise(second * 1_000_003 + k).max(1e-9);
        let tail = if u > 0.99 { 12.0 } else { 1.0 };
        h.record((middle_ns * (0.6 - 0.35 * (1.0 - noise(k * 7 + second)).max(1e-9).ln()) * tail) as u64);
    }
    total.merge(&h);
    IntervalClass {
        count: n,
        bytes: n * 16384,
        mean_ns: h.mean().unwrap_or(0.0),
        p50_ns: h.quantile(0.5).unwrap_or(0),
        p95_ns: h.quantile(0.95).unwrap_or(0),
        p99_ns: h.quantile(0.99).unwrap_or(0),
        max_ns: h.max().unwrap_or(0),
        coarse: h.coarse(3),
    }
}

/// Commits at 1,500/s with a stall of three seconds in the middle, and reads beside them if `mixed`.
pub fn record(seconds: u64, mixed: bool) -> Record {
    let mut job = JobRecord {
        job: weir_core::workload::Job {
            name: "commits".to_string(),
            read_percent: 0.0,
            ..Default::default()
        },
        engine: EngineRecord { name: "psync".to_string(), in_flight_mean: 9.6, ..Default::default() },
        elapsed_ns: seconds * 1_000_000_000,
        ..JobRecord::default()
    };
    job.job.sync.every = 1;
    let mut totals: std::collections::BTreeMap<Class, ClassRecord> = Default::default();
    for second in 0..seconds {
        let stalled = (seconds / 2..seconds / 2 + 3).contains(&second);
        let mut interval =
            Interval { start_ns: second * 1_000_000_000, len_ns: 1_000_000_000, ..Default::default() };
        let shares: &[(Class, u64, f64)] = match mixed {
            true => &[
                (Class::Read, 900, 180e3),
                (Class::Commit, 700, 6e6),
                (Class::Write, 700, 30e3),
                (Class::Sync, 700, 5.9e6),
            ],
            false => &[(Class::Commit, 1500, 6e6), (Class::Write, 1500, 30e3), (Class::Sync, 1500, 5.9e6)],
        };
        for (class, n, middle) in shares {
            let n = if stalled { 0 } else { *n };
            let total = totals.entry(*class).or_default();
            let part = interval_of(second, n, *middle * (1.0 + 0.3 * noise(second)), &mut total.latency);
            total.bytes += part.bytes;
            if n > 0 {
                interval.classes.insert(*class, part);
            }
        }
        interval.oldest_ns =
            if stalled { (second - seconds / 2 + 1) * 1_000_000_000 } else { 4_000_000 + second * 7_000 };
        interval.in_flight = 10;
        job.intervals.push(interval);
    }
    job.classes = totals;
    Record {
        schema: weir_core::result::record::SCHEMA.to_string(),
        id: "20260101T120000-1a2b".to_string(),
        weir_version: "0.1.0".to_string(),
        command: ["weir", "bench", "--sync", "every:1"].map(String::from).to_vec(),
        kind: "bench".to_string(),
        started_at: "2026-01-01T12:00:00+00:00".to_string(),
        conditions: serde_json::json!({"kernel": {"release": "6.18.0"}, "vm": {"dirty_ratio": 20}}),
        jobs: vec![job],
        floods: Vec::new(),
        notes: Vec::new(),
        ended_early: None,
        extra: serde_json::Value::Null,
    }
}

/// Text of every element of a kind.
fn texts<'a>(html: &'a str, open: &str) -> Vec<&'a str> {
    html.split(open).skip(1).filter_map(|rest| rest.split_once('>')?.1.split_once('<').map(|t| t.0)).collect()
}

#[test]
fn a_page_stands_alone_and_stays_small() {
    let three_minutes = record(180, true);
    let ten_jobs = Record { jobs: vec![three_minutes.jobs[0].clone(); 10], ..three_minutes.clone() };
    let mut two_hours = record(90, true);
    let minutes = two_hours.jobs[0].intervals.clone();
    two_hours.jobs[0].intervals = minutes.iter().cycle().take(7_200).cloned().collect();
    for (i, interval) in two_hours.jobs[0].intervals.iter_mut().enumerate() {
        interval.start_ns = i as u64 * 1_000_000_000;
    }
    for record in [record(180, false), three_minutes, ten_jobs, two_hours] {
        let html = run(&record);
        for outside in
            ["http:", "https:", "src=", "@import", "url(", "<script", "<link", "<iframe", "javascript:"]
        {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.len() < 1_000_000, "{} bytes", html.len());
        assert!(html.contains("Content-Security-Policy") && html.ends_with("</html>\n"));
    }
}

#[test]
fn every_drawing_has_units_on_its_axes_and_words_for_those_who_do_not_see_it() {
    let html = run(&record(60, true));
    let drawings: Vec<&str> =
        html.split("<svg ").skip(1).filter_map(|s| s.split_once("</svg>").map(|p| p.0)).collect();
    assert_eq!(drawings.len(), 2 * 4, "distribution, time, two heat maps, each for desk and phone");
    for drawing in drawings {
        assert!(drawing.contains("role=\"img\"") && drawing.contains("<title") && drawing.contains("<desc"));
        let captions = texts(drawing, "<text class=\"cap\"");
        let ticks = texts(drawing, "<text class=\"tk\"");
        assert!(captions.len() >= 2 && ticks.len() >= 4, "{captions:?} {ticks:?}");
        for caption in captions {
            let in_caption =
                caption.contains("(s)") || caption.contains("operations/s") || caption.contains("MB/s");
            let suffix =
                if caption.contains("percentile") { [" %", " %", " %"] } else { [" µs", " ms", " s"] };
            let in_ticks = ticks.iter().filter(|t| suffix.iter().any(|s| t.ends_with(s))).count() >= 2;
            assert!(in_caption || in_ticks, "{caption}: {ticks:?}");
        }
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "a place that is no number");
    }
}

#[test]
fn hostile_names_stay_text() {
    let mut hostile = record(5, false);
    let bad = "\"><img src=x onerror=alert(1)></title></style><script>'\u{202e}";
    hostile.command.push(bad.to_string());
    hostile.kind = bad.to_string();
    hostile.id = bad.to_string();
    hostile.ended_early = Some(bad.to_string());
    hostile.conditions = serde_json::json!({bad: {"model": bad}});
    hostile.jobs[0].job.name = bad.to_string();
    hostile.jobs[0].error = Some(bad.to_string());
    hostile.jobs[0].engine.name = bad.to_string();
    hostile.jobs[0].job.target = weir_core::workload::spec::Target::File { path: bad.into(), size: Bytes(0) };
    hostile.floods.push(FloodRecord {
        spec: bad.to_string(),
        bytes_per_second: vec![1e8; 5],
        ..Default::default()
    });
    let two = Record { jobs: vec![hostile.jobs[0].clone(), hostile.jobs[0].clone()], ..hostile.clone() };
    for html in [run(&hostile), run(&two)] {
        assert!(html.contains("&lt;img src=x"));
        assert!(!html.contains("<img") && !html.contains("<script") && !html.contains('\u{202e}'));
        assert_eq!(html.matches("</title>").count(), 1 + html.matches("<title").count() - 1);
        assert_eq!(html.matches("</style>").count(), 1);
    }
}

#[test]
fn sparse_and_empty_runs_still_make_a_page() {
    let mut empty = record(3, false);
    empty.jobs[0].classes.clear();
    empty.jobs[0].intervals.iter_mut().for_each(|i| i.classes.clear());
    assert!(run(&empty).contains("Nothing finished"));
    let mut single = record(1, false);
    let mut h = Histogram::new();
    h.record(bucket_low(5000));
    single.jobs[0].classes = [(Class::Read, ClassRecord { latency: h, ..Default::default() })].into();
    let html = run(&single);
    assert!(html.contains("too few") && !html.contains("NaN"));
    assert!(run(&Record { jobs: Vec::new(), ..record(1, false) }).contains("Nothing was measured"));
}
