//! Variables of database servers. This crate speaks no server's protocol: whoever does gives it to the
//! [`Host`](crate::Host), also in the guardian and at a rollback, which need the variables as much.

use std::fmt::Debug;

use weir_knobs::{ServerName, Value};

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
