//! Tables and indexes, in each dialect's SQL. Columns, types and defaults are sysbench's; what weir makes carries a
//! comment that says so, by which it is known again.

use std::fmt;

use super::{Dialect, OltpSpec, Script};

/// How the comment of a table begins that weir made.
const MADE: &str = "made by weir";

/// What the comment of a table says that weir made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// How many rows it was made with; `None`: it is not finished.
    pub rows: Option<u64>,
}

impl Mark {
    /// Reads a comment; `None`: somebody else's.
    pub fn parse(comment: &str) -> Option<Mark> {
        let rest = comment.strip_prefix(MADE)?.strip_prefix(", ")?;
        if rest == "unfinished" {
            return Some(Mark { rows: None });
        }
        Some(Mark { rows: Some(rest.strip_suffix(" rows")?.parse().ok()?) })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows {
            Some(rows) => write!(f, "{MADE}, {rows} rows"),
            None => write!(f, "{MADE}, unfinished"),
        }
    }
}

/// The name of a table; `index` counts from 0.
pub fn table_name(index: u32) -> String {
    format!("sbtest{}", u64::from(index) + 1)
}

/// The index of the table that [`table_name`] calls so.
pub fn table_index(name: &str) -> Option<u32> {
    let number: u32 = name.strip_prefix("sbtest")?.parse().ok()?;
    let index = number.checked_sub(1)?;
    // `parse` takes leading zeros and a sign.
    (table_name(index) == name).then_some(index)
}

/// How many tables a workload has: `bulk_insert` fills one a connection.
pub fn tables(spec: &OltpSpec) -> u32 {
    if spec.script == Script::BulkInsert { spec.threads } else { spec.tables }
}

/// Rows that each of them is filled with: those of `bulk_insert` are empty at first.
pub fn rows(spec: &OltpSpec) -> u64 {
    if spec.script == Script::BulkInsert { 0 } else { spec.table_size }
}

/// Makes a table, before it is filled; with its comment in one transaction.
pub fn create(spec: &OltpSpec, dialect: Dialect, index: u32) -> String {
    let (table, mark) = (table_name(index), Mark { rows: None });
    let columns = if spec.script == Script::BulkInsert { bulk_columns() } else { columns(spec, dialect) };
    match dialect {
        Dialect::MySql => {
            let engine = &spec.storage_engine;
            format!("CREATE TABLE {table} ({columns}) ENGINE = {engine} COMMENT = '{mark}'")
        }
        Dialect::Postgres => {
            format!("CREATE TABLE {table} ({columns}); COMMENT ON TABLE {table} IS '{mark}'")
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
        (Dialect::MySql, false) => ", PRIMARY KEY (id)",
        (Dialect::MySql, true) => ", KEY xid (id)",
        // Cheaper after the rows, see `create_indexes`; InnoDB keeps the rows themselves in its primary key.
        (Dialect::Postgres, _) => "",
    };
    format!(
        "id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key}"
    )
}

fn bulk_columns() -> String {
    "id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id)".to_string()
}

/// The indexes that are made after the table is filled: sorting all keys once is cheaper than finding the place of each.
pub fn create_indexes(spec: &OltpSpec, dialect: Dialect, index: u32) -> Vec<String> {
    let (table, number) = (table_name(index), u64::from(index) + 1);
    if spec.script == Script::BulkInsert {
        return Vec::new();
    }
    let by_id = match (dialect, spec.secondary) {
        (Dialect::MySql, _) => None,
        (Dialect::Postgres, false) => Some(format!("ALTER TABLE {table} ADD PRIMARY KEY (id)")),
        (Dialect::Postgres, true) => Some(format!("CREATE INDEX xid_{number} ON {table}(id)")),
    };
    let by_k = spec.create_secondary.then(|| format!("CREATE INDEX k_{number} ON {table}(k)"));
    by_id.into_iter().chain(by_k).collect()
}

/// What makes the numbers that the server gives go on after the last row loaded.
pub fn follow_ids(spec: &OltpSpec, dialect: Dialect, index: u32) -> Option<String> {
    let table = table_name(index);
    // MySQL moves its counter by itself when a row with a larger number arrives.
    (spec.auto_inc && dialect == Dialect::Postgres && spec.script != Script::BulkInsert)
        .then(|| format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {})", spec.table_size))
}

/// Says in the comment of a table that it is complete.
pub fn complete(dialect: Dialect, index: u32, rows: u64) -> String {
    let (table, mark) = (table_name(index), Mark { rows: Some(rows) });
    match dialect {
        Dialect::MySql => format!("ALTER TABLE {table} COMMENT = '{mark}'"),
        Dialect::Postgres => format!("COMMENT ON TABLE {table} IS '{mark}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &OltpSpec, dialect: Dialect, expected: &str) {
        let all = create(spec, dialect, 1);
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
        check(&bulk, Dialect::Postgres, "(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY");
        assert_eq!((tables(&bulk), tables(&plain)), (3, 1));
        let later = |spec: &OltpSpec, dialect| create_indexes(spec, dialect, 0);
        let none = OltpSpec { create_secondary: false, ..plain.clone() };
        assert_eq!(later(&plain, Dialect::MySql), ["CREATE INDEX k_1 ON sbtest1(k)"]);
        assert_eq!(later(&none, Dialect::MySql), [""; 0]);
        assert_eq!(later(&bulk, Dialect::Postgres), [""; 0]);
        let primary = "ALTER TABLE sbtest1 ADD PRIMARY KEY (id)";
        assert_eq!(later(&plain, Dialect::Postgres), [primary, "CREATE INDEX k_1 ON sbtest1(k)"]);
        assert_eq!(later(&none, Dialect::Postgres), [primary]);
        assert_eq!(later(&own, Dialect::Postgres)[0], "CREATE INDEX xid_1 ON sbtest1(id)");
        assert_eq!(follow_ids(&plain, Dialect::MySql, 0), None);
        assert!(follow_ids(&plain, Dialect::Postgres, 0).unwrap().contains("10000"));
    }

    #[test]
    fn only_names_of_numbered_tables_are_names_of_tables() {
        for (name, index) in [("sbtest1", 0), ("sbtest42", 41), ("sbtest1000", 999)] {
            assert_eq!(table_index(name), Some(index), "{name}");
        }
        for name in ["sbtest", "sbtest0", "sbtest01", "sbtest+1", "sbtest1a", "sbtest1_old", "asbtest1"] {
            assert_eq!(table_index(name), None, "{name}");
        }
    }

    #[test]
    fn comments_say_whose_a_table_is_and_whether_it_is_whole() {
        for mark in [Mark { rows: None }, Mark { rows: Some(0) }, Mark { rows: Some(10_000) }] {
            assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        }
        for comment in ["", "made by hand, 5 rows", "made by weir", "made by weir, few rows"] {
            assert_eq!(Mark::parse(comment), None, "{comment}");
        }
        assert!(complete(Dialect::MySql, 0, 7).ends_with("COMMENT = 'made by weir, 7 rows'"));
        assert!(create(&OltpSpec::default(), Dialect::Postgres, 0).contains("unfinished"));
    }
}
