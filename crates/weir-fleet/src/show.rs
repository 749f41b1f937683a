//! `weir fleet show`.

use serde_json::json;
use weir_core::printable;
use weir_core::units::{Nanos, significant};

use weir_store::questions::Question;

use crate::archive::Archive;
use crate::cli::{Asking, ShowArgs, What};
use crate::figures::Figures;
use crate::questions;
use crate::report::{self, table};
use crate::run::print;
use crate::slow::{self, Cause, Judged};
use crate::store::Store;

/// Hosts of a run that it takes to say what is usual.
const PEERS: u32 = 4;

/// Runs the command. 1 where a host is slow.
pub fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    match &args.what {
        None => {
            let report = Store::new(args.folder.into.as_deref())?.load(&args.run, |_| true)?;
            print(&if args.json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report::text(&report)
            })?;
            Ok(0)
        }
        Some(What::Slow { run: Some(run), asking }) => slow_of_run(run, asking),
        Some(What::Slow { run: None, asking }) => {
            // Who has only runs of the doctor asks them.
            let results = Store::new(asking.engine.folder.into.as_deref())?;
            let is_meant = asking.html.is_some()
                || asking.engine.bucket.is_some()
                || asking.engine.spark.spark.is_some();
            let archive = Archive::below(results.root());
            if is_meant || archive.files()?.iter().any(|file| file.place.kind == "stages") {
                questions::run(Question::Slow, None, asking)
            } else {
                slow_of_run("last", asking)
            }
        }
        Some(What::Latency(asking)) => questions::run(Question::Latency, None, asking),
        Some(What::Drift(asking)) => questions::run(Question::Drift, None, asking),
        Some(What::Change { at, asking }) => questions::run(Question::Change, Some(at), asking),
        Some(What::Capacity(asking)) => questions::run(Question::Capacity, None, asking),
        Some(What::Tails(asking)) => questions::run(Question::Tails, None, asking),
    }
}

fn slow_of_run(run: &str, asking: &Asking) -> anyhow::Result<u8> {
    let results = Store::new(asking.engine.folder.into.as_deref())?;
    let report =
        results.load(run, |report| report.hosts.iter().any(|host| host.figures.commits.is_some()))?;
    let peers = asking.period.peers.unwrap_or(PEERS);
    let hosts: Vec<(&str, &Figures)> =
        report.hosts.iter().map(|host| (host.host.as_str(), &host.figures)).collect();
    let (judged, alone) = slow::judge(&hosts, peers as usize);
    let document =
        json!({ "schema": "weir.fleet.slow/1", "run": report.id, "hosts": judged, "without_peers": alone });
    print(&if asking.json {
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        text(&report, &judged, &alone, peers)
    })?;
    Ok(u8::from(judged.iter().any(|host| host.slow)))
}

fn text(report: &report::Report, judged: &[Judged], alone: &[String], peers: u32) -> String {
    let slow: Vec<&Judged> = judged.iter().filter(|host| host.slow).collect();
    let mut out = format!(
        "run {}: {} of {} hosts are slow (more than 3.5 robust deviations and 30 % worse than the median of their peers)\n",
        report.id,
        slow.len(),
        judged.len()
    );
    let row = |host: &&Judged| {
        let p95 = host
            .p95_ns
            .map(|p95| (Nanos(p95.value as u64).to_string(), Nanos(p95.median as u64).to_string()));
        let (own, usual) = p95.unwrap_or_else(|| ("-".to_string(), "-".to_string()));
        vec![
            host.host.clone(),
            significant(host.rate.value),
            significant(host.rate.median),
            own,
            usual,
            host.peers.to_string(),
            host.cause.unwrap_or(Cause::Unknown).words().to_string(),
        ]
    };
    if !slow.is_empty() {
        let rows: Vec<Vec<String>> = slow.iter().map(row).collect();
        out.push_str(&table(
            &["host", "commits/s", "peers'", "p95", "peers'", "peers", "cause"],
            &[false, true, true, true, true, true, false],
            &rows,
        ));
    }
    for host in &slow {
        for (what, words) in [("", &host.evidence), ("its settings differ: ", &host.settings)] {
            if let Some(words) = words {
                out.push_str(&format!("{}: {what}{words} ({})\n", host.host, host.group));
            }
        }
    }
    if !alone.is_empty() {
        out.push_str(&format!(
            "not judged, with fewer than {peers} hosts of their model: {}\n",
            alone.join(", ")
        ));
    }
    printable::lines(&out).into_owned()
}
