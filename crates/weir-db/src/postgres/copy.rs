//! Filling a table by COPY … FROM STDIN, in text format.

use crate::error::DbError;
use crate::rows::Done;

use super::answer::{self, Discard, Sink};
use super::message::{self, HEADER, Header, Malformed};
use super::{Connection, put_query};

/// Rows of about this size go into one message and one call. More gains nothing: the server reads 8 KiB at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// Learns whether the server waits for rows.
struct Awaited(bool);

impl Sink for Awaited {
    const TAKES: &'static [u8] = b"G";

    fn take(&mut self, _: u8, _: &[u8]) -> Result<(), Malformed> {
        self.0 = true;
        Ok(())
    }
}

impl Connection {
    /// Fills a table with the rows that `fill` appends; `columns` are names separated by commas, none for all.
    pub fn load(
        &mut self,
        table: &str,
        columns: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        let columns = if columns.is_empty() { String::new() } else { format!(" ({columns})") };
        let sql = format!("COPY {table}{columns} FROM STDIN");
        let mut awaited = Awaited(false);
        let done = self.ask(&mut awaited, |out| put_query(&sql, out))?;
        if !awaited.0 {
            return Ok(done);
        }
        let mut end = b'c';
        while put_chunk(self.wire.output(), fill) {
            self.send().map_err(|error| self.last_words(error)).map_err(|error| self.judged(error))?;
            if self.has_failed().map_err(|error| self.judged(error))? {
                end = b'f';
                break;
            }
        }
        // A server that has failed ignores the end, as it ignores rows, until the next request.
        self.ask(&mut Discard, |out| {
            message::put(out, end, |out| out.extend_from_slice(if end == b'f' { b"\0" } else { b"" }));
        })
    }

    /// Whether the server has said anything but notices already, which in the middle of COPY is an error.
    fn has_failed(&mut self) -> Result<bool, DbError> {
        while self.wire.has_input() {
            let header =
                Header::read(self.wire.need(HEADER)?).map_err(|odd| self.wire.odd(odd.to_string()))?;
            match header {
                Some(header @ Header { tag: b'N', body }) => {
                    answer::hear(answer::complaint(&mut self.wire, header)?, &mut self.standing);
                    self.wire.consume(HEADER + body);
                }
                Some(Header { tag: b'S' | b'A', body }) => self.wire.skip(HEADER + body)?,
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// Appends a message of rows; `false` after the last ones.
fn put_chunk(out: &mut Vec<u8>, fill: &mut dyn FnMut(&mut Vec<u8>) -> bool) -> bool {
    let mut has_more = true;
    message::put(out, b'd', |out| {
        let full = out.len() + CHUNK_BYTES;
        while has_more && out.len() < full {
            has_more = fill(out);
        }
    });
    has_more
}
