//! `weir fileio`, and the binary called as `sysbench`: sysbench's fileio test, measured by weir.

mod errno;
mod files;
mod observer;
mod prepare;
mod run;
mod terminal;

use weir_core::sysbench::{self, Log, Quit, Request};

use self::terminal::Terminal;
use crate::cli::fileio::Args;
use crate::failure::Outcome;
use crate::signals;

/// `weir fileio ARGS`: the test name is given.
pub fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut arguments = vec!["fileio".to_string()];
    arguments.extend(args.arguments);
    run_as_sysbench(&arguments)
}

/// Everything after the program's name, as sysbench takes it.
pub fn run_as_sysbench(arguments: &[String]) -> anyhow::Result<Outcome> {
    let stop = signals::stop_on_signals()?;
    let mut terminal = Terminal::new(stop.clone());
    let mut log = Log::new(&mut terminal);
    let config = |path: &str| std::fs::read_to_string(path).map_err(|error| errno::words(&error));
    let outcome = match sysbench::parse(arguments, &config, &mut log) {
        Ok(Request::Done) => Ok(Outcome::Done),
        Ok(Request::Prepare(settings)) => prepare::prepare(&settings, &mut log, &stop),
        Ok(Request::Cleanup(settings)) => {
            files::remove(&settings.fileio, &mut log);
            Ok(Outcome::Done)
        }
        Ok(Request::Run(settings)) => run::run(&settings, &mut log, &stop),
        Err(quit) => Err(quit),
    };
    // A reader that went away is told apart from a failure by the caller, and ends nothing but the printing.
    terminal.result()?;
    Ok(outcome.unwrap_or_else(|Quit(code)| Outcome::Code(code)))
}
