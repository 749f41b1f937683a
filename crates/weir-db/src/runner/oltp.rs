//! The transactions of an [`OltpSpec`] on real connections.

use weir_oltp::record::ServerRecord;
use weir_oltp::schema::{table_name, tables};
use weir_oltp::{Dialect, Kind, OltpSpec, Script, Seat, Stream, sql, statement_order};

use super::{Driver, READY_WITHIN, Recorder, Workload, with_timeout};
use crate::connection::Connection;
use crate::error::DbError;
use crate::rows::{Done, StatementId};
use crate::script::Sql;
use crate::server::{Canceller, Server};

/// A workload against one or several servers.
pub struct Oltp {
    spec: OltpSpec,
    servers: Vec<Server>,
    highest_id: u64,
}

impl Oltp {
    /// Looks at the tables where the workload depends on what is in them.
    pub fn new(spec: &OltpSpec, servers: &[Server]) -> Result<Oltp, DbError> {
        let mut oltp = Oltp { spec: spec.clone(), servers: with_timeout(spec, servers), highest_id: 0 };
        let numbers_rows = spec.script == Script::BulkInsert
            || (spec.script == Script::Insert && !sql::numbered_by_server(spec));
        if numbers_rows {
            for server in servers {
                oltp.highest_id = oltp.highest_id.max(highest_id(spec, server)?);
            }
        }
        Ok(oltp)
    }
}

/// The largest number of a row in any of the tables.
fn highest_id(spec: &OltpSpec, server: &Server) -> Result<u64, DbError> {
    let of_table = |table| format!("SELECT MAX(id) AS id FROM {}", table_name(table));
    let of_tables: Vec<String> = (0..tables(spec)).map(of_table).collect();
    // One question: a server has so long to answer, and settings may be in force meanwhile.
    let question = format!("SELECT MAX(id) FROM ({}) AS of_tables", of_tables.join(" UNION ALL "));
    let rows = Connection::open(&server.answering_within(READY_WITHIN))?.query(&question)?;
    Ok(rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).unwrap_or(0))
}

/// Adds to an error of too many connections how many the server allows, now that those of this run are gone.
pub fn with_limit(mut error: DbError, servers: &[Server]) -> DbError {
    if error.is_full()
        && let DbError::Connections { allowed, .. } = &mut error
    {
        *allowed = servers.iter().filter_map(limit_once_there_is_room).min();
    }
    error
}

/// Connections that were just closed may still count in the server for a moment.
fn limit_once_there_is_room(server: &Server) -> Option<u64> {
    const TRIES: u32 = 20;
    for _ in 0..TRIES {
        match limit(server) {
            Err(error) if error.is_full() => std::thread::sleep(std::time::Duration::from_millis(50)),
            answer => return answer.ok().flatten(),
        }
    }
    None
}

fn limit(server: &Server) -> Result<Option<u64>, DbError> {
    let question = match server.dialect {
        Dialect::MySql => "SELECT @@max_connections",
        Dialect::Postgres => "SHOW max_connections",
    };
    let rows = Connection::open(&server.answering_within(READY_WITHIN))?.query(question)?;
    Ok(rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()))
}

impl Workload for Oltp {
    fn open(&self, seat: Seat) -> Result<Box<dyn Driver>, DbError> {
        let server = &self.servers[seat.index as usize % self.servers.len().max(1)];
        let connection = Connection::open_committing(server)?;
        let mut client = Client {
            stream: Stream::new(&self.spec, seat, self.highest_id),
            statements: Statements::new(&self.spec, server.dialect),
            server: server.clone(),
            connection,
            text: String::new(),
        };
        client.statements.prepare(&mut client.connection)?;
        Ok(Box::new(client))
    }
}

/// One connection and its statements.
struct Client {
    server: Server,
    connection: Connection,
    stream: Stream,
    statements: Statements,
    text: String,
}

