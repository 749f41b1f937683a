//! The function of each command.

use crate::cli::Command;
use crate::{packaged, run, show, tables};

/// Runs a command, and returns its exit code.
pub fn run(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Sql(args) => tables::sql(&args),
        Command::Import(args) => tables::import(&args),
        Command::Export(args) => tables::export(&args),
        Command::Compact(args) => tables::compact(&args),
        Command::Push(args) => tables::push(&args),
        Command::Prune(args) => tables::prune(&args),
        Command::PackageFiles(args) => packaged::run(&args),
    }
}
