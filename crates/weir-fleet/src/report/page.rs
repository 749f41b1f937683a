//! The page of a run.

use std::path::Path;

use weir_core::printable;
use weir_report::html::{self, FleetCommits, FleetProbed, FleetRun};

use super::{Change, HostReport, Report, SlowHosts, text};
use crate::figures::Commits;

/// A run as one HTML document.
pub fn page(report: &Report, slow: &SlowHosts, folder: &Path) -> String {
    let done = text::done(report);
    let has_peers = slow.compared() > 0 && !report.is_rollout();
    html::fleet_run(&FleetRun {
        command: report.command.join(" "),
        id: report.id.clone(),
        started_at: report.started_at.clone(),
        headline: headline(report, slow),
        lede: done,
        remarks: text::remarks(report),
        slow: has_peers.then(|| slow.on_a_page()),
        hosts: text::listing(report).on_a_page(),
        commits: report.hosts.iter().filter_map(|host| commits(host, slow)).collect(),
        probes: report.hosts.iter().filter_map(probed).collect(),
        folder: printable::line(&folder.display().to_string()).into_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_string(),
    })
}

/// What a reader should take from it.
fn headline(report: &Report, slow: &SlowHosts) -> String {
    let all = report.hosts.len();
    if report.is_rollout() {
        let kept = report.hosts.iter().filter(|host| change(host) == Change::Kept).count();
        return match kept {
            0 => "The change is in force on no host".to_string(),
            kept => format!("The change is in force on {kept} of {all} hosts"),
        };
    }
    match (slow.slow().count(), slow.compared()) {
        (_, 0) => format!("{} of {all} hosts are done", report.done()),
        (0, compared) => format!("None of {compared} hosts is slower than its peers"),
        (1, compared) => format!("1 of {compared} hosts is slower than its peers"),
        (count, compared) => format!("{count} of {compared} hosts are slower than their peers"),
    }
}

fn change(host: &HostReport) -> Change {
    host.rollout.as_ref().map_or(Change::NotMade, |part| part.change)
}

fn commits(host: &HostReport, slow: &SlowHosts) -> Option<FleetCommits> {
    let commits = host.figures.commits.filter(|commits| commits.rate > 0.0)?;
    Some(FleetCommits {
        host: host.host.clone(),
        rate: commits.rate,
        p95_ns: commits.p95_ns? as f64,
        is_slow: slow.slow().any(|slow| slow.host == host.host),
    })
}

fn probed(host: &HostReport) -> Option<FleetProbed> {
    let part = host.rollout.as_ref()?;
    let range = |all: &[Commits]| {
        let rates = all.iter().map(|commits| commits.rate);
        Some((rates.clone().reduce(f64::min)?, rates.reduce(f64::max)?))
    };
    Some(FleetProbed {
        host: host.host.clone(),
        before: range(&part.probes.before).filter(|(least, _)| *least > 0.0)?,
        after: range(&part.probes.after)?,
        is_kept: part.change == Change::Kept,
    })
}
