//! Sockets: made, connected within a time, told not to wait for more to send.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{
    Timeout, set_socket_keepalive, set_socket_timeout, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::server::Place;
use crate::throwaway;

/// A server whose machine is gone, or behind a gone router, is noticed after this and three probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Whether a Unix socket leads to the server that is meant: no other account may have made the socket, its folder, a folder
/// above it or a link on the way to it, or who listens is an ordinary account's own server. That root listens says nothing by
/// itself: systemd makes sockets for others. A throw-away server is none that is meant.
pub(super) fn is_the_servers(socket: &OwnedFd, path: &Path) -> bool {
    if throwaway::is_of_one(path) {
        return false;
    }
    let Some(peer) = listener(socket) else { return false };
    let own = rustix::process::geteuid().as_raw();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    (peer.uid == own && own != 0) || is_no_strangers(folder, peer.uid).unwrap_or(false)
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

/// Who has the other end of a connection by TCP within this machine; `None` where it leads elsewhere.
pub(super) fn account_at_the_other_end(socket: &OwnedFd) -> Option<u32> {
    let here = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
    let there = SocketAddr::try_from(rustix::net::getpeername(socket).ok()??).ok()?;
    let ends = [written(there), written(here)];
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().find_map(|table| {
        let table = BufReader::new(File::open(table).ok()?);
        table.lines().map_while(Result::ok).find_map(|line| account_of(&line, &ends))
    })
}

/// The account of a line of `/proc/net/tcp`, if that is of the connection between two ends.
fn account_of(line: &str, [local, remote]: &[[String; 2]; 2]) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, from, to, state, _, _, _, account, ..] = fields[..] else { return None };
    let is_it = |text: &str, end: &[String; 2]| end.iter().any(|written| written == text);
    let is_the_connection = state == ESTABLISHED && is_it(from, local) && is_it(to, remote);
    is_the_connection.then(|| account.parse().ok()).flatten()
}

/// An address as that file has it, alone and mapped to IPv6: words in the machine's order.
fn written(address: SocketAddr) -> [String; 2] {
    let port = address.port();
    let words = |bytes: &[u8]| -> String {
        bytes
            .chunks(4)
            .map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap_or_default())))
            .collect()
    };
    let (alone, mapped) = match address.ip() {
        IpAddr::V4(ip) => (words(&ip.octets()), words(&ip.to_ipv6_mapped().octets())),
        IpAddr::V6(ip) => (words(&ip.octets()), words(&ip.octets())),
    };
    [alone, mapped].map(|words| format!("{words}:{port:04X}"))
}

/// Whether no other account than root, the caller and the one that listens decides what lies in a folder, or which folder it is.
fn is_no_strangers(folder: &Path, listener: u32) -> io::Result<bool> {
    const ALL_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    let data = weir_fs::steady_folder(folder)?.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    // Whom its group lets in is the owner's affair, and the listener's where that is the owner. Whoever is in a group may listen as it.
    let writers = if data.uid() == listener { ALL_WRITE } else { ALL_WRITE | GROUP_WRITES };
    Ok(data.mode() & writers == 0 && [0, own, listener].contains(&data.uid()))
}

/// A connected socket.
pub(super) fn connect(place: &Place, timeout: Duration) -> io::Result<OwnedFd> {
    match place {
        Place::Tcp { host, port } => connect_tcp(host, *port, timeout),
        Place::Unix(path) => connect_unix(path, timeout),
    }
}

fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<OwnedFd> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // The time for the name counts, too.
    let until = Instant::now() + timeout;
    connect_any(&(host, port).to_socket_addrs()?.collect::<Vec<_>>(), until)
}

