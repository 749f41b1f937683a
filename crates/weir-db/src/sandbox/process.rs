//! A server's process, as it is written down, and what its log says.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::spawn;

/// How often a process is looked at that is waited for.
pub(super) const POLL: Duration = Duration::from_millis(10);
/// So much of the end of a log is read, and so many lines of it quoted.
const LOG_TAIL_BYTES: u64 = 16 << 10;
const LOG_TAIL_LINES: usize = 12;

/// A process told from a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start in ticks since the boot (`/proc/PID/stat`, field 22).
    pub started_ticks: u64,
    /// The boot.
    pub boot_id: String,
}

impl ProcessId {
    /// Of a running process; `None` where it has ended.
    pub fn of(pid: u32) -> Option<ProcessId> {
        let stat = weir_fs::read_lossily(format!("/proc/{pid}/stat")).ok()?;
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_string();
        Some(ProcessId { pid, started_ticks: started_ticks(&stat)?, boot_id })
    }

    /// Whether its number has not been given to another process since, be it dead or alive.
    fn bears_its_number(&self) -> bool {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let stat = weir_fs::read_lossily(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let start = state_and_start(&stat).map(|(_, ticks)| ticks);
        boot_id.trim() == self.boot_id && start == Some(self.started_ticks)
    }

    /// Whether this very process still runs.
    pub fn is_alive(&self) -> bool {
        ProcessId::of(self.pid).as_ref() == Some(self)
    }
}

/// Field 22 of `/proc/PID/stat`; `None` for a process that has ended and was not waited for.
fn started_ticks(stat: &str) -> Option<u64> {
    let (state, ticks) = state_and_start(stat)?;
    (!["Z", "X", "x"].contains(&state)).then_some(ticks)
}

/// Fields 3 and 22.
fn state_and_start(stat: &str) -> Option<(&str, u64)> {
    // The name in parentheses may hold spaces and parentheses itself.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?, fields.nth(18)?.parse().ok()?))
}

/// Ends a process that is not a child: one that a killed weir left. It is held before it is looked at, so that no other one
/// that gets its number is meant.
pub(super) fn end_stranger(process: &ProcessId, signal: Signal, patience: Duration) -> bool {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return true };
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return !process.is_alive() };
    if !process.bears_its_number() {
        return true;
    }
    // Whose first thread has ended may run on in others, and looks like a process that was not waited for.
    for (signal, patience) in [(signal, patience), (Signal::KILL, Duration::from_secs(10))] {
        let _ = pidfd_send_signal(&held, signal);
        if spawn::is_ready(held.as_fd(), patience) {
            return true;
        }
    }
    false
}

/// What the end of a log says: its errors where it marks them as MySQL does, else its last lines.
pub(super) fn log_tail(log: io::Result<File>) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = log?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors: Vec<&str> = lines.iter().filter(|line| line.contains("[ERROR]")).copied().collect();
    let lines = if errors.is_empty() { lines } else { errors };
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].iter().map(|line| line.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_read_whatever_a_process_calls_itself() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        for (stat, expected) in [
            (format!("7 (postgres: a) b) {fields}"), Some(4711)),
            (format!("7 (x) Z{}", &fields[1..]), None),
            ("7 (x) S 1".to_string(), None),
            (String::new(), None),
        ] {
            assert_eq!(started_ticks(&stat), expected, "{stat}");
        }
        let own = ProcessId::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        assert!(!ProcessId { started_ticks: own.started_ticks + 1, ..own.clone() }.is_alive());
        assert!(!ProcessId { boot_id: "another".to_string(), ..own }.is_alive());
    }

    #[test]
    fn a_log_is_quoted_from_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..10_000).map(|n| format!("line {n}\n\n")).collect();
        fs::write(file.path(), text).unwrap();
        let lines = log_tail(File::open(file.path()));
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LOG_TAIL_LINES, Some("line 9999")));
        fs::write(file.path(), "0 [Note] a\n0 [ERROR] unknown variable\nadvice\nadvice\n").unwrap();
        assert_eq!(log_tail(File::open(file.path())), ["0 [ERROR] unknown variable"]);
        assert_eq!(log_tail(File::open("/nonexistent/log")), Vec::<String>::new());
    }
}
