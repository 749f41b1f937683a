//! What was watched beside a run, and the run's own part of its record: together the evidence.

use super::watched::Watched;
use crate::{Kind, OltpRecord};

/// The run's own part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// Transactions finished.
    pub transactions: u64,
    /// Measured time.
    pub elapsed_ns: u64,
    /// Sessions.
    pub sessions: u32,
    /// Time that sessions spent in transactions.
    pub busy_ns: u64,
    /// Statements that were answered, those that begin and end transactions included.
    pub statements: u64,
    /// Time that the client waited for answers to COMMIT; 0 where transactions commit with their only statement.
    pub commit_ns: u64,
    /// Sum of transactions' durations.
    pub transaction_ns: u64,
    /// The rate asked for, where it was an open loop.
    pub asked_per_second: Option<f64>,
    /// Open loop: shares of what was due that ended late, and that had not even started at the end.
    pub late: f64,
    /// See `late`.
    pub not_started: f64,
    /// Whether transactions only read.
    pub is_read_only: bool,
}

/// All that a verdict stands on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// The run.
    pub load: Load,
    /// Beside it.
    pub watched: Watched,
}

impl Evidence {
    /// The evidence of a record; `None` where nothing was watched.
    pub fn of(record: &OltpRecord) -> Option<Evidence> {
        Some(Evidence { load: Load::of(record), watched: record.seen()? })
    }
}

impl Load {
    /// The run's own part of a record.
    pub fn of(record: &OltpRecord) -> Load {
        let sum = |kind: Kind| record.kinds.get(&kind).map_or(0, |k| clamped(k.latency.sum()));
        let transactions = record.kinds.get(&Kind::Transaction).map_or(0, |k| k.latency.count());
        let lateness = record.lateness.as_ref();
        let share = |pick: fn(&weir_core::result::record::Lateness) -> u64| {
            lateness.map_or(0.0, |l| pick(l) as f64 / l.intended.max(1) as f64)
        };
        let writes = |kind: &Kind| kind.tally() == Some(crate::kind::Tally::Write);
        let elapsed_ns = record.elapsed_ns.max(1);
        Load {
            transactions,
            elapsed_ns,
            sessions: record.threads.len() as u32,
            busy_ns: record.threads.iter().map(|thread| thread.busy_ns).sum(),
            statements: statements(record),
            commit_ns: sum(Kind::Commit),
            transaction_ns: sum(Kind::Transaction),
            asked_per_second: lateness.map(|l| l.intended as f64 * 1e9 / elapsed_ns as f64),
            late: share(|l| l.late),
            not_started: share(|l| l.not_started),
            is_read_only: !record.kinds.keys().any(writes),
        }
    }

    /// Transactions per second.
    pub fn per_second(&self) -> f64 {
        self.transactions as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Share of a transaction that is its COMMIT by the client's clock, whatever it waits for.
    pub fn commit_share(&self) -> f64 {
        if self.transaction_ns == 0 { 0.0 } else { self.commit_ns as f64 / self.transaction_ns as f64 }
    }

    /// A count as so many a transaction.
    pub fn per_transaction(&self, count: u64) -> f64 {
        count as f64 / self.transactions.max(1) as f64
    }
}

fn statements(record: &OltpRecord) -> u64 {
    let single = record.kinds.iter().filter(|(kind, _)| **kind != Kind::Transaction);
    single.map(|(_, kind)| kind.latency.count()).sum()
}

fn clamped(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}
