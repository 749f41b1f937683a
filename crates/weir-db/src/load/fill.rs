//! Rows into a table, by the fastest way that the server allows.

use weir_core::oltp::rows::Rows;
use weir_core::oltp::schema::table_name;
use weir_core::oltp::{Dialect, OltpSpec};
use weir_core::stop::Stop;

use super::{Event, LoadOptions, Progress, unless_stopped};
use crate::connection::Connection;
use crate::error::DbError;

const COLUMNS: &str = "id, k, c, pad";
/// Text handed over at once: what one INSERT holds, too, which is below every server's packet limit.
const PIECE_BYTES: usize = 512 << 10;
/// Rows of one COPY or LOAD DATA, about 1 GB: what a failure has to take back, and what a server may have to keep for
/// its binary log before it commits.
const ROWS_PER_LOAD: u64 = 5_000_000;

/// Fills a table that is empty; says whether COPY or LOAD DATA did it.
pub fn fill(
    spec: &OltpSpec,
    connection: &mut Connection,
    index: u32,
    options: &LoadOptions,
    progress: Progress<'_>,
    stop: &Stop,
) -> Result<bool, DbError> {
    if connection.dialect() == Dialect::MySql {
        // An empty table of rows that cannot collide: MariaDB then builds its pages sorted and without undo.
        connection.run("SET SESSION unique_checks = 0, foreign_key_checks = 0")?;
    }
    let mut filling = Filling { spec, index, progress, stop };
    if !options.by_insert {
        match filling.load(connection) {
            Ok(()) => return Ok(true),
            Err(DbError::Unsupported(_)) => {}
            Err(error) => return Err(error),
        }
    }
    filling.insert(connection).map(|()| false)
}

struct Filling<'a> {
    spec: &'a OltpSpec,
    index: u32,
    progress: Progress<'a>,
    stop: &'a Stop,
}

impl Filling<'_> {
    fn load(&mut self, connection: &mut Connection) -> Result<(), DbError> {
        let (table, of) = (table_name(self.index), self.spec.table_size);
        let mut first = 1;
        while first <= of {
            let last = of.min(first + ROWS_PER_LOAD - 1);
            let mut rows = Rows::new(self.spec, self.index, first, last);
            connection.load(&table, COLUMNS, &mut |out| {
                let more = rows.lines(out, PIECE_BYTES);
                self.report(last - rows.left());
                more && self.stop.requested().is_none()
            })?;
            unless_stopped(self.stop)?;
            first = last + 1;
        }
        Ok(())
    }

    fn insert(&mut self, connection: &mut Connection) -> Result<(), DbError> {
        let of = self.spec.table_size;
        let mut rows = Rows::new(self.spec, self.index, 1, of);
        let start = format!("INSERT INTO {} ({COLUMNS}) VALUES ", table_name(self.index));
        let mut text = Vec::with_capacity(PIECE_BYTES + 1024);
        while rows.left() > 0 {
            unless_stopped(self.stop)?;
            text.clear();
            text.extend_from_slice(start.as_bytes());
            rows.values(&mut text, PIECE_BYTES);
            // Digits and punctuation are UTF-8.
            connection.run(std::str::from_utf8(&text).unwrap_or_default())?;
            self.report(of - rows.left());
        }
        Ok(())
    }

    fn report(&self, done: u64) {
        (self.progress)(Event::Rows { table: self.index, done, of: self.spec.table_size });
    }
}
