//! What was seen of a run's syncs, held against its commits.
//!
//! A connection has one commit under way at a time, and a sync makes only that log durable which was written before it
//! began. So a sync stands for one commit of each connection at most: c commits of n connections take c / n syncs at
//! least, however the server groups them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::promise::writes_durably;
use crate::kind::Tally;
use crate::limits::{Load, NOT_COUNTED, Watched};
use crate::{Kind, OltpRecord, Script};

/// Where fewer syncs than this are due, none at all may be chance.
const DUE_AT_LEAST: f64 = 10.0;
/// Commits at the edges, and syncs watched for by the way, may halve what is seen, and no more.
const SEEN_AT_LEAST: f64 = 0.5;

/// Who counted syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Programs in the kernel: calls of the server's processes on files of a device.
    Kernel,
    /// The device's own counters, which have everybody's writes and flushes in them.
    Device,
    /// The server's counters: what it asked for.
    Server,
}

/// What was seen of syncs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "kebab-case")]
pub enum Evidence {
    /// As many as commits need.
    Enough {
        /// Syncs a transaction.
        each: f64,
        /// By whose count.
        by: Source,
    },
    /// Fewer than durable commits need, or none.
    TooFew {
        /// Syncs a transaction; of the device, writes and flushes.
        each: f64,
        /// What there would have been at least.
        least: f64,
        /// By whose count.
        by: Source,
        /// Syncs a transaction by the server's own count, where that is another.
        server: Option<f64>,
    },
    /// Cannot be told.
    NotWatched {
        /// Why.
        why: String,
    },
    /// Nothing was written, so that nothing had to be synced.
    NoCommits,
}

/// Commits of a run, and how many syncs they take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commits {
    /// Transactions that changed something; an estimate where not `all_write`.
    count: f64,
    transactions: f64,
    sessions: f64,
    /// Whether every transaction of the workload writes, so that `count` is certain.
    all_write: bool,
}

/// Whether counted syncs are enough; `None` where that cannot be told.
type Enough = Option<bool>;

impl Commits {
    pub(super) fn of(record: &OltpRecord, load: &Load) -> Commits {
        let writes = record.kinds.iter().filter(|(kind, _)| kind.tally() == Some(Tally::Write));
        let changes: u64 = writes.map(|(_, kind)| kind.latency.count().saturating_sub(kind.empty)).sum();
        let own = record.script_path.is_none() && !record.kinds.contains_key(&Kind::Write);
        Commits {
            count: changes.min(load.transactions) as f64,
            transactions: load.transactions.max(1) as f64,
            sessions: f64::from(load.sessions.max(1)),
            // Of many rows in one statement not all transactions write on time: sysbench sends them when full.
            all_write: own && record.spec.script != Script::BulkInsert,
        }
    }

    /// Syncs that would be due at least over a share of the run.
    fn due(&self, share: f64) -> f64 {
        self.count * share / self.sessions
    }

    fn judge(&self, syncs: f64, share: f64) -> Enough {
        let due = self.due(share);
        if syncs > 0.0 && syncs >= SEEN_AT_LEAST * due {
            return Some(true);
        }
        // Of a script's transactions any part may write: only none at all says something.
        let certain = due >= DUE_AT_LEAST && (self.all_write || syncs == 0.0);
        certain.then_some(false)
    }

    fn each(&self, syncs: f64) -> f64 {
        syncs / self.transactions
    }

    fn least(&self) -> f64 {
        self.count / self.sessions / self.transactions
    }
}

impl Evidence {
    /// By the best source there is: the kernel's count settles it. The device's flushes prove syncs only together with
    /// the server's own count, since others flush, too; that the device took no writes, or that the server counts no
    /// syncs, disproves them. `sees_files`: whether the kernel's programs tell which device the server's files are on.
    pub(super) fn of(
        commits: &Commits,
        watched: &Watched,
        variables: &BTreeMap<String, String>,
        sees_files: bool,
    ) -> Evidence {
        if commits.count == 0.0 {
            return Evidence::NoCommits;
        }
        let server = watched.counters.and_then(|counters| counters.syncs).map(|count| count as f64);
        let too_few = |syncs: f64, by: Source| {
            let each = commits.each(syncs);
            let server = server.map(|syncs| commits.each(syncs)).filter(|_| by == Source::Kernel);
            Evidence::TooFew { each, least: commits.least(), by, server }
        };
        if let Some(syncs) = watched.syncs {
            let (share, total) = (syncs.share(watched.elapsed_ns), syncs.total(watched.elapsed_ns));
            match commits.judge((syncs.count + syncs.lost) as f64, share) {
                Some(true) => return Evidence::Enough { each: commits.each(total), by: Source::Kernel },
                Some(false) if sees_files => return too_few(total, Source::Kernel),
                _ => {}
            }
        }
        let asked = server.and_then(|syncs| commits.judge(syncs, 1.0));
        let [flushed, written] = device(watched).map(|count| count.and_then(|n| commits.judge(n, 1.0)));
        match (asked, flushed, written, server) {
            _ if watched.syncs.is_some() => {}
            (Some(true), Some(true), ..) => {
                let each = commits.each(server.unwrap_or(0.0));
                return Evidence::Enough { each, by: Source::Device };
            }
            (Some(false), .., Some(syncs)) if !writes_durably(variables) => {
                return too_few(syncs, Source::Server);
            }
            // Where the server counts its syncs, the log may lie on another device.
            (None, _, Some(false), None) => {
                return too_few(device(watched)[1].unwrap_or(0.0), Source::Device);
            }
            _ => {}
        }
        Evidence::NotWatched { why: why(commits, watched) }
    }
}

/// Flushes of the device under the data, and its writes and flushes together.
fn device(watched: &Watched) -> [Option<f64>; 2] {
    let seconds = watched.elapsed_ns as f64 / 1e9;
    let device = watched.device.as_ref().filter(|device| !device.is_memory && !device.name.is_empty());
    let count = |rate: f64| rate * seconds;
    [
        device.map(|device| count(device.flushes_per_second)),
        device.map(|device| count(device.flushes_per_second + device.writes_per_second)),
    ]
}

/// Why it cannot be told.
fn why(commits: &Commits, watched: &Watched) -> String {
    if watched.syncs.is_some() && commits.due(1.0) < DUE_AT_LEAST {
        return "too few commits to tell".to_string();
    }
    if watched.syncs.is_some() {
        return "the observations do not settle it".to_string();
    }
    let said = watched.unseen.iter().find_map(|sentence| sentence.strip_prefix(NOT_COUNTED));
    said.map_or_else(
        || match watched.cpu.server_ns {
            Some(_) => "no program in the kernel counted them".to_string(),
            None => "the server's processes were not found on this machine".to_string(),
        },
        str::to_string,
    )
}

/// Syncs a transaction, for every sentence that names them: by the kernel's count, or else by the server's.
pub fn syncs_each(load: &Load, watched: &Watched) -> Option<f64> {
    let seen = watched.syncs.map(|syncs| syncs.total(watched.elapsed_ns));
    let counted = || watched.counters.and_then(|counters| counters.syncs).map(|count| count as f64);
    seen.or_else(counted).map(|syncs| syncs / load.transactions.max(1) as f64)
}
