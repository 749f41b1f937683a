//! The first connection of a command, and what errors of servers mean to a user.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use weir_cli::signals;
use weir_db::credentials::Login;
use weir_db::database::quoted;
use weir_db::{Connection, DbError, Secret, Server, ServerError};
use weir_oltp::Dialect;

use crate::failure::{Lacking, ServerFailed, stopped};
use crate::terminal;

/// Servers and how to log in to them.
#[derive(Debug, Clone)]
pub struct Named {
    /// The servers, and the account that asks them.
    pub login: Login,
    /// Whether a password is to be asked for.
    pub ask_password: bool,
}

impl Named {
    /// The log-in, with a password that somebody types where that was asked for.
    ///
    /// # Errors
    /// [`Lacking`] where a password shall be asked for and there is no terminal.
    pub fn log_in(mut self) -> anyhow::Result<Login> {
        if self.ask_password && !ask_password(&mut self.login)? {
            let what = "no terminal to ask for a password".to_string();
            let hint = Some("keep it in ~/.my.cnf, ~/.pgpass, MYSQL_PWD or PGPASSWORD".to_string());
            return Err(Lacking { what, hint }.into());
        }
        Ok(self.login)
    }
}

/// Connects to the first server. Asks for a password where the server wants one, none is known and somebody can
/// type it.
pub fn try_open(login: &mut Login) -> Result<Connection, DbError> {
    let Some(server) = login.servers.first() else { return Err(DbError::Stopped) };
    let refused = match open(server) {
        Err(error) if server.password.is_empty() && is_refusal(&error) => error,
        answer => return answer,
    };
    match (ask_password(login), login.servers.first()) {
        (Ok(true), Some(server)) => open(server),
        _ => Err(refused),
    }
}

/// Connects; where a signal asks to stop meanwhile, whoever waits for a silent server is left behind.
fn open(server: &Server) -> Result<Connection, DbError> {
    const LOOK_UP: Duration = Duration::from_millis(20);
    let (sender, opened) = channel();
    let named = server.clone();
    std::thread::spawn(move || sender.send(Connection::open(&named)));
    loop {
        match opened.recv_timeout(LOOK_UP) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if signals::received().is_none() => {}
            Err(_) => return Err(DbError::Stopped),
        }
    }
}

/// Asks for the password of a log-in. `false`: there is no terminal.
fn ask_password(login: &mut Login) -> anyhow::Result<bool> {
    let Some(first) = login.servers.first() else { return Ok(false) };
    let Some(typed) = terminal::ask_hidden(&format!("password of {} at {}: ", first.user, first.place))?
    else {
        return Ok(false);
    };
    login.servers.iter_mut().for_each(|server| server.password = Secret::new(typed.clone()));
    Ok(true)
}

/// The server that is asked where one is enough.
pub fn first(login: &Login) -> anyhow::Result<&Server> {
    let lacking = || Lacking { what: "no server was named".to_string(), hint: None };
    Ok(login.servers.first().ok_or_else(lacking)?)
}

/// Whether the server did not take user and password.
fn is_refusal(error: &DbError) -> bool {
    match error {
        DbError::Login { .. } => true,
        DbError::Server(error) => {
            error.number == 1045 || matches!(error.sqlstate.as_str(), "28P01" | "28000")
        }
        _ => false,
    }
}

/// A connection that did not come about: the machine or the server lacks something.
pub fn not_connected(error: DbError, login: &Login) -> anyhow::Error {
    if let Some(stopped) = stopped() {
        return stopped;
    }
    let server = login.servers.first();
    let place = server.map(|server| server.place.to_string()).unwrap_or_default();
    let user = server.map(|server| server.user.clone()).unwrap_or_default();
    let has_password = server.is_some_and(|server| !server.password.is_empty());
    let hint = match &error {
        // What it says of the way to log in is what helps.
        DbError::Login { .. } if has_password => None,
        _ if is_refusal(&error) => Some(format!(
            "as `{user}`; a password was looked for in {}; --user names another account, --ask-password asks",
            login.looked_in.join(", ")
        )),
        other => hint(other, server),
    };
    let what = match error {
        DbError::Server(error) => format!("{place} refuses the connection: {error}"),
        error => error.to_string(),
    };
    Lacking { what, hint }.into()
}

