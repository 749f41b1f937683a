//! `weir fileio`, and the binary called as `sysbench`.

use crate::cli::fileio::Args;
use crate::failure::Outcome;

/// `weir fileio ARGS`: the test name is given.
pub fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut arguments = vec!["fileio".to_string()];
    arguments.extend(args.arguments);
    run_as_sysbench(&arguments)
}

/// Everything after the program's name, as sysbench takes it.
pub fn run_as_sysbench(arguments: &[String]) -> anyhow::Result<Outcome> {
    let _ = arguments;
    anyhow::bail!("weir fileio is not there yet")
}
