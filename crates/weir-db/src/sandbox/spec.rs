//! What a throw-away server is to be.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_core::units::Bytes;
use weir_oltp::Dialect;

use crate::throwaway;

/// A server's variables by name, values as one would write them into its configuration file.
pub type Variables = BTreeMap<String, String>;

/// Whose server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Oracle's MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// PostgreSQL.
    Postgres,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Flavour; 3] = [Flavour::Mysql, Flavour::Mariadb, Flavour::Postgres];

    /// Its protocol and SQL.
    pub fn dialect(self) -> Dialect {
        match self {
            Flavour::Mysql | Flavour::Mariadb => Dialect::MySql,
            Flavour::Postgres => Dialect::Postgres,
        }
    }

    /// The word for it on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Flavour::Mysql => "mysql",
            Flavour::Mariadb => "mariadb",
            Flavour::Postgres => "postgres",
        }
    }

    /// The superuser of a throw-away server; no password is asked for on its socket.
    pub fn superuser(self) -> &'static str {
        throwaway::superuser(self.dialect())
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flavour::Mysql => "MySQL",
            Flavour::Mariadb => "MariaDB",
            Flavour::Postgres => "PostgreSQL",
        })
    }
}

impl FromStr for Flavour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = |flavour: &Flavour| {
            flavour.word() == text || (*flavour == Flavour::Postgres && text == "postgresql")
        };
        Flavour::ALL
            .into_iter()
            .find(known)
            .ok_or_else(|| format!("expected mysql, mariadb or postgres, got `{text}`"))
    }
}

/// A throw-away server as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSpec {
    /// Whose server.
    pub flavour: Flavour,
    /// The folder its data lie in: one that does not exist, is empty, or has kept data.
    pub dir: PathBuf,
    /// Device and inode of the folder above where that was made for it: it goes with it where nothing else is in it.
    pub above_id: Option<(u64, u64)>,
    /// Whether to take up data that an earlier sandbox kept. They stay then, whatever `keep` says.
    pub take_up: bool,
    /// Variables that differ from what the server ships with.
    pub variables: Variables,
    /// Size of its buffer pool (`innodb_buffer_pool_size`, `shared_buffers`), unless `variables` say otherwise.
    pub memory: Bytes,
    /// Leave the data where they are when it is dropped.
    pub keep: bool,
    /// The server's binary, where it is not to be searched for; a path in the tree, if there is one.
    pub binary: Option<PathBuf>,
    /// A folder that holds what a small system has under `/`: the server's programs are taken out of it, and see nothing
    /// else. `None`: what is installed on this machine.
    pub root: Option<PathBuf>,
}

impl SandboxSpec {
    /// A server with a buffer pool of 128 MiB, on data of its own, which go away with it.
    pub fn new(flavour: Flavour, dir: impl Into<PathBuf>) -> SandboxSpec {
        SandboxSpec {
            flavour,
            dir: dir.into(),
            above_id: None,
            take_up: false,
            variables: Variables::new(),
            memory: Bytes(128 << 20),
            keep: false,
            binary: None,
            root: None,
        }
    }

    /// PostgreSQL's port: nobody listens at it, but the socket is named after it.
    pub(super) fn port(&self) -> &str {
        let named = self.variables.iter().find(|(name, _)| name.eq_ignore_ascii_case("port"));
        named.map_or("5432", |(_, port)| port)
    }

    /// Name of the socket in its folder.
    pub(super) fn socket_name(&self) -> String {
        match self.flavour.dialect() {
            Dialect::MySql => "mysqld.sock".to_string(),
            Dialect::Postgres => format!(".s.PGSQL.{}", self.port()),
        }
    }

    /// The same with one variable more.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> SandboxSpec {
        self.variables.insert(name.to_string(), value.to_string());
        self
    }
}
