//! Unix sockets of weir's daemons: made at their place and removed at the end, and lines on them that take no longer than they
//! may.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use weir_fs::{Dir, Private};

/// How long one client may keep the others waiting.
const PATIENCE: Duration = Duration::from_millis(300);
/// Written in one call: the kernel's time limit is for each wait in it, of which this much takes one.
const PIECE: usize = 4 << 10;
/// The longest request that is read.
const REQUEST_MAX: usize = 4 << 10;
/// The longest answer that is read; a guard says a few KiB of each device.
const ANSWER_MAX: usize = 4 << 20;

/// Files of sockets, removed at the end.
#[derive(Default)]
pub struct Files(Vec<(Dir, OsString)>);

impl Drop for Files {
    fn drop(&mut self) {
        for (folder, name) in &self.0 {
            let _ = folder.remove_file(name);
        }
    }
}

/// A socket in place of one at which nobody listens any more. It is made in a folder of its own and moved to its place when
/// it has its permission bits: whoever else owns the folder it is to lie in cannot have those of another file set.
pub fn listen(path: &Path, mode: u32, files: &mut Files) -> io::Result<UnixListener> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    listen_in(Dir::open(path.parent().unwrap_or(Path::new("")))?, name, mode, files)
}

/// The same in a folder that is open already.
pub fn listen_in(folder: Dir, name: &OsStr, mode: u32, files: &mut Files) -> io::Result<UnixListener> {
    let there = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
    if there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) != FileType::Socket) {
        return Err(io::Error::from(io::ErrorKind::AddrInUse));
    }
    let made_in = Private::make(&folder, "socket")?;
    // By the descriptor, which is also short enough for an address.
    let beside = PathBuf::from(format!("/proc/self/fd/{}/s", made_in.dir().as_fd().as_raw_fd()));
    let listener = UnixListener::bind(&beside)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(mode))?;
    made_in.dir().move_into("s", &folder, name)?;
    files.0.push((folder, name.to_os_string()));
    Ok(listener)
}

/// A connection to a daemon of root's or the caller's, by its socket in a folder that one of them controls. By the folder's
/// descriptor, so that nobody puts a link in the way, and the address is short enough.
///
/// # Errors
/// Those of connect(2); [`weir_fs::Distrust`] as `PermissionDenied`.
pub fn connect(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let folder = Dir::open_trusted(folder)?;
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/{name}", folder.as_fd().as_raw_fd()))?;
    let listens = socket_peercred(&stream)?.uid.as_raw();
    if listens != 0 && listens != rustix::process::geteuid().as_raw() {
        return Err(weir_fs::Distrust::Owner(listens).into());
    }
    Ok(stream)
}

/// Whether somebody listens at a socket. Where another account can make sockets nobody is asked: whoever listens there would
/// keep a daemon from its start.
pub fn is_answered(path: &Path) -> bool {
    let asked = || -> io::Result<()> {
        let folder = Dir::open_trusted(path.parent().unwrap_or(Path::new("")))?;
        let below = PathBuf::from(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()));
        let address = SocketAddrUnix::new(below.join(path.file_name().unwrap_or_default()))?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok(rustix::net::connect(&socket, &address)?)
    };
    // As many as it lets wait do so already.
    asked().map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |()| true)
}

