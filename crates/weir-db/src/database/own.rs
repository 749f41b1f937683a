//! Whose database it is.

use weir_oltp::Dialect;
use weir_oltp::schema::table_index;

use super::{is_missing, literal, quoted, value};
use crate::connection::Connection;
use crate::error::DbError;
use crate::server::Server;

/// The table by which a database that weir made is known again: MySQL's databases carry no comment.
const MARKER: &str = "weir_made_this_database";

/// What a database holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Nothing.
    Nothing,
    /// Tables of a workload and nothing else.
    Tables {
        /// How many.
        count: usize,
        /// weir made the database, too.
        made: bool,
    },
    /// Other tables; the first few by name.
    Others(Vec<String>),
}

/// What a database of weir's holds once its tables are removed.
const MADE_AND_EMPTY: Holding = Holding::Tables { count: 0, made: true };

/// The server without the database, which may not be there yet.
pub fn lobby(server: &Server) -> Server {
    let database = match server.dialect {
        Dialect::MySql => String::new(),
        // The database that every PostgreSQL has for this.
        Dialect::Postgres => "postgres".to_string(),
    };
    Server { database, ..server.clone() }
}

/// What the connection's database holds.
///
/// # Errors
/// When the server does not answer.
pub fn holding(connection: &mut Connection) -> Result<Holding, DbError> {
    const NAMED: usize = 3;
    let question = match connection.dialect() {
        Dialect::MySql => {
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
        }
        Dialect::Postgres => {
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN \
             ('r','p','v','m','f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1"
        }
    };
    let names: Vec<String> = connection.query(question)?.into_iter().flatten().flatten().collect();
    let others: Vec<String> = names
        .iter()
        .filter(|name| table_index(name).is_none() && *name != MARKER)
        .take(NAMED)
        .cloned()
        .collect();
    if !others.is_empty() {
        return Ok(Holding::Others(others));
    }
    let made = names.iter().any(|name| name == MARKER);
    let count = names.len() - usize::from(made);
    Ok(if count == 0 && !made { Holding::Nothing } else { Holding::Tables { count, made } })
}

/// What became of a database that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// There is none, or weir did not make it, or tables of a workload are left in it.
    NotMade,
    /// weir made it, and it holds something else by now, or nobody knows what it held at first.
    Shared,
}

/// How many objects a database holds: tables, and what else would go with it. PostgreSQL notes of each object in a schema which one that is.
/// One that was just made has those of the server's template.
fn objects(connection: &mut Connection) -> Result<u64, DbError> {
    let question = match connection.dialect() {
        Dialect::MySql => {
            "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()) \
             + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE()) \
             + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = DATABASE())"
        }
        Dialect::Postgres => {
            "SELECT (SELECT count(*) FROM pg_depend o JOIN pg_namespace n ON n.oid = o.refobjid WHERE \
             o.refclassid = 'pg_namespace'::regclass AND o.deptype = 'n' \
             AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema') \
             + (SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_') \
             + (SELECT count(*) FROM pg_largeobject_metadata) + (SELECT count(*) FROM pg_extension) \
             + (SELECT count(*) FROM pg_foreign_data_wrapper) + (SELECT count(*) FROM pg_foreign_server) \
             + (SELECT count(*) FROM pg_event_trigger) + (SELECT count(*) FROM pg_publication)"
        }
    };
    number(connection, question)
}

fn number(connection: &mut Connection, question: &str) -> Result<u64, DbError> {
    Ok(value(connection, question)?.and_then(|number| number.parse().ok()).unwrap_or(u64::MAX))
}

/// Makes the server's database, with the table by which it is known again. Where that table cannot be made, the database goes again.
///
/// # Errors
/// When the server refuses.
pub fn create(lobby: &mut Connection, server: &Server) -> Result<(), DbError> {
    lobby.run(&format!("CREATE DATABASE {}", quoted(server.dialect, &server.database)))?;
    let mut at_first = None;
    let marked = mark(server, &mut at_first);
    if let (Err(_), Some(at_first)) = (&marked, at_first) {
        // That error says more than what follows from it.
        let _ = drop_if(server, |holding, inside| match holding {
            Holding::Nothing => as_at_first(inside, at_first, 0),
            MADE_AND_EMPTY => as_at_first(inside, at_first, 1),
            _ => Ok(Removal::Shared),
        });
    }
    marked
}

/// Notes how many objects there were at first. Clusters, and servers with sql_require_primary_key, take no table without a primary key.
fn mark(server: &Server, at_first: &mut Option<u64>) -> Result<(), DbError> {
    let mut inside = Connection::open_committing(server)?;
    let objects = *at_first.insert(objects(&mut inside)?);
    inside.run(&format!(
        "CREATE TABLE {MARKER} (version VARCHAR(40) NOT NULL PRIMARY KEY, objects BIGINT NOT NULL)"
    ))?;
    let version = env!("CARGO_PKG_VERSION");
    inside.run(&format!("INSERT INTO {MARKER} VALUES ('{version}', {objects})")).map(drop)
}

/// Removes the server's database if weir made it and nothing but its marker has come into it since.
///
/// # Errors
/// When the server refuses. A database that is not there is none.
pub fn drop_made(server: &Server) -> Result<Removal, DbError> {
    drop_if(server, |holding, inside| {
        if let Holding::Others(_) = holding {
            let made = number(inside, &format!("SELECT COUNT(*) FROM {MARKER}"));
            return Ok(if made.is_ok() { Removal::Shared } else { Removal::NotMade });
        }
        if holding != MADE_AND_EMPTY {
            return Ok(Removal::NotMade);
        }
        // Versions before 0.2 did not note it.
        let at_first = match number(inside, &format!("SELECT MIN(objects) FROM {MARKER}")) {
            Err(DbError::Server(_)) => return Ok(Removal::Shared),
            at_first => at_first?,
        };
        as_at_first(inside, at_first, 1)
    })
}

/// Whether nothing but so many tables of weir's came into a database that held so much at first.
fn as_at_first(inside: &mut Connection, at_first: u64, own: u64) -> Result<Removal, DbError> {
    let is_alone = objects(inside)?.checked_sub(own) == Some(at_first);
    Ok(if is_alone { Removal::Removed } else { Removal::Shared })
}

/// Removes the server's database if `judge` says so.
fn drop_if(
    server: &Server,
    judge: impl Fn(Holding, &mut Connection) -> Result<Removal, DbError>,
) -> Result<Removal, DbError> {
    let mut inside = match Connection::open(server) {
        Ok(inside) => inside,
        Err(error) if is_missing(&error) => return Ok(Removal::NotMade),
        Err(error) => return Err(error),
    };
    let held = holding(&mut inside)?;
    let verdict = judge(held, &mut inside)?;
    if verdict != Removal::Removed {
        return Ok(verdict);
    }
    drop(inside);
    let mut outside = Connection::open(&lobby(server))?;
    let name = quoted(server.dialect, &server.database);
    if server.dialect == Dialect::Postgres {
        // The server may not have noticed yet that the connection before is gone.
        let left = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = {} AND application_name = 'weir'",
            literal(server, &server.database)
        );
        for _ in 0..50 {
            if value(&mut outside, &left)?.as_deref() == Some("0") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    outside.run(&format!("DROP DATABASE {name}"))?;
    Ok(Removal::Removed)
}
