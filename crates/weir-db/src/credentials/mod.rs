//! Where a server is, who asks and by which password: what was typed, completed from the files and variables that the
//! servers' own clients read. A password is never an argument of a command.

mod around;
mod layer;
mod login_path;
mod mysql;
mod option_file;
mod passfile;
mod postgres;
mod service;
#[cfg(test)]
mod tests;
mod tls;
mod url;

pub use around::{Around, believed, found_authorities};
pub use layer::{Host, Layer};
pub use tls::tls_mode;
pub use url::{hosts as parse_hosts, parse as parse_url};

use std::path::PathBuf;
use std::time::Duration;

use weir_oltp::Dialect;

use crate::server::{Place, Secret, Server, Tls, TlsMode};
use crate::throwaway;

/// How long connecting may take where nobody says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a user says of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    /// Its family; absent: found out.
    pub dialect: Option<Dialect>,
    /// Whatever was stated of host, user and the rest.
    pub stated: Layer,
    /// MySQL: read this option file, and only it.
    pub defaults_file: Option<PathBuf>,
    /// MySQL: a login path of `mysql_config_editor`; absent: `client`.
    pub login_path: Option<String>,
    /// PostgreSQL: an entry of the service file.
    pub service: Option<String>,
    /// Longest time to connect and log in; absent: 10 s.
    pub connect_timeout: Option<Duration>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The servers; one unless several hosts were named.
    pub servers: Vec<Server>,
    /// What the user should know: files left out, files that others may read, the choice of a server.
    pub notes: Vec<String>,
    /// Where a password was looked for, for the error of a login that was refused.
    pub looked_in: Vec<String>,
}

impl Login {
    /// Names the database where nobody did.
    pub fn default_database(&mut self, name: &str) {
        for server in self.servers.iter_mut().filter(|server| server.database.is_empty()) {
            server.database = name.to_string();
        }
    }
}

/// Why no server can be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct CredentialsError {
    /// What is wrong, with place and value; never a password.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

impl CredentialsError {
    fn new(what: impl Into<String>) -> CredentialsError {
        CredentialsError { what: what.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> CredentialsError {
        CredentialsError { hint: Some(hint.into()), ..self }
    }
}

/// Completes what was typed.
///
/// # Errors
/// Where nothing says which server is meant, a file that was named cannot be read, or a value is none.
pub fn resolve(typed: &Typed, around: &Around) -> Result<Login, CredentialsError> {
    if typed.stated.tls == Some(TlsMode::Disabled) && typed.stated.tls_ca.is_some() {
        return Err(CredentialsError::new("--tls-ca names an authority, but encryption is disabled")
            .hint("use one: --tls-ca FILE, or --tls disabled"));
    }
    let mut notes = Vec::new();
    let dialect = match typed.dialect.or_else(|| dialect_of(&typed.stated)) {
        Some(dialect) => dialect,
        None => found_dialect(around, &mut notes)?,
    };
    match dialect {
        Dialect::MySql => mysql::resolve(typed, around, notes),
        Dialect::Postgres => postgres::resolve(typed, around, notes),
    }
}

/// The family that a socket or a port speaks of.
fn dialect_of(stated: &Layer) -> Option<Dialect> {
    let socket = stated.socket.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    let ports = stated.port.into_iter().chain(stated.hosts.iter().filter_map(|host| host.port));
    let by_port = ports.into_iter().find_map(|port| match port {
        mysql::PORT => Some(Dialect::MySql),
        postgres::PORT => Some(Dialect::Postgres),
        _ => None,
    });
    match socket {
        Some(name) if name.starts_with(postgres::SOCKET) => Some(Dialect::Postgres),
        Some(name) if name.ends_with(".sock") => Some(Dialect::MySql),
        _ => by_port,
    }
}

/// The family of the only server that has a socket here.
fn found_dialect(around: &Around, notes: &mut Vec<String>) -> Result<Dialect, CredentialsError> {
    let (mysql, postgres) = (mysql::local_socket(around), postgres::local_socket(around, postgres::PORT));
    let (dialect, path) = match (mysql, postgres) {
        (Some(path), None) => (Dialect::MySql, path),
        (None, Some(path)) => (Dialect::Postgres, path),
        (Some(_), Some(_)) => {
            return Err(CredentialsError::new("both a MySQL and a PostgreSQL server are here")
                .hint("name one: --mysql or --postgres"));
        }
        (None, None) => {
            return Err(CredentialsError::new("no server was named, and none has a socket here")
                .hint("name one: --mysql=HOST, --postgres=HOST or --server mysql://USER@HOST/DATABASE"));
        }
    };
    notes.push(format!("the server is the one at {}", path.display()));
    Ok(dialect)
}

/// What both families fill in from a finished layer. `password` knows the password for a place.
fn servers(
    dialect: Dialect,
    layer: &Layer,
    places: Vec<Place>,
    typed: &Typed,
    password: impl Fn(&Place) -> Secret,
) -> Result<Vec<Server>, CredentialsError> {
    let tls = Tls {
        mode: layer.tls.unwrap_or_default(),
        ca: layer.tls_ca.clone(),
        found_ca: layer.found_ca.clone(),
        cert: layer.tls_cert.clone(),
        key: layer.tls_key.clone(),
        allow_cleartext: layer.allow_cleartext.unwrap_or_default(),
        server_key: layer.server_key.clone(),
        ask_server_key: layer.ask_server_key.unwrap_or_default(),
    };
    if tls.mode == TlsMode::VerifyCa && !tls.has_ca() {
        return Err(CredentialsError::new(
            "a certificate can be verified only by the authority that signed it",
        )
        .hint("name its certificate: --tls-ca FILE; verify-identity does with the system's authorities"));
    }
    let user = typed.stated.user.as_deref();
    let has_none = user.is_none_or(|user| user == throwaway::superuser(dialect));
    let server = |place: Place| Server {
        dialect,
        password: match &place {
            // Its first account has none there, nor one that files name; and its own account is not trusted with that of another server.
            Place::Unix(path) if has_none && throwaway::is_of_one(path) => {
                typed.stated.password.clone().unwrap_or_default()
            }
            place => password(place),
        },
        place,
        user: layer.user.clone().unwrap_or_default(),
        database: layer.database.clone().unwrap_or_default(),
        tls: tls.clone(),
        connect_timeout: typed.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
        answer_timeout: None,
    };
    Ok(places.into_iter().map(server).collect())
}
