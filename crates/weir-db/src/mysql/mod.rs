//! MySQL's and MariaDB's protocol.

use crate::connection::{Canceller, Done, Row, StatementId};
use crate::error::DbError;
use crate::server::Server;
use crate::value::Value;

/// A connection.
pub struct Connection {
    server: Server,
    version: String,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Connection, DbError> {
        Err(DbError::Unsupported(format!("{} cannot be reached yet", server.place)))
    }

    /// What the server calls itself.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether this connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        false
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        Err(DbError::Unsupported(sql.to_string()))
    }

    /// Executes a prepared statement and throws its rows away.
    pub fn execute(&mut self, _statement: StatementId, _values: &[Value<'_>]) -> Result<Done, DbError> {
        Err(DbError::Stopped)
    }

    /// Executes a prepared statement and returns its rows.
    pub fn execute_rows(&mut self, _: StatementId, _: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError> {
        Err(DbError::Stopped)
    }

    /// Forgets a prepared statement.
    pub fn close(&mut self, _statement: StatementId) -> Result<(), DbError> {
        Err(DbError::Stopped)
    }

    /// Runs a statement given as text and throws its rows away.
    pub fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        Err(DbError::Unsupported(sql.to_string()))
    }

    /// Runs a statement given as text and returns its rows.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        Err(DbError::Unsupported(sql.to_string()))
    }

    /// Fills a table.
    pub fn load(
        &mut self,
        table: &str,
        _columns: &str,
        _fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        Err(DbError::Unsupported(table.to_string()))
    }

    /// A handle that ends the statement under way.
    pub fn canceller(&self) -> Canceller {
        Canceller { server: self.server.clone(), connection_id: 0, key: Vec::new() }
    }
}
