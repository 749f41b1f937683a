//! A database record made by hand for the tests of results and reports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "made for tests")]

use std::collections::BTreeMap;

use serde_json::json;

use super::record::{ConnectionRecord, KIND, KindRecord, OltpRecord, SCHEMA, ServerRecord};
use super::{Dialect, Kind, OltpSpec};
use weir_core::result::Record;
use weir_core::result::record::{CpuRecord, Interval, IntervalClass};
use weir_core::result::samples;
use weir_core::stats::Histogram;
use weir_core::stats::random::{Random, simulate};

/// Statements of a made-up transaction: how many, and the mean latency of each.
const STATEMENTS: [(Kind, u64, f64); 4] = [
    (Kind::Begin, 1, 50_000.0),
    (Kind::PointSelect, 10, 100_000.0),
    (Kind::IndexUpdate, 1, 200_000.0),
    (Kind::Commit, 1, 700_000.0),
];
const SECOND_NS: u64 = 1_000_000_000;
/// Time between the statements of a transaction.
const THINK_NS: u64 = 100_000;

/// Transactions of a server that answers `factor` times as slowly, one connection after another filling each second.
pub fn raw(random: &mut Random, seconds: u64, factor: f64) -> OltpRecord {
    let mut kinds: BTreeMap<Kind, KindRecord> = BTreeMap::new();
    let threads = 4;
    let mut intervals = Vec::new();
    let mut transactions = 0;
    for second in 0..seconds {
        let mut of_second: BTreeMap<Kind, Histogram> = BTreeMap::new();
        for _ in 0..threads {
            let mut used_ns = 0;
            while used_ns < SECOND_NS {
                let took_ns = transaction(random, factor, &mut of_second);
                used_ns += took_ns;
            }
        }
        transactions += of_second[&Kind::Transaction].count();
        intervals.push(Interval {
            start_ns: second * SECOND_NS,
            len_ns: SECOND_NS,
            classes: of_second.iter().map(|(kind, latency)| (*kind, interval(latency))).collect(),
            oldest_ns: 1_000_000,
            in_flight: threads,
        });
        for (kind, latency) in of_second {
            kinds.entry(kind).or_default().latency.merge(&latency);
        }
    }
    let elapsed_ns = seconds * SECOND_NS;
    let each = ConnectionRecord { transactions: transactions / u64::from(threads), busy_ns: elapsed_ns };
    OltpRecord {
        schema: SCHEMA.to_string(),
        spec: OltpSpec { threads, ..OltpSpec::default() },
        script_path: None,
        server: server(),
        elapsed_ns,
        kinds,
        ignored_errors: BTreeMap::from([("1213".to_string(), 3)]),
        retried: 3,
        reconnects: 0,
        intervals,
        threads: vec![each; threads as usize],
        lateness: None,
        cpu: CpuRecord {
            process_user_ns: elapsed_ns / 10,
            process_system_ns: elapsed_ns / 10,
            machine_busy_ns: elapsed_ns * 3 / 2,
            processors: 2,
            allowed: None,
        },
        watched: None,
        notes: Vec::new(),
        error: None,
    }
}

fn transaction(random: &mut Random, factor: f64, into: &mut BTreeMap<Kind, Histogram>) -> u64 {
    let mut whole_ns = THINK_NS;
    for (kind, count, mean_ns) in STATEMENTS {
        for _ in 0..count {
            let took_ns = (mean_ns * factor * (0.5 - 0.5 * simulate::uniform(random).ln())) as u64;
            into.entry(kind).or_default().record(took_ns);
            whole_ns += took_ns;
        }
    }
    into.entry(Kind::Transaction).or_default().record(whole_ns);
    whole_ns
}

fn interval(latency: &Histogram) -> IntervalClass {
    let at = |q| latency.quantile(q).unwrap_or(0);
    IntervalClass {
        count: latency.count(),
        bytes: 0,
        mean_ns: latency.mean().unwrap_or(0.0),
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        max_ns: latency.max().unwrap_or(0),
        coarse: latency.coarse(3),
    }
}

fn server() -> ServerRecord {
    let variables = [
        ("innodb_buffer_pool_size", "134217728"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("log_bin", "OFF"),
    ];
    ServerRecord {
        dialect: Some(Dialect::MySql),
        version: "10.11.14-MariaDB-0+deb12u2".to_string(),
        places: vec!["unix:/run/mysqld/mysqld.sock".to_string()],
        tls: false,
        variables: variables.map(|(k, v)| (k.to_string(), v.to_string())).into(),
        others: BTreeMap::new(),
    }
}

/// The record that holds it.
pub fn record(raw: &OltpRecord) -> Record {
    Record {
        kind: KIND.to_string(),
        command: ["weir", "db", "run", "--mysql", "--threads", "4"].map(String::from).to_vec(),
        extra: serde_json::to_value(raw).unwrap_or(json!(null)),
        ..samples::record(Vec::new())
    }
}
