//! Sockets: made, connected within a time, told not to wait for more to send.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
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
