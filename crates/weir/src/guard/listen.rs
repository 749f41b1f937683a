//! Answers on the control socket and, where it is asked for, metrics over HTTP. One thread; it sees copies of the state
//! and cannot hold up the guard.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::State;
use weir_fs::{Dir, Private};

use super::{metrics, socket};
use crate::failure::{Lacking, Usage};
use crate::settings::guard::MetricsAt;

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

    fn read(&self) -> Option<Arc<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Open sockets. Their files go away when this is dropped.
pub struct Doors {
    control: UnixListener,
    metrics: Option<Metrics>,
    files: Files,
}

/// Files of sockets, removed at the end.
#[derive(Default)]
pub struct Files(Vec<(Dir, OsString)>);

enum Metrics {
    Tcp(TcpListener),
    Unix(UnixListener),
}

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

    /// Answers from now on, until the process ends. What is returned removes the sockets' files when it is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(self, board: Board, started_unix_seconds: f64) -> io::Result<Files> {
        let Doors { control, metrics, files } = self;
        let server =
            Server { control, metrics, board, started_unix_seconds, streams: Vec::new(), shown_ms: 0 };
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

fn of_metrics(at: &MetricsAt, files: &mut Files) -> anyhow::Result<Metrics> {
    let opened = match at {
        MetricsAt::Tcp(address) => TcpListener::bind(address).map(Metrics::Tcp),
        MetricsAt::Unix(path) if UnixStream::connect(path).is_ok() => {
            Err(io::Error::from(io::ErrorKind::AddrInUse))
        }
        MetricsAt::Unix(path) => listen(path, 0o660, files).map(Metrics::Unix),
    };
    opened.map_err(|error| {
        let what = format!("cannot offer metrics on {at}: {error}");
        Lacking { what, hint: Some("name another address with --metrics".to_string()) }.into()
    })
}

struct Server {
    control: UnixListener,
    metrics: Option<Metrics>,
    board: Board,
    started_unix_seconds: f64,
    streams: Vec<UnixStream>,
    /// The state that the streams have had last.
    shown_ms: u64,
}

impl Server {
    fn run(mut self) {
        loop {
            let (control, metrics) = self.wait();
            if control && let Ok((stream, _)) = self.control.accept() {
                self.answer(stream);
            }
            if metrics {
                self.answer_metrics();
            }
            self.stream();
        }
    }

    /// Waits for somebody: at the control socket, and at that of the metrics.
    fn wait(&self) -> (bool, bool) {
        let metrics: Option<BorrowedFd<'_>> = self.metrics.as_ref().map(|metrics| match metrics {
            Metrics::Tcp(listener) => listener.as_fd(),
            Metrics::Unix(listener) => listener.as_fd(),
        });
        let mut polled = vec![PollFd::new(&self.control, PollFlags::IN)];
        polled.extend(metrics.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL.subsec_nanos()) };
        let timeout = (!self.streams.is_empty()).then_some(&timeout);
        if poll(&mut polled, timeout).is_err() {
            // Interrupted, or out of memory: neither is helped by trying at once.
            thread::sleep(POLL);
            return (false, false);
        }
        let ready = |nth: usize| polled.get(nth).is_some_and(|fd| !fd.revents().is_empty());
        (ready(0), ready(1))
    }

    fn answer(&mut self, mut stream: UnixStream) {
        let wish = request(&mut stream, "\n");
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

    fn answer_metrics(&mut self) {
        let answer = |stream: &mut dyn Conversation| {
            let Some(head) = request(stream, "\r\n\r\n") else { return };
            let page = || {
                let state = self.board.read()?;
                Some(metrics::exposition(&state, self.started_unix_seconds))
            };
            let _ = answer_in_time(stream, response(&head, page).as_bytes());
        };
        match &self.metrics {
            Some(Metrics::Tcp(listener)) => {
                if let Ok((mut stream, _)) = listener.accept() {
                    answer(&mut stream);
                }
            }
            Some(Metrics::Unix(listener)) => {
                if let Ok((mut stream, _)) = listener.accept() {
                    answer(&mut stream);
                }
            }
            None => {}
        }
    }
}

/// A stream with timeouts.
trait Conversation: Read + Write {
    fn write_timeout(&self, time: Duration) -> io::Result<()>;
    fn read_timeout(&self, time: Duration) -> io::Result<()>;
}

impl Conversation for TcpStream {
    fn write_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }

    fn read_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

impl Conversation for UnixStream {
    fn write_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }

    fn read_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

fn send(stream: &mut UnixStream, state: &State) -> io::Result<()> {
    let mut line = serde_json::to_vec(state)?;
    line.push(b'\n');
    answer_in_time(stream, &line)
}

/// All of it, or an error where the client does not take it in time, however steadily it takes little.
fn answer_in_time(stream: &mut (impl Conversation + ?Sized), mut bytes: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        stream.write_timeout(left)?;
        match stream.write(&bytes[..bytes.len().min(PIECE)]) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a client sends, up to an ending; `None` where it does not come in time or is too long.
fn request(stream: &mut (impl Conversation + ?Sized), ending: &str) -> Option<String> {
    let until = Instant::now() + PATIENCE;
    let mut got = Vec::new();
    let mut buffer = [0; 512];
    while !got.windows(ending.len()).any(|window| window == ending.as_bytes()) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || got.len() > REQUEST_MAX || stream.read_timeout(left).is_err() {
            return None;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => got.extend(&buffer[..length]),
        }
    }
    String::from_utf8(got).ok()
}

/// The answer to a request: GET /metrics has one, and nothing else.
fn response(head: &str, page: impl FnOnce() -> Option<String>) -> String {
    let plain = |status: &str, more: &str| {
        let body = format!("{status}\n");
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let path = path.map(|path| path.split('?').next().unwrap_or(path));
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return plain("400 Bad Request", "");
    }
    match (method, path) {
        (Some("GET"), Some("/metrics")) => match page() {
            Some(page) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                metrics::CONTENT_TYPE,
                page.len()
            ),
            None => plain("503 Service Unavailable", ""),
        },
        (Some("GET"), _) => plain("404 Not Found", ""),
        _ => plain("405 Method Not Allowed", "Allow: GET\r\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_page_is_answered() {
        let page = || Some("weir 1\n# EOF\n".to_string());
        for (head, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK"),
            ("GET /metrics?name=a HTTP/1.0\r\n\r\n", "200 OK"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /metrics/../etc HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("\r\n\r\n", "400 Bad Request"),
        ] {
            let answer = response(head, page);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head:?}: {answer}");
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
        }
        assert!(response("GET /metrics HTTP/1.1\r\n\r\n", || None).contains("503"));
    }

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
        assert_eq!(request(&mut server, "\n"), None);
        client.write_all(b"te\n").unwrap();
        assert_eq!(request(&mut server, "\n").as_deref(), Some("te\n"));
        client.write_all(&[b'x'; REQUEST_MAX + 1024]).unwrap();
        assert_eq!(request(&mut server, "\n"), None);
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
