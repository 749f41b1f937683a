//! How a command ends: exit codes, and errors with hints on stderr.

use std::process::ExitCode;

use weir_cli::failure::{self, hint_in};
pub use weir_cli::failure::{CANNOT_WRITE, Lacking, Usage};
use weir_io::error::{Fault, IoError};

/// How a command that ran to its end ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// The thing measured failed a bar that was stated (exit 1).
    BelowBar,
    /// An operation of the workload failed; what was measured was kept and printed (exit 4).
    WorkloadFailed,
    /// A signal ended it; what was measured was kept and printed (exit 128 + signal).
    Interrupted(u8),
    /// sysbench's own exit codes, where its command lines are used.
    Code(u8),
}

/// A server answered with an error, or went away: exit 4, as for I/O errors of a workload.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ServerFailed {
    /// What was being done, and the error.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// A signal ended a command before it had anything to say: exit 128 + signal, as for [`Outcome::Interrupted`].
#[derive(Debug, thiserror::Error)]
#[error("stopped by signal {0}")]
pub struct Stopped(pub u8);

/// That error, if a signal has asked this process to stop.
pub fn stopped() -> Option<anyhow::Error> {
    weir_cli::signals::received().map(|signal| Stopped(signal).into())
}

/// Turns the end of a command into an exit code, after telling the user of an error.
pub fn exit(result: anyhow::Result<Outcome>) -> ExitCode {
    let code = |outcome| match outcome {
        Outcome::Done => 0,
        Outcome::BelowBar => 1,
        Outcome::WorkloadFailed => 4,
        Outcome::Interrupted(signal) => 128 + signal,
        Outcome::Code(code) => code,
    };
    let ended = result.or_else(|error| match error.downcast_ref() {
        Some(Stopped(signal)) => Ok(Outcome::Interrupted(*signal)),
        None => Err(error),
    });
    failure::exit(ended.map(code), code_of, hint_of)
}

fn code_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(io_error) = cause.downcast_ref::<IoError>() {
            return match io_error.fault {
                Fault::Usage => 2,
                Fault::Environment => 3,
                Fault::Io => 4,
            };
        }
        if cause.is::<Usage>() {
            return 2;
        }
        if cause.is::<ServerFailed>() {
            return 4;
        }
    }
    3
}

fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let of_io = cause.downcast_ref::<IoError>().and_then(|e| e.hint.clone());
        let of_server = || cause.downcast_ref::<ServerFailed>().and_then(|e| e.hint.clone());
        of_io.or_else(|| hint_in(cause)).or_else(of_server)
    })
}
