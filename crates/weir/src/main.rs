//! weir measures, explains, tunes and guards the storage of a database server.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, reason = "eprintln! panics when nobody reads; say! does not")]

#[macro_use(say)]
extern crate weir_cli;

mod change_journal;
mod cli;
mod clock;
mod cmd;
mod completion;
mod daemon;
mod databases;
mod devices;
mod doctor;
mod experiments;
mod failure;
mod guard;
mod inputs;
#[cfg(feature = "trace")]
mod kernel_traces;
#[cfg(feature = "trace")]
mod live;
mod machine;
mod manual;
mod moments;
mod output;
mod page;
mod progress;
mod quiet;
mod recorder;
mod servers;
mod session;
mod settings;
mod stages;
mod store;
mod terminal;
#[cfg(feature = "trace")]
mod top;
mod trace_input;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    if let [_, hidden, rest @ ..] = arguments.as_slice()
        && let Some(code) = cmd::hidden(hidden, rest)
    {
        return code;
    }
    if cli::called_as_sysbench(&arguments) {
        return failure::exit(cmd::sysbench::run(&arguments[1..]));
    }
    completion::answer(cmd::fleet::run);
    match cli::parse(&arguments) {
        Ok(cli) => failure::exit(cmd::dispatch(cli, &arguments)),
        Err(error) => failure::exit(weir_cli::failure::print_usage(&error).map(failure::Outcome::Code)),
    }
}
