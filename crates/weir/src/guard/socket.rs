//! The control socket: a guard says what it does to whoever connects. The first line that a client sends is what it
//! wants: `state` for one [`State`], `stream` for one a second until it goes away; each is one line of JSON.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_control::State;

use crate::failure::Lacking;

/// How long a client waits for a state. A guard makes one a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read; a guard says a few KiB of each device.
const ANSWER_MAX: usize = 4 << 20;

/// The folder of what exists while a guard runs: `$WEIR_RUN`, else `/run/weir`.
pub fn run_folder() -> PathBuf {
    match std::env::var_os("WEIR_RUN") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => PathBuf::from("/run/weir"),
    }
}

/// Where a guard listens.
pub fn path() -> PathBuf {
    run_folder().join("guard.sock")
}

/// The running guard as it is now.
///
/// # Errors
/// When no guard runs, may not be asked by this user, or does not answer in time.
pub fn ask() -> anyhow::Result<State> {
    let mut client = Client::connect("state")?;
    client.next()?.ok_or_else(|| lacking(&path(), "it ended without an answer"))
}

/// A connection on which a running guard tells its state once a second.
///
/// # Errors
/// When no guard runs, or it may not be asked by this user.
pub fn stream() -> anyhow::Result<Client> {
    Client::connect("stream")
}

/// A connection to a running guard.
pub struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(wish: &str) -> anyhow::Result<Client> {
        let path = path();
        let connected = || -> io::Result<UnixStream> {
            let mut stream = UnixStream::connect(&path)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(format!("{wish}\n").as_bytes())?;
            Ok(stream)
        };
        let stream = connected().map_err(|error| no_guard(&path, &error))?;
        Ok(Client(BufReader::new(stream)))
    }

    /// The next state; `None` when the guard has ended.
    ///
    /// # Errors
    /// When the guard does not answer in time, or with something else.
    pub fn next(&mut self) -> anyhow::Result<Option<State>> {
        let line = line(&mut self.0, PATIENCE).map_err(|error| lacking(&path(), &error.to_string()))?;
        if line.is_empty() {
            return Ok(None);
        }
        weir_core::json::parse(&line).map(Some).map_err(|error| {
            let why = format!("its answer cannot be understood: {error}");
            lacking(&path(), &why)
        })
    }
}

/// The next line, which whoever answers must have said whole in this time; empty at the end of the connection.
fn line(from: &mut BufReader<UnixStream>, patience: Duration) -> io::Result<String> {
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

fn no_guard(path: &Path, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "run it as root",
        _ => "`weir guard run` starts one; WEIR_RUN names the folder of its socket",
    };
    let what = format!("no guard answers on {}: {error}", path.display());
    Lacking { what, hint: Some(hint.to_string()) }.into()
}

fn lacking(path: &Path, why: &str) -> anyhow::Error {
    Lacking { what: format!("the guard on {} does not answer: {why}", path.display()), hint: None }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client makes of a guard that says this again and again.
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
