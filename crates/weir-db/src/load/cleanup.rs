//! Tables removed.

use weir_core::stop::Stop;
use weir_oltp::{Dialect, schema};

use super::{Event, LoadOptions, Progress, catalog, unless_stopped};
use crate::connection::Connection;
use crate::error::DbError;
use crate::server::Server;

/// Removes the tables that weir made in the server's database, however many there are; with `options.any_maker` all
/// that have sysbench's names and columns. Returns the names of those removed, and of those left alone. A second call
/// finds nothing to do.
pub fn cleanup(
    server: &Server,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<(Vec<String>, Vec<String>), DbError> {
    let mut connection = Connection::open(server)?;
    // A transaction left open somewhere holds its tables: better an error that says so than a wait without end.
    connection.run(match connection.dialect() {
        Dialect::MySql => "SET SESSION lock_wait_timeout = 30",
        Dialect::Postgres => "SET lock_timeout = '30s'",
    })?;
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for table in catalog::tables(&mut connection)? {
        unless_stopped(stop)?;
        if !table.may_be_dropped(options) {
            left.push(table.name);
            continue;
        }
        if let Some(index) = schema::table_index(&table.name) {
            progress(Event::Dropping { table: index });
        }
        table.drop(&mut connection)?;
        removed.push(table.name);
    }
    Ok((removed, left))
}
