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

/// Where root's guard listens.
const OF_ROOT: &str = "/run/weir";

/// The folder of what exists while a guard of this account runs: `$WEIR_RUN`; else root's is `/run/weir`, and another account's
/// `$XDG_RUNTIME_DIR/weir` or `/tmp/weir-UID`.
pub fn run_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder_of(rustix::process::geteuid().as_raw(), variable)
}

fn folder_of(uid: u32, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let of_account = || match variable("XDG_RUNTIME_DIR") {
        _ if uid == 0 => PathBuf::from(OF_ROOT),
        Some(folder) => folder.join("weir"),
        None => PathBuf::from(format!("/tmp/weir-{uid}")),
    };
    variable("WEIR_RUN").unwrap_or_else(of_account)
}

/// The folder of the guard that is asked: the account's own where one answers, else root's.
fn asked_folder() -> PathBuf {
    let own = run_folder();
    let is_named = std::env::var_os("WEIR_RUN").is_some_and(|folder| !folder.is_empty());
    // Whoever is root asks no guard twice.
    if is_named || own == Path::new(OF_ROOT) || is_there() { own } else { PathBuf::from(OF_ROOT) }
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
    client.next()?.ok_or_else(|| lacking(&client.path, "it ended without an answer"))
}

/// A connection on which a running guard tells its state once a second.
///
/// # Errors
/// When no guard runs, or it may not be asked by this user.
pub fn stream() -> anyhow::Result<Client> {
    Client::connect("stream")
}

/// A connection to a running guard.
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Client {
    fn connect(wish: &str) -> anyhow::Result<Client> {
        let folder = asked_folder();
        let path = folder.join(NAME);
        let connected = || -> io::Result<UnixStream> {
            let mut stream = connect(&folder, NAME)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(format!("{wish}\n").as_bytes())?;
            Ok(stream)
        };
        let stream = connected().map_err(|error| no_guard(&path, &error))?;
        Ok(Client { path, stream: BufReader::new(stream) })
    }

    /// The next state; `None` when the guard has ended.
    ///
    /// # Errors
    /// When the guard does not answer in time, or with something else.
    pub fn next(&mut self) -> anyhow::Result<Option<State>> {
        let line = line(&mut self.stream, PATIENCE);
        let line = line.map_err(|error| lacking(&self.path, &error.to_string()))?;
        if line.is_empty() {
            return Ok(None);
        }
        weir_core::json::parse(&line).map(Some).map_err(|error| {
            let why = format!("its answer cannot be understood: {error}");
            lacking(&self.path, &why)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_s_guard_has_a_folder_that_the_account_can_make() {
        let (run, xdg) = (("WEIR_RUN", "/w"), ("XDG_RUNTIME_DIR", "/run/user/7"));
        for (uid, variables, expected) in [
            (0, &[][..], "/run/weir"),
            (0, &[xdg], "/run/weir"),
            (0, &[run, xdg], "/w"),
            (7, &[run, xdg], "/w"),
            (7, &[xdg], "/run/user/7/weir"),
            (7, &[], "/tmp/weir-7"),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
            };
            assert_eq!(folder_of(uid, variable), Path::new(expected), "{uid} {variables:?}");
        }
    }
}