/// All of it, or an error where the client does not take it in time, however steadily it takes little.
pub fn answer_in_time(stream: &mut UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(&bytes[..bytes.len().min(PIECE)]) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The line that a client sends; `None` where it does not come in time or is too long.
pub fn request(stream: &mut UnixStream) -> Option<String> {
    let until = Instant::now() + PATIENCE;
    let mut got = Vec::new();
    let mut buffer = [0; 512];
    while !got.contains(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || got.len() > REQUEST_MAX || stream.set_read_timeout(Some(left)).is_err() {
            return None;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => got.extend(&buffer[..length]),
        }
    }
    String::from_utf8(got).ok()
}

/// The next line, which whoever answers must have said whole in this time; empty at the end of the connection.
pub fn line(from: &mut BufReader<UnixStream>, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        from.get_ref().set_read_timeout(Some(left))?;
        let got = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            got => got?,
        };
        let taken = got.iter().position(|byte| *byte == b'\n').map_or(got.len(), |end| end + 1);
        if taken == 0 {
            break;
        }
        if line.len() + taken > ANSWER_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer does not end"));
        }
        line.extend_from_slice(&got[..taken]);
        from.consume(taken);
    }
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_a_killed_daemon_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let mut killed = Private::make(&dir, "socket").unwrap();
        fs::write(killed.path().join("s"), "").unwrap();
        killed.keep();
        drop(killed);
        let mut files = Files::default();
        let _listener = listen(&folder.path().join("guard.sock"), 0o660, &mut files).unwrap();
        let left: Vec<OsString> = dir.names().unwrap().map(Result::unwrap).collect();
        assert_eq!(left, ["guard.sock"]);
        drop(files);
        assert_eq!(dir.names().unwrap().count(), 0);
    }

    #[test]
    fn a_daemon_is_believed_where_no_other_account_can_have_made_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::default();
        let _listener = listen(&folder.path().join("guard.sock"), 0o660, &mut files).unwrap();
        assert!(connect(folder.path(), "guard.sock").is_ok());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let open = connect(folder.path(), "guard.sock").unwrap_err();
        assert_eq!(open.kind(), io::ErrorKind::PermissionDenied, "{open}");
    }

    #[test]
    fn root_believes_no_daemon_of_another_account() {
        use std::os::unix::process::CommandExt;
        if rustix::process::geteuid().as_raw() != 0 {
            say!("not run: root_believes_no_daemon_of_another_account needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
        let listens = "import socket,sys,time\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\n\
                       s.listen()\nprint(flush=True)\ntime.sleep(60)";
        let mut python = std::process::Command::new("python3");
        python.args(["-c", listens]).arg(theirs.join("s")).uid(65534).gid(65534);
        let Ok(mut server) = python.stdout(std::process::Stdio::piped()).spawn() else {
            say!("not run: root_believes_no_daemon_of_another_account needs python3");
            return;
        };
        server.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        // Moved to a folder of root's, as where /run is open to others.
        fs::rename(theirs.join("s"), folder.path().join("s")).unwrap();
        let refused = connect(folder.path(), "s");
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(refused.unwrap_err().to_string().contains("belongs to account 65534"));
    }

    #[test]
    fn who_says_nothing_or_too_much_is_not_waited_for() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        client.write_all(b"sta").unwrap();
        assert_eq!(request(&mut server), None);
        client.write_all(b"te\n").unwrap();
        assert_eq!(request(&mut server).as_deref(), Some("te\n"));
        client.write_all(&[b'x'; REQUEST_MAX + 1024]).unwrap();
        assert_eq!(request(&mut server), None);
    }

    #[test]
    fn who_reads_a_little_now_and_then_is_not_waited_for() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let reader = thread::spawn(move || {
            let mut all = 0;
            while let Ok(read @ 1..) = client.read(&mut [0; 16 << 10]) {
                all += read;
                thread::sleep(Duration::from_millis(20));
            }
            all
        });
        answer_in_time(&mut server, b"short").unwrap();
        // At 16 KiB in a fiftieth of a second it would take five seconds.
        answer_in_time(&mut server, &vec![0; 4 << 20]).unwrap_err();
        drop(server);
        assert!(reader.join().unwrap() < 4 << 20);
    }

    /// What a client makes of a daemon that says this again and again.
    fn said(text: &'static [u8], pause: Duration) -> io::Result<String> {
        let (client, mut server) = UnixStream::pair().unwrap();
        let speaker = std::thread::spawn(move || {
            while server.write_all(text).is_ok() {
                std::thread::sleep(pause);
            }
        });
        let line = line(&mut BufReader::new(client), Duration::from_millis(300));
        speaker.join().unwrap();
        line
    }

    #[test]
    fn who_never_ends_a_line_is_not_waited_for() {
        assert_eq!(said(b"{}\n", Duration::ZERO).unwrap(), "{}\n");
        assert_eq!(said(b" ", Duration::from_millis(1)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(said(&[b' '; 1 << 16], Duration::ZERO).is_err());
        let (client, server) = UnixStream::pair().unwrap();
        let mut client = BufReader::new(client);
        let silent = line(&mut client, Duration::from_millis(1)).unwrap_err();
        assert!(matches!(silent.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{silent}");
        drop(server);
        assert_eq!(line(&mut client, PATIENCE).unwrap(), "");
    }
}
