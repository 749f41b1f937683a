//! The database that a workload's tables stand in: whether it is there, whose it is, who may do what in it, where its
//! data lie. weir writes only into one that it made, or that was named and holds nothing but its tables.

mod own;
mod privileges;

use std::path::PathBuf;

use weir_oltp::Dialect;
use weir_oltp::vitals::is_mariadb;

use crate::connection::Connection;
use crate::error::DbError;
use crate::server::{Place, Server};

pub use own::{Holding, Removal, create, drop_made, holding, lobby};
pub use privileges::{Missing, Need, missing};

/// Why a server takes no writes; `None` where it does.
///
/// # Errors
/// When the server does not answer; a question that this user may not ask is left out.
pub fn closed_to_writes(connection: &mut Connection) -> Result<Option<String>, DbError> {
    match connection.dialect() {
        Dialect::MySql => {
            // Each needs a privilege of its own. MariaDB may have several connections to a primary, with names, and shows
            // only the one without where not asked for all.
            let questions = match is_mariadb(connection.version()) {
                true => ["SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS"],
                false => ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"],
            };
            for question in questions {
                match connection.query(question) {
                    Ok(rows) if rows.is_empty() => break,
                    Ok(_) => {
                        return Ok(Some("it is a replica: writes here are lost or break it".into()));
                    }
                    Err(DbError::Server(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let read_only = value(connection, "SELECT @@global.read_only")?;
            let is_on = read_only.is_some_and(|value| !matches!(value.as_str(), "0" | "OFF"));
            Ok(is_on.then(|| "read_only is on, as on a replica".to_string()))
        }
        Dialect::Postgres => {
            if value(connection, "SELECT pg_is_in_recovery()")?.as_deref() == Some("t") {
                return Ok(Some("it is a standby (in recovery)".to_string()));
            }
            let read_only = value(connection, "SHOW default_transaction_read_only")?;
            Ok((read_only.as_deref() == Some("on"))
                .then(|| "default_transaction_read_only is on".to_string()))
        }
    }
}

/// Where the server keeps its data, on its own machine. `None` where this user may not know.
///
/// # Errors
/// When the server does not answer.
pub fn data_dir(connection: &mut Connection) -> Result<Option<PathBuf>, DbError> {
    let question = match connection.dialect() {
        Dialect::MySql => "SELECT @@global.datadir",
        Dialect::Postgres => "SELECT current_setting('data_directory')",
    };
    match value(connection, question) {
        Ok(path) => Ok(path.map(PathBuf::from)),
        Err(DbError::Server(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a server is on this machine, as far as its place tells.
pub fn is_local(place: &Place) -> bool {
    match place {
        Place::Unix(_) => true,
        Place::Tcp { host, .. } => {
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// Whether an error says that the database is not there.
pub fn is_missing(error: &DbError) -> bool {
    matches!(error, DbError::Server(error) if error.number == 1049 || (error.number == 0 && error.sqlstate == "3D000"))
}

/// The first value of the first row.
fn value(connection: &mut Connection, question: &str) -> Result<Option<String>, DbError> {
    Ok(connection.query(question)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
}

/// A name as it stands in SQL.
pub fn quoted(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::MySql => format!("`{}`", name.replace('`', "``")),
        Dialect::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Text as it stands in SQL.
fn literal(server: &Server, text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match server.dialect {
        // Unless NO_BACKSLASH_ESCAPES is set, in which case the name of a database with backslashes is not found.
        Dialect::MySql => format!("'{}'", doubled.replace('\\', "\\\\")),
        Dialect::Postgres => format!("'{doubled}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_places_known() {
        assert_eq!(quoted(Dialect::MySql, "a`b"), "`a``b`");
        assert_eq!(quoted(Dialect::Postgres, "a\"b"), "\"a\"\"b\"");
        let tcp = |host: &str| Place::Tcp { host: host.to_string(), port: 1 };
        for (place, local) in [
            (Place::Unix("/x".into()), true),
            (tcp("127.0.0.1"), true),
            (tcp("::1"), true),
            (tcp("localhost"), true),
            (tcp("db1"), false),
            (tcp("10.0.0.1"), false),
        ] {
            assert_eq!(is_local(&place), local, "{place}");
        }
    }
}
