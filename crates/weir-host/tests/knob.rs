//! Knobs on the real machine: every way out leads back. The limits used here are large, so that other work on the
//! machine hardly notices them.
#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_host::Host;
use weir_host::knob::{self, DirtyCap, Journal, KnobError};

const CAP: DirtyCap = DirtyCap { dirty_bytes: 3 << 30, background_bytes: Some(1 << 30) };
const RAMP_MAX: Duration = Duration::from_secs(2);
/// How long anything may take that has to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

type Check = fn();
const CHECKS: [(&str, Check); 5] = [
    ("root_restore_leads_back_and_two_runs_do_not_share_a_knob", root_restore_leads_back),
    ("root_a_killed_run_is_led_back_by_its_guardian", root_a_killed_run_is_led_back),
    ("root_a_terminals_signals_do_not_reach_the_guardian", root_signals_do_not_reach_the_guardian),
    ("root_the_next_run_recovers_when_the_guardian_died_too", root_the_next_run_recovers),
    ("root_a_value_that_somebody_else_wrote_is_left_alone", root_a_foreign_value_is_left_alone),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(knob::ARGUMENT) => return knob::guardian_main(&arguments[1..]),
        Some("__hold") => hold(Path::new(&arguments[1])),
        _ => {}
    }
    let mut passed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| is_wanted(name, &arguments)) {
        match why_not() {
            Some(reason) => println!("test {name} ... not run: {reason}"),
            None => {
                check();
                println!("test {name} ... ok");
                passed += 1;
            }
        }
    }
    // In the words of the standard harness, for whoever adds up.
    println!(
        "test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {} filtered out",
        CHECKS.len() - passed
    );
    ExitCode::SUCCESS
}

/// As the standard harness takes it: parts of names to run, after `--skip` parts of names not to run.
fn is_wanted(name: &str, arguments: &[String]) -> bool {
    let mut wanted: Option<bool> = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let skips = argument == "--skip";
        let part = if skips { arguments.next() } else { Some(argument) };
        match part.filter(|part| !part.starts_with('-')).map(|part| name.contains(part.as_str())) {
            Some(true) if skips => return false,
            Some(found) if !skips => wanted = Some(wanted.unwrap_or(false) || found),
            _ => {}
        }
    }
    wanted.unwrap_or(true)
}

fn why_not() -> Option<String> {
    let file = "/proc/sys/vm/dirty_bytes";
    fs::OpenOptions::new()
        .write(true)
        .open(file)
        .err()
        .map(|error| format!("{file} cannot be written: {error}"))
}

/// A run that turns the knob and then does nothing, for ever.
fn hold(journal: &Path) -> ! {
    let _applied = knob::cap_dirty(&Journal::at(journal), CAP, RAMP_MAX).unwrap();
    println!("held");
    loop {
        sleep(Duration::from_secs(60));
    }
}

fn sysctl(name: &str) -> String {
    fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap().trim().to_string()
}

/// The four values that belong together.
fn limits() -> [String; 4] {
    ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"].map(sysctl)
}

/// The machine's own values, put back whatever a check does.
struct Original([String; 4]);

impl Original {
    fn keep() -> Self {
        Original(limits())
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        let names = ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];
        for (name, value) in names.iter().zip(&self.0).filter(|(_, value)| *value != "0") {
            if sysctl(name) != *value {
                fs::write(format!("/proc/sys/vm/{name}"), value).unwrap();
            }
        }
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: did not happen; limits are {:?}", limits());
        sleep(Duration::from_millis(10));
    }
}

/// A run with the knob turned.
struct Holder {
    child: Child,
    guardian: i32,
}

impl Holder {
    fn start(journal: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child =
            Command::new(program).arg("__hold").arg(journal).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        assert_eq!(sysctl("dirty_bytes"), CAP.dirty_bytes.to_string());
        let pid = child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let guardian = children.trim().parse().unwrap();
        Holder { child, guardian }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: i32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn entries(journal: &Path) -> usize {
    let names = fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "json")).count()
}

fn root_restore_leads_back() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let journal = Journal::at(folder.path());
    let applied = knob::cap_dirty(&journal, CAP, RAMP_MAX).unwrap();
    let (dirty, background) = (CAP.dirty_bytes.to_string(), CAP.background_bytes.unwrap().to_string());
    assert_eq!(limits(), [&dirty, "0", &background, "0"]);
    let settings = Host::live().conditions(None).vm;
    assert_eq!(settings.dirty.bytes, Some(CAP.dirty_bytes));
    let second = knob::cap_dirty(&journal, CAP, RAMP_MAX);
    assert!(matches!(second, Err(KnobError::Held { pid, .. }) if pid == std::process::id()), "{second:?}");
    assert_eq!(entries(folder.path()), 1);
    let said = applied.restore().unwrap();
    assert_eq!((said.len(), limits()), (2, original.0.clone()), "{said:?}");
    assert_eq!(entries(folder.path()), 0);
    drop(knob::cap_dirty(&journal, CAP, RAMP_MAX).unwrap());
    assert_eq!(limits(), original.0);
}

fn root_a_killed_run_is_led_back() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = Holder::start(folder.path());
    holder.kill();
    until("the guardian restores", || limits() == original.0 && entries(folder.path()) == 0);
}

fn root_signals_do_not_reach_the_guardian() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = Holder::start(folder.path());
    let session = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_string()
    };
    assert_eq!(session(&holder.guardian.to_string()), holder.guardian.to_string(), "a session of its own");
    assert_ne!(session(&holder.child.id().to_string()), holder.guardian.to_string());
    for name in ["-INT", "-TERM", "-HUP"] {
        signal(holder.guardian, name);
    }
    assert_eq!(sysctl("dirty_bytes"), CAP.dirty_bytes.to_string());
    holder.kill();
    until("the guardian restores", || limits() == original.0);
}

fn root_the_next_run_recovers() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = Holder::start(folder.path());
    assert!(knob::recover_stale(folder.path()).is_empty(), "a living run's entry is not stale");
    signal(holder.guardian, "-KILL");
    holder.kill();
    assert_eq!(sysctl("dirty_bytes"), CAP.dirty_bytes.to_string(), "nobody is left to restore");
    let said = knob::recover_stale(folder.path());
    assert!(said.iter().any(|sentence| sentence.starts_with("vm.dirty is back at")), "{said:?}");
    assert_eq!((limits(), entries(folder.path())), (original.0.clone(), 0));
    assert!(knob::recover_stale(folder.path()).is_empty());
}

fn root_a_foreign_value_is_left_alone() {
    let (_original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = Holder::start(folder.path());
    let foreign = (CAP.dirty_bytes + 4096).to_string();
    fs::write("/proc/sys/vm/dirty_bytes", &foreign).unwrap();
    holder.kill();
    until("the guardian ends", || entries(folder.path()) == 0);
    assert_eq!(sysctl("dirty_bytes"), foreign);
    assert_ne!(
        sysctl("dirty_background_bytes"),
        CAP.background_bytes.unwrap().to_string(),
        "the other is led back"
    );
}
