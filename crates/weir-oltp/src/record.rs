//! What a run of transactions leaves: the part of a record's `extra` that is its own. Described in `docs/reference/record.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::limits::Watched;
use super::{Dialect, Kind, OltpSpec};
use weir_core::result::record::{CpuRecord, Interval, Lateness, Note};
use weir_core::stats::Histogram;

/// Value of [`OltpRecord::schema`] that this version writes.
pub const SCHEMA: &str = "weir.oltp/1";

/// The kind of records that hold it.
pub const KIND: &str = "db";

/// One run of transactions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OltpRecord {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// What was asked for, defaults filled in.
    pub spec: OltpSpec,
    /// A user's script instead of `spec.script`: its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_path: Option<String>,
    /// Who answered.
    pub server: ServerRecord,
    /// Measured time (after warm-up).
    pub elapsed_ns: u64,
    /// Latencies and failures, by kind; kinds that did not occur are absent.
    pub kinds: BTreeMap<Kind, KindRecord>,
    /// Errors after which the transaction ran again or was left out, by the server's code (`1213`, `40001`).
    pub ignored_errors: BTreeMap<String, u64>,
    /// Transactions that took more than one attempt.
    pub retried: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Consecutive intervals (1 s; longer in very long runs).
    pub intervals: Vec<Interval<Kind>>,
    /// Each connection's share.
    pub threads: Vec<ConnectionRecord>,
    /// Open loop only.
    pub lateness: Option<Lateness>,
    /// CPU time while measuring: this process (the client) and the machine.
    pub cpu: CpuRecord,
    /// What was seen of the server and the machine meanwhile, from which follows what limited the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// What was noticed.
    pub notes: Vec<Note>,
    /// The error that ended the run, if one did.
    pub error: Option<String>,
}

impl OltpRecord {
    /// What was seen beside the transactions, as far as it can be set against all of them.
    pub fn seen(&self) -> Option<Watched> {
        let watched = self.watched.as_ref()?.with_niced_by(&self.cpu, self.elapsed_ns);
        Some(if self.server.places.len() > 1 { watched.of_first(&self.server.places[0]) } else { watched })
    }
}

/// A server as the run met it. Holds no password.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its family.
    pub dialect: Option<Dialect>,
    /// What it calls itself: `10.11.14-MariaDB`, `PostgreSQL 15.10`.
    pub version: String,
    /// `unix:/run/…` or `host:port`; several where connections were spread.
    pub places: Vec<String>,
    /// Encrypted connections.
    pub tls: bool,
    /// Variables that matter to what was measured, as the server prints them.
    pub variables: BTreeMap<String, String>,
    /// Those of further servers where they differ from the first's, by place; none of one that does not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, BTreeMap<String, String>>,
}

impl ServerRecord {
    /// Each further server whose variables differ, with those that do: `db2:3306: sync_binlog 0`.
    pub fn differences(&self) -> Vec<String> {
        let one = |(place, variables): (&String, &BTreeMap<String, String>)| {
            if variables.is_empty() {
                return format!("{place}: settings not known");
            }
            let names: BTreeSet<&String> = self.variables.keys().chain(variables.keys()).collect();
            let differ = names.into_iter().filter(|name| self.variables.get(*name) != variables.get(*name));
            let value = |name: &String| variables.get(name).map_or("absent", String::as_str);
            let differ: Vec<String> = differ.map(|name| format!("{name} {}", value(name))).collect();
            format!("{place}: {}", differ.join(", "))
        };
        self.others.iter().map(one).collect()
    }
}

/// Whether an address of [`ServerRecord::places`] can only be of the machine that asked: a socket, or the loop-back.
pub fn is_local(place: &str) -> bool {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host.trim_matches(['[', ']']));
    let is_loopback = || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    place.starts_with("unix:") || host == "localhost" || is_loopback()
}

/// Totals of one kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KindRecord {
    /// Statements (or transactions) that failed.
    pub errors: u64,
    /// Rows read or changed.
    pub rows: u64,
    /// Writing statements that changed no row; sysbench counts them among the others.
    #[serde(default)]
    pub empty: u64,
    /// A transaction from its intended start, a statement from its sending, to the whole answer.
    pub latency: Histogram,
}

/// One connection's share of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// Transactions finished.
    pub transactions: u64,
    /// Time spent in them.
    pub busy_ns: u64,
}
