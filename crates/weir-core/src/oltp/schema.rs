//! Tables and indexes, in each dialect's SQL. Columns, types and defaults are sysbench's; what weir makes carries a
//! comment that says so, by which it is known again.

use super::{Dialect, OltpSpec, Script};

/// The comment of tables that weir made.
pub const MARK: &str = "made by weir";

/// The name of a table; `index` counts from 0.
pub fn table_name(index: u32) -> String {
    format!("sbtest{}", u64::from(index) + 1)
}

/// Whether a name is that of a table as [`table_name`] gives them.
pub fn is_table_name(name: &str) -> bool {
    name.strip_prefix("sbtest").is_some_and(|number| {
        !number.is_empty() && !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// How many tables a workload has: `bulk_insert` fills one a connection.
pub fn tables(spec: &OltpSpec) -> u32 {
    if spec.script == Script::BulkInsert { spec.threads } else { spec.tables }
}

/// The statements that make a table, before it is filled.
pub fn create(spec: &OltpSpec, dialect: Dialect, index: u32) -> Vec<String> {
    let table = table_name(index);
    let columns = if spec.script == Script::BulkInsert { bulk_columns() } else { columns(spec, dialect) };
    match dialect {
        Dialect::MySql => {
            let engine = &spec.storage_engine;
            vec![format!("CREATE TABLE {table} ({columns}) ENGINE = {engine} COMMENT = '{MARK}'")]
        }
        Dialect::Postgres => {
            let mut statements = vec![
                format!("CREATE TABLE {table} ({columns})"),
                format!("COMMENT ON TABLE {table} IS '{MARK}'"),
            ];
            if spec.secondary && spec.script != Script::BulkInsert {
                statements.push(format!("CREATE INDEX xid_{} ON {table}(id)", u64::from(index) + 1));
            }
            statements
        }
    }
}

fn columns(spec: &OltpSpec, dialect: Dialect) -> String {
    let id = match (dialect, spec.auto_inc) {
        (Dialect::MySql, true) => "INTEGER NOT NULL AUTO_INCREMENT",
        (Dialect::Postgres, true) => "SERIAL",
        (_, false) => "INTEGER NOT NULL",
    };
    let key = match (dialect, spec.secondary) {
        (_, false) => ", PRIMARY KEY (id)",
        (Dialect::MySql, true) => ", KEY xid (id)",
        // PostgreSQL makes an index by a statement of its own.
        (Dialect::Postgres, true) => "",
    };
    format!(
        "id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key}"
    )
}

fn bulk_columns() -> String {
    "id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id)".to_string()
}

/// The index on `k`, made after the table is filled; `None` where none is wanted.
pub fn create_index(spec: &OltpSpec, index: u32) -> Option<String> {
    (spec.create_secondary && spec.script != Script::BulkInsert)
        .then(|| format!("CREATE INDEX k_{} ON {}(k)", u64::from(index) + 1, table_name(index)))
}

/// What makes the numbers that the server gives go on after the last row loaded.
pub fn follow_ids(spec: &OltpSpec, dialect: Dialect, index: u32) -> Option<String> {
    let table = table_name(index);
    // MySQL moves its counter by itself when a row with a larger number arrives.
    (spec.auto_inc && dialect == Dialect::Postgres && spec.script != Script::BulkInsert)
        .then(|| format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {})", spec.table_size))
}

/// Removes a table.
pub fn drop(table: &str) -> String {
    format!("DROP TABLE IF EXISTS {table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &OltpSpec, dialect: Dialect, expected: &str) {
        let all = create(spec, dialect, 1).join("; ");
        assert!(all.contains(expected), "{dialect:?}: {all}: lacks {expected}");
    }

    #[test]
    fn tables_have_the_columns_and_keys_asked_for() {
        let plain = OltpSpec::default();
        let own = OltpSpec { auto_inc: false, secondary: true, ..OltpSpec::default() };
        let bulk = OltpSpec { script: Script::BulkInsert, threads: 3, ..OltpSpec::default() };
        check(&plain, Dialect::MySql, "CREATE TABLE sbtest2 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER");
        check(&plain, Dialect::MySql, "pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE = innodb");
        check(&plain, Dialect::Postgres, "(id SERIAL, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120)");
        check(&own, Dialect::MySql, "(id INTEGER NOT NULL, k");
        check(&own, Dialect::MySql, ", KEY xid (id))");
        check(&own, Dialect::Postgres, "CREATE INDEX xid_2 ON sbtest2(id)");
        check(&bulk, Dialect::Postgres, "(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY");
        assert_eq!((tables(&bulk), tables(&plain)), (3, 1));
        assert_eq!(create_index(&plain, 0).unwrap(), "CREATE INDEX k_1 ON sbtest1(k)");
        assert_eq!(create_index(&OltpSpec { create_secondary: false, ..plain.clone() }, 0), None);
        assert_eq!(follow_ids(&plain, Dialect::MySql, 0), None);
        assert!(follow_ids(&plain, Dialect::Postgres, 0).unwrap().contains("10000"));
    }

    #[test]
    fn only_names_of_numbered_tables_are_names_of_tables() {
        for name in ["sbtest1", "sbtest42", "sbtest1000"] {
            assert!(is_table_name(name), "{name}");
        }
        for name in ["sbtest", "sbtest0", "sbtest01", "sbtest1a", "sbtest1_old", "asbtest1", "sbtest-1"] {
            assert!(!is_table_name(name), "{name}");
        }
    }
}
