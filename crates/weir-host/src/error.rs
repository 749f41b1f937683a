//! What can go wrong while reading a machine.

use std::io;
use std::path::{Path, PathBuf};

/// A fact that could not be read. The message is a complete sentence part: path, line, item and cause.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused, or there is no such file.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was to be read or written.
        path: PathBuf,
        /// The kernel's answer. No `source`, because the message has it already.
        error: io::Error,
    },
    /// The text is not what the kernel writes there.
    #[error("{}, line {line}: {item}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What was expected and what was found.
        item: String,
    },
    /// A database server did not answer as it should; or one that should be there is not.
    #[error("{server}: {why}")]
    Server {
        /// Which one, as knobs name it.
        server: String,
        /// What it said.
        why: String,
        /// It does not run, so that what was set in it for as long as it runs is gone.
        gone: bool,
    },
    /// A path that belongs to no mounted file system this process can see.
    #[error("{}: no mounted file system holds this path", .0.display())]
    NoMount(PathBuf),
}

impl HostError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        HostError::Io { path: path.to_path_buf(), error }
    }

    /// Whether the file (or the server) is simply not there.
    pub fn is_absent(&self) -> bool {
        match self {
            HostError::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
            HostError::Server { gone, .. } => *gone,
            HostError::Parse { .. } | HostError::NoMount(_) => false,
        }
    }
}

/// What a parser found wrong, before the path is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// Line, counted from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub item: String,
}

impl BadLine {
    pub(crate) fn new(line: usize, expected: &str, found: &str) -> Self {
        BadLine { line, item: format!("expected {expected}, got `{found}`") }
    }

    pub(crate) fn at(self, path: &Path) -> HostError {
        HostError::Parse { path: path.to_path_buf(), line: self.line, item: self.item }
    }
}