/// A workload that could not begin: something is lacking, and nothing was measured.
pub fn not_started(error: DbError, server: &Server) -> anyhow::Error {
    if let Some(stopped) = by_signal(&error) {
        return stopped;
    }
    let hint = hint(&error, Some(server));
    Lacking { what: error.to_string(), hint }.into()
}

/// A statement that failed: the workload's error.
pub fn failed(error: DbError, doing: &str, server: &Server) -> anyhow::Error {
    if let Some(stopped) = by_signal(&error) {
        return stopped;
    }
    let hint = hint(&error, Some(server));
    ServerFailed { what: format!("{doing}: {error}"), hint }.into()
}

fn by_signal(error: &DbError) -> Option<anyhow::Error> {
    matches!(error.root(), DbError::Stopped).then(stopped).flatten()
}

/// What may help after an error of a server.
pub fn hint(error: &DbError, server: Option<&Server>) -> Option<String> {
    match error.root() {
        DbError::Server(error) => server_hint(error, server),
        DbError::Connect { source, .. } => Some(match source.kind() {
            std::io::ErrorKind::NotFound => {
                "no server has that socket; is it running, and is it this one?".into()
            }
            std::io::ErrorKind::PermissionDenied => {
                "the socket is closed to you; run as a user who may open it".into()
            }
            _ => "is the server running, does it listen there, and does a firewall let you through?"
                .to_string(),
        }),
        DbError::Lost { .. } => Some("the server's log says more".to_string()),
        DbError::Timeout { .. } => {
            Some("--connect-timeout and --statement-timeout allow more time".to_string())
        }
        DbError::Tables { hint, .. } => Some(hint.clone()),
        DbError::Tls { .. } => Some("--tls and --tls-ca say which encryption to use".to_string()),
        _ => None,
    }
}

fn server_hint(error: &ServerError, server: Option<&Server>) -> Option<String> {
    let (user, database) = server.map(|s| (s.user.as_str(), s.database.as_str())).unwrap_or_default();
    let tables = || "`weir db prepare` makes the tables; give `run` the same --tables and --table-size";
    let text = match (error.number, error.sqlstate.as_str()) {
        (1049, _) | (0, "3D000") => format!("`weir db prepare` makes the database `{database}`"),
        (1146, _) | (0, "42P01") => tables().to_string(),
        (1044 | 1142 | 1227 | 1370, _) => {
            let name = |name: &str| quoted(Dialect::MySql, name);
            format!("ask an administrator for: GRANT ALL ON {}.* TO {}", name(database), name(user))
        }
        (0, "42501") => {
            let name = |name: &str| quoted(Dialect::Postgres, name);
            format!("ask an administrator for: ALTER DATABASE {} OWNER TO {}", name(database), name(user))
        }
        (1040 | 1203 | 1226, _) | (0, "53300") => {
            "fewer --threads, or a larger max_connections in the server".to_string()
        }
        (1114 | 1021 | 3019, _) | (0, "53100") => "the server's disk is full".to_string(),
        (1290, _) | (0, "25006") => "this server only reads; name the one that writes".to_string(),
        (1461, _) => {
            "too many prepared statements: a larger max_prepared_stmt_count, or --prepared=false".to_string()
        }
        (0, "57014") => "a time-out of the server's ended the statement".to_string(),
        _ => return None,
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_users_meet_have_a_hint() {
        let error = |number, sqlstate: &str| {
            DbError::Server(ServerError { number, sqlstate: sqlstate.to_string(), message: "m".to_string() })
        };
        for (number, sqlstate, word) in [
            (1049, "42000", "weir db prepare"),
            (0, "3D000", "weir db prepare"),
            (1146, "42S02", "--table-size"),
            (1142, "42000", "GRANT"),
            (0, "42501", "OWNER"),
            (0, "53300", "max_connections"),
            (0, "53100", "disk is full"),
        ] {
            assert!(hint(&error(number, sqlstate), None).unwrap().contains(word), "{number} {sqlstate}");
        }
        assert_eq!(hint(&error(1064, "42000"), None), None);
        assert!(
            is_refusal(&error(1045, "28000"))
                && is_refusal(&error(0, "28P01"))
                && !is_refusal(&error(1049, "42000"))
        );
    }
}
