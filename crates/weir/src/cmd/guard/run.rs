//! `weir guard run`.

use crate::cli::guard::run::Args;
use crate::failure::{Lacking, Outcome};

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    Err(Lacking { what: "this weir has no `guard run`".to_string(), hint: None }.into())
}
