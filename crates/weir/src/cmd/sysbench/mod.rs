//! `weir sysbench`, `weir fileio`, and the binary called as `sysbench`: sysbench's command lines, measured by weir.

mod errno;
mod fileio;
pub mod script;
mod terminal;

use anyhow::Context;
use weir_cli::signals::raise_on_signals;
use weir_io::runner::Stop;
use weir_sysbench::{Log, Quit, Request};

use self::terminal::Terminal;
use crate::cli::fileio::Args;
use crate::failure::CANNOT_WRITE;
use crate::failure::Outcome;

/// `weir fileio ARGS`: the test name is given.
pub fn run_fileio(args: Args) -> anyhow::Result<Outcome> {
    let mut arguments = vec!["fileio".to_string()];
    arguments.extend(args.arguments);
    run(&arguments)
}

/// Everything after the program's name, as sysbench takes it.
pub fn run(arguments: &[String]) -> anyhow::Result<Outcome> {
    let stop = Stop::default();
    let mut terminal = Terminal::new(stop.clone());
    let mut log = Log::new(&mut terminal);
    let config = |path: &str| std::fs::read_to_string(path).map_err(|error| errno::words(&error));
    let outcome = match weir_sysbench::parse(arguments, &config, &mut log) {
        Ok(Request::Done) => Ok(Outcome::Done),
        Ok(Request::Prepare(settings)) => {
            raise_on_signals(&stop)?;
            fileio::prepare(&settings, &mut log, &stop)
        }
        Ok(Request::Cleanup(settings)) => Ok(fileio::cleanup(&settings, &mut log)),
        Ok(Request::Run(settings)) => {
            raise_on_signals(&stop)?;
            fileio::run(&settings, &mut log, &stop)
        }
        Ok(Request::Script(request)) => script::act(*request, &mut log, &stop),
        Err(quit) => Err(quit),
    };
    // The caller distinguishes a reader that went away from a failure, and ends nothing but the printing.
    terminal.result().context(CANNOT_WRITE)?;
    Ok(outcome.unwrap_or_else(|Quit(code)| Outcome::Code(code)))
}
