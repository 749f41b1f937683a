//! How a command ends: its exit code, and what is said of an error.

use std::process::ExitCode;

use anyhow::Context;
use weir_cli::failure::{code_of, hint_of, is_broken_pipe, tell};

/// Turns the end of a command into an exit code, after telling the user of an error.
pub fn exit(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error, hint_of(&error));
            ExitCode::from(code_of(&error))
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
