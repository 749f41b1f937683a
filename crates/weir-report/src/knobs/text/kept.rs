//! What is kept for the next boot.

use crate::layout::{labelled_at, labelled_command};
use weir_knobs::persist::{Keeper, Persisted};

/// Width of the labels.
const LABEL: usize = 9;

/// The file as it would be, or was, written, and what it cannot hold.
pub fn persisted(persisted: &Persisted, written: bool) -> String {
    let verb = if written { "wrote" } else { "would write" };
    let mut out = format!("{verb} {}\n", persisted.path);
    for line in persisted.text.lines() {
        out.push_str(format!("  | {line}").trim_end());
        out.push('\n');
    }
    if let Some((link, to)) = &persisted.link {
        out.push_str(&format!("{verb} {link} -> {to}\n"));
    }
    for left in &persisted.left_out {
        labelled_at(&mut out, "not held", LABEL, &format!("{}: {}", left.setting, left.why));
    }
    for command in &persisted.then {
        labelled_command(&mut out, "then", command);
    }
    for note in &persisted.notes {
        labelled_at(&mut out, "note", LABEL, note);
    }
    out
}

/// The file is gone.
pub fn removed(keeper: Keeper, then: &[String]) -> String {
    let mut out = format!("removed {}\n", keeper.path());
    for command in then {
        labelled_command(&mut out, "then", command);
    }
    out
}
