//! How a command ends: exit codes, and errors with hints on stderr.

use std::io;
use std::process::ExitCode;

use anyhow::Context;

/// A mistake in what was typed, or in a file that was named (exit 2).
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Usage {
    /// The mistake.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// Something that this machine lacks (exit 3).
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Lacking {
    /// What is missing.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// A mistake with a hint.
pub fn usage(what: impl Into<String>, hint: &str) -> anyhow::Error {
    Usage { what: what.into(), hint: (!hint.is_empty()).then(|| hint.to_string()) }.into()
}

/// Something missing, with a hint.
pub fn lacking(what: impl Into<String>, hint: &str) -> anyhow::Error {
    Lacking { what: what.into(), hint: (!hint.is_empty()).then(|| hint.to_string()) }.into()
}

/// Turns the end of a command into an exit code, after telling the user of an error.
pub fn exit(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: {error:#}");
            let hint = error.chain().find_map(|cause| {
                let of_usage = cause.downcast_ref::<Usage>().and_then(|e| e.hint.clone());
                of_usage.or_else(|| cause.downcast_ref::<Lacking>().and_then(|e| e.hint.clone()))
            });
            if let Some(hint) = hint {
                say!("hint: {hint}");
            }
            ExitCode::from(if error.chain().any(|cause| cause.is::<Usage>()) { 2 } else { 3 })
        }
    }
}

/// clap's own messages: help and version are results, mistakes are exit 2.
pub fn exit_for_usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if error.use_stderr() {
        return ExitCode::from(2);
    }
    exit(printed.context("cannot write to standard output").map(|()| 0))
}

/// A reader that went away (`weir fleet … | head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
