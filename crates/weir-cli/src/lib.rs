//! What every program of weir's does alike: words to stderr, errors with hints, a stop on signals, names of runs, files of pages, manual
//! pages and completions.
#![forbid(unsafe_code)]

pub mod completion;
pub mod failure;
pub mod manual;
pub mod packaged;
pub mod page;
pub mod signals;

#[doc(hidden)]
pub use weir_core::printable::message;

use std::hash::{BuildHasher, Hasher};
use std::io;

use jiff::Timestamp;
use rustix::termios::{isatty, tcgetwinsize};

/// As `eprintln!`, but a standard error that is gone is no reason to panic (`weir doctor 2>&1 | head` must not end an
/// examination), and what others chose reaches no terminal as it is.
#[macro_export]
macro_rules! say {
    ($($what:tt)*) => {{
        let line = $crate::message(&format!($($what)*)) + "\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }};
}

/// Columns and rows of the terminal that standard output is; `None` where it is none, or does not say.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = isatty(io::stdout()).then(|| tcgetwinsize(io::stdout()).ok())??;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Its columns.
pub fn columns() -> Option<usize> {
    terminal_size().map(|(columns, _)| columns)
}

/// A name for a run that starts now: UTC to the millisecond, so that names sort by time, and four random digits.
pub fn new_id(now: Timestamp) -> String {
    id_at(now, std::hash::RandomState::new().build_hasher().finish())
}

fn id_at(now: Timestamp, random: u64) -> String {
    format!("{}-{:04x}", now.strftime("%Y%m%d-%H%M%S-%3f"), random & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_sort_by_time() {
        let now = Timestamp::from_millisecond(1_795_576_200_042).unwrap();
        assert_eq!(id_at(now, 0xabc_0007), "20261125-031000-042-0007");
        assert_ne!(new_id(now), new_id(now));
    }
}
