//! The page of a run.

use std::path::Path;

use weir_report::html::{self, FleetCommits, FleetProbed, FleetRun};

use super::{Change, HostReport, Report, SlowHosts, State, text};
use crate::figures::Commits;

/// A run as one HTML document.
pub fn page(report: &Report, slow: &SlowHosts, folder: &Path) -> String {
    let is_rollout = report.is_rollout();
    let (commits, undrawn) = if is_rollout { Default::default() } else { commits(report, slow) };
    html::fleet_run(&FleetRun {
        id: report.id.clone(),
        started_at: report.started_at.clone(),
        headline: if is_rollout { of_rollout(report) } else { headline(report, slow) },
        lede: format!("{}: {}", report.command.join(" "), text::done(report)),
        remarks: text::remarks(report),
        slow: (slow.has_figures() && !is_rollout).then(|| slow.on_a_page()),
        hosts: text::listing(report).on_a_page(),
        has_commits: report.has_commits(),
        commits,
        undrawn,
        probes: probes(report),
        folder: folder.display().to_string(),
        weir_version: env!("CARGO_PKG_VERSION").to_string(),
    })
}

/// What a reader should take from it.
fn headline(report: &Report, slow: &SlowHosts) -> String {
    match (slow.slow().count(), slow.compared()) {
        (_, 0) => {
            let all = report.hosts.len();
            format!("{} of {all} hosts {} done", report.done(), if all == 1 { "is" } else { "are" })
        }
        (0, compared) => format!("None of {compared} hosts is slower than its peers"),
        (1, compared) => format!("1 of {compared} hosts is slower than its peers"),
        (count, compared) => format!("{count} of {compared} hosts are slower than their peers"),
    }
}

/// What became of a change: every host is in one of the counts.
fn of_rollout(report: &Report) -> String {
    let count = |is: &dyn Fn(&HostReport) -> bool| report.hosts.iter().filter(|host| is(host)).count();
    let has = |change| count(&|host| fate(host) == change);
    let had_it = |host: &HostReport| fate(host) == Change::NotMade && host.state == State::Done;
    let counts = [
        ("kept on", has(Change::Kept)),
        ("still in force, until its guardian restores the old values, on", has(Change::LeftToGuardian)),
        ("not known on", has(Change::NotKnown)),
        ("no longer in force on", has(Change::Gone)),
        ("rolled back on", has(Change::RolledBack)),
        ("nothing to change on", count(&had_it)),
        ("not made on", has(Change::NotMade) - count(&had_it)),
    ];
    let said = counts.iter().filter(|(_, count)| *count > 0).map(|(words, count)| format!("{words} {count}"));
    format!("The change, of {} hosts: {}", report.hosts.len(), said.collect::<Vec<_>>().join(", "))
}

fn fate(host: &HostReport) -> Change {
    host.rollout.as_ref().map_or(Change::NotMade, |part| part.change)
}

/// What can be drawn, the slowest first, and the names of hosts with figures that cannot.
fn commits(report: &Report, slow: &SlowHosts) -> (Vec<FleetCommits>, Vec<String>) {
    let (mut drawn, mut undrawn) = (Vec::new(), Vec::new());
    for host in &report.hosts {
        match host.figures.commits {
            Some(Commits { rate, p95_ns: Some(p95_ns), .. }) if rate > 0.0 => drawn.push(FleetCommits {
                host: host.host.clone(),
                rate,
                p95_ns: p95_ns as f64,
                is_slow: slow.is_slow(&host.host),
            }),
            Some(_) => undrawn.push(host.host.clone()),
            None => {}
        }
    }
    drawn.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    (drawn, undrawn)
}

/// Of hosts that were probed before and after, the most harmed first.
fn probes(report: &Report) -> Vec<FleetProbed> {
    let mut all: Vec<FleetProbed> = report.hosts.iter().filter_map(probed).collect();
    let left = |host: &FleetProbed| host.after.1 / host.before.0;
    all.sort_by(|a, b| left(a).total_cmp(&left(b)));
    all
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

#[cfg(test)]
mod tests {
    use super::super::tests::{host, report};
    use super::*;
    use crate::guardrail::Probes;
    use crate::report::Rollout;

    #[test]
    fn a_change_that_may_be_in_force_is_said_first() {
        let with = |name, state, change, after| {
            let rates = |rate| vec![Commits { rate, p95_ns: Some(1), ..Commits::default() }];
            let probes = Probes { before: rates(100.0), after: rates(after) };
            HostReport { rollout: Some(Rollout { step: 1, probes, change }), ..host(name, state) }
        };
        let ran = report(vec![
            with("db1", State::Failed, Change::LeftToGuardian, 90.0),
            with("db2", State::BelowBar, Change::RolledBack, 0.0),
            with("db3", State::Done, Change::NotMade, 100.0),
            host("db4", State::NotRun),
        ]);
        let page = page(&ran, &SlowHosts::of(&ran, 3), Path::new("/fleet"));
        let headline = "<h1>The change, of 4 hosts: still in force, until its guardian restores the old values, on 1, \
                        rolled back on 1, nothing to change on 1, not made on 1</h1>";
        assert!(page.contains(headline), "{page}");
        assert!(
            page.contains("<figure id=\"probes\">")
                && !page.contains("id=\"commits\"")
                && !page.contains("id=\"slow\"")
        );
        assert_eq!(probes(&ran)[0].host, "db2", "the most harmed comes first");
    }

    #[test]
    fn hosts_that_cannot_be_drawn_are_named() {
        let mut ran = report((1..=5).map(|n| host(&format!("db{n}"), State::Done)).collect());
        for (n, host) in ran.hosts.iter_mut().enumerate() {
            let p95_ns = (n != 2).then_some(2_000_000);
            host.figures.commits =
                Some(Commits { rate: if n == 2 { 3.0 } else { 700.0 }, p95_ns, ..Commits::default() });
        }
        let page = page(&ran, &SlowHosts::of(&ran, 3), Path::new("/fleet"));
        assert!(page.contains("<h1>1 of 5 hosts is slower than its peers</h1>"), "{page}");
        assert!(page.contains("Not drawn, with too few operations for a 95th percentile: db3."), "{page}");
    }
}
