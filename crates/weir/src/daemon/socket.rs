//! Unix sockets of weir's daemons: made at their place and removed at the end, and lines on them that take no longer than they
//! may.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    let folder = Dir::open(path.parent().unwrap_or(Path::new("")))?;
    if path.symlink_metadata().is_ok_and(|there| !there.file_type().is_socket()) {
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
