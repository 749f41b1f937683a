//! What a run over many hosts gave: the summary that is kept, and its table, JSON and JUnit. Pure.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use weir_core::printable;
use weir_core::units::{Nanos, significant};

use crate::figures::Figures;
use crate::guardrail::Probes;
use crate::session::{ClockOffset, Failure};

/// Value of [`Report::schema`] that this version writes.
pub const SCHEMA: &str = "weir.fleet/1";

/// How a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// weir ran there and ended with 0.
    Done,
    /// weir ended with 1: below a bar that was stated, or a change that did harm.
    BelowBar,
    /// weir ended with 4: an operation of the workload failed.
    WorkloadFailed,
    /// It was not reached, or let nobody in.
    Unreachable,
    /// It was reached, and weir did not run to its end there.
    Failed,
    /// It took too long.
    TimedOut,
    /// A signal ended the run before.
    Interrupted,
    /// Its turn did not come.
    NotRun,
}

impl State {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            State::Done => "done",
            State::BelowBar => "below a bar",
            State::WorkloadFailed => "workload failed",
            State::Unreachable => "unreachable",
            State::Failed => "failed",
            State::TimedOut => "timed out",
            State::Interrupted => "interrupted",
            State::NotRun => "not run",
        }
    }

    /// The state that weir's exit code means.
    pub fn of_code(code: i32) -> State {
        match code {
            0 => State::Done,
            1 => State::BelowBar,
            4 => State::WorkloadFailed,
            // coreutils' timeout, which runs on the host.
            124 | 137 => State::TimedOut,
            _ => State::Failed,
        }
    }
}

/// What became of a change on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It was not made.
    NotMade,
    /// It is in force and confirmed.
    Kept,
    /// The old values are back.
    RolledBack,
    /// The host was not reached again: its own guardian restores the old values when the time for confirmation is over.
    LeftToGuardian,
}

/// A host's part in a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// In which step its turn is, from 1.
    pub step: usize,
    /// Commits before the change and after it.
    pub probes: Probes,
    /// What became of the change.
    pub change: Change,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its name.
    pub host: String,
    /// How it ended.
    pub state: State,
    /// Why, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// weir's exit code there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// From the first attempt to reach it until its folder was gone.
    pub elapsed_ns: u64,
    /// Its architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
    /// When weir began there, by this machine's clock, in ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<i64>,
    /// What it answered.
    #[serde(default)]
    pub figures: Figures,
    /// Its part in a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Files that were pulled, below the folder of results.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether its folder on the host is known to be gone.
    #[serde(default)]
    pub cleaned: bool,
}

impl HostReport {
    /// Of a host of which nothing is known yet.
    pub fn new(host: &str) -> HostReport {
        HostReport {
            host: host.to_string(),
            state: State::NotRun,
            why: None,
            code: None,
            elapsed_ns: 0,
            architecture: None,
            clock: None,
            began_ns: None,
            figures: Figures::default(),
            rollout: None,
            files: Vec::new(),
            cleaned: false,
        }
    }

    /// Takes in why it failed.
    pub fn fail(&mut self, failure: Failure) {
        (self.state, self.why) = match failure {
            Failure::Unreachable(why) => (State::Unreachable, Some(why)),
            Failure::Failed(why) => (State::Failed, Some(why)),
            Failure::TimedOut(why) => (State::TimedOut, Some(why)),
            Failure::Stopped => (State::Interrupted, None),
        };
    }

    /// One line about its end.
    pub fn sentence(&self) -> String {
        let took = Nanos(self.elapsed_ns);
        let what = match (&self.state, &self.why) {
            (State::Done, _) if !self.figures.verdict.is_empty() => self.figures.verdict.clone(),
            (state, Some(why)) => format!("{}: {why}", state.words()),
            (state, None) => state.words().to_string(),
        };
        format!("{}: {what} ({took})", self.host)
    }
}

/// A run over many hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Its name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What ran on the hosts.
    pub command: Vec<String>,
    /// The kind of its results, as in their folder's name.
    pub kind: String,
    /// Time until the last host had ended.
    pub elapsed_ns: u64,
    /// The signal that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<u8>,
    /// Between the first start and the last, where hosts were to start together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread_ns: Option<i64>,
    /// Each host, in the order that they were named.
    pub hosts: Vec<HostReport>,
}

