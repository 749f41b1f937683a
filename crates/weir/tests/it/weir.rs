//! The built binary with a store and a folder of its own.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// weir with a store of its own, so that runs of a test do not land among the user's.
pub struct Weir {
    store: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; a process killed by a signal has 128 + signal, as shells say it.
    pub code: i32,
    /// Results.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

/// A command under way.
pub struct Running {
    child: Child,
}

impl Weir {
    /// A weir that has run nothing yet.
    pub fn new() -> Weir {
        Weir { store: tempfile::tempdir().unwrap() }
    }

    /// The command, ready to run in a folder.
    pub fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        self.wrapped(&[], folder, arguments)
    }

    /// The command as the last words of another, such as `setpriv …`.
    pub fn wrapped(&self, wrapper: &[&str], folder: &Path, arguments: &[&str]) -> Command {
        let weir = assert_cmd::cargo::cargo_bin!("weir");
        let mut command = match wrapper.split_first() {
            None => Command::new(weir),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(weir);
                command
            }
        };
        command
            .args(arguments)
            .current_dir(folder)
            .env("WEIR_STORE", self.store.path())
            .env_remove("RUST_BACKTRACE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end.
    pub fn run(&self, folder: &Path, arguments: &[&str]) -> Ended {
        ended(self.command(folder, arguments))
    }

    /// Starts, and returns once `path` exists (a file the command makes), so that a signal meets it at work.
    pub fn start(&self, folder: &Path, arguments: &[&str], path: &Path) -> Running {
        let mut running = Running { child: self.command(folder, arguments).spawn().unwrap() };
        let patience = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(running.child.try_wait().unwrap().is_none(), "ended early: {:?}", running.finish());
            assert!(Instant::now() < patience, "{} never appeared", path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    /// The folder of its store.
    pub fn store(&self) -> &Path {
        self.store.path()
    }

    /// The records in the store, parsed, oldest first.
    pub fn records(&self) -> Vec<serde_json::Value> {
        let mut paths: Vec<PathBuf> = files_under(self.store.path());
        paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
        paths.sort();
        paths.iter().map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
    }
}

impl Running {
    /// Sends a signal by name, `INT` or `TERM`.
    pub fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
    }

    /// Closes the reading end of its stdout, as `| head` does.
    pub fn stop_reading(&mut self) {
        drop(self.child.stdout.take());
    }

    /// Waits for the end.
    pub fn finish(&mut self) -> Ended {
        let mut stderr = String::new();
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).unwrap();
        }
        Ended { code: code(self.child.wait().unwrap()), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub fn ended(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: code(output.status), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Every file under a folder.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() { found.extend(files_under(&path)) } else { found.push(path) }
    }
    found
}
