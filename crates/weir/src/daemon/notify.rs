//! Words to the service manager, as sd_notify(3) defines them: datagrams to the socket named by `NOTIFY_SOCKET`. The crate
//! sd-notify (0.5) knows no abstract sockets, and blocks where the manager's queue is full.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// A status line this often at most.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// A service manager, if there is one.
pub struct Manager {
    socket: Option<UnixDatagram>,
    /// How often it wants to hear that all is well.
    watchdog: Option<Duration>,
    last_beat: Option<Instant>,
    last_status: Option<Instant>,
}

impl Manager {
    /// The one that started this process.
    pub fn of_environment() -> Manager {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let socket = variable("NOTIFY_SOCKET").and_then(|address| connected(&address).ok());
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| ours).map(Duration::from_micros);
        Manager { socket, watchdog, last_beat: None, last_status: None }
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.socket.is_some()
    }

    /// The guard guards.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// It is about to end.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// All is well: to be said after every sample, and passed on as often as the manager wants.
    pub fn beat(&mut self) {
        let Some(watchdog) = self.watchdog else { return };
        // Several times within the time it has, since a message may be late.
        let due = self.last_beat.is_none_or(|last| last.elapsed() >= watchdog / 4);
        if due {
            self.send("WATCHDOG=1");
            self.last_beat = Some(Instant::now());
        }
    }

    /// What `systemctl status` shows; `line` is asked only when it is time for one.
    pub fn status(&mut self, line: impl FnOnce() -> String) {
        let due = self.last_status.is_none_or(|last| last.elapsed() >= STATUS_EVERY);
        if self.socket.is_some() && due {
            self.send(&format!("STATUS={}", line().replace('\n', " ")));
            self.last_status = Some(Instant::now());
        }
    }

    /// A manager that does not listen is no reason to stop.
    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(message.as_bytes());
        }
    }
}

fn connected(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // A full queue must not hold up the guard.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_addresses_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("weir-test-{}", std::process::id());
        let listeners = [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (listener, address) in listeners {
            let socket = connected(&address).unwrap();
            let watchdog = Some(Duration::from_secs(3600));
            let mut manager = Manager { socket: Some(socket), watchdog, last_beat: None, last_status: None };
            manager.ready();
            // Twice, of which one is due.
            manager.beat();
            manager.beat();
            manager.status(|| "two\nlines".to_string());
            manager.stopping();
            for expected in ["READY=1", "WATCHDOG=1", "STATUS=two lines", "STOPPING=1"] {
                let mut buffer = [0; 64];
                let length = listener.recv(&mut buffer).unwrap();
                assert_eq!(std::str::from_utf8(&buffer[..length]).unwrap(), expected, "{address:?}");
            }
        }
    }
}
