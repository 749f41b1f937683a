//! Answers: OK, an error, or columns and rows, one or several after another.

use crate::error::{DbError, MESSAGE_CHARS_MAX, SQLSTATE_CHARS, ServerError, plain};
use crate::rows::{Done, Kept, Row};

use super::Connection;
use super::cursor::Cursor;
use super::packets::ends_rows;
use super::protocol::{COLUMNS_MAX, EOF, ERR, FLAG_UNSIGNED, INFILE, OK, STATUS_MORE_RESULTS};

/// How a command ended well.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    pub affected: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
}

/// What a binary row needs to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub kind: u8,
    pub unsigned: bool,
    /// Digits of a fraction.
    pub decimals: u8,
}

/// How an answer starts.
enum Head {
    Ended(Ending),
    Columns {
        count: u64,
        /// Whether their descriptions follow; else they are the statement's last ones.
        described: bool,
    },
    Infile,
}

/// Reads one row.
pub(super) type Decode = fn(&[u8], &[Column]) -> Option<Row>;

/// Where rows go that somebody wants, and the description of columns that will not come again.
pub(super) struct Collect<'a> {
    /// Reads one row; without it rows are thrown away and only their columns kept.
    pub decode: Option<Decode>,
    /// A prepared statement's columns as last described; text rows need none.
    pub columns: &'a mut Vec<Column>,
    pub rows: Kept,
}

/// What a whole answer came to.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub done: Done,
    pub warnings: u16,
    /// The server asked for a file, and did not get it.
    pub asked_for_file: bool,
}

impl Connection {
    /// Reads an answer to its end. Rows of the first result go to `collect`, all others are counted.
    pub(super) fn read_answer(&mut self, mut collect: Option<&mut Collect<'_>>) -> Result<Answer, DbError> {
        let mut answer = Answer::default();
        loop {
            let ending = match self.read_head()? {
                Head::Ended(ending) => ending,
                Head::Columns { count, described } => {
                    let (rows, ending) = self.read_result(count, described, collect.take())?;
                    answer.done.rows += rows;
                    ending
                }
                Head::Infile => {
                    // An empty packet ends the file before it began.
                    self.packets.send_nothing()?;
                    answer.asked_for_file = true;
                    continue;
                }
            };
            answer.done.affected = answer.done.affected.saturating_add(ending.affected);
            answer.done.last_insert_id = ending.last_insert_id.max(answer.done.last_insert_id);
            answer.warnings = answer.warnings.saturating_add(ending.warnings);
            if ending.status & STATUS_MORE_RESULTS == 0 {
                self.packets.finished();
                return Ok(answer);
            }
        }
    }

    /// Whether the answer to a LOAD DATA is the request for the file. Of any other answer but an error the rest is not read, and the
    /// connection cannot be used any more.
    pub(super) fn is_file_asked_for(&mut self) -> Result<bool, DbError> {
        Ok(matches!(self.read_head()?, Head::Infile))
    }

    #[inline]
    fn read_head(&mut self) -> Result<Head, DbError> {
        let cached = self.caches_metadata;
        let payload = self.packets.read()?;
        let head = match payload.first() {
            Some(&OK) => parse_ok(payload).map(Head::Ended),
            Some(&ERR) => return Err(self.server_error()),
            Some(&INFILE) => Some(Head::Infile),
            Some(_) => parse_column_count(payload, cached),
            None => None,
        };
        head.ok_or_else(|| self.packets.wire.odd("an answer of unknown type"))
    }

    fn read_result(
        &mut self,
        count: u64,
        described: bool,
        collect: Option<&mut Collect<'_>>,
    ) -> Result<(u64, Ending), DbError> {
        let Some((collect, decode)) = self.describe(count, described, collect)? else {
            let rows = self.packets.skip_rows(ends_rows)?;
            return Ok((rows, self.read_ending()?));
        };
        loop {
            let payload = self.packets.read_row()?;
            if payload.first().is_some_and(|&first| ends_rows(first, payload.len())) {
                let ending = self.ending()?;
                return Ok((collect.rows.count(), ending));
            }
            let row = decode(payload, collect.columns);
            let row = row.ok_or_else(|| self.packets.wire.odd("a row does not fit its columns"))?;
            if !collect.rows.push(row) {
                return Err(self.packets.wire.odd(Kept::FULL));
            }
        }
    }

