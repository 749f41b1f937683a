//! `weir help TOPIC`.

use crate::failure::{Outcome, Usage};
use crate::manual::{self, Topic};
use crate::output::print;

/// The widest lines, as clap's help has them.
const COLUMNS: usize = 100;

/// Runs the command.
pub fn run(name: &str) -> anyhow::Result<Outcome> {
    let Some(topic) = Topic::named(name) else {
        let what = format!("expected the name of a topic, got `{name}`");
        return Err(Usage { what, hint: Some(manual::list()) }.into());
    };
    print(&topic.text(weir_cli::columns().unwrap_or(COLUMNS).min(COLUMNS)))?;
    Ok(Outcome::Done)
}