impl Report {
    /// The exit code: what is worst decides. A signal; a host without a result (3); a workload that failed (4); a bar (1).
    pub fn code(&self) -> u8 {
        let any = |states: &[State]| self.hosts.iter().any(|host| states.contains(&host.state));
        match self.interrupted {
            Some(signal) => 128_u8.saturating_add(signal),
            None if any(&[State::Unreachable, State::Failed, State::TimedOut, State::Interrupted]) => 3,
            None if any(&[State::WorkloadFailed]) => 4,
            None if any(&[State::BelowBar, State::NotRun]) => 1,
            None => 0,
        }
    }

    /// How many hosts ended well.
    pub fn done(&self) -> usize {
        self.hosts.iter().filter(|host| host.state == State::Done).count()
    }
}

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
        let rates = |all: &[crate::figures::Commits]| {
            let rates: Vec<String> = all.iter().map(|commits| significant(commits.rate)).collect();
            if rates.is_empty() { "-".to_string() } else { rates.join(" ") }
        };
        let change = match part.map(|part| part.change) {
            Some(Change::Kept) => "kept",
            Some(Change::RolledBack) => "rolled back",
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

/// For tools that read test results: a case for each host.
pub fn junit(report: &Report) -> String {
    let count = |states: &[State]| report.hosts.iter().filter(|host| states.contains(&host.state)).count();
    let failures = count(&[State::BelowBar, State::WorkloadFailed]);
    let skipped = count(&[State::NotRun]);
    let errors = report.hosts.len() - failures - skipped - report.done();
    let name = xml(&format!("weir {}", report.command.join(" ")));
    let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\" timestamp=\"{}\">\n",
        report.hosts.len(),
        seconds(report.elapsed_ns),
        xml(&report.started_at)
    );
    for host in &report.hosts {
        let _ = write!(
            out,
            "<testcase classname=\"weir.{}\" name=\"{}\" time=\"{}\"",
            xml(&report.kind),
            xml(&host.host),
            seconds(host.elapsed_ns)
        );
        let words = host
            .why
            .clone()
            .or_else(|| host.figures.headline.clone())
            .unwrap_or_else(|| host.state.words().to_string());
        let element = match host.state {
            State::Done => None,
            State::BelowBar | State::WorkloadFailed => Some("failure"),
            State::NotRun => Some("skipped"),
            _ => Some("error"),
        };
        let _ = match element {
            Some(element) => writeln!(
                out,
                "><{element} message=\"{}\"/></testcase>",
                xml(&format!("{}: {words}", host.state.words()))
            ),
            None => writeln!(out, "/>"),
        };
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// Text in XML 1.0, which has no words for most control characters.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in printable::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Commits;

    pub(super) fn report(hosts: Vec<HostReport>) -> Report {
        Report {
            schema: SCHEMA.to_string(),
            id: "20261125-120000-000-aaaa".to_string(),
            started_at: "2026-11-25T12:00:00Z".to_string(),
            command: vec!["doctor".to_string(), "--quick".to_string()],
            kind: "doctor".to_string(),
            elapsed_ns: 31_000_000_000,
            interrupted: None,
            start_spread_ns: None,
            hosts,
        }
    }

    fn host(name: &str, state: State) -> HostReport {
        HostReport { state, ..HostReport::new(name) }
    }

    #[test]
    fn the_worst_host_decides_the_exit_code() {
        for (states, expected) in [
            (&[State::Done, State::Done][..], 0),
            (&[State::Done, State::BelowBar], 1),
            (&[State::BelowBar, State::WorkloadFailed], 4),
            (&[State::BelowBar, State::WorkloadFailed, State::Unreachable], 3),
            (&[State::TimedOut], 3),
        ] {
            let hosts = states.iter().map(|state| host("a", *state)).collect();
            assert_eq!(report(hosts).code(), expected, "{states:?}");
        }
        assert_eq!(Report { interrupted: Some(2), ..report(vec![host("a", State::Done)]) }.code(), 130);
    }

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

    #[test]
    fn junit_is_xml_whatever_hosts_say() {
        let mut bad = host("db2", State::Failed);
        bad.why = Some("<a> & \"b\" \u{0} \u{ffff}".to_string());
        let xml = junit(&report(vec![
            host("db1", State::Done),
            bad,
            host("db3", State::BelowBar),
            host("db4", State::NotRun),
        ]));
        assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
        assert!(
            xml.contains("<error message=\"failed: &lt;a&gt; &amp; &quot;b&quot; \u{fffd} \u{fffd}\"/>"),
            "{xml}"
        );
        assert!(xml.contains("name=\"db1\" time=\"0.000\"/>"), "{xml}");
    }

    #[test]
    fn summaries_are_read_again() {
        let written = report(vec![host("db1", State::Done)]);
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), written);
    }
}
