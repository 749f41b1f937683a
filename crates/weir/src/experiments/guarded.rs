//! A guard beside a trial: weir's own daemon, for as long as the trial lasts at most.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::SIGTERM;
use weir_cli::signals::hand_on;
use weir_fs::{Dir, Private};

/// Loading its programs takes a second or two on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Whatever becomes of this process, the guard ends and restores its limits this long after the trial should have.
const GRACE: Duration = Duration::from_secs(60);

/// A running guard; dropping it ends it and waits until its limits are restored.
pub struct Guarded(Child);

impl Guarded {
    /// Starts a guard of the device under `place` and waits until it watches.
    pub fn start(place: &Path, lasting: Duration) -> anyhow::Result<Guarded> {
        let temporary = std::env::temp_dir();
        let folder = Dir::open(&temporary).and_then(|dir| Private::make(&dir, "guarded"));
        let folder = folder.with_context(|| format!("cannot make a folder in {}", temporary.display()))?;
        let socket = folder.path().join("notify");
        let said =
            UnixDatagram::bind(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
        said.set_read_timeout(Some(READY_LIMIT))?;
        let child = Command::new("/proc/self/exe")
            .args(["guard", "run", "--no-history", "--duration"])
            .arg(format!("{}s", (lasting + GRACE).as_secs()))
            .arg(place)
            .env("NOTIFY_SOCKET", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a guard")?;
        let guarded = Guarded(child);
        wait_until_ready(&said).map(|()| guarded)
    }
}

fn wait_until_ready(said: &UnixDatagram) -> anyhow::Result<()> {
    let mut message = [0; 4096];
    loop {
        let length =
            said.recv(&mut message).context("the guard did not come to watch; `weir guard run` says why")?;
        if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
            return Ok(());
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        hand_on(&self.0, SIGTERM);
        let _ = self.0.wait();
    }
}
