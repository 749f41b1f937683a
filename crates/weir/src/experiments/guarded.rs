//! A guard beside a trial: weir's own daemon, for as long as the trial lasts at most.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::SIGTERM;
use weir_cli::signals::hand_on;
use weir_fs::{Dir, Private, read_lossily};

use crate::failure::Lacking;
use crate::guard::socket;

/// Loading its programs takes a second or two on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// How often it is looked whether it has ended.
const POLL: Duration = Duration::from_millis(100);
/// Its settings are weir's defaults, and none of this machine's: `/etc/weir/guard.toml` may have it decide only, or protect
/// another unit than the experiment's server.
const SETTINGS: [&str; 3] = ["--no-history", "--config", "/dev/null"];
/// Whatever becomes of this process, the guard ends and restores its limits this long after the trial should have.
const GRACE: Duration = Duration::from_secs(60);

/// A running guard; dropping it ends it and waits until its limits are restored.
pub struct Guarded(Child);

impl Guarded {
    /// Starts a guard of the device under `place` and waits until it watches.
    ///
    /// # Errors
    /// When it does not come to watch, with its own words.
    pub fn start(place: &Path, lasting: Duration) -> anyhow::Result<Guarded> {
        let temporary = std::env::temp_dir();
        let folder = Dir::open(&temporary).and_then(|dir| Private::make(&dir, "guarded"));
        let folder = folder.with_context(|| format!("cannot make a folder in {}", temporary.display()))?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["guard", "run"]).args(SETTINGS).arg("--duration");
        command.arg(format!("{}s", (lasting + GRACE).as_secs())).arg(place);
        start_in(&folder, &mut command, READY_LIMIT)
    }
}

/// Starts a daemon whose words go to files of a folder, and waits until it says that it is ready.
fn start_in(folder: &Private, command: &mut Command, longest: Duration) -> anyhow::Result<Guarded> {
    let (socket, words) = (folder.path().join("notify"), folder.path().join("words"));
    let ready =
        UnixDatagram::bind(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
    let stderr = folder.dir().create_new("words", 0o600);
    let stderr = stderr.with_context(|| format!("cannot make {}", words.display()))?;
    command.env("NOTIFY_SOCKET", &socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut guarded = Guarded(command.spawn().context("cannot start a guard")?);
    if is_ready(&ready, &mut guarded.0, longest)? {
        return Ok(guarded);
    }
    let how = match guarded.0.try_wait()? {
        Some(status) => format!("it ended with {status}"),
        None => format!("it was not ready within {} s", longest.as_secs()),
    };
    drop(guarded);
    Err(not_ready(&read_lossily(&words).unwrap_or_default(), &how).into())
}

/// Whether a daemon gets ready before it ends and within so long.
fn is_ready(ready: &UnixDatagram, daemon: &mut Child, longest: Duration) -> io::Result<bool> {
    ready.set_read_timeout(Some(POLL))?;
    let until = Instant::now() + longest;
    let mut message = [0; 4096];
    while Instant::now() < until {
        match ready.recv(&mut message) {
            Ok(length) if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") => {
                return Ok(true);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if daemon.try_wait()?.is_some() => return Ok(false),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// A guard that did not come to watch: its own error, else how it ended and its last words.
fn not_ready(words: &str, how: &str) -> Lacking {
    let said = |label: &str| words.lines().rev().find_map(|line| line.strip_prefix(label));
    let why = match (said("error: "), words.lines().last()) {
        (Some(error), _) => error.to_string(),
        (None, Some(last)) => format!("{how}; its last words: {last}"),
        (None, None) => how.to_string(),
    };
    Lacking { what: format!("the guard did not start: {why}"), hint: said("hint: ").map(str::to_string) }
}

/// Refuses trials with a guard (`wanted`) where one runs already: it would act on the trials without a guard, too.
///
/// # Errors
/// When there is such a guard.
pub fn refuse_another(wanted: bool) -> anyhow::Result<()> {
    if !wanted || !socket::is_there() {
        return Ok(());
    }
    let what = format!("a guard runs already: it answers on {}", socket::path().display());
    let hint = "stop it for the time of the experiment: `systemctl stop weir-guard`";
    Err(Lacking { what, hint: Some(hint.to_string()) }.into())
}

impl Drop for Guarded {
    fn drop(&mut self) {
        hand_on(&self.0, SIGTERM);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_does_not_start_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::open(folder.path()).unwrap();
        let refused = "echo 'note: x' >&2; echo 'error: no device' >&2; echo 'hint: name one' >&2; exit 2";
        let patient = Duration::from_secs(60);
        for (script, longest, expected, hint) in [
            (refused, patient, "the guard did not start: no device", Some("name one")),
            ("echo loading >&2; exit 7", patient, "7; its last words: loading", None),
            ("exec sleep 60", Duration::ZERO, "it was not ready within 0 s", None),
        ] {
            let (begun, made) = (Instant::now(), Private::make(&folder, "guarded").unwrap());
            let error = start_in(&made, Command::new("sh").args(["-c", script]), longest).err().unwrap();
            let lacking = error.downcast_ref::<Lacking>().unwrap();
            assert!(lacking.what.contains(expected), "{script}: {lacking:?}");
            assert_eq!(lacking.hint.as_deref(), hint, "{script}");
            assert!(begun.elapsed() < patient, "{script}: whoever has ended is not waited for");
        }
    }
}
