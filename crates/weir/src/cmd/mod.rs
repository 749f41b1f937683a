//! One file a command: facts first, then decisions, then acts; a record lands in the store before anything prints.

pub mod bench;
pub mod compare;
pub mod db;
pub mod doctor;
pub mod fleet;
pub mod guard;
pub mod knobs;
pub mod package_files;
pub mod recorder;
pub mod report;
pub mod results;
pub mod sysbench;
#[cfg(feature = "trace")]
pub mod top;
pub mod topic;
pub mod trace;
pub mod tune;

use std::process::ExitCode;

use weir_db::sandbox;
use weir_host::knob;
use weir_report::narrow;

use crate::cli::{Cli, Command};
use crate::failure::Outcome;
use crate::machine;
use crate::output::print_exact;

/// What weir starts itself as, beside a change and after a throw-away server's weir was killed; `None` for what a user typed.
pub fn hidden(argument: &str, rest: &[String]) -> Option<ExitCode> {
    match argument {
        knob::ARGUMENT => Some(knob::guardian_main(&machine::host(), rest)),
        sandbox::ARGUMENT => Some(sandbox::remover_main(rest)),
        _ => None,
    }
}

/// Runs the command that was typed; its reports fit the terminal.
pub fn dispatch(cli: Cli, command: &[String]) -> anyhow::Result<Outcome> {
    narrow::within(weir_cli::columns().unwrap_or(usize::MAX), || run(cli, command))
}

fn run(cli: Cli, command: &[String]) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Doctor(args) => doctor::run(args, command),
        Command::Bench(args) => bench::run(*args, command),
        Command::Fileio(args) => sysbench::run_fileio(args),
        Command::Sysbench(args) => sysbench::run(&args.arguments),
        Command::Db(args) => db::run(*args, command),
        #[cfg(feature = "trace")]
        Command::Top(args) => top::run(args, command),
        Command::Trace(args) => trace::run(args, command),
        Command::Knobs(args) => knobs::run(*args),
        Command::Tune(args) => tune::run(args, command),
        Command::Guard(args) => guard::run(*args, command),
        Command::Recorder(args) => recorder::run(*args, command),
        Command::Fleet { arguments } => fleet::run(&arguments),
        Command::Results(args) => results::run(args, command),
        Command::Compare(args) => compare::run(args, command),
        Command::Report(args) => report::run(args, command),
        Command::Completions { shell } => {
            print_exact(&weir_cli::completion::script("weir", shell)?)?;
            Ok(Outcome::Done)
        }
        Command::Topic { name } => topic::run(&name),
        Command::PackageFiles(args) => package_files::run(&args),
    }
}
