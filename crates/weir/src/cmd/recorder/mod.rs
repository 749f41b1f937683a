//! `weir recorder`: one file a command.

mod export;
mod install;
mod list;
mod run;
mod show;
mod snap;

use crate::cli::recorder::{Args, Command};
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Run(args) => run::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Snap(args) => snap::run(&args),
        Command::List(args) => list::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Install(args) => install::install(&args, command),
        Command::Uninstall(args) => install::uninstall(&args),
    }
}
