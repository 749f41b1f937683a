//! One page of every kind, of made-up data and of the records among the fixtures.

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use weir_core::stats::random::Random;
use weir_oltp::samples;
use weir_record::Record;
use weir_verdict::from_record;

use crate::experiment::synthetic as experiments;
use crate::{bench, contradictions, doctor, fleet, guard, html, record, trace};

/// Names and pages.
pub fn all() -> Vec<(String, String)> {
    let mut all = benches();
    all.extend(databases());
    all.extend(experiment_pages());
    all.push(("doctor", html::doctor(&from_record(&doctor::html::tests::starved()).unwrap())));
    all.push(("doctor-record", fixture("doctor")));
    let sustained = weir_verdict::synthetic::bucket_of_operations().record(Vec::new());
    all.push(("doctor-sustained", html::doctor(&from_record(&sustained).unwrap())));
    let map =
        weir_verdict::map::made::mapped(&weir_verdict::map::made::each(2000.0, 800.0)).record(Vec::new());
    all.push(("doctor-map", html::doctor(&from_record(&map).unwrap())));
    for (name, shadow) in [("guard", false), ("guard-shadow", true)] {
        let history = guard::synthetic::history(shadow);
        all.push((name, html::guard(&guard::synthetic::record(&history), &history)));
    }
    all.extend(recorders());
    all.extend(fleets());
    let incomplete = ["sda.blktrace.1: at byte 96: cut off".to_string()];
    all.push(("trace", html::trace(&trace::html::tests::analysis(1500, 1), "sda", &[])));
    all.push((
        "trace-devices",
        html::trace(&trace::html::tests::analysis(300, 9), "all of them", &incomplete),
    ));
    all.push(("trace-empty", html::trace(&Default::default(), "empty", &[])));
    all.into_iter().map(|(name, page)| (name.to_string(), page)).collect()
}

/// The page of a record among the fixtures.
fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/records/0.1.0");
    let file = File::open(folder.join(format!("{name}.json.gz"))).unwrap();
    let stored = serde_json::from_reader(GzDecoder::new(file)).unwrap();
    record::report(&Record::decode(stored, None).unwrap(), None).unwrap().html()
}

fn benches() -> Vec<(&'static str, String)> {
    let one = bench::html::tests::record(180, true);
    let mut merged = bench::html::tests::record(400, true);
    merged.jobs = vec![merged.jobs[0].clone(); 3];
    let (played, replay) = bench::replay::tests::played();
    vec![
        ("bench", html::run(&bench::tests::full())),
        ("bench-classes", html::run(&one)),
        ("bench-merged", html::run(&merged)),
        ("bench-record", fixture("bench")),
        ("replay", html::replay(&played, &replay)),
    ]
}

fn recorders() -> Vec<(&'static str, String)> {
    use crate::recorder::html::tests::{empty, troubled};
    vec![("recorder", troubled()), ("recorder-empty", empty())]
}

fn fleets() -> Vec<(&'static str, String)> {
    use fleet::html::tests::{answer, many, ran, rolled_out};
    let latency = html::FleetAnswer { question: "latency".into(), slow: Vec::new(), ..answer(40) };
    let empty = html::FleetAnswer { sentence: "0 facts differ".into(), ..html::FleetAnswer::default() };
    let pages =
        [("fleet", answer(40)), ("fleet-many", many()), ("fleet-latency", latency), ("fleet-empty", empty)];
    let runs = [("fleet-run", ran(20)), ("fleet-run-many", ran(400)), ("fleet-rollout", rolled_out(5))];
    let runs = runs.map(|(name, run)| (name, html::fleet_run(&run)));
    pages.map(|(name, answer)| (name, html::fleet(&answer))).into_iter().chain(runs).collect()
}

fn databases() -> Vec<(&'static str, String)> {
    let made = samples::raw(&mut Random::new(1), 8, 1.0);
    let limited = contradictions::limited();
    vec![
        ("oltp", html::oltp(&samples::record(&made), &made)),
        ("oltp-limits", html::oltp(&samples::record(&limited), &limited)),
        ("oltp-record", fixture("db")),
    ]
}

fn experiment_pages() -> Vec<(&'static str, String)> {
    let record = experiments::record();
    let studies = [
        ("sweep", experiments::sweep(&record)),
        ("ladder", experiments::ladder(&record)),
        ("ab", experiments::ab(&record, 1.3)),
        ("ab-no-difference", experiments::ab(&record, 1.0)),
        ("ab-direct", experiments::direct(&record)),
        ("race", experiments::race(&record)),
        ("scale", experiments::scale(&record)),
        ("spoilt", experiments::spoilt(&record)),
        ("experiment-empty", experiments::empty(&record, "sweep")),
    ];
    let pages = studies.iter().map(|(name, study)| (*name, html::experiment(study)));
    pages.chain([("experiment-record", fixture("tune"))]).collect()
}
