//! Sockets: made, connected within a time, told not to wait for more to send.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{
    Timeout, set_socket_keepalive, set_socket_timeout, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::server::Place;

/// A server whose machine is gone, or behind a gone router, is noticed after this and three probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Whether a Unix socket leads to the server that is meant: who listens is root or oneself, or not everybody may make
/// files in the socket's folder, as in /tmp.
pub(super) fn is_the_servers(socket: &OwnedFd, path: &Path) -> bool {
    let Some(peer) = listener(socket) else { return false };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = std::fs::metadata(folder).ok().map(|folder| folder.mode());
    is_no_strangers(peer.uid, rustix::process::geteuid().as_raw(), mode)
}

/// Who listens at a Unix socket. The process is 0 where it is none of this namespace, which rustix's type cannot say.
pub(super) fn listener(socket: &OwnedFd) -> Option<libc::ucred> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = libc::socklen_t::try_from(size_of_val(&found)).ok()?;
    // SAFETY: the kernel writes so many bytes at most to a structure of that size.
    let status = unsafe {
        let into = (&raw mut found).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut size)
    };
    (status == 0).then_some(found)
}

fn is_no_strangers(listener: u32, own: u32, folder: Option<u32>) -> bool {
    const OTHERS_WRITE: u32 = 0o002;
    listener == 0 || listener == own || folder.is_some_and(|mode| mode & OTHERS_WRITE == 0)
}

/// A connected socket.
pub(super) fn connect(place: &Place, timeout: Duration) -> io::Result<OwnedFd> {
    match place {
        Place::Tcp { host, port } => connect_tcp(host, *port, timeout),
        Place::Unix(path) => connect_unix(path, timeout),
    }
}

/// Tries every address of the name; the last one's error counts.
fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<OwnedFd> {
    let until = Instant::now() + timeout;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return prepared(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn prepared(stream: TcpStream) -> io::Result<OwnedFd> {
    stream.set_nodelay(true)?;
    let socket = OwnedFd::from(stream);
    set_socket_keepalive(&socket, true)?;
    set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
    set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    set_tcp_keepcnt(&socket, KEEPALIVE_PROBES)?;
    Ok(socket)
}

/// Connecting waits while the server's backlog is full; the kernel ends that wait by the send time-out (unix(7)).
fn connect_unix(path: &Path, timeout: Duration) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout.max(Duration::from_millis(1))))?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_anybody_may_have_made_is_nobodys() {
        for (listener, own, folder, expected) in [
            (0, 0, Some(0o41777), true),
            (1000, 1000, Some(0o41777), true),
            (1000, 0, Some(0o41777), false),
            (106, 0, Some(0o40755), true),
            (106, 0, Some(0o42775), true),
            (106, 0, None, false),
        ] {
            assert_eq!(is_no_strangers(listener, own, folder), expected, "{listener} {own} {folder:?}");
        }
    }
}
