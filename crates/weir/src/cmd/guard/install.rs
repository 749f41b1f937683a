//! `weir guard install`.

use crate::cli::guard::install::Args;
use crate::failure::{Lacking, Outcome};

/// Runs the command.
pub fn run(_args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    Err(Lacking { what: "this weir has no `guard install`".to_string(), hint: None }.into())
}
