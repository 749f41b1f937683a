//! `weir knobs`: settings looked at, changed in a transaction, taken back, kept for the next boot.

mod apply;
mod changes;
mod confirm;
mod keep;
mod look;

use crate::cli::knobs::{Args, Command};
use crate::failure::Outcome;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.command {
        Command::List { path, all, json } => look::list(&path, all, json),
        Command::Show { name, json } => look::show(&name, json),
        Command::Apply(apply) if apply.print => apply::script(&apply),
        Command::Apply(apply) => match apply.persist {
            Some(keeper) => keep::persist(&apply, keeper),
            None => apply::run(&apply),
        },
        Command::Confirm { of } => changes::confirm(of),
        Command::Rollback { persist: Some(keeper), root, .. } => keep::remove(keeper, root.as_deref()),
        Command::Rollback { stale: true, .. } => changes::recover(),
        Command::Rollback { all, .. } => changes::rollback(all),
        Command::Journal => changes::show(),
    }
}
