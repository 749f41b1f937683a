//! Servers made up for tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "made for tests")]

use std::collections::BTreeMap;

use super::*;
use weir_core::target::Memory;
use weir_oltp::limits::Sessions;
use weir_oltp::vitals::{SCHEMA as VITALS, Snapshot};

/// A server whose counters grew so much in 60 s.
pub(super) fn server(dialect: Dialect, variables: &[(&str, &str)], grew: &[(&str, f64)]) -> Examination {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let snapshot =
        |factor: f64| Snapshot(grew.iter().map(|(name, n)| (name.to_string(), n * factor)).collect());
    let vitals = Vitals {
        schema: VITALS.to_string(),
        dialect,
        version: if dialect == Dialect::MySql { "10.11.14-MariaDB" } else { "PostgreSQL 15.10" }.to_string(),
        variables,
        elapsed_ns: 60_000_000_000,
        first: snapshot(0.0),
        last: snapshot(1.0),
        checkpoint_age: None,
        dirty: None,
        sessions: Sessions::default(),
        cost_ns: 0,
        own_statements: 0,
        unseen: Vec::new(),
    };
    let memory = Memory { total_bytes: 16 << 30, available_bytes: 8 << 30, ..Memory::default() };
    Examination {
        schema: SCHEMA.to_string(),
        place: "unix:/run/s".to_string(),
        vitals,
        data_dir: Some("/srv/db".to_string()),
        log: None,
        conditions: Some(Conditions { memory, ..Conditions::default() }),
        load: None,
        unseen: Vec::new(),
        ended_early: None,
    }
}

pub(super) const MARIADB: [(&str, &str); 9] = [
    ("innodb_buffer_pool_size", "134217728"),
    ("innodb_doublewrite", "ON"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_flush_method", "O_DIRECT"),
    ("innodb_io_capacity", "200"),
    ("innodb_io_capacity_max", "2000"),
    ("innodb_log_buffer_size", "16777216"),
    ("innodb_log_file_size", "100663296"),
    ("log_bin", "OFF"),
];
/// A thousand transactions a second, all from memory, 10 KB of log a second.
pub(super) const CALM: [(&str, f64); 7] = [
    ("Questions", 240_000.0),
    ("Com_commit", 60_000.0),
    ("Innodb_data_fsyncs", 30_000.0),
    ("Innodb_buffer_pool_read_requests", 1e7),
    ("Innodb_buffer_pool_reads", 10.0),
    ("Innodb_buffer_pool_pages_flushed", 600.0),
    ("Innodb_os_log_written", 6e5),
];

pub(super) fn with<'a>(base: &[(&'a str, f64)], more: &[(&'a str, f64)]) -> Vec<(&'a str, f64)> {
    let mut all: BTreeMap<&str, f64> = base.iter().copied().collect();
    all.extend(more.iter().copied());
    all.into_iter().collect()
}

/// A server whose log is always nearly full.
pub fn small_log() -> Examination {
    let mut exam = server(Dialect::MySql, &MARIADB, &with(&CALM, &[("Innodb_os_log_written", 60.0 * 1e6)]));
    exam.vitals.checkpoint_age = Some(0.9);
    exam
}
