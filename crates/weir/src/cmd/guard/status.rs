//! `weir guard status`: a running guard, asked over its socket.

use weir_core::control::State;

use crate::cli::guard::status::Args;
use crate::failure::Outcome;
use crate::guard::socket;
use crate::output::print;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let state = socket::ask()?;
    print(&if args.json { serde_json::to_string(&state)? + "\n" } else { text(&state) })?;
    Ok(Outcome::Done)
}

fn text(state: &State) -> String {
    let mode = if state.shadow { "shadow: says what it would do, touches nothing" } else { "guards" };
    format!("weir guard, process {}, since {}: {mode}\n", state.pid, state.since)
}
