//! The journal that changes go into, and what goes wrong with them as errors with hints and exit codes.

use std::path::Path;

use weir_host::knob::{Journal, KnobError};
use weir_knobs::Refusal;

use crate::failure::{Lacking, Usage};
use crate::store;

/// Root's journal, a user's own, or the one in $WEIR_JOURNAL: a journal apart, whose changes exclude nobody else's.
pub fn the_journal() -> Journal {
    match std::env::var_os("WEIR_JOURNAL") {
        Some(folder) if !folder.is_empty() => Journal::at(Path::new(&folder)),
        _ if rustix::process::geteuid().is_root() => Journal::of_root(),
        // A user without root may change servers only.
        _ => store::state_dir().map_or_else(Journal::of_root, |folder| Journal::at(&folder.join("journal"))),
    }
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
