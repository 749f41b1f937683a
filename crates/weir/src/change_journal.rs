//! The journal that changes go into, and what goes wrong with them as errors with hints and exit codes.

use std::path::Path;

use weir_host::knob::{Journal, KnobError};
use weir_knobs::Refusal;

use crate::failure::{Lacking, Usage};
use crate::store;

/// The one in $WEIR_JOURNAL, a user's own, or root's.
pub fn the_journal() -> Journal {
    apart().or_else(of_user).unwrap_or_else(Journal::of_root)
}

/// That one, and beside a user's own root's, whose changes are in force as well.
pub fn all_journals() -> Vec<Journal> {
    match apart() {
        Some(journal) => vec![journal],
        None => of_user().into_iter().chain([Journal::of_root()]).collect(),
    }
}

/// A journal apart, whose changes exclude nobody else's.
fn apart() -> Option<Journal> {
    let folder = std::env::var_os("WEIR_JOURNAL").filter(|folder| !folder.is_empty());
    folder.map(|folder| Journal::at(Path::new(&folder)))
}

/// A user without root may change servers only.
fn of_user() -> Option<Journal> {
    let folder = if rustix::process::geteuid().is_root() { None } else { store::state_dir() };
    folder.map(|folder| Journal::at(&folder.join("journal")))
}

/// A transaction that was refused before anything was written: every reason, each with its hint.
pub fn refused(refusals: &[Refusal]) -> anyhow::Error {
    if let [only] = refusals {
        return Usage { what: only.to_string(), hint: only.hint.clone() }.into();
    }
    let mut what = format!("{} reasons not to change anything:", refusals.len());
    for refusal in refusals {
        what.push_str(&format!("\n  {refusal}"));
        if let Some(hint) = &refusal.hint {
            what.push_str(&format!("\n    hint: {hint}"));
        }
    }
    Usage { what, hint: None }.into()
}

/// A change that did not happen, or was taken back.
pub fn failed(error: KnobError) -> anyhow::Error {
    match error {
        KnobError::Planned(refusals) => refused(&refusals),
        error => Lacking { what: error.to_string(), hint: error.hint() }.into(),
    }
}
