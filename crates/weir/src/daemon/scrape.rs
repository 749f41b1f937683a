//! Metrics over HTTP. Any account of the machine may connect to a port, and say nothing: all clients are heard at once, by a
//! thread of their own, and where there are too many, the one that has waited longest is let go.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::MetricsAt;
use super::openmetrics::CONTENT_TYPE;
use super::socket::{Files, is_answered, listen};
use crate::failure::Lacking;

/// How long a client may take for its request and the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients at the same time.
const CLIENTS_MAX: usize = 64;
/// The longest request that is read.
const REQUEST_MAX: usize = 4 << 10;
/// After an error that the next try would meet too, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// A port that somebody else has is asked for again after so long.
const AGAIN: Duration = Duration::from_secs(10);

/// Where clients connect.
pub enum Door {
    /// A port.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
    /// A port that somebody else has.
    Taken(SocketAddr),
}

impl Door {
    /// Opens it. Any account may have taken a port: that is said, and waited for.
    ///
    /// # Errors
    /// When somebody listens at a socket's path, or it cannot be made.
    pub fn open(at: &MetricsAt, files: &mut Files) -> anyhow::Result<Door> {
        let opened = match at {
            MetricsAt::Tcp(address) => match TcpListener::bind(address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    say!("weir: another program listens on {at}: no metrics until it ends");
                    Ok(Door::Taken(*address))
                }
                bound => bound.map(Door::Tcp),
            },
            MetricsAt::Unix(path) if is_answered(path) => Err(io::Error::from(io::ErrorKind::AddrInUse)),
            MetricsAt::Unix(path) => listen(path, 0o660, files).map(Door::Unix),
        };
        opened.map_err(|error| {
            let what = format!("cannot offer metrics on {at}: {error}");
            Lacking { what, hint: Some("name another address with --metrics".to_string()) }.into()
        })
    }

    /// What listens there, as soon as it can; a port that is taken is asked for `every` so often.
    fn listens(self, every: Duration) -> io::Result<Box<dyn Listens>> {
        Ok(match self {
            Door::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Box::new(listener)
            }
            Door::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Box::new(listener)
            }
            Door::Taken(address) => loop {
                thread::sleep(every);
                if let Ok(listener) = TcpListener::bind(address) {
                    say!("weir: metrics are offered on {address} now");
                    return Door::Tcp(listener).listens(every);
                }
            },
        })
    }
}

trait Listens: AsFd {
    fn accept(&self) -> io::Result<Box<dyn Stream>>;
}

impl Listens for TcpListener {
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpListener::accept(self)?.0;
        stream.set_nonblocking(true)?;
        Ok(Box::new(stream))
    }
}

impl Listens for UnixListener {
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        let stream = UnixListener::accept(self)?.0;
        stream.set_nonblocking(true)?;
        Ok(Box::new(stream))
    }
}

/// What is answered.
pub trait Page: Send {
    /// The page as it is now, one for all who ask; `None` where there is none yet.
    fn text(&mut self) -> Option<Arc<str>>;
}

trait Stream: Read + Write + AsFd + Send {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// Answers at a door until the process ends.
///
/// # Errors
/// When no thread can be started.
pub fn serve(door: Door, mut page: impl Page + 'static) -> io::Result<()> {
    let mut clients = VecDeque::new();
    let turns = move || {
        let door = match door.listens(AGAIN) {
            Ok(door) => door,
            Err(error) => return say!("weir: no metrics: {error}"),
        };
        loop {
            if turn(&*door, &mut clients, &mut page).is_err() {
                thread::sleep(PAUSE);
            }
        }
    };
    thread::Builder::new().name("metrics".to_string()).spawn(turns).map(drop)
}

/// Waits until somebody has something to say or can hear, and sees to all of them.
fn turn(door: &dyn Listens, clients: &mut VecDeque<Client>, page: &mut dyn Page) -> io::Result<()> {
    let mut polled = vec![PollFd::from_borrowed_fd(door.as_fd(), PollFlags::IN)];
    polled.extend(
        clients.iter().map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), client.waits_for())),
    );
    let left = clients.front().map(|first| first.until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut polled, left.as_ref()) {
        Err(rustix::io::Errno::INTR) => return Ok(()),
        polled => drop(polled?),
    }
    let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
    drop(polled);
    let now = Instant::now();
    let mut places = ready[1..].iter();
    clients.retain_mut(|client| {
        let is_ready = places.next().is_some_and(|ready| *ready);
        now < client.until && (!is_ready || client.goes_on(page))
    });
    if ready[0] { let_in(door, clients, page) } else { Ok(()) }
}

