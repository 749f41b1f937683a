//! What can go wrong before and during I/O. Each error says what was tried, on which path, and what may help.

use std::path::PathBuf;

/// What kind of failure it is; the binary maps it to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The combination asked for makes no sense (exit 2).
    Usage,
    /// The machine lacks something: an engine, room, a privilege (exit 3).
    Environment,
    /// An I/O operation of the workload failed (exit 4).
    Io,
}

/// A failure with its context.
#[derive(Debug, thiserror::Error)]
#[error("{what}{}", cause.as_ref().map(|e| format!(": {e}")).unwrap_or_default())]
pub struct IoError {
    /// Its kind.
    pub fault: Fault,
    /// What was tried, with the path.
    pub what: String,
    /// What may help, as a sentence.
    pub hint: Option<String>,
    /// The system's answer. It is part of the message and no `source` of its own, so that a chain of errors does not
    /// say it twice.
    pub cause: Option<Box<std::io::Error>>,
}

impl IoError {
    /// A combination that makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        IoError { fault: Fault::Usage, what: what.into(), hint: None, cause: None }
    }

    /// Something the machine lacks.
    pub fn environment(what: impl Into<String>) -> Self {
        IoError { fault: Fault::Environment, what: what.into(), hint: None, cause: None }
    }

    /// A failed system call on a path.
    pub fn io(what: &str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let what = format!("{what} {}", path.into().display());
        IoError { fault: Fault::Io, what, hint: None, cause: Some(Box::new(source)) }
    }

    /// The same failure with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
