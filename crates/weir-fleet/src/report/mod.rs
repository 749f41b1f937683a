//! What a run over many hosts gave: the summary that is kept, and its table, JSON, JUnit and page; and which of its hosts are slow. Pure.

mod junit;
mod listing;
mod page;
mod slow;
mod text;

pub use junit::junit;
pub use listing::{Listing, table};
pub use page::page;
pub use slow::{PEERS, SlowHosts};
pub use text::text;

use serde::{Deserialize, Serialize};
use weir_core::units::Nanos;

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
            124 => State::TimedOut,
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
    /// It was made and is not in force any more, though it was to be kept.
    Gone,
    /// The host was not reached after it was asked to keep the change: it is kept, or its own guardian restores the old values.
    NotKnown,
    /// The host was not reached again, or could not roll back: its own guardian restores the old values when the time for confirmation is over.
    LeftToGuardian,
}

impl Change {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Change::NotMade => "not made",
            Change::Kept => "kept",
            Change::RolledBack => "rolled back",
            Change::Gone => "no longer in force",
            Change::NotKnown => "not known",
            Change::LeftToGuardian => "left to its guardian",
        }
    }
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
    /// When weir began there, by this machine's clock, in ns since 1970; where the clocks were compared.
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

    /// Whether it rolled a change out.
    pub fn is_rollout(&self) -> bool {
        self.hosts.iter().any(|host| host.rollout.is_some())
    }

    /// Whether its figures are those of commits; those of a bench may be of reads.
    pub fn has_commits(&self) -> bool {
        let measured = self.hosts.iter().filter(|host| host.figures.commits.is_some());
        self.kind != "bench" || measured.into_iter().all(|host| host.figures.verdict == "commit")
    }

    /// How many hosts ended well.
    pub fn done(&self) -> usize {
        self.hosts.iter().filter(|host| host.state == State::Done).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    pub(super) fn host(name: &str, state: State) -> HostReport {
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
    fn summaries_are_read_again() {
        let written = report(vec![host("db1", State::Done)]);
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), written);
    }
}
