//! A tracing instance of this process's own: its own buffers, events and clock, beside all others' (ftrace.rst,
//! "Instances"). It is removed when the value is dropped, and by the next session where a kill left it behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// First part of the names of instances that weir makes: `weir-PID-STARTTIME`.
const PREFIX: &str = "weir-";

/// An instance. Everything in it is off at first.
#[derive(Debug)]
pub struct Instance {
    root: PathBuf,
}

impl Instance {
    /// Makes one, and removes those of processes that live no more.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn create(tracefs: &Path) -> Result<Instance, Error> {
        let folder = tracefs.join("instances");
        remove_abandoned(&folder);
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or(0);
        // One process may have several.
        let names = (0..100).map(|n| format!("{PREFIX}{pid}-{started}-{n}"));
        for root in names.map(|name| folder.join(name)) {
            match fs::create_dir(&root) {
                Ok(()) => return Ok(Instance { root }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(Error::System { what: "cannot make a tracing instance".to_string(), source });
                }
            }
        }
        Err(Error::TooMany { what: "tracing instances of one process", asked: 101, limit: 100 })
    }

    /// A file in it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// What the kernel says, with the file and the text.
    pub fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        // The file is not cut: the kernel takes what is written as a command.
        let written = fs::OpenOptions::new()
            .write(true)
            .open(self.path(file))
            .and_then(|mut open| std::io::Write::write_all(&mut open, text.as_bytes()));
        written.map_err(|source| Error::System { what: format!("cannot write `{text}` to {file}"), source })
    }

    /// Reads one of its files.
    ///
    /// # Errors
    /// What the kernel says, with the file.
    pub fn read(&self, file: &str) -> Result<String, Error> {
        fs::read_to_string(self.path(file))
            .map_err(|source| Error::System { what: format!("cannot read {file}"), source })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        remove(&self.root);
    }
}

/// Removes an instance; one that somebody still reads is busy for a moment.
fn remove(root: &Path) {
    for _ in 0..10 {
        if fs::remove_dir(root).is_ok() || !root.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_abandoned) {
            remove(&entry.path());
        }
    }
}

/// Whether a name is weir's and its process is gone; a process that has its number now started at another time.
fn is_abandoned(name: &str) -> bool {
    let mut parts = name.strip_prefix(PREFIX).into_iter().flat_map(|rest| rest.split('-'));
    let pid = parts.next().and_then(|text| text.parse::<u32>().ok());
    let started = parts.next().and_then(|text| text.parse::<u64>().ok());
    pid.zip(started).is_some_and(|(pid, started)| start_time(pid) != Some(started))
}

/// When a process started, in ticks since boot; `None` where there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    started_in(&weir_fs::read_lossily(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 3 and 22 of proc_pid_stat(5). A process that has ended and that nobody has asked about is none any more.
fn started_in(stat: &str) -> Option<u64> {
    // The name, in brackets, may hold spaces and brackets itself.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_ended_have_no_start() {
        let stat = |state: &str| format!("7 (a) b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 159 1 2");
        assert_eq!(
            (started_in(&stat("S")), started_in(&stat("Z")), started_in("7 (a")),
            (Some(159), None, None)
        );
    }

    #[test]
    fn only_instances_of_dead_processes_are_abandoned() {
        let pid = std::process::id();
        let started = start_time(pid).unwrap();
        for (name, abandoned) in [
            (format!("weir-{pid}-{started}-0"), false),
            (format!("weir-{pid}-{}-0", started + 1), true),
            (format!("weir-{}-{started}-3", u32::MAX), true),
            ("weir-somebody".to_string(), false),
            ("bcc-1-2".to_string(), false),
        ] {
            assert_eq!(is_abandoned(&name), abandoned, "{name}");
        }
    }
}
