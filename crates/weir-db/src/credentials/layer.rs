//! What one source says of a server; layers lie over each other.

use std::path::PathBuf;

use crate::server::{Authorities, Secret, TlsMode};

/// A host as named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// A name, an address, or for PostgreSQL the folder of a socket.
    pub name: String,
    /// Its own port, where one was given.
    pub port: Option<u16>,
}

/// What one source says; what it leaves open is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    /// Hosts; empty: not said.
    pub hosts: Vec<Host>,
    /// The port of hosts without one of their own.
    pub port: Option<u16>,
    /// A Unix socket.
    pub socket: Option<PathBuf>,
    /// Who asks.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The database.
    pub database: Option<String>,
    /// Encryption.
    pub tls: Option<TlsMode>,
    /// Authorities.
    pub tls_ca: Option<PathBuf>,
    /// Authorities that nobody named.
    pub found_ca: Option<Authorities>,
    /// The client's certificate.
    pub tls_cert: Option<PathBuf>,
    /// Its key.
    pub tls_key: Option<PathBuf>,
    /// Whether a server that has not proven who it is may have the password itself.
    pub allow_cleartext: Option<bool>,
    /// MySQL: the server's public key.
    pub server_key: Option<PathBuf>,
    /// MySQL: whether the key may be asked of whoever answers.
    pub ask_server_key: Option<bool>,
}

impl Layer {
    /// This layer, completed by one below it. Where a server is, is one statement: a socket below does not join a
    /// host above.
    pub fn over(self, below: Layer) -> Layer {
        let placed = !self.hosts.is_empty() || self.socket.is_some();
        let (hosts, socket) = if placed { (self.hosts, self.socket) } else { (below.hosts, below.socket) };
        Layer {
            hosts,
            socket,
            port: self.port.or(below.port),
            user: self.user.or(below.user),
            password: self.password.or(below.password),
            database: self.database.or(below.database),
            // A user who names an authority wants it heeded, whatever the lower layers say.
            tls: self.tls.or(match self.tls_ca {
                Some(_) => below.tls.map(|mode| mode.max(TlsMode::VerifyCa)),
                None => below.tls,
            }),
            tls_ca: self.tls_ca.or(below.tls_ca),
            found_ca: self.found_ca.or(below.found_ca),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            allow_cleartext: self.allow_cleartext.or(below.allow_cleartext),
            server_key: self.server_key.or(below.server_key),
            ask_server_key: self.ask_server_key.or(below.ask_server_key),
        }
    }
}
