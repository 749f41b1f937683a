//! The built binary with a store and a folder of its own.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Runs whose figures a test looks at have the machine to themselves, as far as these tests go.
static MACHINE: RwLock<()> = RwLock::new(());

/// weir with a store of its own, so that runs of a test do not land among the user's.
pub struct Weir {
    store: TempDir,
    _machine: Turn,
}

enum Turn {
    Beside { _others: RwLockReadGuard<'static, ()> },
    Alone { _others: RwLockWriteGuard<'static, ()> },
}

/// Bytes that a process has read and written so far, by system calls or, asynchronously, from and to devices.
pub struct Activity {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Count and mean of a class of operations in a job of a record.
pub struct Latency {
    /// Operations.
    pub count: f64,
    /// Mean latency.
    pub mean_ns: f64,
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

impl Ended {
    /// The results with one space wherever the text was wrapped: where a line ends depends on what stands before it.
    pub fn unwrapped(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The command that its arguments make, away from the terminal: as another account's it could type into root's (TIOCSTI).
pub fn without_terminal() -> Command {
    let mut command = Command::new("setsid");
    command.arg("--wait");
    command
}

/// A command under way.
pub struct Running {
    child: Child,
    /// What was read of its stderr already.
    said: String,
}

impl Weir {
    /// A weir that has run nothing yet.
    pub fn new() -> Weir {
        let others = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Weir { store: tempfile::tempdir().unwrap(), _machine: Turn::Beside { _others: others } }
    }

    /// The same, while no other test runs one.
    pub fn alone() -> Weir {
        let others = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Weir { store: tempfile::tempdir().unwrap(), _machine: Turn::Alone { _others: others } }
    }

    /// The command, ready to run in a folder.
    pub fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        self.wrapped(&[], folder, arguments)
    }

    /// The command as the last words of another, such as `setpriv …`.
    pub fn wrapped(&self, wrapper: &[&str], folder: &Path, arguments: &[&str]) -> Command {
        let weir = assert_cmd::cargo::cargo_bin!("weir");
        let mut command = if wrapper.is_empty() {
            Command::new(weir)
        } else {
            let mut command = without_terminal();
            command.args(wrapper).arg(weir);
            command
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

    /// Starts, and returns once what the process has read and written says that it is where the test wants it, so that
    /// a signal or a fault meets it at work however slow the machine is.
    pub fn start(&self, folder: &Path, arguments: &[&str], is_there: impl Fn(&Activity) -> bool) -> Running {
        Weir::started(self.command(folder, arguments), is_there)
    }

    /// The same with a command that is ready.
    pub fn started(mut command: Command, is_there: impl Fn(&Activity) -> bool) -> Running {
        let mut running = Running { child: command.spawn().unwrap(), said: String::new() };
        let patience = Instant::now() + Duration::from_secs(60);
        while !activity(running.child.id()).is_some_and(|a| is_there(&a)) {
            let alive = running.child.try_wait().unwrap().is_none();
            assert!(
                alive && Instant::now() < patience,
                "{command:?} never got there: {:?}",
                running.give_up()
            );
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

/// Sends a signal to a process, or to a group, which must be there.
fn kill(name: &str, whom: &str) {
    let line = format!("kill -{name} {whom}");
    assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
}

impl Running {
    /// Sends a signal by name, `INT` or `TERM`.
    pub fn signal(&self, name: &str) {
        kill(name, &self.child.id().to_string());
    }

    /// Sends several, one right after the other.
    pub fn signals(&self, names: &[&str]) {
        let process = self.child.id();
        let line: Vec<String> = names.iter().map(|name| format!("kill -{name} {process}")).collect();
        assert!(Command::new("sh").arg("-c").arg(line.join(" && ")).status().unwrap().success());
    }

    /// Sends one to every process of its group, which it has to lead, as a terminal does.
    pub fn signal_group(&self, name: &str) {
        kill(name, &format!("-{}", self.child.id()));
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The processes that it has started and that have not ended.
    pub fn children(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let of_task =
            |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let texts = tasks.into_iter().flatten().filter_map(Result::ok).map(of_task);
        texts
            .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>())
            .collect()
    }

    /// Kills it and says how far it came.
    fn give_up(&mut self) -> Ended {
        let _ = self.child.kill();
        self.finish()
    }

    /// Closes the reading end of its stdout, as `| head` does.
    pub fn stop_reading(&mut self) {
        drop(self.child.stdout.take());
    }

    /// Waits until its stderr says this.
    pub fn says(&mut self, words: &str) {
        let mut some = [0; 4096];
        while !self.said.contains(words) {
            let length = self.child.stderr.as_mut().unwrap().read(&mut some).unwrap();
            assert!(length > 0, "it never said {words}: {:?}", self.finish());
            self.said.push_str(&String::from_utf8_lossy(&some[..length]));
        }
    }

    /// Waits for the end.
    pub fn finish(&mut self) -> Ended {
        let mut stderr = std::mem::take(&mut self.said);
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

/// Sends a signal to a process that may have ended meanwhile.
pub fn signal(name: &str, process: u32) {
    Command::new("sh").arg("-c").arg(format!("kill -{name} {process} 2>/dev/null")).status().unwrap();
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

fn activity(process: u32) -> Option<Activity> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    // Asynchronous I/O is charged to the device's counters only (proc_pid_io(5)).
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let larger = |calls: &str, device: &str| Some(field(calls)?.max(field(device)?));
    Some(Activity { read: larger("rchar:", "read_bytes:")?, written: larger("wchar:", "write_bytes:")? })
}

/// Count and mean of a class in one job of a record.
pub fn latency(job: &serde_json::Value, class: &str) -> Latency {
    let latency = &job["classes"][class]["latency"];
    let count = latency["count"].as_f64().unwrap_or(0.0);
    Latency { count, mean_ns: latency["sum_ns"].as_f64().unwrap_or(0.0) / count.max(1.0) }
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