/// Whoever waits at the door. Most have said what they want by then.
fn let_in(door: &dyn Listens, clients: &mut VecDeque<Client>, page: &mut dyn Page) -> io::Result<()> {
    for _ in 0..CLIENTS_MAX {
        match door.accept() {
            Ok(stream) => {
                let mut client = Client::new(stream);
                if client.goes_on(page) {
                    clients.push_back(client);
                }
                if clients.len() > CLIENTS_MAX {
                    clients.pop_front();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // It went away while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One conversation.
struct Client {
    stream: Box<dyn Stream>,
    until: Instant,
    heard: Vec<u8>,
    /// What is to be said, once the request is whole.
    answer: Option<Answer>,
    said: usize,
}

/// An answer's head, and its body, which is the page itself.
struct Answer {
    head: String,
    body: Arc<str>,
}

impl Answer {
    fn new(status: &str, kind: &str, more: &str, body: Arc<str>) -> Answer {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        Answer { head, body }
    }

    /// What is left after so much was said.
    fn after(&self, said: usize) -> &[u8] {
        match self.head.as_bytes().get(said..) {
            Some(head) if !head.is_empty() => head,
            _ => self.body.as_bytes().get(said - self.head.len()..).unwrap_or_default(),
        }
    }
}

impl Client {
    fn new(stream: Box<dyn Stream>) -> Client {
        Client { stream, until: Instant::now() + PATIENCE, heard: Vec::new(), answer: None, said: 0 }
    }

    fn waits_for(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// As far as it goes without waiting; false at the end.
    fn goes_on(&mut self, page: &mut dyn Page) -> bool {
        let done = self.hear(page).and_then(|()| self.say());
        match done {
            Ok(is_over) => !is_over,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    fn hear(&mut self, page: &mut dyn Page) -> io::Result<()> {
        const END: &[u8] = b"\r\n\r\n";
        let mut buffer = [0; 512];
        while self.answer.is_none() {
            let length = self.stream.read(&mut buffer)?;
            self.heard.extend(&buffer[..length]);
            if length == 0 || self.heard.len() > REQUEST_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.heard.windows(END.len()).any(|window| window == END) {
                let head = String::from_utf8_lossy(&self.heard);
                self.answer = Some(response(&head, || page.text()));
            }
        }
        Ok(())
    }

    /// Whether all is said.
    fn say(&mut self) -> io::Result<bool> {
        let Some(answer) = &self.answer else { return Ok(false) };
        loop {
            let left = answer.after(self.said);
            if left.is_empty() {
                return Ok(true);
            }
            match self.stream.write(left)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => self.said += length,
            }
        }
    }
}

/// The answer to a request: GET /metrics has one, and nothing else.
fn response(head: &str, page: impl FnOnce() -> Option<Arc<str>>) -> Answer {
    let plain =
        |status: &str, more: &str| Answer::new(status, "text/plain", more, format!("{status}\n").into());
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path, version) = (words.next(), words.next(), words.next());
    let path = path.map(|path| path.split('?').next().unwrap_or(path));
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return plain("400 Bad Request", "");
    }
    match (method, path) {
        (Some("GET"), Some("/metrics")) => match page() {
            Some(page) => Answer::new("200 OK", CONTENT_TYPE, "", page),
            None => plain("503 Service Unavailable", ""),
        },
        (Some("GET"), _) => plain("404 Not Found", ""),
        _ => plain("405 Method Not Allowed", "Allow: GET\r\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No page yet.
    struct Nothing;
    impl Page for Nothing {
        fn text(&mut self) -> Option<Arc<str>> {
            None
        }
    }

    /// All that is said of an answer.
    fn whole(answer: &Answer) -> String {
        format!("{}{}", answer.head, answer.body)
    }

    #[test]
    fn only_one_page_is_answered() {
        let page = || Some(Arc::from("weir 1\n# EOF\n"));
        for (head, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK"),
            ("GET /metrics?name=a HTTP/1.0\r\n\r\n", "200 OK"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /metrics/../etc HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("\r\n\r\n", "400 Bad Request"),
        ] {
            let answer = whole(&response(head, page));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head:?}: {answer}");
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
        }
        assert!(whole(&response("GET /metrics HTTP/1.1\r\n\r\n", || None)).contains("503"));
    }

    /// One that is there.
    struct Large(Arc<str>);
    impl Page for Large {
        fn text(&mut self) -> Option<Arc<str>> {
            Some(self.0.clone())
        }
    }

    #[test]
    fn clients_that_read_slowly_share_one_page() {
        let folder = tempfile::tempdir().unwrap();
        let door = UnixListener::bind(folder.path().join("s")).unwrap();
        let mut page = Large("weir 1\n".repeat(1 << 20).into());
        let ask = || {
            let mut far = UnixStream::connect(folder.path().join("s")).unwrap();
            far.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            far
        };
        let mut fars: Vec<UnixStream> = (0..3).map(|_| ask()).collect();
        let mut clients: Vec<Client> =
            fars.iter().map(|_| Client::new(Listens::accept(&door).unwrap())).collect();
        assert!(clients.iter_mut().all(|client| client.goes_on(&mut page)), "none took it whole");
        assert_eq!(Arc::strong_count(&page.0), 1 + clients.len());
        let mut first = clients.remove(0);
        let mut far = fars.remove(0);
        let reader = thread::spawn(move || {
            let mut answer = String::new();
            far.read_to_string(&mut answer).unwrap();
            answer
        });
        while first.goes_on(&mut page) {
            thread::yield_now();
        }
        drop(first);
        assert_eq!(reader.join().unwrap().split_once("\r\n\r\n").unwrap().1, &*page.0);
    }

    /// Any account can take a port before weir is there.
    #[test]
    fn a_port_that_another_has_is_waited_for() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = MetricsAt::Tcp(other.local_addr().unwrap());
        let door = Door::open(&at, &mut Files::default()).unwrap();
        assert!(matches!(door, Door::Taken(_)));
        drop(other);
        assert!(door.listens(Duration::ZERO).is_ok());
    }

    #[test]
    fn idle_clients_hold_nobody_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let mut clients = VecDeque::new();
        let mut page = Nothing;
        let mut idle = Vec::new();
        // More than are heard at once.
        for _ in 0..3 {
            idle.extend((0..CLIENTS_MAX).map(|_| TcpStream::connect(at).unwrap()));
            turn(&listener, &mut clients, &mut page).unwrap();
        }
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        turn(&listener, &mut clients, &mut page).unwrap();
        assert!(clients.len() <= CLIENTS_MAX);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        drop(idle);
    }

    #[test]
    fn who_says_nothing_or_does_not_hear_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let door = UnixListener::bind(folder.path().join("s")).unwrap();
        let mut page = Nothing;
        let mut clients = VecDeque::new();
        for (words, answer, is_held) in [
            (&b"GET"[..], None, true),
            (&[b'x'; REQUEST_MAX + 512], None, false),
            (b"", Some(Answer { head: "x".to_string(), body: "x".repeat(64 << 20).into() }), true),
        ] {
            let mut far = UnixStream::connect(folder.path().join("s")).unwrap();
            far.write_all(words).unwrap();
            let mut client = Client { answer, ..Client::new(Listens::accept(&door).unwrap()) };
            assert_eq!(client.goes_on(&mut page), is_held);
            client.until = Instant::now();
            clients.push_back(client);
            turn(&door, &mut clients, &mut page).unwrap();
            assert!(clients.is_empty());
        }
    }

    #[test]
    fn a_listener_in_a_folder_of_others_keeps_no_daemon_from_its_start() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let at = MetricsAt::Unix(path.clone());
        let theirs = UnixListener::bind(&path).unwrap();
        let refused = Door::open(&at, &mut Files::default()).err().unwrap();
        assert!(refused.to_string().contains("in use"), "{refused}");
        // Nobody accepts, and the one who asked is more than may wait: who asks with patience waits for ever.
        rustix::net::listen(&theirs, 0).unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        let asked = at.clone();
        thread::spawn(move || said.send(Door::open(&asked, &mut Files::default()).is_err()));
        assert_eq!(heard.recv_timeout(Duration::from_secs(5)), Ok(true), "it waits");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Door::open(&at, &mut Files::default()).is_ok(), "theirs was asked");
    }
}
