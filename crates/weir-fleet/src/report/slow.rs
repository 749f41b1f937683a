//! Slow hosts of a run, in words.

use serde_json::{Value, json};
use weir_core::printable;
use weir_core::units::{Nanos, significant};
use weir_report::html::FleetSlowHosts;

use super::{Listing, Report};
use crate::slow::{self, Cause, Judged};

/// Hosts of a run that it takes to say what is usual.
pub const PEERS: u32 = 4;

/// Hosts of a run, judged.
pub struct SlowHosts {
    run: String,
    peers: u32,
    judged: Vec<Judged>,
    /// Those with too few peers.
    alone: Vec<String>,
    /// Whether file systems and devices are known.
    examined: bool,
    /// Whether its rates are those of commits.
    commits: bool,
}

impl SlowHosts {
    /// Of a run, with so many hosts at least that say what is usual.
    pub fn of(report: &Report, peers: u32) -> SlowHosts {
        let hosts: Vec<_> = report.hosts.iter().map(|host| (host.host.as_str(), &host.figures)).collect();
        let (judged, alone) = slow::judge(&hosts, peers as usize);
        let examined = report.hosts.iter().any(|host| host.figures.examination.is_some());
        SlowHosts { run: report.id.clone(), peers, judged, alone, examined, commits: report.has_commits() }
    }

    /// The slow ones, the slowest first.
    pub fn slow(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|host| host.slow)
    }

    /// Whether there is anything to compare.
    pub fn has_figures(&self) -> bool {
        !(self.judged.is_empty() && self.alone.is_empty())
    }

    /// Whether a host is slow.
    pub fn is_slow(&self, host: &str) -> bool {
        self.slow().any(|slow| slow.host == host)
    }

    /// How many were compared.
    pub fn compared(&self) -> usize {
        self.judged.len()
    }

    fn sentence(&self) -> String {
        format!("{} of {} hosts are slow", self.slow().count(), self.compared())
    }

    fn listing(&self) -> Listing {
        const OF_COMMITS: &[&str] = &["host", "commits/s", "peers'", "p95", "peers'", "peers", "cause"];
        const OF_OTHERS: &[&str] = &["host", "operations/s", "peers'", "p95", "peers'", "peers", "cause"];
        let head = if self.commits { OF_COMMITS } else { OF_OTHERS };
        Listing::of(head, &[false, true, true, true, true, true, false], self.slow(), |host| {
            let time = |ns: f64| Nanos(ns as u64).to_string();
            let p95 = |of: fn(&slow::Against) -> f64| {
                host.p95_ns.as_ref().map_or("-".to_string(), |p95| time(of(p95)))
            };
            vec![
                host.host.clone(),
                significant(host.rate.value),
                significant(host.rate.median),
                p95(|p95| p95.value),
                p95(|p95| p95.median),
                host.peers.to_string(),
                host.cause.unwrap_or(Cause::Unknown).words().to_string(),
            ]
        })
    }

    /// What the causes stand on.
    fn evidence(&self) -> Vec<String> {
        let said = |host: &Judged| {
            let settings = host.settings.as_ref().map(|words| format!("its settings differ: {words}"));
            let all = [host.evidence.clone(), settings].into_iter().flatten();
            all.map(|words| format!("{}: {words} ({})", host.host, host.group)).collect::<Vec<_>>()
        };
        self.slow().flat_map(said).collect()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!(
            "run {}: {} (more than 3.5 robust deviations and 30 % worse than the median of their peers)\n{}",
            self.run,
            self.sentence(),
            self.listing().text()
        );
        for sentence in self.evidence() {
            out.push_str(&sentence);
            out.push('\n');
        }
        if !self.alone.is_empty() {
            out.push_str(&format!(
                "not judged, with fewer than {} hosts of their model: {}\n",
                self.peers,
                self.alone.join(", ")
            ));
        }
        printable::lines(&out).into_owned()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "schema": "weir.fleet.slow/1", "run": self.run, "hosts": self.judged, "without_peers": self.alone })
    }

    /// For a page.
    pub fn on_a_page(&self) -> FleetSlowHosts {
        FleetSlowHosts {
            rule: format!(
                "A host is compared with its peers: {}. It is slow if its rate, or its 95th percentile, is 30 % and 3.5 robust deviations worse than the \
                 median of its peers.",
                if self.examined {
                    format!(
                        "hosts with the same file system, device and queue settings; where there are fewer than {0} of them, those with the same \
                         file system and device, {0} at least",
                        self.peers
                    )
                } else {
                    format!("all hosts of the run, {} at least", self.peers)
                }
            ),
            listing: self.listing().on_a_page(),
            evidence: self.evidence(),
            without_peers: self.alone.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::super::tests::{host, report};
    use super::*;
    use crate::figures::Commits;

    #[test]
    fn rates_are_called_what_they_are_of() {
        for (kind, class, named) in [
            ("bench", "read", "operations/s"),
            ("bench", "commit", "commits/s"),
            ("doctor", "GOOD", "commits/s"),
        ] {
            let hosts = (0..6).map(|n| {
                let mut host = host(&format!("db{n}"), State::Done);
                let rate = if n == 0 { 10.0 } else { 1000.0 };
                host.figures.commits = Some(Commits { rate, ..Commits::default() });
                host.figures.verdict = class.to_string();
                host
            });
            let text =
                SlowHosts::of(&Report { kind: kind.to_string(), ..report(hosts.collect()) }, PEERS).text();
            assert!(text.contains(named), "{kind} {class}: {text}");
        }
    }
}
