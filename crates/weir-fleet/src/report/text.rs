//! The report for people.

use std::fmt::Write;

use weir_core::printable;
use weir_core::units::{Nanos, significant};

use super::{Change, HostReport, Listing, Report, State};
use crate::figures::Commits;

/// A time, or a dash.
fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_string(), |ns| Nanos(ns).to_string())
}

/// The report for people.
pub fn text(report: &Report) -> String {
    let mut out = format!("weir fleet run {}: {}\n", report.command.join(" "), done(report));
    out.push_str(&listing(report).text());
    for remark in remarks(report) {
        let _ = writeln!(out, "{remark}");
    }
    printable::lines(&out).into_owned()
}

/// `18 of 20 hosts done in 31.0 s`.
pub fn done(report: &Report) -> String {
    format!("{} of {} hosts done in {}", report.done(), report.hosts.len(), Nanos(report.elapsed_ns))
}

/// All hosts.
pub fn listing(report: &Report) -> Listing {
    if report.is_rollout() {
        rollout(report)
    } else if report.hosts.iter().any(|host| host.figures.commits.is_some()) {
        with_commits(report)
    } else {
        plain(report)
    }
}

/// Sentences about the run as a whole.
pub fn remarks(report: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(spread) = report.start_spread_ns {
        let offsets = report.hosts.iter().filter_map(|host| host.clock);
        let most = offsets.clone().map(|clock| clock.offset_ns.unsigned_abs()).max().unwrap_or(0);
        let within = offsets.map(|clock| clock.within_ns.unsigned_abs()).max().unwrap_or(0);
        remarks.push(format!(
            "started within {} of each other, known to ± {}; their clocks differ from this one's by up to {}",
            Nanos(spread.unsigned_abs()),
            Nanos(within),
            Nanos(most)
        ));
    }
    let left: Vec<&str> = report
        .hosts
        .iter()
        .filter(|host| host.architecture.is_some() && !host.cleaned)
        .map(|host| host.host.as_str())
        .collect();
    if !left.is_empty() {
        remarks.push(format!("not confirmed that the folder on the host is gone: {}", left.join(", ")));
    }
    remarks
}

fn verdict(host: &HostReport) -> String {
    match (&host.why, host.state) {
        (Some(why), state) => format!("{}: {why}", state.words()),
        (None, State::Done) if !host.figures.verdict.is_empty() => host.figures.verdict.clone(),
        (None, State::BelowBar) => format!("{} (below a bar)", host.figures.verdict),
        (None, state) => state.words().to_string(),
    }
}

fn plain(report: &Report) -> Listing {
    Listing::of(&["host", "took", "verdict"], &[false, true, false], &report.hosts, |host| {
        vec![host.host.clone(), Nanos(host.elapsed_ns).to_string(), verdict(host)]
    })
}

fn with_commits(report: &Report) -> Listing {
    const OF_COMMITS: &[&str] = &["host", "commits/s", "p50", "p95", "p99", "took", "verdict"];
    const OF_OTHERS: &[&str] = &["host", "operations/s", "p50", "p95", "p99", "took", "verdict"];
    let head = if report.has_commits() { OF_COMMITS } else { OF_OTHERS };
    Listing::of(head, &[false, true, true, true, true, true, false], &report.hosts, |host| {
        let commits = host.figures.commits;
        vec![
            host.host.clone(),
            commits.map_or("-".to_string(), |commits| significant(commits.rate)),
            time(commits.and_then(|commits| commits.p50_ns)),
            time(commits.and_then(|commits| commits.p95_ns)),
            time(commits.and_then(|commits| commits.p99_ns)),
            Nanos(host.elapsed_ns).to_string(),
            verdict(host),
        ]
    })
}

fn rollout(report: &Report) -> Listing {
    const HEAD: &[&str] = &["host", "step", "commits/s before", "after", "change", ""];
    let rates = |all: &[Commits]| {
        let rates: Vec<String> = all.iter().map(|commits| significant(commits.rate)).collect();
        if rates.is_empty() { "-".to_string() } else { rates.join(" ") }
    };
    Listing::of(HEAD, &[false, true, true, true, false, false], &report.hosts, |host| {
        let part = host.rollout.as_ref();
        let why = host.why.as_ref().map_or(String::new(), |why| format!("{}: {why}", host.state.words()));
        vec![
            host.host.clone(),
            part.map_or("-".to_string(), |part| part.step.to_string()),
            part.map_or("-".to_string(), |part| rates(&part.probes.before)),
            part.map_or("-".to_string(), |part| rates(&part.probes.after)),
            part.map_or(Change::NotMade, |part| part.change).words().to_string(),
            why,
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{host, report};
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_host() {
        let mut good = host("db1", State::Done);
        good.figures.verdict = "GOOD".to_string();
        good.figures.commits =
            Some(Commits { rate: 749.2, p50_ns: Some(1_300_000), p95_ns: Some(2_000_000), p99_ns: None });
        let mut bad = host("longer-name", State::Unreachable);
        bad.why = Some("no answer in time\u{1b}[2J".to_string());
        let text = text(&report(vec![good, bad]));
        assert!(text.starts_with("weir fleet run doctor --quick: 1 of 2 hosts done in 31.0 s\n"), "{text}");
        assert!(text.contains("\ndb1                749  1.30 ms  2.00 ms    -   0 s  GOOD\n"), "{text}");
        assert!(text.contains("unreachable: no answer in time\u{fffd}[2J"), "{text}");
    }
}
