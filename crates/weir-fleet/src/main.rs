//! weir fleet: runs weir on many hosts over ssh, and compares what they answer.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, reason = "eprintln! panics when nobody reads; say! does not")]

#[macro_use(say)]
extern crate weir_cli;

mod agent;
mod answer;
mod archive;
mod ask;
mod behind;
mod binary;
mod bucket;
mod cells;
mod cli;
mod course;
mod dispatch;
mod engine;
mod figures;
mod gate;
mod guardrail;
mod inventory;
mod journal;
mod origin;
mod packaged;
mod page;
mod progress;
mod questions;
mod remarks;
mod report;
mod rollout;
mod run;
mod session;
mod show;
mod slow;
mod spark;
mod store;
mod tables;
mod wire;

use std::process::ExitCode;

use clap::Parser;
use weir_cli::completion;
use weir_cli::failure::{exit, hint_of, print_usage};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    completion::answer(|| cli::offered(completion::is_about("fleet")));
    let result = match cli::Cli::try_parse_from(cli::in_order(arguments)) {
        Ok(cli) => dispatch::run(cli.command),
        Err(error) => print_usage(&error),
    };
    exit(result, dispatch::code, hint_of)
}
