//! One file a command: facts first, then decisions, then acts; a record lands in the store before anything prints.

pub mod bench;
pub mod compare;
pub mod db;
pub mod doctor;
pub mod guard;
pub mod knobs;
pub mod report;
pub mod results;
pub mod sysbench;
pub mod trace;
pub mod tune;

use crate::cli::{self, Cli, Command};
use crate::failure::Outcome;
use crate::output::print_exact;

/// Runs the command that was typed.
pub fn dispatch(cli: Cli, command: &[String]) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Doctor(args) => doctor::run(args, command),
        Command::Bench(args) => bench::run(*args, command),
        Command::Fileio(args) => sysbench::run_fileio(args),
        Command::Sysbench(args) => sysbench::run(&args.arguments),
        Command::Db(args) => db::run(*args, command),
        Command::Trace(args) => trace::run(args, command),
        Command::Knobs(args) => knobs::run(*args),
        Command::Tune(args) => tune::run(args, command),
        Command::Guard(args) => guard::run(*args, command),
        Command::Results(args) => results::run(args, command),
        Command::Compare(args) => compare::run(args, command),
        Command::Report(args) => report::run(args, command),
        Command::Completions { shell } => {
            // clap_complete panics where it cannot write; memory can always be written to.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut cli::command(), "weir", &mut script);
            print_exact(&String::from_utf8_lossy(&script))?;
            Ok(Outcome::Done)
        }
    }
}