impl Driver for Client {
    fn attempt(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError> {
        while let Some(step) = self.stream.next_step() {
            let result = match step.text {
                Some(text) => self.connection.run(text),
                None => match self.statements.of(step.kind, step.table) {
                    Statement::Prepared(id) => self.connection.execute(*id, step.values()),
                    Statement::Text(template) => {
                        self.text.clear();
                        sql::with_values(self.server.dialect, template, step.values(), &mut self.text);
                        self.connection.run(&self.text)
                    }
                },
            };
            recorder.statement(step.kind, &result);
            if let Err(error) = result {
                self.stream.restart();
                return Err(error);
            }
        }
        Ok(())
    }

    fn roll_back(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError> {
        let result = self.connection.run("ROLLBACK");
        recorder.statement(Kind::Rollback, &result);
        result.map(|_: Done| ())
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        self.connection = Connection::open_committing(&self.server)?;
        self.statements.prepare(&mut self.connection)
    }

    fn server(&self) -> ServerRecord {
        ServerRecord {
            dialect: Some(self.connection.dialect()),
            version: self.connection.version().to_string(),
            places: vec![self.server.place.to_string()],
            tls: self.connection.is_encrypted(),
            ..ServerRecord::default()
        }
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(self.connection.canceller())
    }
}

/// How a statement is sent.
enum Statement {
    Prepared(StatementId),
    Text(String),
}

/// The statements of a connection by kind and table.
struct Statements {
    dialect: Dialect,
    prepared: bool,
    tables: usize,
    /// The place of a kind's first table in `all`.
    first: [usize; Kind::ALL.len()],
    templates: Vec<String>,
    all: Vec<Statement>,
}

impl Statements {
    fn new(spec: &OltpSpec, dialect: Dialect) -> Statements {
        let tables = tables(spec) as usize;
        let (mut first, mut templates) = ([0; Kind::ALL.len()], Vec::new());
        for kind in statement_order::kinds(spec) {
            first[kind as usize] = templates.len();
            let count = if sql::is_tableless(kind) { 1 } else { tables };
            let texts = (0..count).filter_map(|table| sql::template(spec, dialect, kind, table as u32));
            templates.extend(texts);
        }
        Statements { dialect, prepared: spec.prepared, tables, first, templates, all: Vec::new() }
    }

    /// Prepares all of them on a connection, where they are to be and the server prepares such.
    fn prepare(&mut self, connection: &mut impl Sql) -> Result<(), DbError> {
        self.all.clear();
        for template in &self.templates {
            let as_text = || Statement::Text(template.clone());
            let statement = match self.prepared {
                true => match connection.prepare(&sql::with_placeholders(self.dialect, template)) {
                    Err(error) if error.is_unpreparable() => as_text(),
                    prepared => Statement::Prepared(prepared?),
                },
                false => as_text(),
            };
            self.all.push(statement);
        }
        Ok(())
    }

    #[inline]
    fn of(&self, kind: Kind, table: u32) -> &Statement {
        let table = if sql::is_tableless(kind) { 0 } else { table as usize % self.tables };
        &self.all[self.first[kind as usize] + table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ServerError;
    use crate::rows::Row;
    use crate::value::Value;

    /// A server that prepares what does not begin with one of these.
    struct Choosy(&'static [&'static str], u16);

    impl Sql for Choosy {
        fn dialect(&self) -> Dialect {
            Dialect::MySql
        }
        fn prepare(&mut self, sql: &str) -> Result<StatementId, DbError> {
            if !self.0.iter().any(|start| sql.starts_with(start)) {
                return Ok(StatementId(0));
            }
            let (number, sqlstate, message) = (self.1, "HY000".to_string(), "not this one".to_string());
            Err(ServerError { number, sqlstate, message }.into())
        }
        fn execute(&mut self, _: StatementId, _: &[Value<'_>]) -> Result<Done, DbError> {
            Ok(Done::default())
        }
        fn execute_rows(&mut self, _: StatementId, _: &[Value<'_>]) -> Result<(Done, Vec<Row>), DbError> {
            Ok(Default::default())
        }
        fn close(&mut self, _: StatementId) -> Result<(), DbError> {
            Ok(())
        }
        fn run(&mut self, _: &str) -> Result<Done, DbError> {
            Ok(Done::default())
        }
        fn run_rows(&mut self, _: &str) -> Result<(Done, Vec<Row>), DbError> {
            Ok(Default::default())
        }
    }

    #[test]
    fn what_a_server_cannot_prepare_goes_as_text() {
        let spec = OltpSpec::default();
        let texts = |server: &mut Choosy| {
            let mut statements = Statements::new(&spec, Dialect::MySql);
            let prepared = statements.prepare(server);
            let text = |statement: &Statement| match statement {
                Statement::Text(template) => Some(template.clone()),
                Statement::Prepared(_) => None,
            };
            prepared.map(|()| statements.all.iter().filter_map(text).collect::<Vec<_>>())
        };
        assert!(texts(&mut Choosy(&[], 1295)).unwrap().is_empty());
        assert_eq!(texts(&mut Choosy(&["BEGIN", "COMMIT"], 1295)).unwrap(), ["BEGIN", "COMMIT"]);
        // Any other error is one.
        assert!(texts(&mut Choosy(&["COMMIT"], 1461)).is_err());
    }
}
