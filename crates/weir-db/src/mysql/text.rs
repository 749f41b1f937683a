//! Statements as text.

use crate::error::DbError;
use crate::rows::{Done, Kept, Row};

use super::Connection;
use super::answer::{Collect, Column};
use super::cursor::Cursor;
use super::protocol::command;

impl Connection {
    /// Runs a statement given as text and throws its rows away.
    #[inline]
    pub fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        self.send_query(sql)?;
        let answer = self.read_answer(None)?;
        if answer.asked_for_file { Err(no_file()) } else { Ok(answer.done) }
    }

    /// Runs a statement given as text and returns its rows; those of the first result where it has several.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        self.run_rows(sql).map(|(_, rows)| rows)
    }

    /// The same, and what it did.
    pub fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError> {
        self.send_query(sql)?;
        let mut columns = Vec::new();
        let mut collect = Collect { decode: Some(text_row), columns: &mut columns, rows: Kept::default() };
        let answer = self.read_answer(Some(&mut collect))?;
        if answer.asked_for_file { Err(no_file()) } else { Ok((answer.done, collect.rows.rows())) }
    }

    /// Asks whether the server is there.
    pub fn ping(&mut self) -> Result<(), DbError> {
        self.packets.command(|out| out.push(command::PING))?;
        self.packets.send()?;
        self.read_answer(None).map(drop)
    }

    #[inline]
    pub(super) fn send_query(&mut self, sql: &str) -> Result<(), DbError> {
        self.packets.command(|out| {
            out.push(command::QUERY);
            out.extend_from_slice(sql.as_bytes());
        })?;
        self.packets.send()
    }
}

/// No statement gets a file of this machine: a server might ask for any.
fn no_file() -> DbError {
    DbError::Unsupported("LOAD DATA LOCAL reads files of the client's machine, and weir gives none".into())
}

/// Values one after another, each behind its length; 0xfb is NULL.
pub(super) fn text_row(payload: &[u8], columns: &[Column]) -> Option<Row> {
    let mut cursor = Cursor(payload);
    let row = columns.iter().map(|_| {
        if let Some(rest) = cursor.0.strip_prefix(&[0xfb]) {
            cursor.0 = rest;
            return Some(None);
        }
        Some(Some(String::from_utf8_lossy(cursor.lenenc_bytes()?).into_owned()))
    });
    row.collect()
}
