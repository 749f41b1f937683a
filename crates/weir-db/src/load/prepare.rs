//! Tables made and filled.

use std::sync::Mutex;

use weir_core::oltp::schema::{self, Mark, table_name};
use weir_core::oltp::{Dialect, OltpSpec, Script};
use weir_core::stop::Stop;

use super::catalog::{self, Table};
use super::{Event, LoadOptions, Progress, Way, crew, fill, unless_stopped};
use crate::connection::Connection;
use crate::error::DbError;
use crate::runner::lock;
use crate::server::Server;

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Tables made.
    pub made: u32,
    /// Tables that were there already, whole and of the right size.
    pub found: u32,
    /// Rows loaded.
    pub rows: u64,
    /// How, where there were any.
    pub way: Option<Way>,
}

/// Makes the tables of a workload and fills them, several at a time. Tables of weir's that are there, whole and of the
/// right size, are left as they are; unfinished ones are made anew; others are refused before anything is done. What this
/// call has made goes away again when it fails or is asked to stop.
pub fn prepare(
    spec: &OltpSpec,
    server: &Server,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<Loaded, DbError> {
    let mut connection = Connection::open(server)?;
    let found = catalog::tables(&mut connection)?;
    let wanted = to_make(spec, &found, options)?;
    let loaded =
        Mutex::new(Loaded { found: schema::tables(spec) - wanted.len() as u32, ..Loaded::default() });
    let made = Mutex::new(Vec::new());
    let result = crew::each(server, options.threads, &wanted, stop, &|connection, index| {
        unless_stopped(stop)?;
        progress(Event::Creating { table: *index });
        lock(&made).push(*index);
        let way = make(spec, connection, *index, options, progress, stop)?;
        progress(Event::Complete { table: *index });
        let mut loaded = lock(&loaded);
        loaded.made += 1;
        loaded.rows += if spec.script == Script::BulkInsert { 0 } else { spec.table_size };
        loaded.way = way;
        Ok(())
    });
    if let Err(error) = result {
        for index in lock(&made).iter() {
            // The first error says more than what follows from it; what could not be dropped is marked unfinished.
            let _ = drop_again(server, &mut connection, *index);
        }
        return Err(error);
    }
    Ok(*lock(&loaded))
}

/// Removes a table after a failure, by a new connection if the old one has broken.
fn drop_again(server: &Server, connection: &mut Connection, index: u32) -> Result<(), DbError> {
    let text = schema::drop(&table_name(index));
    if connection.run(&text).is_err() {
        *connection = Connection::open(server)?;
        connection.run(&text)?;
    }
    Ok(())
}

/// Which tables are to be made; `Err` where one is in the way.
fn to_make(spec: &OltpSpec, found: &[Table], options: &LoadOptions) -> Result<Vec<u32>, DbError> {
    let mut wanted = Vec::new();
    for index in 0..schema::tables(spec) {
        let name = table_name(index);
        match found.iter().find(|table| table.name == name) {
            None | Some(Table { mark: Some(Mark { rows: None }), .. }) => wanted.push(index),
            Some(table) => table.refuse_unless_usable(spec, options)?,
        }
    }
    Ok(wanted)
}

/// Makes and fills one table; says how it was filled.
fn make(
    spec: &OltpSpec,
    connection: &mut Connection,
    index: u32,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<Option<Way>, DbError> {
    let dialect = connection.dialect();
    let name = table_name(index);
    connection.run(&schema::drop(&name))?;
    for statement in schema::create(spec, dialect, index) {
        connection.run(&statement)?;
    }
    if spec.script == Script::BulkInsert {
        connection.run(&schema::complete(dialect, index, 0))?;
        return Ok(None);
    }
    let way = fill::fill(spec, connection, index, options, progress, stop)?;
    for statement in schema::create_indexes(spec, dialect, index) {
        progress(Event::Indexing { table: index });
        connection.run(&statement)?;
    }
    if let Some(statement) = schema::follow_ids(spec, dialect, index) {
        connection.run(&statement)?;
    }
    // Without it the first run would meet a planner that knows nothing, and, with PostgreSQL, the autovacuum.
    connection.run(&match dialect {
        Dialect::MySql => format!("ANALYZE TABLE {name}"),
        Dialect::Postgres => format!("VACUUM (ANALYZE) {name}"),
    })?;
    connection.run(&schema::complete(dialect, index, spec.table_size))?;
    Ok(Some(way))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_what_is_unfinished_is_made_anew() {
        let spec = OltpSpec { tables: 3, ..OltpSpec::default() };
        let table = |name: &str, rows| Table {
            name: name.into(),
            mark: Some(Mark { rows }),
            columns: "id,k,c,pad".into(),
        };
        let found = [table("sbtest1", Some(10_000)), table("sbtest2", None), table("sbtest9", Some(5))];
        assert_eq!(to_make(&spec, &found, &LoadOptions::default()).unwrap(), [1, 2]);
        let other = [table("sbtest3", Some(5))];
        let error = to_make(&spec, &other, &LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("sbtest3") && error.contains("5 rows"), "{error}");
    }
}
