//! One blocking connection to a server of either family.

use weir_oltp::Dialect;

use crate::error::DbError;
use crate::rows::{Done, Row, StatementId};
use crate::server::{Canceller, Server};
use crate::value::Value;
use crate::{mysql, postgres};

/// A connection. Not shared between threads; statements are answered one at a time.
pub enum Connection {
    /// MySQL and MariaDB.
    MySql(Box<mysql::Connection>),
    /// PostgreSQL.
    Postgres(Box<postgres::Connection>),
}

impl Connection {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Connection, DbError> {
        Ok(match server.dialect {
            Dialect::MySql => Connection::MySql(Box::new(mysql::Connection::open(server)?)),
            Dialect::Postgres => Connection::Postgres(Box::new(postgres::Connection::open(server)?)),
        })
    }

    /// Connects for rows that are to stay: a statement outside a transaction is one, whatever the server's variables or its
    /// `init_connect` say of that. PostgreSQL's always are.
    pub fn open_committing(server: &Server) -> Result<Connection, DbError> {
        let mut connection = Connection::open(server)?;
        if server.dialect == Dialect::MySql {
            connection.run("SET autocommit = 1")?;
        }
        Ok(connection)
    }

    /// The server's family.
    pub fn dialect(&self) -> Dialect {
        match self {
            Connection::MySql(_) => Dialect::MySql,
            Connection::Postgres(_) => Dialect::Postgres,
        }
    }

    /// What the server calls itself.
    pub fn version(&self) -> &str {
        match self {
            Connection::MySql(it) => it.version(),
            Connection::Postgres(it) => it.version(),
        }
    }

    /// The process that listens, where that is one of this machine at a Unix socket.
    pub fn listener(&self) -> Option<u32> {
        match self {
            Connection::MySql(it) => it.listener(),
            Connection::Postgres(it) => it.listener(),
        }
    }

    /// The account at the other end, where that can be told beyond the server's word.
    pub fn serving_account(&self) -> Option<u32> {
        match self {
            Connection::MySql(it) => it.serving_account(),
            Connection::Postgres(it) => it.serving_account(),
        }
    }

    /// Whether this connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Connection::MySql(it) => it.is_encrypted(),
            Connection::Postgres(it) => it.is_encrypted(),
        }
    }

    /// Prepares a statement in the server. Placeholders are the dialect's: `?` or `$1`.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        match self {
            Connection::MySql(it) => it.prepare(sql),
            Connection::Postgres(it) => it.prepare(sql),
        }
    }

    /// Executes a prepared statement, reads its whole answer and throws its rows away.
    #[inline]
    pub fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError> {
        match self {
            Connection::MySql(it) => it.execute(statement, values),
            Connection::Postgres(it) => it.execute(statement, values),
        }
    }

    /// Executes a prepared statement and returns its rows.
    pub fn execute_rows(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<(Done, Vec<Row>), DbError> {
        match self {
            Connection::MySql(it) => it.execute_rows(statement, values),
            Connection::Postgres(it) => it.execute_rows(statement, values),
        }
    }

    /// Forgets a prepared statement.
    pub fn close(&mut self, statement: StatementId) -> Result<(), DbError> {
        match self {
            Connection::MySql(it) => it.close(statement),
            Connection::Postgres(it) => it.close(statement),
        }
    }

    /// Runs a statement given as text, without preparing it, and throws its rows away.
    #[inline]
    pub fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        match self {
            Connection::MySql(it) => it.run(sql),
            Connection::Postgres(it) => it.run(sql),
        }
    }

    /// Runs a statement given as text and returns what it did, and its rows.
    pub fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError> {
        match self {
            Connection::MySql(it) => it.run_rows(sql),
            Connection::Postgres(it) => it.run_rows(sql),
        }
    }

    /// The rows alone.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        self.run_rows(sql).map(|(_, rows)| rows)
    }

    /// Fills a table by the fastest way the server offers: COPY … FROM STDIN, LOAD DATA LOCAL INFILE. `fill` appends
    /// whole rows to the buffer, columns separated by tabs, rows ended by newlines, and says `false` after the last
    /// ones. [`DbError::Unsupported`] where the server does not allow it: nothing has been sent then.
    pub fn load(
        &mut self,
        table: &str,
        columns: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        match self {
            Connection::MySql(it) => it.load(table, columns, fill),
            Connection::Postgres(it) => it.load(table, columns, fill),
        }
    }

    /// Whether [`Connection::load_arrays`] is open: MariaDB's.
    pub fn takes_arrays(&self) -> bool {
        matches!(self, Connection::MySql(it) if it.takes_arrays())
    }

    /// Fills a table by one INSERT with many rows of values, where the server takes that: MariaDB. Rows are as in
    /// [`Connection::load`], without escapes; what `fill` appends at once becomes one packet.
    /// [`DbError::Unsupported`] of other servers: nothing has been sent then.
    pub fn load_arrays(
        &mut self,
        table: &str,
        columns: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<Done, DbError> {
        match self {
            Connection::MySql(it) if it.takes_arrays() => it.load_arrays(table, columns, fill),
            _ => Err(DbError::Unsupported(format!("{table} cannot be filled by arrays: not MariaDB"))),
        }
    }

    /// A handle by which another thread ends the statement under way (KILL QUERY, CancelRequest): the way out of a
    /// statement that hangs.
    pub fn canceller(&self) -> Canceller {
        match self {
            Connection::MySql(it) => it.canceller(),
            Connection::Postgres(it) => it.canceller(),
        }
    }
}

impl Canceller {
    /// Ends the statement under way, if there is one: its connection is told so as an error of the server. Returns when
    /// the server has heard it.
    pub fn cancel(&self) -> Result<(), DbError> {
        match self.server.dialect {
            Dialect::MySql => mysql::cancel(self),
            Dialect::Postgres => postgres::cancel(self),
        }
    }
}
