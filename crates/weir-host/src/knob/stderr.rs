//! Sentences of a process that may have no standard error any more.

use std::io;

use weir_core::printable;

/// Unlike eprintln, this outlives a standard error that is gone together with the guarded process.
pub(super) fn say(sentence: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("{}\n", printable::line(sentence)).as_bytes());
}
