//! Rows into a table, by the fastest way that the server allows.

use weir_core::stop::Stop;
use weir_oltp::rows::Rows;
use weir_oltp::schema::table_name;
use weir_oltp::{Dialect, OltpSpec};

use super::unless_stopped;
use crate::connection::Connection;
use crate::error::DbError;

const COLUMNS: &str = "id, k, c, pad";
/// Text handed over at once: what one INSERT holds, too, which is below every server's packet limit.
const PIECE_BYTES: usize = 512 << 10;
/// Rows of one COPY, LOAD DATA or transaction, about 1 GB: what a failure has to take back, and what a server may have to
/// keep for its binary log before it commits.
const ROWS_PER_LOAD: u64 = 5_000_000;

/// How rows came into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// COPY … FROM STDIN.
    Copy,
    /// LOAD DATA LOCAL.
    LoadData,
    /// One prepared INSERT with the values of many rows.
    Arrays,
    /// INSERTs of many rows each, as text.
    Insert,
}

impl Way {
    /// What the way is called.
    pub fn name(self) -> &'static str {
        match self {
            Way::Copy => "COPY",
            Way::LoadData => "LOAD DATA",
            Way::Arrays => "bulk INSERT",
            Way::Insert => "INSERT",
        }
    }
}

/// Rows `first..=last` of a table, to be sent by one connection.
pub struct Filling<'a> {
    pub spec: &'a OltpSpec,
    pub index: u32,
    pub first: u64,
    pub last: u64,
    /// Is told how many more rows have been sent.
    pub done: &'a dyn Fn(u64),
    pub stop: &'a Stop,
}

impl Filling<'_> {
    /// Sends them, by the only way asked for or by the fastest; says by which.
    pub fn fill(&self, connection: &mut Connection, only: Option<Way>) -> Result<Way, DbError> {
        let ways: &[Way] = match (only, connection.dialect()) {
            (Some(way), _) => return self.fill_by(connection, way).map(|()| way),
            (None, Dialect::MySql) => &[Way::Arrays, Way::LoadData],
            (None, Dialect::Postgres) => &[Way::Copy],
        };
        for way in ways {
            match self.fill_by(connection, *way) {
                Ok(()) => return Ok(*way),
                Err(DbError::Unsupported(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.fill_by(connection, Way::Insert).map(|()| Way::Insert)
    }

    fn fill_by(&self, connection: &mut Connection, way: Way) -> Result<(), DbError> {
        let mut first = self.first;
        while first <= self.last {
            let last = self.last.min(first + ROWS_PER_LOAD - 1);
            let mut rows = Rows::new(self.spec, self.index, first, last);
            let mut piece = |out: &mut Vec<u8>| {
                let left = rows.left();
                let more = rows.lines(out, PIECE_BYTES);
                (self.done)(left - rows.left());
                more && self.stop.requested().is_none()
            };
            let table = table_name(self.index);
            match way {
                Way::Arrays => arrays(connection, &table, &mut piece)?,
                Way::Copy | Way::LoadData => connection.load(&table, COLUMNS, &mut piece).map(drop)?,
                Way::Insert => self.insert(connection, rows)?,
            };
            unless_stopped(self.stop)?;
            first = last + 1;
        }
        Ok(())
    }

    fn insert(&self, connection: &mut Connection, mut rows: Rows) -> Result<(), DbError> {
        let start = format!("INSERT INTO {} ({COLUMNS}) VALUES ", table_name(self.index));
        let mut text = Vec::with_capacity(PIECE_BYTES + 1024);
        while rows.left() > 0 {
            unless_stopped(self.stop)?;
            text.clear();
            text.extend_from_slice(start.as_bytes());
            let left = rows.left();
            rows.values(&mut text, PIECE_BYTES);
            // Digits and punctuation are UTF-8.
            connection.run(std::str::from_utf8(&text).unwrap_or_default())?;
            (self.done)(left - rows.left());
        }
        Ok(())
    }
}

/// One transaction of rows in arrays. `unique_checks = 0` would make MariaDB sort the rows of an empty table before it
/// builds the pages, which costs more than their insertion in order; and as latin1, which digits and dashes are too, the
/// values cost it a third less than as UTF-8, which it looks through byte by byte.
fn arrays(
    connection: &mut Connection,
    table: &str,
    piece: &mut dyn FnMut(&mut Vec<u8>) -> bool,
) -> Result<(), DbError> {
    if !connection.takes_arrays() || logs_statements(connection)? {
        return Err(DbError::Unsupported("the server takes no arrays".to_string()));
    }
    connection.run("SET NAMES latin1")?;
    connection.run("START TRANSACTION")?;
    connection.load_arrays(table, COLUMNS, piece)?;
    connection.run("COMMIT")?;
    connection.run("SET NAMES utf8mb4").map(drop)
}

/// Whether the binary log holds statements: such a server refuses arrays (4033).
fn logs_statements(connection: &mut Connection) -> Result<bool, DbError> {
    let rows = connection.query("SELECT @@log_bin AND @@binlog_format = 'STATEMENT'")?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("1"))
}
