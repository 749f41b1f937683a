//! How large tables and the log of a load become, and whether the server can hold tables in memory.

use std::collections::BTreeMap;

use super::schema;
use super::spec::OltpSpec;
use super::vitals;
use weir_core::dialect::Dialect;
use weir_core::units::Bytes;

/// Bytes a row with its share of the primary key takes, measured on freshly loaded tables of 300,000 rows: MariaDB 10.11,
/// PostgreSQL 15.
const ROW: [(Dialect, u64); 2] = [(Dialect::MySql, 226), (Dialect::Postgres, 244)];
/// Bytes of the index on `k` a row.
const INDEX: [(Dialect, u64); 2] = [(Dialect::MySql, 16), (Dialect::Postgres, 20)];
/// Bytes of a row in MySQL's binary log, measured on MariaDB 10.11: 190 as a row, 202 in the text of a statement.
const LOGGED_ROW: u64 = 202;
/// What stays free whatever is loaded, besides a tenth of the tables for redo and growth.
const KEEP_BYTES: u64 = 256 << 20;

/// Bytes that the tables of a workload take in the server, within some tenths: they grow as rows change. Those of
/// `bulk_insert` are empty at first.
pub fn tables_bytes(spec: &OltpSpec, dialect: Dialect) -> u64 {
    let of =
        |table: [(Dialect, u64); 2]| table.into_iter().find(|(d, _)| *d == dialect).map_or(0, |(_, n)| n);
    let row = of(ROW) + if spec.create_secondary { of(INDEX) } else { 0 };
    rows(spec).saturating_mul(row)
}

/// Bytes that the server's log keeps of filling these tables, by its variables: MySQL's binary log all of it until it is purged,
/// PostgreSQL's about as much as the tables have, and no more than `max_wal_size`.
pub fn log_bytes(spec: &OltpSpec, dialect: Dialect, variables: &BTreeMap<String, String>) -> u64 {
    let variable = |name: &str| variables.get(name).map(String::as_str);
    match dialect {
        Dialect::MySql => {
            let logs = variable("log_bin").and_then(vitals::is_on).unwrap_or(false);
            if logs { rows(spec).saturating_mul(LOGGED_ROW) } else { 0 }
        }
        Dialect::Postgres => {
            let most = variable("max_wal_size").and_then(vitals::bytes).unwrap_or(0);
            tables_bytes(spec, dialect).min(most)
        }
    }
}

/// Free bytes that a file system must have for tables and a log of these sizes.
pub fn needed_bytes(tables_bytes: u64, log_bytes: u64) -> u64 {
    tables_bytes.saturating_add(tables_bytes / 10).saturating_add(log_bytes).saturating_add(KEEP_BYTES)
}

/// Rows that all tables are filled with.
fn rows(spec: &OltpSpec) -> u64 {
    u64::from(schema::tables(spec)).saturating_mul(schema::rows(spec))
}

/// The server's own cache by its variable. PostgreSQL's lies over the page cache; what misses it may still be in
/// memory.
pub fn cache(dialect: Dialect, variables: &BTreeMap<String, String>) -> Option<(&'static str, Bytes)> {
    match dialect {
        Dialect::MySql => {
            let bytes = variables.get("innodb_buffer_pool_size")?.parse().ok()?;
            Some(("innodb_buffer_pool_size", Bytes(bytes)))
        }
        Dialect::Postgres => {
            Some(("shared_buffers", Bytes(vitals::bytes(variables.get("shared_buffers")?)?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    #[test]
    fn caches_are_read_in_either_form() {
        let variables = |name: &str, value: &str| BTreeMap::from([(name.to_string(), value.to_string())]);
        let mysql = variables("innodb_buffer_pool_size", "134217728");
        assert_eq!(cache(Dialect::MySql, &mysql), Some(("innodb_buffer_pool_size", Bytes(128 << 20))));
        for (text, expected) in [("128MB", Some(128 << 20)), ("16kB", Some(16 << 10)), ("many", None)] {
            let found = cache(Dialect::Postgres, &variables("shared_buffers", text));
            assert_eq!(found.map(|(_, bytes)| bytes.0), expected, "{text}");
        }
        assert_eq!(cache(Dialect::MySql, &BTreeMap::new()), None);
    }

    #[test]
    fn a_load_needs_space_for_the_servers_log_too() {
        let spec = OltpSpec { tables: 10, table_size: 10_000_000, ..OltpSpec::default() };
        let needed = |spec: &OltpSpec, dialect, variable: &str, value: &str| {
            let variables = BTreeMap::from([(variable.to_string(), value.to_string())]);
            let log_bytes = log_bytes(spec, dialect, &variables);
            (log_bytes, needed_bytes(tables_bytes(spec, dialect), log_bytes) - KEEP_BYTES)
        };
        for (dialect, variable, value, log_bytes, tables_bytes) in [
            (Dialect::MySql, "log_bin", "OFF", 0, 24_200_000_000),
            (Dialect::MySql, "log_bin", "ON", 20_200_000_000, 24_200_000_000),
            (Dialect::MySql, "log_bin", "1", 20_200_000_000, 24_200_000_000),
            (Dialect::MySql, "datadir", "/d", 0, 24_200_000_000),
            (Dialect::Postgres, "max_wal_size", "1GB", 1 << 30, 26_400_000_000),
            (Dialect::Postgres, "max_wal_size", "1TB", 26_400_000_000, 26_400_000_000),
            (Dialect::Postgres, "wal_level", "replica", 0, 26_400_000_000_u64),
        ] {
            let all = tables_bytes + tables_bytes / 10 + log_bytes;
            assert_eq!(needed(&spec, dialect, variable, value), (log_bytes, all), "{variable} {value}");
        }
        let empty = OltpSpec { script: Script::BulkInsert, ..spec };
        assert_eq!(needed(&empty, Dialect::MySql, "log_bin", "ON"), (0, 0));
        let endless = OltpSpec { table_size: u64::MAX, ..OltpSpec::default() };
        assert_eq!(
            log_bytes(&endless, Dialect::MySql, &BTreeMap::from([("log_bin".into(), "ON".into())])),
            u64::MAX
        );
        assert!(needed_bytes(u64::MAX, 1) == u64::MAX);
    }
}
