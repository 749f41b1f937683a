//! `weir guard`: one file a command.

pub mod exec;
pub mod install;
pub mod run;
pub mod simulate;
pub mod status;
pub mod uninstall;
pub mod watch;

use crate::cli::guard::{Args, Command};
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Run(args) => run::run(args, command),
        Command::Exec(args) => exec::run(args, command),
        Command::Status(args) => status::run(args, command),
        Command::Watch(args) => watch::run(args, command),
        Command::Simulate(args) => simulate::run(args, command),
        Command::Install(args) => install::run(*args, command),
        Command::Uninstall(args) => uninstall::run(args, command),
    }
}
