//! Errors that a user can do something about.

use std::io;
use std::process::ExitCode;

use anyhow::Context;

/// What is said where standard output takes no more.
pub const CANNOT_WRITE: &str = "cannot write to standard output";

/// A mistake in what was typed, or in a file that was named (exit 2).
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Usage {
    /// The mistake.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// Something that the machine lacks (exit 3): free space, a privilege, a file.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Lacking {
    /// What is missing.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// A mistake with a hint; an empty one is none.
pub fn usage(what: impl Into<String>, hint: &str) -> anyhow::Error {
    Usage { what: what.into(), hint: (!hint.is_empty()).then(|| hint.to_string()) }.into()
}

/// Something missing with a hint; an empty one is none.
pub fn lacking(what: impl Into<String>, hint: &str) -> anyhow::Error {
    Lacking { what: what.into(), hint: (!hint.is_empty()).then(|| hint.to_string()) }.into()
}

/// A reader that went away (`weir … | head`) is no failure of weir.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The hint of a [`Usage`] or [`Lacking`].
pub fn hint_in(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    let of_usage = cause.downcast_ref::<Usage>().and_then(|e| e.hint.clone());
    of_usage.or_else(|| cause.downcast_ref::<Lacking>().and_then(|e| e.hint.clone()))
}

/// The hint of an error, or of one behind it.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(hint_in)
}

/// 2 for a mistake, 3 for all else.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| cause.is::<Usage>()) { 2 } else { 3 }
}

/// Turns the end of a command into an exit code, after telling the user of an error.
pub fn exit(
    result: anyhow::Result<u8>,
    code_of: fn(&anyhow::Error) -> u8,
    hint_of: fn(&anyhow::Error) -> Option<String>,
) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            crate::say!("error: {error:#}");
            if let Some(hint) = hint_of(&error) {
                crate::say!("hint: {hint}");
            }
            ExitCode::from(code_of(&error))
        }
    }
}

/// clap's own messages: help and version are results, mistakes are exit 2.
///
/// # Errors
/// Where a result cannot be written.
pub fn print_usage(error: &clap::Error) -> anyhow::Result<u8> {
    let printed = error.print();
    if error.use_stderr() {
        return Ok(2);
    }
    printed.context(CANNOT_WRITE).map(|()| 0)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn what_lies_behind_an_error_decides() {
        let broken = || anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        let behind = |error: anyhow::Error| Err::<(), _>(error).context("outside").unwrap_err();
        for (error, code, hint) in [
            (behind(usage("a", "do b")), 2, Some("do b")),
            (behind(lacking("a", "")), 3, None),
            (lacking("a", "get b"), 3, Some("get b")),
            (broken(), 3, None),
        ] {
            assert_eq!((code_of(&error), hint_of(&error).as_deref()), (code, hint), "{error:#}");
        }
        assert!(is_broken_pipe(&behind(broken())) && !is_broken_pipe(&usage("a", "")));
    }
}
