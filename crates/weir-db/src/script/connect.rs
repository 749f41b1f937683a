//! Where a script's connections come from.

use std::sync::atomic::{AtomicUsize, Ordering};

use weir_oltp::Dialect;

use crate::connection::Connection;
use crate::error::DbError;
use crate::rows::{Done, Row, StatementId};
use crate::server::{Canceller, Place, Server};
use crate::value::Value;

/// What a script asks of a connection; [`Connection`]'s own words.
pub trait Sql {
    /// The server's family.
    fn dialect(&self) -> Dialect;
    /// See [`Connection::prepare`].
    fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError>;
    /// See [`Connection::execute`].
    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError>;
    /// See [`Connection::execute_rows`].
    fn execute_rows(&mut self, id: StatementId, values: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError>;
    /// See [`Connection::close`].
    fn close(&mut self, statement: StatementId) -> Result<(), DbError>;
    /// See [`Connection::run`].
    fn run(&mut self, sql: &str) -> Result<Done, DbError>;
    /// See [`Connection::run_rows`].
    fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError>;
    /// What the server calls itself.
    fn version(&self) -> &str {
        ""
    }
    /// Whether the connection is encrypted.
    fn is_encrypted(&self) -> bool {
        false
    }
    /// See [`Connection::canceller`].
    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

impl Sql for Connection {
    fn dialect(&self) -> Dialect {
        Connection::dialect(self)
    }
    fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
        Connection::prepare(self, sql)
    }
    fn execute(&mut self, statement: StatementId, values: &[Value<'_>]) -> Result<Done, DbError> {
        Connection::execute(self, statement, values)
    }
    fn execute_rows(&mut self, id: StatementId, values: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError> {
        Connection::execute_rows(self, id, values)
    }
    fn close(&mut self, statement: StatementId) -> Result<(), DbError> {
        Connection::close(self, statement)
    }
    fn run(&mut self, sql: &str) -> Result<Done, DbError> {
        Connection::run(self, sql)
    }
    fn run_rows(&mut self, sql: &str) -> Result<(Done, Vec<Row>), DbError> {
        Connection::run_rows(self, sql)
    }
    fn version(&self) -> &str {
        Connection::version(self)
    }
    fn is_encrypted(&self) -> bool {
        Connection::is_encrypted(self)
    }
    fn canceller(&self) -> Option<Canceller> {
        Some(Connection::canceller(self))
    }
}

/// Makes connections, from any thread.
pub trait Connect: Send + Sync {
    /// The driver of a name, or the one of the options; else what to complain about.
    fn driver(&self, name: Option<&str>) -> Result<&'static str, String>;
    /// A connection; else lines that say what went wrong.
    fn open(&self, driver: &str) -> Result<Box<dyn Sql>, Vec<String>>;
    /// Where connections of a family lead, for records.
    fn places(&self, _dialect: Dialect) -> Vec<String> {
        Vec::new()
    }
}

/// The servers that the options name.
pub struct Servers {
    /// `--db-driver`, as typed.
    pub default_driver: String,
    /// A complaint that is due as soon as a driver is asked for.
    pub complaint: Option<String>,
    /// Those of a family are taken in turn.
    pub servers: Vec<Server>,
    /// MySQL: send nothing.
    pub dry: bool,
    /// Connections made so far.
    pub made: AtomicUsize,
}

impl Connect for Servers {
    fn driver(&self, name: Option<&str>) -> Result<&'static str, String> {
        if let Some(complaint) = &self.complaint {
            return Err(complaint.clone());
        }
        match name.unwrap_or(&self.default_driver) {
            "mysql" => Ok("mysql"),
            "pgsql" => Ok("pgsql"),
            other => Err(format!("invalid database driver name: '{other}'")),
        }
    }

    fn open(&self, driver: &str) -> Result<Box<dyn Sql>, Vec<String>> {
        if driver == "mysql" && self.dry {
            return Ok(Box::new(Dry));
        }
        let turn = self.made.fetch_add(1, Ordering::Relaxed);
        let mut family = self.of(if driver == "mysql" { Dialect::MySql } else { Dialect::Postgres });
        let count = family.clone().count();
        let server = family.nth(turn % count.max(1));
        let Some(server) = server else { return Err(vec!["no server was named".to_string()]) };
        match Connection::open(server) {
            Ok(connection) => Ok(Box::new(connection)),
            Err(error) => Err(complaint(server, &error)),
        }
    }

    fn places(&self, dialect: Dialect) -> Vec<String> {
        self.of(dialect).map(|server| server.place.to_string()).collect()
    }
}

impl Servers {
    fn of(&self, dialect: Dialect) -> impl Iterator<Item = &Server> + Clone {
        self.servers.iter().filter(move |server| server.dialect == dialect)
    }
}

/// sysbench's words for a connection that could not be made, with the server's or the system's reason.
fn complaint(server: &Server, error: &DbError) -> Vec<String> {
    if server.dialect == Dialect::Postgres {
        return vec![format!("Connection to database failed: {error}\n")];
    }
    let (number, words) = match error {
        DbError::Server(error) => (error.number, error.message.clone()),
        other => (2002, other.to_string()),
    };
    let place = match &server.place {
        Place::Unix(path) => format!("socket '{}'", path.display()),
        Place::Tcp { host, port } => format!("host '{host}', port {port}"),
    };
    vec![
        format!("unable to connect to MySQL server on {place}, aborting..."),
        format!("error {number}: {words}"),
    ]
}

/// `--mysql-dry-run`: takes every statement for done.
pub struct Dry;

impl Sql for Dry {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }
    fn prepare(&mut self, _: &str) -> Result<StatementId, DbError> {
        Ok(StatementId(0))
    }
    fn execute(&mut self, _: StatementId, _: &[Value<'_>]) -> Result<Done, DbError> {
        Ok(Done::default())
    }
    fn execute_rows(&mut self, _: StatementId, _: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError> {
        Ok((Done::default(), Vec::new()))
    }
    fn close(&mut self, _: StatementId) -> Result<(), DbError> {
        Ok(())
    }
    fn run(&mut self, _: &str) -> Result<Done, DbError> {
        Ok(Done::default())
    }
    fn run_rows(&mut self, _: &str) -> Result<(Done, Vec<Row>), DbError> {
        Ok((Done::default(), Vec::new()))
    }
}
