//! weir fleet: runs weir on many hosts over ssh, and compares what they answer.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, reason = "eprintln! panics when nobody reads; say! does not")]

#[macro_use(say)]
extern crate weir_cli;

mod agent;
mod answer;
mod answers;
mod archive;
mod ask;
mod behind;
mod binary;
mod cli;
mod course;
mod engine;
mod figures;
mod gate;
mod guardrail;
mod inventory;
mod journal;
mod progress;
mod report;
mod rollout;
mod run;
mod session;
mod show;
mod slow;
mod store;
mod tables;
mod wire;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use cli::Command;
use weir_cli::failure::{code_of, hint_of, is_broken_pipe, tell};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = match cli::Cli::try_parse_from(cli::in_order(arguments)) {
        Ok(cli) => cli.command,
        Err(error) => return exit_for_usage(&error),
    };
    exit(match command {
        Command::Run(args) => run::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Sql(args) => tables::sql(&args),
        Command::Import(args) => tables::import(&args),
        Command::Export(args) => tables::export(&args),
        Command::Compact(args) => tables::compact(&args),
        Command::Prune(args) => tables::prune(&args),
    })
}

/// Turns the end of a command into an exit code, after telling the user of an error.
fn exit(result: anyhow::Result<u8>) -> ExitCode {
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
fn exit_for_usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if error.use_stderr() {
        return ExitCode::from(2);
    }
    exit(printed.context("cannot write to standard output").map(|()| 0))
}
