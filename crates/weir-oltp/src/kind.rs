//! What latencies are distinguished by.

use serde::{Deserialize, Serialize};

/// A whole transaction, or one sort of statement in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A transaction from its intended start to the answer to its COMMIT; one that is run again after a deadlock
    /// counts once, with all its attempts.
    Transaction,
    /// `BEGIN`.
    Begin,
    /// `SELECT c … WHERE id = ?`.
    PointSelect,
    /// `SELECT c … WHERE id BETWEEN ? AND ?`.
    SimpleRange,
    /// `SELECT SUM(k) … BETWEEN`.
    SumRange,
    /// `SELECT c … BETWEEN … ORDER BY c`.
    OrderRange,
    /// `SELECT DISTINCT c … BETWEEN … ORDER BY c`.
    DistinctRange,
    /// `SELECT … WHERE k IN (?, …)`.
    RandomPoints,
    /// `SELECT count(k) … WHERE k BETWEEN ? AND ? OR …`.
    RandomRanges,
    /// `UPDATE … SET k = k + 1`.
    IndexUpdate,
    /// `UPDATE … SET c = ?`.
    NonIndexUpdate,
    /// `DELETE … WHERE id = ?`.
    Delete,
    /// `INSERT` of one row.
    Insert,
    /// `INSERT` of many rows.
    BulkInsert,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`, after an error that lets a transaction run again.
    Rollback,
    /// A reading statement of a user's script.
    Read,
    /// A writing statement of a user's script.
    Write,
    /// Any other statement of a user's script.
    Other,
}

/// How sysbench counts a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tally {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// Transaction control and everything else.
    Other,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 19] = [
        Kind::Transaction,
        Kind::Begin,
        Kind::PointSelect,
        Kind::SimpleRange,
        Kind::SumRange,
        Kind::OrderRange,
        Kind::DistinctRange,
        Kind::RandomPoints,
        Kind::RandomRanges,
        Kind::IndexUpdate,
        Kind::NonIndexUpdate,
        Kind::Delete,
        Kind::Insert,
        Kind::BulkInsert,
        Kind::Commit,
        Kind::Rollback,
        Kind::Read,
        Kind::Write,
        Kind::Other,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Transaction => "transaction",
            Kind::Begin => "begin",
            Kind::PointSelect => "point select",
            Kind::SimpleRange => "simple range",
            Kind::SumRange => "sum range",
            Kind::OrderRange => "order range",
            Kind::DistinctRange => "distinct range",
            Kind::RandomPoints => "random points",
            Kind::RandomRanges => "random ranges",
            Kind::IndexUpdate => "index update",
            Kind::NonIndexUpdate => "non-index update",
            Kind::Delete => "delete",
            Kind::Insert => "insert",
            Kind::BulkInsert => "bulk insert",
            Kind::Commit => "commit",
            Kind::Rollback => "rollback",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Other => "other",
        }
    }

    /// Under what sysbench counts it; a transaction is no statement.
    pub fn tally(self) -> Option<Tally> {
        match self {
            Kind::Transaction => None,
            Kind::PointSelect
            | Kind::SimpleRange
            | Kind::SumRange
            | Kind::OrderRange
            | Kind::DistinctRange
            | Kind::RandomPoints
            | Kind::RandomRanges
            | Kind::Read => Some(Tally::Read),
            Kind::IndexUpdate
            | Kind::NonIndexUpdate
            | Kind::Delete
            | Kind::Insert
            | Kind::BulkInsert
            | Kind::Write => Some(Tally::Write),
            Kind::Begin | Kind::Commit | Kind::Rollback | Kind::Other => Some(Tally::Other),
        }
    }
}
