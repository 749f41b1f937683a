//! Which family a database server belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The family of a server: its protocol and its SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// MySQL and MariaDB.
    #[serde(rename = "mysql")]
    MySql,
    /// PostgreSQL.
    Postgres,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Dialect::MySql => "MySQL",
            Dialect::Postgres => "PostgreSQL",
        })
    }
}
