//! `weir trace`: one file a command.

pub mod diff;
#[cfg(feature = "trace")]
pub mod fsync;
#[cfg(feature = "trace")]
pub mod live;
pub mod read;
#[cfg(feature = "trace")]
pub mod record;
pub mod util;

use crate::cli::trace::{Args, Command};
use crate::failure::Outcome;

/// How a trace ends beside a command: as the command did, unless that is no news.
#[cfg(feature = "trace")]
fn outcome(stop: &weir_io::runner::Stop, code: Option<u8>) -> Outcome {
    match (stop.requested(), code) {
        (_, Some(code)) if code != 0 => Outcome::Code(code),
        (Some(signal), _) => Outcome::Interrupted(signal),
        _ => Outcome::Done,
    }
}

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Read(args) => read::run(args, command),
        #[cfg(feature = "trace")]
        Command::Live(args) => live::run(args, command),
        #[cfg(feature = "trace")]
        Command::Record(args) => record::run(args, command),
        #[cfg(feature = "trace")]
        Command::Fsync(args) => fsync::run(args, command),
        Command::Diff(args) => diff::run(args, command),
        Command::Util(args) => util::run(args, command),
    }
}
