//! LOAD DATA LOCAL INFILE, the data coming from memory.

use crate::error::{DbError, ServerError};
use crate::rows::Done;

use super::Connection;
use super::packets::HEADER_BYTES;

/// A packet of data is sent when it has this much: far above what a call costs, far below what a socket holds.
const CHUNK_BYTES: usize = 256 << 10;
/// "Not allowed": the command, the client's files by the server, by the client; and without the privilege.
const NOT_ALLOWED: [u16; 4] = [1148, 3948, 4166, 2068];

impl Connection {
    /// Fills a table. The server takes bad rows and doubles for warnings here: they are errors.
    pub fn load(
        &mut self,
        table: &str,
        columns: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        if !self.offers_files {
            return Err(not_allowed(table, "the server does not offer it"));
        }
        // The name is for the server's messages only; no such file is read.
        self.send_query(&format!(
            "LOAD DATA LOCAL INFILE 'weir' INTO TABLE {table} CHARACTER SET utf8mb4 {}",
            parenthesised(columns)
        ))?;
        match self.is_file_asked_for() {
            Ok(true) => {}
            Ok(false) => {
                return Err(self.packets.wire.odd("LOAD DATA LOCAL was answered without asking for data"));
            }
            Err(DbError::Server(error)) if NOT_ALLOWED.contains(&error.number) => {
                return Err(not_allowed(table, &error.to_string()));
            }
            Err(error) => return Err(error),
        }
        self.send_data(fill)?;
        let answer = self.read_answer(None)?;
        if answer.warnings > 0 {
            return Err(self.first_warning(answer.warnings)?);
        }
        Ok(answer.done)
    }

    fn send_data(&mut self, fill: &mut dyn FnMut(&mut Vec<u8>) -> bool) -> Result<(), DbError> {
        let mut more = true;
        while more {
            self.packets.push(|out| {
                while more && out.len() < CHUNK_BYTES {
                    more = fill(out);
                }
            });
            // An empty packet means the end.
            if self.packets.wire.output().len() == HEADER_BYTES {
                return self.packets.send();
            }
            self.packets.send()?;
        }
        self.packets.reply(|_| ())
    }

    pub(super) fn first_warning(&mut self, warnings: u16) -> Result<DbError, DbError> {
        let rows = self.query("SHOW WARNINGS LIMIT 1")?;
        let words =
            |at: usize| rows.first().and_then(|row| row.get(at)).cloned().flatten().unwrap_or_default();
        Ok(DbError::Server(ServerError {
            number: words(1).parse().unwrap_or(0),
            sqlstate: "01000".into(),
            message: format!("{}; {warnings} warnings while loading", words(2)),
        }))
    }
}

fn parenthesised(columns: &str) -> String {
    if columns.is_empty() || columns.starts_with('(') { columns.to_string() } else { format!("({columns})") }
}

fn not_allowed(table: &str, why: &str) -> DbError {
    DbError::Unsupported(format!("{table} cannot be filled by LOAD DATA LOCAL (local_infile): {why}"))
}
