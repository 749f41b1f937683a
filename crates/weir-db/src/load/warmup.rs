//! Tables and indexes read into the server's memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::stop::Stop;
use weir_oltp::schema::{self, table_name};
use weir_oltp::{Dialect, OltpSpec};

use super::{Event, LoadOptions, Progress, crew};
use crate::connection::Connection;
use crate::error::DbError;
use crate::server::Server;

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Tables.
    pub tables: u32,
    /// Rows of them all.
    pub rows: u64,
}

/// Reads every table of a workload once by its primary key, and its index on `k`.
pub fn warmup(
    spec: &OltpSpec,
    server: &Server,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<Warmed, DbError> {
    super::check(spec, server, options)?;
    let indexes: Vec<u32> = (0..schema::tables(spec)).collect();
    let rows = AtomicU64::new(0);
    crew::each(server, options.threads, &indexes, stop, &|connection, index| {
        progress(Event::Reading { table: *index });
        rows.fetch_add(read(spec, connection, *index)?, Relaxed);
        progress(Event::Complete { table: *index });
        Ok(())
    })?;
    Ok(Warmed { tables: indexes.len() as u32, rows: rows.into_inner() })
}

/// Reads one table; returns its rows.
fn read(spec: &OltpSpec, connection: &mut Connection, index: u32) -> Result<u64, DbError> {
    let (table, number) = (table_name(index), u64::from(index) + 1);
    let by_k = spec.create_secondary;
    let (whole, by_index) = match connection.dialect() {
        Dialect::MySql => {
            let key = if spec.secondary { "xid" } else { "PRIMARY" };
            (
                format!("SELECT COUNT(pad) FROM {table} FORCE INDEX ({key})"),
                format!("SELECT COUNT(*) FROM {table} FORCE INDEX (k_{number}) WHERE k >= 0"),
            )
        }
        Dialect::Postgres => {
            // A sequential scan of a large table goes through a small ring of buffers and leaves nothing behind
            // (src/backend/storage/buffer/README, "Buffer Ring Replacement Strategy"): read by the index.
            connection.run("SET enable_seqscan = off")?;
            connection.run("SET enable_bitmapscan = off")?;
            connection.run("SET max_parallel_workers_per_gather = 0")?;
            (
                format!("SELECT COUNT(pad) FROM {table} WHERE id >= 0"),
                format!("SELECT COUNT(*) FROM {table} WHERE k >= 0"),
            )
        }
    };
    let rows = connection.query(&whole)?;
    if by_k {
        connection.run(&by_index)?;
    }
    Ok(rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).unwrap_or(0))
}
