//! `weir fleet show`.

use weir_cli::failure::usage;
use weir_store::questions::Question;

use crate::archive::Archive;
use crate::cli::{Asking, ShowArgs, What};
use crate::page::{self, PAGE};
use crate::questions;
use crate::report::{self, PEERS, Report, SlowHosts};
use crate::run::{json, print};
use crate::store::Store;

/// Runs the command. 1 where a host is slow.
pub fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    match &args.what {
        None => {
            args.html.iter().try_for_each(|path| page::check(path, PAGE))?;
            let results = Store::new(args.folder.into.as_deref())?;
            let report = results.load(&args.run, |_| true)?;
            if let Some(path) = &args.html {
                page::of_run(path, &report, &SlowHosts::of(&report, PEERS), results.root())?;
            }
            print(&if args.json { json(&report)? } else { report::text(&report) })?;
            Ok(0)
        }
        Some(What::Slow { run: Some(run), asking }) => slow_of_run(run, asking),
        Some(What::Slow { run: None, asking }) => {
            // Who has only runs of the doctor asks them.
            let results = Store::new(asking.engine.folder.into.as_deref())?;
            let is_meant =
                asking.sql || asking.engine.bucket.is_some() || asking.engine.spark.spark.is_some();
            let archive = Archive::below(results.root());
            if is_meant
                || archive.files()?.iter().any(|file| ["stages", "syncs"].contains(&&*file.place.kind))
            {
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
    asking.html.iter().try_for_each(|path| page::check(path, PAGE))?;
    let results = Store::new(asking.engine.folder.into.as_deref())?;
    let has_figures = |report: &Report| report.hosts.iter().any(|host| host.figures.commits.is_some());
    let report = results.load(run, |report| !report.is_rollout() && has_figures(report))?;
    if report.is_rollout() {
        return Err(usage(
            format!("run {} rolled a change out, and its hosts were probed at different times", report.id),
            "name a run of `doctor` or `bench`",
        ));
    }
    let slow = SlowHosts::of(&report, asking.period.peers.unwrap_or(PEERS));
    if let Some(path) = &asking.html {
        page::of_run(path, &report, &slow, results.root())?;
    }
    print(&if asking.json { json(&slow.json())? } else { slow.text() })?;
    Ok(u8::from(slow.slow().next().is_some()))
}
