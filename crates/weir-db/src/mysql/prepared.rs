//! Statements that the server has prepared: their parameters as bytes, their rows as text.

use crate::error::DbError;
use crate::rows::{Done, Kept, Row, StatementId};
use crate::value::Value;

use super::Connection;
use super::answer::{Collect, Column, Decode};
use super::binary::binary_row;
use super::cursor::{Cursor, push_lenenc_bytes};
use super::protocol::{ERR, OK, command, kind};

/// Flags (no cursor) and the number of times (1).
const EXECUTE_ONCE: [u8; 5] = [0, 1, 0, 0, 0];

/// A statement in the server.
#[derive(Debug)]
pub(super) struct Prepared {
    id: u32,
    /// The type that each parameter was last sent as: they are named again only where one changes.
    parameters: Vec<u8>,
    /// What rows consist of, as last described.
    columns: Vec<Column>,
}

impl Connection {
    /// Prepares a statement.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        self.packets.command(|out| {
            out.push(command::STMT_PREPARE);
            out.extend_from_slice(sql.as_bytes());
        })?;
        self.packets.send()?;
        let payload = self.packets.read()?;
        if payload.first() == Some(&ERR) {
            return Err(self.server_error());
        }
        let (id, columns, parameters) = parse_prepared(payload)
            .ok_or_else(|| self.packets.wire.odd("the answer to a prepare is truncated"))?;
        if parameters > 0 {
            self.read_columns(u64::from(parameters))?;
        }
        let columns = if columns > 0 { self.read_columns(u64::from(columns))? } else { Vec::new() };
        self.packets.finished();
        let parameters = vec![kind::NULL; usize::from(parameters)];
        Ok(self.keep(Prepared { id, parameters, columns }))
    }

    /// What the server calls a statement.
    pub(super) fn number_of(&self, statement: StatementId) -> Result<u32, DbError> {
        let slot = self.statements.get(statement.0 as usize).and_then(Option::as_ref);
        slot.map(|prepared| prepared.id).ok_or_else(|| unknown(statement))
    }

    fn keep(&mut self, prepared: Prepared) -> StatementId {
        let free = self.statements.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.statements.push(None);
            self.statements.len() - 1
        });
        self.statements[at] = Some(prepared);
        StatementId(at as u32)
    }

    /// Executes a prepared statement and throws its rows away.
    #[inline]
    pub fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError> {
        if !self.caches_metadata {
            self.send_execute(statement, values)?;
            return Ok(self.read_answer(None)?.done);
        }
        // The server does not tell the columns of this statement's rows again.
        self.execute_with(statement, values, None).map(|(done, _)| done)
    }

    /// Executes a prepared statement and returns its rows.
    pub fn execute_rows(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(Done, Vec<Row>), DbError> {
        self.execute_with(statement, values, Some(binary_row))
    }

    #[inline]
    fn execute_with(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        decode: Option<Decode>,
    ) -> Result<(Done, Vec<Row>), DbError> {
        self.send_execute(statement, values)?;
        let at = statement.0 as usize;
        let mut columns =
            self.statements[at].as_mut().map(|it| std::mem::take(&mut it.columns)).unwrap_or_default();
        let mut collect = Collect { decode, columns: &mut columns, rows: Kept::default() };
        let answer = self.read_answer(Some(&mut collect));
        let rows = collect.rows.rows();
        if let Some(prepared) = &mut self.statements[at] {
            prepared.columns = columns;
        }
        Ok((answer?.done, rows))
    }

    /// Forgets a prepared statement. The server hears of it together with the next command: it never answers this.
    pub fn close(&mut self, statement: StatementId) -> Result<(), DbError> {
        let slot = self.statements.get_mut(statement.0 as usize);
        let Some(prepared) = slot.and_then(Option::take) else { return Err(unknown(statement)) };
        self.packets.command(|out| {
            out.push(command::STMT_CLOSE);
            out.extend_from_slice(&prepared.id.to_le_bytes());
        })
    }

    #[inline]
    fn send_execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<(), DbError> {
        let slot = self.statements.get_mut(statement.0 as usize);
        let Some(prepared) = slot.and_then(Option::as_mut) else { return Err(unknown(statement)) };
        if values.len() != prepared.parameters.len() {
            return Err(wrong_count(prepared.parameters.len(), values.len()));
        }
        self.packets.command(|out| push_execute(out, prepared, values))?;
        self.packets.send()
    }
}

#[inline]
fn push_execute(out: &mut Vec<u8>, prepared: &mut Prepared, values: &[Value<'_>]) {
    out.push(command::STMT_EXECUTE);
    out.extend_from_slice(&prepared.id.to_le_bytes());
    out.extend_from_slice(&EXECUTE_ONCE);
    if values.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + values.len().div_ceil(8), 0);
    let mut changed = false;
    for (at, (value, kind)) in values.iter().zip(&mut prepared.parameters).enumerate() {
        match kind_of(value) {
            None => out[nulls + at / 8] |= 1 << (at % 8),
            Some(new) => changed |= std::mem::replace(kind, new) != new,
        }
    }
    // A statement that has never had types needs them, even where all values are NULL.
    changed |= prepared.parameters.contains(&kind::NULL);
    out.push(u8::from(changed));
    if changed {
        out.extend(prepared.parameters.iter().flat_map(|&kind| [kind, 0]));
    }
    for value in values {
        match value {
            Value::Null => {}
            Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Float(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Text(text) => push_lenenc_bytes(out, text.as_bytes()),
        }
    }
}

#[inline]
fn kind_of(value: &Value<'_>) -> Option<u8> {
    match value {
        Value::Null => None,
        Value::Int(_) => Some(kind::LONGLONG),
        Value::Float(_) => Some(kind::DOUBLE),
        Value::Text(_) => Some(kind::VAR_STRING),
    }
}

/// The statement's number, and how many columns and parameters it has.
fn parse_prepared(payload: &[u8]) -> Option<(u32, u16, u16)> {
    let mut cursor = Cursor(payload.strip_prefix(&[OK])?);
    Some((cursor.u32()?, cursor.u16()?, cursor.u16()?))
}

#[cold]
fn unknown(statement: StatementId) -> DbError {
    DbError::Unsupported(format!("no prepared statement {} in this connection", statement.0))
}

#[cold]
fn wrong_count(due: usize, given: usize) -> DbError {
    DbError::Unsupported(format!(
        "the prepared statement has {due} parameters, and {given} values were given"
    ))
}
