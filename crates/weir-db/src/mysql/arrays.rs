//! One prepared INSERT with the values of many rows in a packet: MariaDB's COM_STMT_BULK_EXECUTE ("Client/Server
//! Protocol" of its knowledge base). The server reads no text for it: a row costs it half of what LOAD DATA takes.

use crate::error::DbError;
use crate::rows::Done;

use super::Connection;
use super::cursor::push_lenenc_bytes;
use super::protocol::{command, kind};

/// The types of the values follow.
const TYPES_FOLLOW: u16 = 128;
/// What stands before a value that is there.
const VALUE: u8 = 0;

impl Connection {
    /// Whether the server takes rows so.
    pub fn takes_arrays(&self) -> bool {
        self.takes_arrays
    }

    /// Fills a table, where the server takes rows so. `fill` appends whole rows as [`Connection::load`]'s does, without
    /// escapes, and a packet is made of what it has appended: below what the server takes (`max_allowed_packet`). Rows
    /// that the server would take with a warning are errors. Without a transaction around it, every packet is one.
    pub fn load_arrays(
        &mut self,
        table: &str,
        columns: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        let width = columns.split(',').count();
        let marks = vec!["?"; width].join(", ");
        let insert = self.prepare(&format!("INSERT INTO {table} ({columns}) VALUES ({marks})"))?;
        let id = self.number_of(insert)?;
        let (mut done, mut lines) = (Done::default(), Vec::new());
        let (mut more, mut awaited) = (true, false);
        while more || awaited {
            lines.clear();
            // The server is at the packet before meanwhile.
            more = more && fill(&mut lines);
            if std::mem::take(&mut awaited) {
                let answer = self.read_answer(None)?;
                if answer.warnings > 0 {
                    return Err(self.first_warning(answer.warnings)?);
                }
                done.affected = done.affected.saturating_add(answer.done.affected);
            }
            if !lines.is_empty() {
                self.packets.command(|out| put_rows(out, id, width, &lines))?;
                self.packets.send()?;
                awaited = true;
            }
        }
        self.close(insert)?;
        Ok(done)
    }
}

/// The command with the values of all rows in `lines`.
fn put_rows(out: &mut Vec<u8>, id: u32, width: usize, lines: &[u8]) {
    out.push(command::STMT_BULK_EXECUTE);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&TYPES_FOLLOW.to_le_bytes());
    for _ in 0..width {
        out.extend_from_slice(&[kind::VAR_STRING, 0]);
    }
    let rows = lines.strip_suffix(b"\n").unwrap_or(lines);
    for value in rows.split(|&byte| byte == b'\t' || byte == b'\n') {
        out.push(VALUE);
        push_lenenc_bytes(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_their_lengths_row_after_row() {
        let mut out = Vec::new();
        put_rows(&mut out, 7, 2, b"1\tone\n20\t\n");
        let head = [command::STMT_BULK_EXECUTE, 7, 0, 0, 0, 128, 0, kind::VAR_STRING, 0, kind::VAR_STRING, 0];
        let values = b"\0\x011\0\x03one\0\x0220\0\0";
        assert_eq!(out, [&head[..], values].concat());
    }
}
