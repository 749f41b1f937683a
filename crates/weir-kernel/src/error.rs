//! Why a live session could not start.

/// What went wrong, in the words of the kernel or libbpf where they said something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user may not do this.
    #[error("{what} needs {}", lacking.join(" and "))]
    Denied {
        /// What was wanted.
        what: &'static str,
        /// Capabilities, or other conditions, that are missing.
        lacking: Vec<String>,
    },
    /// The kernel does not offer this.
    #[error("this kernel lacks {lacking}")]
    Unsupported {
        /// What it lacks.
        lacking: String,
    },
    /// The program was refused.
    #[error("cannot {action} {program}: {source:#}")]
    Program {
        /// Open, load, attach.
        action: &'static str,
        /// Which program.
        program: &'static str,
        /// What libbpf said.
        source: libbpf_rs::Error,
    },
    /// Somebody else uses it.
    #[error("{what}")]
    Busy {
        /// What, and by whom if that is known.
        what: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// On what, in words.
        what: String,
        /// The error.
        source: std::io::Error,
    },
    /// More was asked for than a session can watch.
    #[error("{what}: {asked} requested, at most {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        asked: usize,
        /// How many there may be.
        limit: usize,
    },
}
