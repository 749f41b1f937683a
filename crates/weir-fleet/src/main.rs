//! weir fleet: runs weir on many hosts over ssh, and compares what they answer.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, reason = "eprintln! panics when nobody reads; say! does not")]

#[macro_use]
mod stderr;

mod agent;
mod answer;
mod behind;
mod binary;
mod cli;
mod course;
mod failure;
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
mod wire;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match cli::Cli::try_parse_from(cli::in_order(arguments)) {
        Ok(cli::Cli { command: cli::Command::Run(args) }) => failure::exit(run::run(&args)),
        Ok(cli::Cli { command: cli::Command::Show(args) }) => failure::exit(show::run(&args)),
        Err(error) => failure::exit_for_usage(&error),
    }
}
