//! Variables of database servers as knobs.

use weir_knobs::{ServerName, Value};

use crate::error::HostError;
use crate::servers::{Servers, Unreached};
use crate::tree::Tree;

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
