//! The report for people.

use std::fmt::Write;

use weir_core::printable;
use weir_core::units::{Nanos, significant};

use super::{Change, HostReport, Report, State};
use crate::figures::Commits;

/// A table of columns as wide as what stands in them, numbers to the right.
pub fn table(head: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|n| rows.iter().map(|row| width(&row[n])).chain([width(head[n])]).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|name| name.to_string()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[n] - width(cell));
            let _ = if right[n] { write!(line, "{gap}{cell}  ") } else { write!(line, "{cell}{gap}  ") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A time, or a dash.
fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_string(), |ns| Nanos(ns).to_string())
}

/// The report for people.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "weir fleet run {}: {} of {} hosts done in {}\n",
        report.command.join(" "),
        report.done(),
        report.hosts.len(),
        Nanos(report.elapsed_ns)
    );
    out.push_str(&if report.hosts.iter().any(|host| host.rollout.is_some()) {
        rollout(report)
    } else {
        hosts(report)
    });
    if let Some(spread) = report.start_spread_ns {
        let offsets = report.hosts.iter().filter_map(|host| host.clock);
        let most = offsets.clone().map(|clock| clock.offset_ns.unsigned_abs()).max().unwrap_or(0);
        let within = offsets.map(|clock| clock.within_ns.unsigned_abs()).max().unwrap_or(0);
        let _ = writeln!(
            out,
            "started within {} of each other, known to ± {}; their clocks differ from this one's by up to {}",
            Nanos(spread.unsigned_abs()),
            Nanos(within),
            Nanos(most)
        );
    }
    let left: Vec<&str> = report
        .hosts
        .iter()
        .filter(|host| host.architecture.is_some() && !host.cleaned)
        .map(|host| host.host.as_str())
        .collect();
    if !left.is_empty() {
        let _ = writeln!(out, "not confirmed that the folder on the host is gone: {}", left.join(", "));
    }
    printable::lines(&out).into_owned()
}

fn hosts(report: &Report) -> String {
    let has_commits = report.hosts.iter().any(|host| host.figures.commits.is_some());
    let verdict = |host: &HostReport| match (&host.why, host.state) {
        (Some(why), state) => format!("{}: {why}", state.words()),
        (None, State::Done) if !host.figures.verdict.is_empty() => host.figures.verdict.clone(),
        (None, State::BelowBar) => format!("{} (below a bar)", host.figures.verdict),
        (None, state) => state.words().to_string(),
    };
    let row = |host: &HostReport| {
        let commits = host.figures.commits;
        let mut row = vec![host.host.clone()];
        if has_commits {
            row.push(commits.map_or("-".to_string(), |commits| significant(commits.rate)));
            row.extend(
                [
                    commits.and_then(|c| c.p50_ns),
                    commits.and_then(|c| c.p95_ns),
                    commits.and_then(|c| c.p99_ns),
                ]
                .map(time),
            );
        }
        row.push(Nanos(host.elapsed_ns).to_string());
        row.push(verdict(host));
        row
    };
    let rows: Vec<Vec<String>> = report.hosts.iter().map(row).collect();
    if has_commits {
        table(
            &["host", "commits/s", "p50", "p95", "p99", "took", "verdict"],
            &[false, true, true, true, true, true, false],
            &rows,
        )
    } else {
        table(&["host", "took", "verdict"], &[false, true, false], &rows)
    }
}

fn rollout(report: &Report) -> String {
    let row = |host: &HostReport| {
        let part = host.rollout.as_ref();
        let rates = |all: &[Commits]| {
            let rates: Vec<String> = all.iter().map(|commits| significant(commits.rate)).collect();
            if rates.is_empty() { "-".to_string() } else { rates.join(" ") }
        };
        let change = match part.map(|part| part.change) {
            Some(Change::Kept) => "kept",
            Some(Change::RolledBack) => "rolled back",
            Some(Change::Gone) => "no longer in force",
            Some(Change::NotKnown) => "not known",
            Some(Change::LeftToGuardian) => "restored by its guardian",
            Some(Change::NotMade) | None => "not made",
        };
        let why = host.why.as_ref().map_or(String::new(), |why| format!("{}: {why}", host.state.words()));
        vec![
            host.host.clone(),
            part.map_or("-".to_string(), |part| part.step.to_string()),
            part.map_or("-".to_string(), |part| rates(&part.probes.before)),
            part.map_or("-".to_string(), |part| rates(&part.probes.after)),
            change.to_string(),
            why,
        ]
    };
    let rows: Vec<Vec<String>> = report.hosts.iter().map(row).collect();
    table(
        &["host", "step", "commits/s before", "after", "change", ""],
        &[false, true, true, true, false, false],
        &rows,
    )
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
