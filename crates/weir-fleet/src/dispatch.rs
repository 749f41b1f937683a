//! The function of each command.

use weir_cli::failure::code_of;
use weir_report::narrow;

use crate::cli::Command;
use crate::spark::Stopped;
use crate::{packaged, run, show, tables};

/// Runs a command, and returns its exit code. What it prints fits the terminal.
pub fn run(command: Command) -> anyhow::Result<u8> {
    narrow::within(weir_cli::columns().unwrap_or(usize::MAX), || called(command))
}

fn called(command: Command) -> anyhow::Result<u8> {
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

/// The exit code of an error: as everywhere, but for what a signal ended.
pub fn code(error: &anyhow::Error) -> u8 {
    let signal = error.chain().find_map(|cause| cause.downcast_ref::<Stopped>());
    signal.map_or_else(|| code_of(error), |Stopped(signal)| 128_u8.saturating_add(*signal))
}
