//! Why a knob could not be turned, in words: the kernel's answers translated.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use weir_knobs::{KnobName, Refusal, Value};

use crate::error::HostError;

/// A knob that could not be turned, or not be restored. Unless it says otherwise, nothing is left changed.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// A file could not be read.
    #[error("{0}")]
    Host(HostError),
    /// The settings do not make a plan; each reason stands for itself.
    #[error("{}", .0.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; "))]
    Planned(Vec<Refusal>),
    /// A cgroup's memory.high is a limit already.
    #[error("{knob} is {value}: its restoration could wait for those in the cgroup")]
    Limited {
        /// It.
        knob: KnobName,
        /// As it is.
        value: Value,
    },
    /// Another change uses the same knob.
    #[error("{knob} is in use by another weir (process {pid}, for {} s now)", since.as_secs())]
    Held {
        /// The knob.
        knob: KnobName,
        /// The process that made the change.
        pid: u32,
        /// How long it has had it.
        since: Duration,
        /// Whether it waits to be confirmed rather than for the end of its process.
        unconfirmed: bool,
    },
    /// The file cannot be written, or the kernel does not take the value.
    #[error("{setting}: {path}: {why}")]
    Refused {
        /// What was to be set.
        setting: String,
        /// The file.
        path: String,
        /// The kernel's answer in words, with the allowed range where it is about the value.
        why: String,
        /// What may help.
        hint: Option<String>,
    },
    /// The kernel took the write but has another value.
    #[error("{knob}: wrote {wrote}, but it reads {reads}")]
    NotTaken {
        /// The knob.
        knob: KnobName,
        /// What was written.
        wrote: Value,
        /// What is there.
        reads: Value,
    },
    /// The guardian could not be started.
    #[error("no guardian, so nothing was changed: {}", of_tasks(.0))]
    NoGuardian(io::Error),
    /// The journal could not be written.
    #[error("the journal cannot be written, so nothing was changed: {0}")]
    Journal(HostError),
    /// A file of the journal is damaged or not weir's.
    #[error("{}: {why}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
        /// Where it was put, so that it blocks nobody.
        aside: Option<PathBuf>,
    },
    /// Changes of two processes that had the same number wait for confirmation.
    #[error("changes of several processes that had the number {pid} wait for confirmation")]
    SeveralProcesses {
        /// The number.
        pid: u32,
    },
    /// Not everything could be restored; the journal keeps the entry.
    #[error("not restored: {}", failed.join("; "))]
    NotLedBack {
        /// What was restored all the same.
        said: Vec<String>,
        /// What was not, and why.
        failed: Vec<String>,
    },
}

impl From<HostError> for KnobError {
    fn from(error: HostError) -> Self {
        KnobError::Host(error)
    }
}

impl KnobError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            KnobError::Planned(refusals) => refusals.iter().find_map(|refusal| refusal.hint.clone()),
            KnobError::Held { unconfirmed: true, .. } => Some(
                "`weir knobs confirm` keeps that change, `weir knobs rollback` takes it back".to_string(),
            ),
            KnobError::Held { .. } => Some("wait for its end".to_string()),
            KnobError::NoGuardian(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                Some("raise TasksMax of the service, or `ulimit -u`".to_string())
            }
            KnobError::Refused { hint, .. } => hint.clone(),
            KnobError::NotTaken { reads, .. } => {
                Some(format!("the kernel rounds or bounds it here: it would keep {reads}"))
            }
            KnobError::Journal(HostError::Io { error, .. }) => hint_on_journal(error),
            KnobError::Damaged { aside: Some(aside), .. } => Some(format!(
                "check the settings by hand (`weir knobs list`); the file is now {}",
                aside.display()
            )),
            KnobError::Damaged { file, .. } => Some(format!(
                "check the settings by hand (`weir knobs list`), then remove {}",
                file.display()
            )),
            KnobError::SeveralProcesses { .. } => Some(
                "`weir knobs confirm` keeps all that wait, `weir knobs rollback` takes the newest back"
                    .to_string(),
            ),
            KnobError::NotLedBack { .. } => Some("`weir knobs rollback` tries again".to_string()),
            _ => None,
        }
    }
}

/// clone(2): EAGAIN is a limit of tasks, of the service's cgroup, the account or the machine.
fn of_tasks(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => format!("{error}: the limit of tasks is reached"),
        _ => error.to_string(),
    }
}

fn hint_on_journal(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some("changing knobs takes root".to_string()),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space on its file system".to_string())
        }
        io::ErrorKind::ReadOnlyFilesystem => Some("its file system is mounted read-only".to_string()),
        _ => None,
    }
}
