//! `weir guard uninstall`.

use crate::cli::guard::uninstall::Args;
use crate::failure::{Lacking, Outcome};

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    Err(Lacking { what: "this weir has no `guard uninstall`".to_string(), hint: None }.into())
}