/// Tries one address after the other; the last one's error counts.
fn connect_any(addresses: &[SocketAddr], until: Instant) -> io::Result<OwnedFd> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(address, share(left, addresses.len() - tried)) {
            Ok(stream) => return prepared(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// How long an address may take of the time that is left, so that those after it are tried too: one that a firewall drops
/// silently would take all of it.
fn share(left: Duration, addresses: usize) -> Duration {
    let addresses = u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    (left / addresses).max(Duration::from_millis(1))
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

/// A connected Unix socket. Connecting waits while the server's backlog is full; the kernel ends that wait by the send time-out (unix(7)).
pub(crate) fn connect_unix(path: &Path, timeout: Duration) -> io::Result<OwnedFd> {
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
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::as_root::root_or_say;

    #[test]
    fn an_address_leaves_time_for_those_after_it() {
        let ms = Duration::from_millis;
        for (left, addresses, expected) in [
            (ms(9000), 3, ms(3000)),
            (ms(6000), 2, ms(3000)),
            (ms(3000), 1, ms(3000)),
            (ms(1), 2, ms(1)),
            (ms(50), 0, ms(50)),
        ] {
            assert_eq!(share(left, addresses), expected, "{left:?}, {addresses}");
        }
    }

    #[test]
    fn an_address_that_never_answers_does_not_keep_the_next_from_being_tried() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let silent =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&silent, &here).unwrap();
        rustix::net::listen(&silent, 0).unwrap();
        let full = SocketAddr::try_from(rustix::net::getsockname(&silent).unwrap()).unwrap();
        // Once its queue is full, the kernel drops what more comes.
        let within = Duration::from_millis(300);
        let queued: Vec<_> =
            std::iter::from_fn(|| TcpStream::connect_timeout(&full, within).ok()).take(16).collect();
        assert!(queued.len() < 16, "the queue is never full");
        let good = std::net::TcpListener::bind(here).unwrap();
        let addresses = [full, good.local_addr().unwrap()];
        connect_any(&addresses, Instant::now() + Duration::from_secs(4)).unwrap();
    }

    #[test]
    fn a_socket_that_anybody_may_have_made_is_nobodys() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode: u32| {
            let path = root.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let own = rustix::process::geteuid().as_raw();
        let is_good_of = |path: &Path, listener: u32| is_no_strangers(path, listener).unwrap_or(false);
        let is_good = |path: &Path| is_good_of(path, 65_534);
        let (kept, open) = (folder("kept", 0o755), folder("open", 0o777));
        let (public, inside) = (folder("public", 0o1777), folder("public/inside", 0o755));
        let of_a_group = folder("of_a_group", 0o775);
        assert!(is_good(&kept) && is_good(&inside) && is_good_of(&of_a_group, own));
        assert!(
            !is_good(&of_a_group),
            "any of the group may have made a socket there, and listen as the group"
        );
        assert!(!is_good(&public) && !is_good(&open), "anybody may have made a socket there");
        assert!(!is_good(&folder("open/inside", 0o755)), "anybody may put another folder there");
        assert!(!is_good(&folder("of_a_group/inside", 0o755)), "a group may put another folder there");
        symlink(&kept, public.join("link")).unwrap();
        symlink(&inside, kept.join("link")).unwrap();
        symlink("../public/link", kept.join("far")).unwrap();
        assert!(is_good(&public.join("link")) && is_good(&kept.join("link")) && is_good(&kept.join("far")));
        symlink(open.join("inside"), kept.join("astray")).unwrap();
        symlink(kept.join("round"), kept.join("round")).unwrap();
        assert!(!is_good(&kept.join("astray")) && !is_good(&kept.join("round")));
        assert!(is_no_strangers(&root.path().join("gone"), 0).is_err());
    }

    #[test]
    fn root_does_not_trust_what_another_account_made_on_the_way() {
        if !root_or_say("root_does_not_trust_what_another_account_made_on_the_way") {
            return;
        }
        const NOBODY: u32 = 65_534;
        let public = tempfile::tempdir().unwrap();
        fs::set_permissions(public.path(), Permissions::from_mode(0o1777)).unwrap();
        let (inside, link, far) =
            (public.path().join("inside"), public.path().join("link"), public.path().join("far"));
        fs::create_dir_all(inside.join("run")).unwrap();
        symlink("/run", &link).unwrap();
        symlink(&link, &far).unwrap();
        for path in [&inside.join("run"), &link, &far] {
            assert!(is_no_strangers(path, NOBODY).unwrap(), "{}", path.display());
        }
        for path in [&inside, &link] {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for path in [&inside.join("run"), &link, &far] {
            assert!(!is_no_strangers(path, NOBODY).unwrap_or(false), "{}", path.display());
        }
        // The server's own folder is its own; another account's is not.
        assert!(is_no_strangers(&inside, NOBODY).unwrap() && !is_no_strangers(&inside, 65_533).unwrap());
    }

    #[test]
    fn root_that_listens_is_believed_where_nobody_else_may_put_a_socket() {
        if !root_or_say("root_that_listens_is_believed_where_nobody_else_may_put_a_socket") {
            return;
        }
        let (kept, public) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(public.path(), Permissions::from_mode(0o1777)).unwrap();
        let (socket, link) = (kept.path().join("socket"), public.path().join("socket"));
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        let is_believed =
            |path: &Path| is_the_servers(&connect_unix(path, Duration::from_secs(5)).unwrap(), path);
        assert!(is_believed(&socket) && !is_believed(&link));
    }
}
