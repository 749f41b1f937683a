//! MySQL's and MariaDB's protocol.
//!
//! `packets` cuts the wire into packets; `login` shakes hands and `auth` proves who asks; `answer` reads what
//! every command is answered with; `text`, `prepared`, `load` and `arrays` are the commands.

mod answer;
mod arrays;
mod auth;
mod binary;
mod cursor;
mod greeting;
mod load;
mod login;
mod packets;
mod prepared;
mod protocol;
mod rsa;
mod text;
mod version;

use crate::error::DbError;
use crate::server::{Canceller, Server};
use packets::Packets;
use prepared::Prepared;
use protocol::command;
pub use version::{Family, Version};

/// "Unknown thread id": who was to be cancelled is gone already.
const NO_SUCH_THREAD: u16 = 1094;

/// A connection.
pub struct Connection {
    packets: Packets,
    server: Server,
    version: Version,
    connection_id: u32,
    /// Rows end with an OK, not an EOF.
    deprecates_eof: bool,
    /// Columns are described only where they changed.
    caches_metadata: bool,
    /// Whether it takes many rows for one statement.
    takes_arrays: bool,
    /// Whether the server may ask for files.
    offers_files: bool,
    statements: Vec<Option<Prepared>>,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Connection, DbError> {
        login::open(server)
    }

    /// What the server calls itself, without what MariaDB puts before it for old clients.
    pub fn version(&self) -> &str {
        self.version.text()
    }

    /// MySQL or MariaDB, and its numbers.
    pub fn parsed_version(&self) -> &Version {
        &self.version
    }

    /// The connection's number in the server, as `SHOW PROCESSLIST` has it.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The process that listens, where that can be told.
    pub fn listener(&self) -> Option<u32> {
        self.packets.wire.listener()
    }

    /// The account at the other end, where that can be told.
    pub fn serving_account(&self) -> Option<u32> {
        self.packets.wire.serving_account()
    }

    /// Whether this connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.packets.wire.is_encrypted()
    }

    /// A handle that ends the statement under way.
    pub fn canceller(&self) -> Canceller {
        Canceller { server: self.server.clone(), connection_id: self.connection_id, key: Vec::new() }
    }
}

impl Drop for Connection {
    /// Says goodbye, so that the server does not count an aborted connection; waits for nothing.
    fn drop(&mut self) {
        if self.packets.is_free() && self.packets.command(|out| out.push(command::QUIT)).is_ok() {
            self.packets.wire.send_last();
        }
    }
}

/// Ends the statement that another connection waits for, by a connection of its own. It fails with a server error
/// there; where there is none any more, nothing happens.
pub(crate) fn cancel(canceller: &Canceller) -> Result<(), DbError> {
    // A server that hangs altogether must not hang whoever asks too.
    let server =
        Server { answer_timeout: Some(canceller.server.connect_timeout), ..canceller.server.clone() };
    let mut connection = Connection::open(&server)?;
    match connection.run(&format!("KILL QUERY {}", canceller.connection_id)) {
        Err(DbError::Server(error)) if error.number == NO_SUCH_THREAD => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests;
