//! Throw-away servers from the command line, and a server looked at as it stands: whatever happens, nothing is left.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::lab;
use crate::weir::{Ended, Running, Weir, ended, signal};

/// The servers that Debian packages; `make test` installs both.
const SERVERS: [&str; 2] = ["mariadb", "postgres"];
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder for data, one for sockets, and a weir that knows them.
pub struct Yard {
    weir: Weir,
    folder: TempDir,
    run: TempDir,
}

impl Yard {
    pub fn new() -> Yard {
        Yard { weir: Weir::new(), folder: tempfile::tempdir().unwrap(), run: tempfile::tempdir().unwrap() }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of all markers.
    pub fn run_folder(&self) -> PathBuf {
        self.run.path().join("sandbox")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.wrapped(&[], &[&["db", "sandbox"], arguments].concat())
    }

    /// Any command of weir's, as the last words of another.
    fn wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let mut command = self.weir.wrapped(wrapper, self.folder.path(), arguments);
        command.env("WEIR_RUN", self.run.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments))
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("d")
    }

    pub fn listed(&self) -> Vec<Value> {
        let ended = self.run(&["list", "--json"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    }

    /// Starts a server in the foreground, until it is in the list with its process.
    pub fn start(&self, arguments: &[&str]) -> (Running, u32) {
        self.started(self.command(arguments))
    }

    /// The same with a command that is ready.
    pub fn started(&self, command: Command) -> (Running, u32) {
        let running = Weir::started(command, |_| true);
        let mut pid = None;
        wait_until("the server is in the list", || {
            pid = self.listed().first().and_then(|entry| entry["pid"].as_u64());
            pid.is_some()
        });
        (running, u32::try_from(pid.unwrap()).unwrap())
    }

    fn check_nothing_left(&self, what: &str) {
        let left =
            |folder: &Path| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
        assert_eq!(left(self.folder.path()), Vec::<PathBuf>::new(), "{what}");
        let sandboxes = self.run_folder();
        assert!(!sandboxes.exists() || left(&sandboxes).is_empty(), "{what}: {:?}", left(&sandboxes));
    }
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// The servers that are here; says which is not.
pub fn installed(test: &str) -> Vec<&'static str> {
    let is_here = |server: &&str| {
        let yard = Yard::new();
        let ended = yard.run(&[server, "--dir", "d", "--binary", "/nonexistent/server"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        let ended = yard.run(&[server, "--dir", "d", "--", "true"]);
        let lacking = ended.stderr.contains("is installed: looked for");
        if lacking {
            let _ = writeln!(std::io::stderr(), "not run: {test} lacks {server}");
        }
        !lacking
    };
    SERVERS.into_iter().filter(is_here).collect()
}

#[test]
fn a_command_runs_beside_a_server_and_gives_its_exit_code() {
    for server in installed("a_command_runs_beside_a_server_and_gives_its_exit_code") {
        let yard = Yard::new();
        let socket = "test -S \"${MYSQL_UNIX_PORT:-$PGHOST/.s.PGSQL.$PGPORT}\" && echo there; exit 7";
        for variable in ["max_connections=20", "port=6002"] {
            let ended = yard.run(&[server, "--dir", "d", "--set", variable, "--", "sh", "-c", socket]);
            assert_eq!((ended.code, ended.stdout.as_str()), (7, "there\n"), "{variable}: {ended:?}");
            yard.check_nothing_left(server);
        }

        let ended = yard.run(&[server, "--dir", "d", "--", "/nonexistent/command"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        yard.check_nothing_left(server);
    }
}

#[test]
fn signals_end_a_server_with_its_data() {
    for server in installed("signals_end_a_server_with_its_data") {
        for (name, code) in [("INT", 130), ("TERM", 143)] {
            let yard = Yard::new();
            let (mut running, pid) = yard.start(&[server, "--dir", "d"]);
            running.signal(name);
            let ended = running.finish();
            assert_eq!(ended.code, code, "{server}: {ended:?}");
            assert!(!is_alive(pid), "{server}: process {pid} is left after SIG{name}");
            yard.check_nothing_left(server);
        }
    }
}

#[test]
fn a_killed_weir_leaves_nothing_but_what_was_to_be_kept() {
    for server in installed("a_killed_weir_leaves_nothing_but_what_was_to_be_kept") {
        let yard = Yard::new();
        let (mut running, pid) = yard.start(&[server, "--dir", "d"]);
        running.signal("KILL");
        running.finish();
        wait_until("the minder has ended the server", || !is_alive(pid));
        wait_until("the minder has removed its data", || !yard.dir().exists());
        wait_until("the minder has removed its socket", || {
            fs::read_dir(yard.run_folder()).unwrap().next().is_none()
        });
        yard.check_nothing_left(server);

        let (mut running, pid) = yard.start(&[server, "--dir", "d", "--keep"]);
        running.signal("KILL");
        running.finish();
        wait_until("the minder has ended the server", || !is_alive(pid) && yard.listed().is_empty());
        let again = || yard.run(&[server, "--dir", "d", "--keep", "--", "true"]);
        wait_until("the minder has ended itself", || again().code == 0);
        assert!(yard.dir().join("data").exists());
    }
}

/// Whether a process was started with this folder among its arguments.
fn works_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let folder = folder.to_str().unwrap();
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(folder))
}

#[test]
fn a_weir_that_is_killed_at_any_moment_leaves_no_process() {
    for server in installed("a_weir_that_is_killed_at_any_moment_leaves_no_process") {
        for after_ms in [10, 30, 60, 100, 200, 400, 800] {
            let yard = Yard::new();
            let dir = yard.dir();
            let mut running =
                Weir::started(yard.command(&[server, "--dir", dir.to_str().unwrap()]), |_| true);
            std::thread::sleep(Duration::from_millis(after_ms));
            running.signal("KILL");
            running.finish();
            wait_until("all of it has ended", || !works_in(yard.folder()));
        }
    }
}

#[test]
fn a_server_that_hangs_is_ended_when_weir_is_killed() {
    for server in installed("a_server_that_hangs_is_ended_when_weir_is_killed") {
        for keep in [false, true] {
            let yard = Yard::new();
            let line = [server, "--dir", "d", "--keep"];
            let (mut running, pid) = yard.start(&line[..if keep { 4 } else { 3 }]);
            signal("STOP", pid);
            running.signal("KILL");
            running.finish();
            wait_until("the minder has done its work", || {
                yard.listed().is_empty() && yard.dir().exists() == keep
            });
            assert!(!is_alive(pid), "{server}, keep: {keep}");
        }
    }
}

/// Starts a server, and kills its weir and the minder: it runs on.
fn orphaned(yard: &Yard, arguments: &[&str]) -> u32 {
    let (mut running, pid) = yard.start(arguments);
    // Its account has the folder of the socket until it answers; before that it ends where the folder is removed.
    let listens = |run: &fs::DirEntry| {
        let sockets = run.path().join("s");
        let is_sealed = fs::metadata(&sockets).unwrap().uid() == fs::metadata(run.path()).unwrap().uid();
        is_sealed && fs::read_dir(sockets).unwrap().next().is_some()
    };
    wait_until("it answers", || fs::read_dir(yard.run_folder()).unwrap().flatten().all(|run| listens(&run)));
    let is_minder =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default() == "weir-minder\n";
    let minders: Vec<u32> = running.children().into_iter().filter(is_minder).collect();
    assert_eq!(minders.len(), 1);
    signal("KILL", minders[0]);
    running.signal("KILL");
    running.finish();
    assert!(is_alive(pid), "nothing was left: this test looks at nothing");
    pid
}

#[test]
fn what_even_the_minder_could_not_remove_is_listed_and_cleaned() {
    for server in installed("what_even_the_minder_could_not_remove_is_listed_and_cleaned") {
        let yard = Yard::new();
        let pid = orphaned(&yard, &[server, "--dir", "d"]);
        assert_eq!(yard.listed()[0]["abandoned"], true);
        let again = yard.run(&[server, "--dir", "d"]);
        assert_eq!(again.code, 2, "{again:?}");
        assert!(again.stderr.contains("weir db sandbox clean"), "{}", again.stderr);
        let cleaned = yard.run(&["clean"]);
        assert_eq!(cleaned.code, 0, "{cleaned:?}");
        assert!(cleaned.stdout.starts_with("removed "), "{cleaned:?}");
        assert!(!is_alive(pid));
        yard.check_nothing_left(server);
    }
}

/// A crash of the machine empties /run.
#[test]
fn what_nothing_is_written_of_any_more_is_told_from_kept_data_and_cleaned_by_name() {
    let test = "what_nothing_is_written_of_any_more_is_told_from_kept_data_and_cleaned_by_name";
    for server in installed(test) {
        for keep in [false, true] {
            let yard = Yard::new();
            let line = [server, "--dir", "d", "--keep"];
            let line = &line[..if keep { 4 } else { 3 }];
            let pid = orphaned(&yard, line);
            fs::remove_dir_all(yard.run_folder()).unwrap();
            assert_eq!(yard.listed().len(), 0);
            let again = yard.run(&[line, &["--", "true"]].concat());
            assert_eq!(again.code, 2, "{again:?}");
            assert!(again.stderr.contains("was left by a killed weir"), "{}", again.stderr);
            assert!(
                again.stderr.contains(&format!("weir db sandbox clean {}", yard.dir().display())),
                "{again:?}"
            );
            let cleaned = yard.run(&["clean", "d"]);
            assert_eq!(cleaned.code, 0, "{cleaned:?}");
            assert_eq!((is_alive(pid), yard.dir().join("data").exists()), (false, keep), "{cleaned:?}");
            assert_eq!(cleaned.stdout.contains("its data stay"), keep, "{cleaned:?}");
            if !keep {
                yard.check_nothing_left(server);
            }
        }
    }
    let yard = Yard::new();
    fs::create_dir(yard.dir()).unwrap();
    fs::write(yard.dir().join("mine"), "").unwrap();
    for folder in [".", "d", "absent"] {
        let refused = yard.run(&["clean", folder]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("holds no throw-away server of weir's"), "{refused:?}");
    }
    let files = fs::read_dir(yard.dir()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(files.collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn kept_data_outlive_calls_that_do_not_say_so() {
    for server in installed("kept_data_outlive_calls_that_do_not_say_so") {
        let yard = Yard::new();
        let is_there =
            |after: &str| assert!(yard.dir().join("data").exists(), "{server}: gone after {after}");
        let ended_with = |line: &[&str], code: i32, words: &str| {
            let ended = ended(yard.wrapped(&[], line));
            assert_eq!(ended.code, code, "{line:?}: {ended:?}");
            assert!(ended.stderr.contains(words), "{line:?}: {ended:?}");
            is_there(&line.join(" "));
        };
        let sandbox = ["db", "sandbox", server, "--dir", "d"];
        ended_with(&[&sandbox[..], &["--keep", "--", "true"]].concat(), 0, "");
        ended_with(&[&sandbox[..], &["--", "true"]].concat(), 0, "");
        ended_with(&[&sandbox[..], &["--set", "no_such_variable=1"]].concat(), 3, "no_such_variable");
        let explain = ["db", "explain", server, "--dir", "d", "--no-tests"];
        ended_with(&explain, 2, "--keep` left\nhint: choose another folder");
        let (mut running, pid) = yard.start(&[server, "--dir", "d"]);
        running.signal("KILL");
        running.finish();
        wait_until("the minder has done its work", || !is_alive(pid) && yard.listed().is_empty());
        is_there("a SIGKILL");
        ended_with(&["db", "sandbox", "clean"], 0, "");
        wait_until("the minder has ended itself", || yard.run(&["clean", "d"]).code == 0);
        is_there("a clean");
        assert_eq!(yard.run(&[server, "d", "--", "true"]).code, 0);
    }
}

/// `--dir` named a folder that was not there: weir made it, and it goes though weir cannot.
#[test]
fn a_killed_experiment_leaves_no_folder() {
    for server in installed("a_killed_experiment_leaves_no_folder") {
        let yard = Yard::new();
        let line = ["db", "scale", "--sandbox", server, "--dir", "new"];
        let mut running = Weir::started(yard.wrapped(&[], &line), |_| true);
        wait_until("it starts a server", || !yard.listed().is_empty());
        assert!(yard.folder().join("new").exists());
        running.signal("KILL");
        running.finish();
        wait_until("the minder has removed the folder", || !yard.folder().join("new").exists());
    }
}

#[test]
fn a_signal_before_there_is_a_result_is_no_error() {
    for server in installed("a_signal_before_there_is_a_result_is_no_error") {
        for line in [&["db", "explain", server, "--dir", "d"][..], &["db", "scale", "--sandbox", server]] {
            let yard = Yard::new();
            let mut running = Weir::started(yard.wrapped(&[], line), |_| true);
            wait_until("it starts a server", || !yard.listed().is_empty());
            running.signal("INT");
            let ended = running.finish();
            assert_eq!(ended.code, 130, "{line:?}: {ended:?}");
            assert!(!ended.stderr.contains("error"), "{line:?}: {ended:?}");
            yard.check_nothing_left(server);
        }
    }
}

/// A terminal sends Ctrl-C to weir and to the command beside it.
#[test]
fn a_command_beside_a_server_hears_of_an_interrupt_once() {
    let Some(server) = installed("a_command_beside_a_server_hears_of_an_interrupt_once").pop() else {
        return;
    };
    let deed = "trap 'echo heard; end=1' INT; echo ready >ready; while [ -z \"$end\" ]; do sleep 0.1; done; \
                sleep 1; echo ended";
    for to_all in [true, false] {
        let yard = Yard::new();
        let mut command = yard.command(&[server, "--dir", "d", "--", "sh", "-c", deed]);
        command.process_group(0);
        let mut running = Weir::started(command, |_| true);
        wait_until("the command runs", || yard.folder().join("ready").exists());
        fs::remove_file(yard.folder().join("ready")).unwrap();
        if to_all {
            running.signal_group("INT")
        } else {
            running.signal("INT")
        }
        let ended = running.finish();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (130, "heard\nended\n"),
            "to all: {to_all}: {ended:?}"
        );
        yard.check_nothing_left(server);
    }
}

/// Linux 5.10: close_range (436) does not know CLOSE_RANGE_CLOEXEC, and there is no mount_setattr (442).
#[test]
fn a_server_starts_on_the_oldest_kernel() {
    for server in installed("a_server_starts_on_the_oldest_kernel") {
        let yard = Yard::new();
        // Without namespaces its account has to pass through.
        for folder in [yard.folder(), yard.run.path()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let without = lab().join("without-syscall").display().to_string();
        let wrapper = [&without, "EINVAL", "436:2=4", &without, "ENOSYS", "442"];
        let line = ["db", "sandbox", server, "--dir", "d", "--", "true"];
        let ended = ended(yard.wrapped(&wrapper, &line));
        assert_eq!(ended.code, 0, "{server}: {ended:?}");
        yard.check_nothing_left(server);
    }
}

#[test]
fn refusals_say_why_and_leave_nothing() {
    let yard = Yard::new();
    let long = yard.run.path().join("r".repeat(90));
    fs::create_dir(&long).unwrap();
    for server in installed("refusals_say_why_and_leave_nothing") {
        let mut deep = yard.command(&[server, "--dir", "d"]);
        deep.env("WEIR_RUN", &long);
        let deep = ended(deep);
        assert_eq!(deep.code, 3, "{deep:?}");
        assert!(
            deep.stderr.contains("may have 107") && deep.stderr.contains("hint: set WEIR_RUN"),
            "{deep:?}"
        );
        for (arguments, code, words) in [
            (&["--dir", "d", "--set", "no_such_variable=1"][..], 3, "no_such_variable"),
            (&["--dir", "d", "--set", "nothing"], 2, "NAME=VALUE"),
            (&["--dir", "d", "--set", "socket=/tmp/s"], 2, "weir sets the address"),
            (&["--dir", "a/b/c"], 3, "hint: "),
            (&["--dir", "d", "--binary", "/bin/true"], 2, "/bin/true is no"),
            (&[], 2, "<DIR>"),
        ] {
            let ended = yard.run(&[&[server][..], arguments].concat());
            assert_eq!(ended.code, code, "{server} {arguments:?}: {ended:?}");
            assert!(ended.stderr.contains(words), "{server} {arguments:?}: {}", ended.stderr);
            assert_eq!(ended.stdout, "");
        }
        yard.check_nothing_left(server);
    }
}

#[test]
fn a_server_is_examined_and_nothing_is_changed() {
    let weir = assert_cmd::cargo::cargo_bin!("weir").display().to_string();
    for server in installed("a_server_is_examined_and_nothing_is_changed") {
        let yard = Yard::new();
        let (socket, user) = match server {
            "mariadb" => ("\"$MYSQL_UNIX_PORT\"", "root"),
            _ => ("\"$PGHOST/.s.PGSQL.5432\"", "postgres"),
        };
        let script = format!(
            "exec \"$0\" db doctor --{server} --socket {socket} --user {user} --duration 1s --format json"
        );
        let ended = yard.run(&[server, "--dir", "d", "--", "sh", "-c", &script, &weir]);
        assert_eq!(ended.code, 0, "{server}: {ended:?}");
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["schema"], "weir.db-doctor/1");
        let topics: Vec<&str> =
            report["findings"].as_array().unwrap().iter().filter_map(|f| f["topic"].as_str()).collect();
        assert_eq!(topics, ["Durability", "Log", "Flushing"], "{server}: {}", report["findings"]);
        assert_eq!(report["findings"][0]["grade"], "good", "{server}: {}", report["findings"][0]);
        assert_eq!(report["examination"]["vitals"]["unseen"], serde_json::json!([]), "{server}");
        let stands_on = &report["examination"]["conditions"]["target"]["file_system"]["kind"];
        assert!(stands_on.is_string(), "{server}: {stands_on}");
        assert!(
            report["caveats"][0].as_str().unwrap().contains("findings that depend on load are missing"),
            "{}",
            report["caveats"]
        );
    }
}
