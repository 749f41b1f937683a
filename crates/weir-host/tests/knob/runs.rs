//! Runs of weir to be killed: this very program, called with a verb.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use weir_host::Host;
use weir_host::knob::{self, Applied, Hold, Journal, KnobError};
use weir_knobs::Setting;

/// How long anything may take that has to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn why_not() -> Option<String> {
    let file = "/proc/sys/vm/dirty_bytes";
    let opened = fs::OpenOptions::new().write(true).open(file);
    opened.err().map(|error| format!("{file} cannot be written: {error}"))
}

pub fn settings<T: AsRef<str>>(texts: &[T]) -> Vec<Setting> {
    texts.iter().map(|text| text.as_ref().parse().unwrap()).collect()
}

pub fn apply<T: AsRef<str>>(journal: &Journal, texts: &[T], hold: Hold) -> Result<Applied, KnobError> {
    let host = Host::live();
    let plan = knob::plan(&host, &settings(texts), false).map_err(KnobError::Planned)?;
    journal.apply(&host, &plan, hold, Duration::ZERO)
}

pub fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: did not happen");
        sleep(Duration::from_millis(10));
    }
}

pub fn signal(pid: i32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Entries in the journal; a run killed early has not made its folder yet.
pub fn entries(journal: &Path) -> usize {
    let names = match fs::read_dir(journal) {
        Ok(names) => names.map(|entry| entry.unwrap().path()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return 0,
        Err(error) => panic!("{}: {error}", journal.display()),
    };
    names.filter(|path| path.extension().is_some_and(|extension| extension == "json")).count()
}

/// Of the first thread of a process.
pub fn children(pid: u32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// What such a run does: VERB JOURNAL SETTING….
pub fn be(verb: &str, arguments: &[String]) -> ! {
    let (journal, wanted) = (Journal::at(Path::new(&arguments[0])), &arguments[1..]);
    match verb {
        "__hold" => {
            let _applied = knob::trial(&Host::live(), &journal, &settings(wanted)).unwrap();
            println!("begun");
            sleep(Duration::MAX);
        }
        // Applies and restores, for ever.
        "__churn" => {
            println!("begun");
            loop {
                knob::trial(&Host::live(), &journal, &settings(wanted)).unwrap().restore().unwrap();
            }
        }
        // Applies and rolls back what is to outlive it, for ever.
        "__keep" => {
            println!("begun");
            loop {
                drop(apply(&journal, wanted, Hold::Kept).unwrap());
                knob::rollback(&Host::live(), &journal, knob::Which::All);
            }
        }
        // Says why not.
        "__nobody" | "__read_only" => {
            if verb == "__nobody" {
                become_nobody()
            } else {
                see_sysctls_read_only()
            }
            let error = apply(&journal, wanted, Hold::Kept).unwrap_err();
            println!("{error}; {}", error.hint().unwrap_or_default());
        }
        "__govern" => super::governed::govern(&journal, wanted),
        "__govern_read_only" => {
            see_sysctls_read_only();
            super::governed::say_why_not(&journal);
        }
        "__kept" => drop(apply(&journal, wanted, Hold::Kept).unwrap()),
        "__unconfirmed" => {
            let deadline = Duration::from_millis(wanted[0].parse().unwrap());
            drop(apply(&journal, &wanted[1..], Hold::UntilConfirmed { deadline }).unwrap());
        }
        other => panic!("{other}?"),
    }
    std::process::exit(0)
}

fn become_nobody() {
    // SAFETY: setuid takes a number and touches no memory of ours.
    assert_eq!(unsafe { libc::setuid(65534) }, 0);
}

/// As in a container: /proc/sys is mounted read-only, for this process alone.
fn see_sysctls_read_only() {
    let mount = |place: &std::ffi::CStr, flags| {
        let no_data = std::ptr::null();
        // SAFETY: all texts end with a zero and live until the call is over; the kernel copies them.
        unsafe { libc::mount(place.as_ptr(), place.as_ptr(), std::ptr::null(), flags, no_data) }
    };
    // SAFETY: unshare takes flags and touches no memory of ours; this process has one thread.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    assert_eq!(mount(c"/", libc::MS_PRIVATE | libc::MS_REC), 0);
    assert_eq!(mount(c"/proc/sys", libc::MS_BIND), 0);
    assert_eq!(mount(c"/proc/sys", libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY), 0);
}

/// Such a run, seen from outside.
pub struct Run {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Run {
    /// Starts one and waits until it has begun.
    pub fn start<T: AsRef<str>>(verb: &str, journal: &Path, wanted: &[T]) -> Run {
        Run::started(Run::command(verb, journal, wanted))
    }

    /// Starts one as the first process of a PID namespace, such as a container's.
    pub fn start_contained<T: AsRef<str>>(verb: &str, journal: &Path, wanted: &[T]) -> Run {
        let run = Run::command(verb, journal, wanted);
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        unshare.arg(run.get_program()).args(run.get_args());
        Run::started(unshare)
    }

    fn started(mut command: Command) -> Run {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut run = Run { child, output };
        assert_eq!(run.line(), "begun\n");
        run
    }

    /// The next line it prints; waits for it.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Runs one that ends by itself; what it printed. Its standard error is a pipe, which its guardian must not keep
    /// open.
    pub fn whole<T: AsRef<str>>(verb: &str, journal: &Path, wanted: &[T]) -> String {
        let output = Run::command(verb, journal, wanted).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command<T: AsRef<str>>(verb: &str, journal: &Path, wanted: &[T]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(verb).arg(journal).args(wanted.iter().map(AsRef::as_ref));
        command
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its guardians: it has one at most, and none between two changes.
    pub fn guardians(&self) -> Vec<i32> {
        children(self.child.id())
    }

    pub fn guardian(&self) -> i32 {
        self.guardians()[0]
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