    /// Reads or passes over the columns' descriptions; says how to read the rows where somebody wants them.
    #[inline]
    fn describe<'a, 'b>(
        &mut self,
        count: u64,
        described: bool,
        collect: Option<&'a mut Collect<'b>>,
    ) -> Result<Option<(&'a mut Collect<'b>, Decode)>, DbError> {
        match collect {
            Some(collect) => {
                if described {
                    *collect.columns = self.read_columns(count)?;
                }
                Ok(collect.decode.map(|decode| (collect, decode)))
            }
            None => {
                if described {
                    self.packets.skip(count + u64::from(!self.deprecates_eof))?;
                }
                Ok(None)
            }
        }
    }

    /// Descriptions of columns or parameters, and the EOF behind them where the server still sends it.
    pub(super) fn read_columns(&mut self, count: u64) -> Result<Vec<Column>, DbError> {
        let mut columns = Vec::new();
        for _ in 0..count {
            let column = parse_column(self.packets.read()?);
            columns.push(
                column.ok_or_else(|| self.packets.wire.odd("the description of a column is truncated"))?,
            );
        }
        if !self.deprecates_eof {
            self.packets.skip(1)?;
        }
        Ok(columns)
    }

    #[inline]
    fn read_ending(&mut self) -> Result<Ending, DbError> {
        self.packets.read()?;
        self.ending()
    }

    /// The end of rows that was read last.
    #[inline]
    fn ending(&mut self) -> Result<Ending, DbError> {
        let deprecates_eof = self.deprecates_eof;
        let payload = self.packets.shown();
        let ending = match payload.first() {
            Some(&ERR) => return Err(self.server_error()),
            Some(_) if deprecates_eof => parse_ok(payload),
            Some(_) => parse_eof(payload),
            None => None,
        };
        ending.ok_or_else(|| self.packets.wire.odd("the end of the rows is truncated"))
    }

    /// The error that was read last. It ends the answer.
    #[cold]
    pub(super) fn server_error(&mut self) -> DbError {
        match parse_error(self.packets.shown()) {
            Some(error) => {
                self.packets.finished();
                DbError::Server(error)
            }
            None => self.packets.wire.odd("an error is truncated"),
        }
    }
}

/// OK, and the EOF that has its shape: its first byte is passed over.
#[inline]
pub(super) fn parse_ok(payload: &[u8]) -> Option<Ending> {
    let mut cursor = Cursor(payload.get(1..)?);
    Some(Ending {
        affected: cursor.lenenc()?,
        last_insert_id: cursor.lenenc()?,
        status: cursor.u16()?,
        warnings: cursor.u16()?,
    })
}

fn parse_eof(payload: &[u8]) -> Option<Ending> {
    let mut cursor = Cursor(payload.strip_prefix(&[EOF])?);
    let warnings = cursor.u16()?;
    Some(Ending { warnings, status: cursor.u16()?, ..Ending::default() })
}

/// Number, `#` and SQLSTATE, message. A server that is full says so before both sides know of SQLSTATEs.
pub(super) fn parse_error(payload: &[u8]) -> Option<ServerError> {
    let mut cursor = Cursor(payload.strip_prefix(&[ERR])?);
    let number = cursor.u16()?;
    let sqlstate = match cursor.0.strip_prefix(b"#") {
        Some(rest) => {
            cursor.0 = rest;
            plain(cursor.take(SQLSTATE_CHARS)?, SQLSTATE_CHARS)
        }
        None => "HY000".to_string(),
    };
    Some(ServerError { number, sqlstate, message: plain(cursor.0, MESSAGE_CHARS_MAX) })
}

fn parse_column_count(payload: &[u8], cached: bool) -> Option<Head> {
    let mut cursor = Cursor(payload);
    let count = cursor.lenenc().filter(|count| (1..=COLUMNS_MAX).contains(count))?;
    let described = !cached || cursor.u8()? != 0;
    Some(Head::Columns { count, described })
}

/// Catalogue, schema, table and column by two names each, then what is of use here.
pub(super) fn parse_column(payload: &[u8]) -> Option<Column> {
    let mut cursor = Cursor(payload);
    for _name in 0..6 {
        cursor.lenenc_bytes()?;
    }
    cursor.lenenc()?;
    let (_charset, _width) = (cursor.u16()?, cursor.u32()?);
    let (kind, flags, decimals) = (cursor.u8()?, cursor.u16()?, cursor.u8()?);
    Some(Column { kind, unsigned: flags & FLAG_UNSIGNED != 0, decimals })
}
