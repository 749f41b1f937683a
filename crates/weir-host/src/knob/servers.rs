//! Variables of database servers. This crate speaks no server's protocol: whoever does gives it to the
//! [`Host`](crate::Host), also in the guardian and at a rollback, which need the variables as much.

use std::fmt::Debug;

use weir_knobs::{ServerName, Value};

use crate::error::HostError;
use crate::tree::Tree;

/// Why a server did not do as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// In words.
    pub why: String,
    /// It does not run, and a change that it keeps in memory only has ended with it.
    pub gone: bool,
}

/// Reaches database servers.
pub trait Servers: Debug + Send + Sync {
    /// The value of a variable now.
    ///
    /// # Errors
    /// When the server cannot be reached, or has no such variable.
    fn read(&self, server: &ServerName, variable: &str) -> Result<Value, Unreached>;

    /// Sets a variable for all sessions, from now on.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    fn write(&self, server: &ServerName, variable: &str, value: &Value) -> Result<(), Unreached>;
}

fn with<T>(
    tree: &Tree,
    server: &ServerName,
    act: impl FnOnce(&dyn Servers) -> Result<T, Unreached>,
) -> Result<T, HostError> {
    let unreached = |unreached: Unreached| HostError::Server {
        server: server.to_string(),
        why: unreached.why,
        gone: unreached.gone,
    };
    match tree.servers {
        Some(servers) => act(servers).map_err(unreached),
        None => Err(unreached(Unreached { why: "this program reaches no servers".to_string(), gone: false })),
    }
}

pub(super) fn read(tree: &Tree, server: &ServerName, variable: &str) -> Result<Value, HostError> {
    with(tree, server, |servers| servers.read(server, variable))
}

pub(super) fn write(
    tree: &Tree,
    server: &ServerName,
    variable: &str,
    value: &Value,
) -> Result<(), HostError> {
    with(tree, server, |servers| servers.write(server, variable, value))
}
