//! Where a server is and who asks.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_oltp::Dialect;

/// A password: never printed, never stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Holds a password.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The password itself, for the protocol.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(none)" } else { "(hidden)" })
    }
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// By TCP.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// By a Unix socket: the socket itself, for PostgreSQL too (`…/.s.PGSQL.5432`).
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Tcp { host, port } => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Whether a connection is encrypted. The words are MySQL's; PostgreSQL's `sslmode` maps onto them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disabled,
    /// Where the server offers it, without looking at its certificate.
    #[default]
    Preferred,
    /// Always, without looking at its certificate.
    Required,
    /// Always, by a certificate that the given authority signed.
    VerifyCa,
    /// And for this very host.
    VerifyIdentity,
}

/// Certificates of authorities that nobody named, as they were found and read once: by the next connection another account may
/// have put another file there.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorities {
    /// Where they were found.
    pub path: PathBuf,
    /// What was read (PEM).
    pub pem: Arc<[u8]>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.pem.len(), self.path.display())
    }
}

/// Encryption and trust as asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether; [`Tls::effective`] is what holds.
    pub mode: TlsMode,
    /// Certificates of authorities (PEM), where the user named them.
    pub ca: Option<PathBuf>,
    /// Those that were found where nobody named any.
    pub found_ca: Option<Authorities>,
    /// The client's certificate (PEM).
    pub cert: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
    /// A server that has not proven who it is may have the password itself, and so may whoever listens.
    pub allow_cleartext: bool,
    /// MySQL: the server's public key (PEM), by which a password is encrypted where the connection is not.
    pub server_key: Option<PathBuf>,
    /// MySQL: the key may be asked of whoever answers. This keeps listeners out, and nobody who sits in between.
    pub ask_server_key: bool,
}

impl Tls {
    /// The mode that holds: whoever names an authority wants it heeded, and no way around it.
    pub fn effective(&self) -> TlsMode {
        match self.mode {
            TlsMode::Preferred | TlsMode::Required if self.has_ca() => TlsMode::VerifyCa,
            mode => mode,
        }
    }

    /// Whether there is an authority of the user's, named or found.
    pub fn has_ca(&self) -> bool {
        self.ca.is_some() || self.found_ca.is_some()
    }
}

/// One server and how to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its family.
    pub dialect: Dialect,
    /// Where it is.
    pub place: Place,
    /// Who asks.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// The database (schema) to use; empty: none.
    pub database: String,
    /// Encryption. Never on Unix sockets.
    pub tls: Tls,
    /// Longest time to connect and log in.
    pub connect_timeout: Duration,
    /// Longest time for one answer; `None`: no limit.
    pub answer_timeout: Option<Duration>,
}

impl Server {
    /// The same, waited for so long at most for each answer.
    #[must_use]
    pub fn answering_within(&self, longest: Duration) -> Server {
        Server { answer_timeout: Some(longest), ..self.clone() }
    }
}

/// Ends the statement that a connection is waiting for.
#[derive(Debug, Clone)]
pub struct Canceller {
    /// Who to ask.
    pub server: Server,
    /// The connection's number in the server.
    pub connection_id: u32,
    /// PostgreSQL: what proves that one may.
    pub key: Vec<u8>,
}
