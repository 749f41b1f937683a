//! The control socket: a guard says what it does to whoever connects. The first line that a client sends is what it
//! wants: `state` for one [`State`], `stream` for one a second until it goes away; each is one line of JSON.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_control::State;

use crate::daemon::socket::{connect, is_answered, line};
use crate::failure::Lacking;

/// The socket's name.
const NAME: &str = "guard.sock";
/// How long a client waits for a state. A guard makes one a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder of what exists while a guard runs: `$WEIR_RUN`, else `/run/weir`.
pub fn run_folder() -> PathBuf {
    match std::env::var_os("WEIR_RUN") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => PathBuf::from("/run/weir"),
    }
}

/// Where a guard listens.
pub fn path() -> PathBuf {
    run_folder().join(NAME)
}

/// Whether a guard listens there.
pub fn is_there() -> bool {
    is_answered(&path())
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
            let mut stream = connect(&run_folder(), NAME)?;
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

fn no_guard(path: &Path, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied if !is_distrust(error) => "run it as root",
        _ => "`weir guard run` starts one; WEIR_RUN names the folder of its socket",
    };
    let what = format!("no guard answers on {}: {error}", path.display());
    Lacking { what, hint: Some(hint.to_string()) }.into()
}

fn is_distrust(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|why| why.is::<weir_fs::Distrust>())
}

fn lacking(path: &Path, why: &str) -> anyhow::Error {
    Lacking { what: format!("the guard on {} does not answer: {why}", path.display()), hint: None }.into()
}
