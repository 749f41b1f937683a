//! How large tables become, and whether the server can hold them in memory.

use std::collections::BTreeMap;

use super::spec::{OltpSpec, Script};
use weir_core::dialect::Dialect;
use weir_core::units::Bytes;

/// Bytes a row with its share of the primary key takes, measured on freshly loaded tables of 300,000 rows: MariaDB 10.11,
/// PostgreSQL 15.
const ROW: [(Dialect, u64); 2] = [(Dialect::MySql, 226), (Dialect::Postgres, 244)];
/// Bytes of the index on `k` a row.
const INDEX: [(Dialect, u64); 2] = [(Dialect::MySql, 16), (Dialect::Postgres, 20)];

/// Bytes that the tables of a workload take in the server, within some tenths: they grow as rows change. Those of
/// `bulk_insert` are empty at first.
pub fn tables_bytes(spec: &OltpSpec, dialect: Dialect) -> u64 {
    let of =
        |table: [(Dialect, u64); 2]| table.into_iter().find(|(d, _)| *d == dialect).map_or(0, |(_, n)| n);
    if spec.script == Script::BulkInsert {
        return 0;
    }
    let row = of(ROW) + if spec.create_secondary { of(INDEX) } else { 0 };
    u64::from(spec.tables).saturating_mul(spec.table_size).saturating_mul(row)
}

/// The server's own cache by its variable. PostgreSQL's lies over the page cache; what misses it may still be in
/// memory.
pub fn cache(dialect: Dialect, variables: &BTreeMap<String, String>) -> Option<(&'static str, Bytes)> {
    match dialect {
        Dialect::MySql => {
            let bytes = variables.get("innodb_buffer_pool_size")?.parse().ok()?;
            Some(("innodb_buffer_pool_size", Bytes(bytes)))
        }
        Dialect::Postgres => Some(("shared_buffers", postgres_bytes(variables.get("shared_buffers")?)?)),
    }
}

/// A size as PostgreSQL's SHOW prints it: `128MB`, `16kB`.
fn postgres_bytes(text: &str) -> Option<Bytes> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_shl(shift).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
