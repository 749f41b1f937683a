//! MySQL, MariaDB and PostgreSQL as a workload: their protocols, transactions under load, throw-away servers, and what a
//! server says of itself.
//!
//! A [`Connection`] is one blocking connection of either protocol. [`runner`] drives many of them and measures,
//! [`load`] fills tables, [`script`] runs users' Lua scripts, [`sandbox`] starts servers that go away again, [`vitals`]
//! reads a server's counters, [`credentials`] finds out where a server is and who may ask.

#[cfg(test)]
mod as_root;
pub mod connection;
pub mod credentials;
pub mod database;
pub mod error;
pub mod load;
pub mod mysql;
pub mod postgres;
pub mod rows;
pub mod runner;
pub mod sandbox;
pub mod script;
pub mod server;
mod throwaway;
pub mod value;
pub mod vitals;
pub mod wire;

pub use connection::Connection;
pub use error::{DbError, ServerError};
pub use rows::{Done, Row, StatementId};
pub use server::{Place, Secret, Server, Tls, TlsMode};
pub use value::Value;
