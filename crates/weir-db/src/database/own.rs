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

/// How many objects of its own a database holds: tables, and what else goes with it. PostgreSQL notes of each the schema it is in;
/// what belongs to an extension is the extension's, and may come from the template of all databases.
fn objects(connection: &mut Connection) -> Result<Option<String>, DbError> {
    let question = match connection.dialect() {
        Dialect::MySql => {
            "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()) \
             + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE()) \
             + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = DATABASE())"
        }
        Dialect::Postgres => {
            "SELECT (SELECT count(*) FROM pg_depend o JOIN pg_namespace n ON n.oid = o.refobjid WHERE \
             o.refclassid = 'pg_namespace'::regclass AND o.deptype = 'n' AND o.classid <> 'pg_extension'::regclass \
             AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT 1 FROM pg_depend e \
             WHERE e.classid = o.classid AND e.objid = o.objid AND e.deptype = 'e')) \
             + (SELECT count(*) FROM pg_largeobject_metadata)"
        }
    };
    value(connection, question)
}

/// Makes the server's database, with the table by which it is known again. Where that table cannot be made, the database goes again.
///
/// # Errors
/// When the server refuses.
pub fn create(lobby: &mut Connection, server: &Server) -> Result<(), DbError> {
    lobby.run(&format!("CREATE DATABASE {}", quoted(server.dialect, &server.database)))?;
    let marked = mark(server);
    if marked.is_err() {
        // That error says more than what follows from it.
        let _ = drop_if(server, |holding| matches!(*holding, Holding::Nothing | MADE_AND_EMPTY));
    }
    marked
}

/// Clusters, and servers with sql_require_primary_key, take no table without a primary key.
fn mark(server: &Server) -> Result<(), DbError> {
    let mut inside = Connection::open_committing(server)?;
    inside.run(&format!("CREATE TABLE {MARKER} (version VARCHAR(40) NOT NULL PRIMARY KEY)"))?;
    inside.run(&format!("INSERT INTO {MARKER} VALUES ('{}')", env!("CARGO_PKG_VERSION"))).map(drop)
}

/// Removes the server's database if weir made it and nothing but its marker is in it. Whether it did.
///
/// # Errors
/// When the server refuses. A database that is not there is none.
pub fn drop_made(server: &Server) -> Result<bool, DbError> {
    drop_if(server, |holding| *holding == MADE_AND_EMPTY)
}

/// Removes the server's database if it holds such, and nothing but tables. Whether it did.
fn drop_if(server: &Server, may_go: impl Fn(&Holding) -> bool) -> Result<bool, DbError> {
    let mut inside = match Connection::open(server) {
        Ok(inside) => inside,
        Err(error) if is_missing(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let held = holding(&mut inside)?;
    let tables = if held == MADE_AND_EMPTY { "1" } else { "0" };
    if !may_go(&held) || objects(&mut inside)?.as_deref() != Some(tables) {
        return Ok(false);
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
    Ok(true)
}
