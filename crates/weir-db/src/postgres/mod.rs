//! PostgreSQL's protocol, version 3.0, for servers from 11 on.
//!
//! A statement is one `send` and one answer, read by `answer::read`: prepared ones by Bind, Execute and Sync, text by
//! Query. Values go in binary form where that is the column's own, results come as text and are not looked at.

mod answer;
mod base64;
mod cancel;
mod certificate;
mod copy;
mod login;
mod message;
mod parameters;
mod scram;
mod statement;

use std::io;

use crate::error::DbError;
use crate::rows::{Done, Row, StatementId};
use crate::server::{Canceller, Server, TlsMode};
use crate::value::Value;
use crate::wire::Wire;

pub use answer::Transaction;
use answer::{Collect, Discard, Sink, Standing};
pub(crate) use cancel::cancel;
use message::Malformed;
use parameters::Wanted;
use statement::Statement;

/// The server's own bound of a message's length (`PQ_LARGE_MESSAGE_LIMIT`).
const REQUEST_MAX: usize = (1 << 30) - 2;

/// A connection.
pub struct Connection {
    server: Server,
    version: String,
    process: u32,
    key: Vec<u8>,
    wire: Wire,
    standing: Standing,
    /// By their [`StatementId`], which closed ones leave to the next.
    statements: Vec<Option<Statement>>,
    /// How many have been prepared. Names are not used again: one that failed halfway may still hold its own.
    prepared: u64,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Connection, DbError> {
        let login::LoggedIn { wire, standing, version, process, key } = login::open(server)?;
        Ok(Connection {
            server: server.clone(),
            version,
            process,
            key,
            wire,
            standing,
            statements: Vec::new(),
            prepared: 0,
        })
    }

    /// What the server calls itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The process that listens, where that can be told.
    pub fn listener(&self) -> Option<u32> {
        self.wire.listener()
    }

    /// The account at the other end, where that can be told.
    pub fn serving_account(&self) -> Option<u32> {
        self.wire.serving_account()
    }

