//! A tap between a client and a server: it passes everything on and writes down which bytes went out and how many came
//! back, and in the end hands out the server's side of the conversation, logged in and with its statements prepared.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What went out at once, and how much came back before the next went out.
#[derive(Debug, Default, Clone)]
pub struct Exchange {
    pub request: Vec<u8>,
    pub answer_bytes: usize,
}

pub struct Tap {
    pub socket: PathBuf,
    log: Arc<Mutex<Vec<Exchange>>>,
    enough: Arc<AtomicBool>,
    passer: JoinHandle<io::Result<UnixStream>>,
}

impl Tap {
    /// Listens in `folder` for one client of the server at `upstream`.
    pub fn open(folder: &Path, upstream: &Path) -> io::Result<Tap> {
        let socket = folder.join("tap");
        let listener = UnixListener::bind(&socket)?;
        let (log, enough) = (Arc::default(), Arc::default());
        let (upstream, theirs, stop) = (upstream.to_path_buf(), Arc::clone(&log), Arc::clone(&enough));
        let passer = std::thread::spawn(move || pass(&listener, &upstream, &theirs, &stop));
        Ok(Tap { socket, log, enough, passer })
    }

    /// Forgets what was written down so far.
    pub fn clear(&self) {
        self.log().clear();
    }

    /// What was written down, and the server's end of the conversation; the client's end is dead from here on.
    pub fn finish(self) -> io::Result<(Vec<Exchange>, UnixStream)> {
        self.enough.store(true, Ordering::Relaxed);
        let exchanges = std::mem::take(&mut *self.log());
        let stream = self.passer.join().map_err(|_| io::Error::other("the tap panicked"))??;
        Ok((exchanges, stream))
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Vec<Exchange>> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn pass(
    listener: &UnixListener,
    upstream: &Path,
    log: &Mutex<Vec<Exchange>>,
    enough: &AtomicBool,
) -> io::Result<UnixStream> {
    let (mut client, _) = listener.accept()?;
    let mut server = UnixStream::connect(upstream)?;
    let mut bytes = vec![0; 1 << 20];
    let tick = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    while !enough.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(&client, PollFlags::IN), PollFd::new(&server, PollFlags::IN)];
        poll(&mut fds, Some(&tick))?;
        let [from_client, from_server] = fds.map(|fd| !fd.revents().is_empty());
        if from_client {
            let got = client.read(&mut bytes)?;
            let mut log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if log.last().is_none_or(|last| last.answer_bytes > 0) {
                log.push(Exchange::default());
            }
            log.last_mut().into_iter().for_each(|last| last.request.extend_from_slice(&bytes[..got]));
            server.write_all(&bytes[..got])?;
        }
        if from_server {
            let got = server.read(&mut bytes)?;
            let mut log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            log.last_mut().into_iter().for_each(|last| last.answer_bytes += got);
            client.write_all(&bytes[..got])?;
        }
    }
    Ok(server)
}
