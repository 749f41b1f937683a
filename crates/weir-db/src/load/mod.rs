//! Tables made, filled, looked at, read into the server's memory, and removed.
//!
//! What weir makes carries a comment with its number of rows, written when the table is complete: by it a table is
//! known as weir's, as whole, and as of the size asked for, without counting.

mod catalog;
mod cleanup;
mod crew;
mod fill;
mod prepare;
mod warmup;

use weir_core::stop::Stop;
use weir_oltp::schema::{table_name, tables};
use weir_oltp::{OltpSpec, Script};

use crate::connection::Connection;
use crate::error::DbError;
use crate::server::Server;

pub use cleanup::cleanup;
pub use fill::Way;
pub use prepare::{Loaded, prepare};
pub use warmup::{Warmed, warmup};

/// How tables are treated.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions {
    /// Connections at work at the same time, each at a table or a part of one.
    pub threads: u32,
    /// Fill tables this way, and fail where the server does not allow it; `None`: the fastest that it allows.
    pub only: Option<Way>,
    /// Take tables that weir did not make too, if their names and columns are sysbench's.
    pub any_maker: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { threads: 1, only: None, any_maker: false }
    }
}

/// What happens to which table; tables count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It is being made.
    Creating {
        /// Which.
        table: u32,
    },
    /// It has so many of its rows.
    Rows {
        /// Which.
        table: u32,
        /// Rows sent.
        done: u64,
        /// Rows wanted.
        of: u64,
    },
    /// Its indexes are being made.
    Indexing {
        /// Which.
        table: u32,
    },
    /// It is complete.
    Complete {
        /// Which.
        table: u32,
    },
    /// It is being read.
    Reading {
        /// Which.
        table: u32,
    },
    /// It is being removed.
    Dropping {
        /// Which.
        table: u32,
    },
}

/// Is told of events, from any thread.
pub type Progress<'a> = &'a (dyn Fn(Event) + Sync);

/// Looks whether a workload finds its tables: there, whole, and of the size said. Reads the catalog and a number or two;
/// never counts.
pub fn check(spec: &OltpSpec, server: &Server, options: &LoadOptions) -> Result<(), DbError> {
    let mut connection = Connection::open(server)?;
    let found = catalog::tables(&mut connection)?;
    for index in 0..tables(spec) {
        let name = table_name(index);
        let Some(table) = found.iter().find(|table| table.name == name) else {
            return Err(missing(spec, &name, found.len()));
        };
        table.refuse_unless_usable(spec, options)?;
        if spec.script != Script::BulkInsert {
            holds_rows(spec, &mut connection, table)?;
        }
    }
    Ok(())
}

fn missing(spec: &OltpSpec, name: &str, found: usize) -> DbError {
    DbError::tables(
        format!("the table {name} is not there: {found} of {} tables were found", tables(spec)),
        "make the tables first with `weir db prepare` and the same options",
    )
}

/// Against the rows that a comment promises and deletes have taken, and for tables without a comment.
fn holds_rows(spec: &OltpSpec, connection: &mut Connection, table: &catalog::Table) -> Result<(), DbError> {
    let name = &table.name;
    let rows = connection.query(&format!("SELECT MAX(id) FROM {name}"))?;
    let highest: u64 = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).unwrap_or(0);
    let wanted = spec.table_size;
    if highest == 0 {
        return Err(DbError::tables(
            format!("the table {name} is empty"),
            "fill it again with `weir db cleanup` and `weir db prepare`",
        ));
    }
    if table.mark.is_none() && highest < wanted {
        return Err(DbError::tables(
            format!("the table {name} has rows up to number {highest}, not {wanted}"),
            "give the size of the tables, or make them again",
        ));
    }
    Ok(())
}

/// `Err` where somebody asked to stop.
fn unless_stopped(stop: &Stop) -> Result<(), DbError> {
    stop.requested().map_or(Ok(()), |_| Err(DbError::Stopped))
}
