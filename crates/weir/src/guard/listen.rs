//! Answers on the control socket, and the doors of both kinds. One thread; it sees copies of the state and cannot hold up the
//! guard.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::State;
use weir_fs::Dir;

use super::metrics::Metrics;
use super::socket;
use crate::daemon::scrape::{self, Door};
use crate::daemon::socket::{Files, answer_in_time, listen, request};
use crate::daemon::{Board, MetricsAt};
use crate::failure::{Lacking, Usage};

/// While somebody reads along, a new state is looked for so often.
const POLL: Duration = Duration::from_millis(200);
/// Readers of the stream at the same time.
const STREAMS_MAX: usize = 16;

/// Open sockets. Their files go away when this is dropped.
pub struct Doors {
    control: UnixListener,
    metrics: Option<Door>,
    files: Files,
}

impl Doors {
    /// Opens them.
    ///
    /// # Errors
    /// When another guard listens there, or a socket cannot be made.
    pub fn open(metrics: Option<&MetricsAt>) -> anyhow::Result<Doors> {
        let mut files = Files::default();
        let control = control(&mut files)?;
        let metrics = metrics.map(|at| Door::open(at, &mut files)).transpose()?;
        Ok(Doors { control, metrics, files })
    }

    /// Answers from now on, until the process ends. The returned value removes the sockets' files when it is dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn serve(self, board: Board<State>, started_unix_seconds: f64) -> io::Result<Files> {
        let Doors { control, metrics, files } = self;
        let page = Metrics::new(board.clone(), started_unix_seconds);
        metrics.map(|door| scrape::serve(door, page)).transpose()?;
        let server = Server { control, board, streams: Vec::new(), shown_ms: 0 };
        thread::Builder::new().name("answers".to_string()).spawn(move || server.run())?;
        Ok(files)
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
    // Who asks a guard believes none in another folder.
    Dir::open_trusted(&socket::run_folder()).map_err(lacking)?;
    if socket::is_there() {
        let what = format!("another guard runs: it answers on {}", path.display());
        let hint = "one guard takes any number of devices; `weir guard status` shows it; WEIR_RUN names \
            another folder";
        return Err(Usage { what, hint: Some(hint.to_string()) }.into());
    }
    Ok(listen(&path, 0o660, files).map_err(lacking)?)
}

struct Server {
    control: UnixListener,
    board: Board<State>,
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
