//! Which tables of a workload a database has, and whose they are.

use weir_oltp::schema::{self, Mark, table_index};
use weir_oltp::{Dialect, OltpSpec, Script};

use super::LoadOptions;
use crate::connection::Connection;
use crate::error::DbError;

/// A table whose name is one of sysbench's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its name in SQL; in PostgreSQL with its schema, since other schemas of the search path may have such a table.
    pub place: String,
    /// What weir wrote into its comment; `None`: weir did not make it.
    pub mark: Option<Mark>,
    /// Its columns in order, between commas.
    pub columns: String,
}

/// All such tables of the connection's database (PostgreSQL: of the schema that new tables go to).
pub fn tables(connection: &mut Connection) -> Result<Vec<Table>, DbError> {
    let question = match connection.dialect() {
        Dialect::MySql => {
            "SELECT t.table_name, t.table_name, t.table_comment, \
             GROUP_CONCAT(c.column_name ORDER BY c.ordinal_position) \
             FROM information_schema.tables t JOIN information_schema.columns c \
             ON c.table_schema = t.table_schema AND c.table_name = t.table_name \
             WHERE t.table_schema = DATABASE() AND t.table_type NOT LIKE '%VIEW' AND t.table_name LIKE 'sbtest%' \
             GROUP BY t.table_name, t.table_comment"
        }
        Dialect::Postgres => {
            "SELECT t.relname, format('%I.%I', current_schema(), t.relname), obj_description(t.oid, 'pg_class'), \
             string_agg(a.attname, ',' ORDER BY a.attnum) \
             FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped \
             WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') \
             AND t.relname LIKE 'sbtest%' GROUP BY t.relname, t.oid"
        }
    };
    let mut tables = Vec::new();
    for row in connection.query(question)? {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let [name, place, comment, columns] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        if table_index(&name).is_some() {
            tables.push(Table { name, place, mark: Mark::parse(&comment), columns });
        }
    }
    // As their numbers go: sbtest2 before sbtest10.
    tables.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    Ok(tables)
}

impl Table {
    /// Removes it.
    pub fn drop(&self, connection: &mut Connection) -> Result<(), DbError> {
        connection.run(&format!("DROP TABLE IF EXISTS {}", self.place)).map(drop)
    }

    /// Whether its columns are those of a workload's tables.
    pub fn has_known_columns(&self) -> bool {
        matches!(self.columns.to_ascii_lowercase().as_str(), "id,k,c,pad" | "id,k")
    }

    /// Whether it may be removed: made by weir, or like sysbench's where any maker's tables are meant.
    pub fn may_be_dropped(&self, options: &LoadOptions) -> bool {
        self.mark.is_some() || (options.any_maker && self.has_known_columns())
    }

    /// `Err` where it was not made by weir, is not whole, or has another size or other columns.
    pub fn refuse_unless_usable(&self, spec: &OltpSpec, options: &LoadOptions) -> Result<(), DbError> {
        let name = &self.name;
        let wanted = if spec.script == Script::BulkInsert { "id,k" } else { "id,k,c,pad" };
        let rows = schema::rows(spec);
        let refuse = |what: String, hint: &str| Err(DbError::tables(what, hint));
        match self.mark {
            None if !options.any_maker => refuse(
                format!("the table {name} was not made by weir"),
                "name a database of weir's own, so that weir changes no rows of others",
            ),
            Some(Mark { rows: None }) => refuse(
                format!("the table {name} was never filled to its end"),
                "run `weir db prepare` again: it makes such tables anew",
            ),
            _ if !self.columns.eq_ignore_ascii_case(wanted) => refuse(
                format!("the table {name} has the columns {}, not {wanted}", self.columns),
                "remove the tables of the other workload with `weir db cleanup`, or name another database",
            ),
            Some(Mark { rows: Some(has) }) if has != rows => refuse(
                format!("the table {name} was made with {has} rows, not {rows}"),
                "give its size with --table-size, or remove it with `weir db cleanup` and prepare again",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_used_only_if_they_are_weirs_whole_and_of_the_size_said() {
        let check = |mark: Option<Mark>, columns: &str, any_maker: bool, expected: &str| {
            let table =
                Table { name: "sbtest3".into(), place: "sbtest3".into(), mark, columns: columns.into() };
            let options = LoadOptions { any_maker, ..LoadOptions::default() };
            match table.refuse_unless_usable(&OltpSpec::default(), &options) {
                Ok(()) => assert_eq!(expected, "", "{table:?}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(!expected.is_empty() && text.contains(expected), "{table:?}: {text}");
                    assert!(text.contains("sbtest3"), "{text}");
                }
            }
        };
        let whole = |rows| Some(Mark { rows: Some(rows) });
        check(whole(10_000), "id,k,c,pad", false, "");
        check(None, "id,k,c,pad", true, "");
        check(None, "id,k,c,pad", false, "not made by weir");
        check(None, "id,name", true, "columns id,name");
        check(whole(0), "id,k", false, "columns id,k");
        check(whole(500), "id,k,c,pad", false, "made with 500 rows, not 10000");
        check(Some(Mark { rows: None }), "id,k,c,pad", false, "never filled");
    }
}
