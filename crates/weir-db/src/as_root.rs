//! Asked by unit tests that only root can run.

use std::io::Write;

/// Whether this is root; where not, says which test is not run.
pub(crate) fn root_or_say(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let _ = writeln!(std::io::stderr(), "not run: {test} lacks root");
    }
    is_root
}
