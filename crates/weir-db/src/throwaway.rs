//! What tells the socket of a throw-away server from others.

use std::ffi::OsStr;
use std::path::Path;

use weir_oltp::Dialect;

/// Says in a folder of weir's whose throw-away server has its socket below it.
pub const MARKER: &str = "sandbox.json";
/// The server's folder for its socket, beside that.
pub const SOCKETS: &str = "s";

/// Whether a socket is that of a throw-away server, of whosever it is.
pub fn is_of_one(socket: &Path) -> bool {
    let real = socket.canonicalize().unwrap_or_else(|_| socket.to_path_buf());
    let folder = real.parent().filter(|folder| folder.file_name() == Some(OsStr::new(SOCKETS)));
    folder.and_then(Path::parent).is_some_and(|run| run.join(MARKER).symlink_metadata().is_ok())
}

/// Its first account, which logs in without a password.
pub const fn superuser(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql => "root",
        Dialect::Postgres => "postgres",
    }
}
