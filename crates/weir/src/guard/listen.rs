//! Answers on the control socket, and the doors of both kinds. One thread; it sees copies of the state and cannot hold up the
//! guard.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::State;
use weir_fs::{Dir, Private};

use super::scrape::{self, Door};
use super::socket;
use crate::failure::{Lacking, Usage};
use crate::guard::settings::MetricsAt;

/// How long one client may keep the others waiting.
const PATIENCE: Duration = Duration::from_millis(300);
/// While somebody reads along, a new state is looked for so often.
const POLL: Duration = Duration::from_millis(200);
/// Readers of the stream at the same time.
const STREAMS_MAX: usize = 16;
/// Written in one call: the kernel's time limit is for each wait in it, of which this much takes one.
const PIECE: usize = 4 << 10;
/// The longest request that is read.
const REQUEST_MAX: usize = 4 << 10;

/// The newest state, for whoever asks.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<Option<Arc<State>>>>);

impl Board {
    /// Replaces it.
    pub fn publish(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(state));
    }

    /// The newest one.
    pub fn read(&self) -> Option<Arc<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Open sockets. Their files go away when this is dropped.
pub struct Doors {
    control: UnixListener,
    metrics: Option<Door>,
    files: Files,
}

/// Files of sockets, removed at the end.
#[derive(Default)]
pub struct Files(Vec<(Dir, OsString)>);

impl Doors {
    /// Opens them.
    ///
    /// # Errors
    /// When another guard listens there, or a socket cannot be made.
    pub fn open(metrics: Option<&MetricsAt>) -> anyhow::Result<Doors> {
        let mut files = Files::default();
        let control = control(&mut files)?;
        let metrics = metrics.map(|at| of_metrics(at, &mut files)).transpose()?;
        Ok(Doors { control, metrics, files })
    }

    /// Answers from now on, until the process ends. The returned value removes the sockets' files when it is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(self, board: Board, started_unix_seconds: f64) -> io::Result<Files> {
        let Doors { control, metrics, files } = self;
        metrics.map(|door| scrape::serve(door, board.clone(), started_unix_seconds)).transpose()?;
        let server = Server { control, board, streams: Vec::new(), shown_ms: 0 };
        thread::Builder::new().name("answers".to_string()).spawn(move || server.run())?;
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for (folder, name) in &self.0 {
            let _ = folder.remove_file(name);
        }
    }
}

fn control(files: &mut Files) -> anyhow::Result<UnixListener> {
    let path = socket::path();
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(socket::run_folder());
    let hint = "run it as root, or set WEIR_RUN to a folder of yours";
    let lacking = |error: io::Error| Lacking {
        what: format!("cannot make the control socket {}: {error}", path.display()),
        hint: Some(hint.to_string()),
    };
    made.map_err(lacking)?;
    if UnixStream::connect(&path).is_ok() {
        let what = format!("another guard runs: it answers on {}", path.display());
        let hint = "one guard takes any number of devices; `weir guard status` shows it; WEIR_RUN names \
            another folder";
        return Err(Usage { what, hint: Some(hint.to_string()) }.into());
    }
    Ok(listen(&path, 0o660, files).map_err(lacking)?)
}

/// In place of a socket at which nobody listens any more. It is made in a folder of its own and moved to its place when
/// it has its permission bits: whoever else owns the folder it is to lie in cannot have those of another file set.
fn listen(path: &Path, mode: u32, files: &mut Files) -> io::Result<UnixListener> {
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

fn of_metrics(at: &MetricsAt, files: &mut Files) -> anyhow::Result<Door> {
    let opened = match at {
        MetricsAt::Tcp(address) => TcpListener::bind(address).map(Door::Tcp),
        MetricsAt::Unix(path) if UnixStream::connect(path).is_ok() => {
            Err(io::Error::from(io::ErrorKind::AddrInUse))
        }
        MetricsAt::Unix(path) => listen(path, 0o660, files).map(Door::Unix),
    };
    opened.map_err(|error| {
        let what = format!("cannot offer metrics on {at}: {error}");
        Lacking { what, hint: Some("name another address with --metrics".to_string()) }.into()
    })
}

struct Server {
    control: UnixListener,
    board: Board,
    streams: Vec<UnixStream>,
    /// The state that the streams have had last.
    shown_ms: u64,
}

impl Server {
    fn run(mut self) {
        loop {
            if self.wait()
                && let Ok((stream, _)) = self.control.accept()
            {
                self.answer(stream);
            }
            self.stream();
        }
    }

    /// Waits for somebody, or for a new state while somebody reads along.
    fn wait(&self) -> bool {
        let mut polled = [PollFd::new(&self.control, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL.subsec_nanos()) };
        let timeout = (!self.streams.is_empty()).then_some(&timeout);
        if poll(&mut polled, timeout).is_err() {
            // Interrupted, or out of memory: neither is helped by trying at once.
            thread::sleep(POLL);
            return false;
        }
        !polled[0].revents().is_empty()
    }

    fn answer(&mut self, mut stream: UnixStream) {
        let wish = request(&mut stream);
        let Some(state) = self.board.read() else { return };
        match wish.as_deref().map(str::trim) {
            Some("state") => drop(send(&mut stream, &state)),
            Some("stream") if self.streams.len() < STREAMS_MAX && send(&mut stream, &state).is_ok() => {
                self.streams.push(stream);
                self.shown_ms = state.at_ms;
            }
            _ => {}
        }
    }

    /// Those who read along get what is new; who does not keep up is let go.
    fn stream(&mut self) {
        let Some(state) = self.board.read().filter(|_| !self.streams.is_empty()) else { return };
        if state.at_ms != self.shown_ms {
            self.shown_ms = state.at_ms;
            self.streams.retain_mut(|stream| send(stream, &state).is_ok());
        }
    }
}

fn send(stream: &mut UnixStream, state: &State) -> io::Result<()> {
    let mut line = serde_json::to_vec(state)?;
    line.push(b'\n');
    answer_in_time(stream, &line)
}

/// All of it, or an error where the client does not take it in time, however steadily it takes little.
fn answer_in_time(stream: &mut UnixStream, mut bytes: &[u8]) -> io::Result<()> {
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
fn request(stream: &mut UnixStream) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_guard_left_goes() {
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
}
