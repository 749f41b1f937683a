//! `weir knobs`: settings looked at, changed in a transaction, taken back, kept for the next boot.

mod apply;
mod confirm;
mod fail;
mod journal;
mod keep;
mod look;

use std::path::Path;

use weir_host::knob::Journal;

use crate::cli::knobs::{Args, Command};
use crate::failure::Outcome;
use crate::store;

pub use fail::{failed, refused, root_or};

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
        Command::Confirm => journal::confirm(),
        Command::Rollback { persist: Some(keeper), root, .. } => keep::remove(keeper, root.as_deref()),
        Command::Rollback { stale: true, .. } => journal::recover(),
        Command::Rollback { all, .. } => journal::rollback(all),
        Command::Journal => journal::show(),
    }
}

/// Root's journal, a user's own, or the one in $WEIR_JOURNAL: a journal apart, whose changes exclude nobody else's.
pub fn the_journal() -> Journal {
    match std::env::var_os("WEIR_JOURNAL") {
        Some(folder) if !folder.is_empty() => Journal::at(Path::new(&folder)),
        _ if rustix::process::geteuid().is_root() => Journal::of_root(),
        // What a user may change without root is in servers only.
        _ => store::state_dir().map_or_else(Journal::of_root, |folder| Journal::at(&folder.join("journal"))),
    }
}
