//! `weir db`: one file a command.

mod cleanup;
mod disk_vs_ram;
mod doctor;
mod experiment;
mod explain;
mod flood;
mod io_capacity;
mod prepare;
mod run;
mod sandbox;
mod scale;
mod script;
mod warmup;

use crate::cli::db::{Args, Command};
use crate::failure::Outcome;

/// Runs the command that was typed.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Prepare(args) => prepare::run(args, command),
        Command::Run(args) => run::run(*args, command),
        Command::Warmup(args) => warmup::run(args, command),
        Command::Cleanup(args) => cleanup::run(args, command),
        Command::Doctor(args) => doctor::run(args, command),
        Command::Explain(args) => explain::run(*args, command),
        Command::Scale(args) => scale::run(*args, command),
        Command::DiskVsRam(args) => disk_vs_ram::run(*args, command),
        Command::IoCapacity(args) => io_capacity::run(*args, command),
        Command::Flood(args) => flood::run(*args, command),
        Command::Sandbox(args) => sandbox::run(args, command),
    }
}