    /// Whether this connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.wire.is_encrypted()
    }

    /// Whether the session is in a transaction, as the server said last.
    pub fn transaction(&self) -> Transaction {
        self.standing.transaction
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        self.prepared += 1;
        let name = self.prepared.to_string();
        let mut parameters = Parameters(Vec::new());
        self.ask(&mut parameters, |out| statement::put_prepare(&name, sql, out))?;
        let statement = Some(Statement::new(name, parameters.0));
        let slot = match self.statements.iter().position(Option::is_none) {
            Some(free) => {
                self.statements[free] = statement;
                free
            }
            None => {
                self.statements.push(statement);
                self.statements.len() - 1
            }
        };
        Ok(StatementId(slot as u32))
    }

    /// Executes a prepared statement and throws its rows away.
    #[inline]
    pub fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError> {
        self.execute_into(&mut Discard, statement, values)
    }

    /// Executes a prepared statement and returns its rows.
    pub fn execute_rows(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(Done, Vec<Row>), DbError> {
        let mut rows = Collect::default();
        let done = self.execute_into(&mut rows, statement, values)?;
        Ok((done, rows.rows.rows()))
    }

    #[inline]
    fn execute_into(
        &mut self,
        sink: &mut impl Sink,
        id: StatementId,
        values: &[Value<'_>],
    ) -> Result<Done, DbError> {
        let statement = match self.statements.get(id.0 as usize) {
            Some(Some(statement)) if statement.parameters() == values.len() => statement,
            found => return Err(unfit(id, found.and_then(Option::as_ref), values.len())),
        };
        statement.put(values, self.wire.output());
        self.exchange(sink)
    }

    /// Forgets a prepared statement.
    pub fn close(&mut self, statement: StatementId) -> Result<(), DbError> {
        let Some(closed) = self.statements.get_mut(statement.0 as usize).and_then(Option::take) else {
            return Err(unfit(statement, None, 0));
        };
        self.ask(&mut Discard, |out| statement::put_close(closed.name(), out)).map(|_| ())
    }

    /// Runs statements given as text and throws their rows away. Of several, separated by semicolons, the counts are
    /// sums; the server takes them for one transaction.
    #[inline]
    pub fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        self.ask(&mut Discard, |out| put_query(sql, out))
    }

    /// The same, with the rows of the last one that has any.
    pub fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError> {
        let mut rows = Collect::default();
        let done = self.ask(&mut rows, |out| put_query(sql, out))?;
        Ok((done, rows.rows.rows()))
    }

    /// A handle that ends the statement under way.
    pub fn canceller(&self) -> Canceller {
        let mut server = self.server.clone();
        if !self.wire.is_encrypted() {
            // A server that this connection could not be encrypted to would fail the next one too.
            server.tls.mode = TlsMode::Disabled;
        }
        Canceller { server, connection_id: self.process, key: self.key.clone() }
    }

    /// Sends a request and reads its answer.
    #[inline]
    fn ask(&mut self, sink: &mut impl Sink, put: impl FnOnce(&mut Vec<u8>)) -> Result<Done, DbError> {
        put(self.wire.output());
        self.exchange(sink)
    }

    /// Sends what is in the output and reads the answer.
    #[inline]
    fn exchange(&mut self, sink: &mut impl Sink) -> Result<Done, DbError> {
        let answer = match self.send() {
            Ok(()) => answer::read(&mut self.wire, &mut self.standing, sink),
            Err(error) => Err(self.last_words(error)),
        };
        answer.map_err(|error| self.judged(error))
    }

    #[inline]
    fn send(&mut self) -> Result<(), DbError> {
        if self.standing.is_over || self.wire.output().len() > REQUEST_MAX {
            return Err(self.refused());
        }
        self.wire.flush()
    }

    /// Why a request is not even sent.
    #[cold]
    fn refused(&mut self) -> DbError {
        let output = self.wire.output();
        let bytes = output.len();
        output.clear();
        if self.standing.is_over {
            let source = io::Error::new(io::ErrorKind::NotConnected, "an earlier request ended it");
            return DbError::Lost { place: self.server.place.to_string(), source };
        }
        DbError::Unsupported(format!(
            "a statement with its values takes {}, more than PostgreSQL reads at once (1 GiB)",
            weir_core::units::Bytes(bytes as u64)
        ))
    }

    /// A server that closes says why first: where nothing can be sent any more, that may still be read.
    #[cold]
    fn last_words(&mut self, unsent: DbError) -> DbError {
        if self.standing.is_over || !matches!(unsent, DbError::Lost { .. }) {
            return unsent;
        }
        match answer::read(&mut self.wire, &mut self.standing, &mut Discard) {
            Err(DbError::Server(error)) => error.into(),
            _ => unsent,
        }
    }

    /// After anything but an error that the server told, request and answer would no longer fit: nothing more is asked.
    #[cold]
    fn judged(&mut self, error: DbError) -> DbError {
        match error {
            DbError::Server(_) | DbError::Unsupported(_) => return error,
            _ => self.standing.is_over = true,
        }
        match self.standing.farewell.take() {
            Some(farewell) if matches!(error, DbError::Lost { .. }) => farewell.into(),
            _ => error,
        }
    }
}

impl Drop for Connection {
    /// Says goodbye, so that the server's log has no complaint.
    fn drop(&mut self) {
        if !self.standing.is_over {
            message::put(self.wire.output(), b'X', |_| ());
            self.wire.send_last();
        }
    }
}

/// Takes the types of a statement's parameters.
struct Parameters(Vec<Wanted>);

impl Sink for Parameters {
    const TAKES: &'static [u8] = b"t";

    fn take(&mut self, _: u8, body: &[u8]) -> Result<(), Malformed> {
        self.0 = Wanted::read(body)?;
        Ok(())
    }
}

fn put_query(sql: &str, out: &mut Vec<u8>) {
    message::put(out, b'Q', |out| message::put_text(out, sql));
}

/// Why a statement cannot be executed like this.
#[cold]
fn unfit(id: StatementId, statement: Option<&Statement>, values: usize) -> DbError {
    DbError::Unsupported(match statement {
        None => format!("no prepared statement {} on this connection", id.0),
        Some(statement) => {
            format!(
                "a prepared statement has {} parameters, and {values} values were given",
                statement.parameters()
            )
        }
    })
}
