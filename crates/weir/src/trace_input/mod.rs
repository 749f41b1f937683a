//! Recordings from what was typed to one stream of events in order of time, in bounded memory.
//!
//! A thread reads, unpacks and decodes packed files and pipes ahead; the caller's thread reads plain files, merges,
//! matches and counts. Recordings are found by [`mod@find`], and [`mod@analyse`] does what `weir trace read` and
//! `weir trace diff` both need.

mod ahead;
mod analyse;
mod filter;
mod find;
mod names;
mod open;
mod source;
mod stream;

pub use analyse::{Analysed, Reader, analyse};
pub use filter::Filter;
pub use find::{Recording, find};

use std::io;

use weir_blocktrace::decode::Fault;

use crate::failure::Lacking;

/// What is wrong with a file, and what may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File, offset, reason.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

impl Problem {
    fn of_io(name: &str, offset: u64, error: io::Error) -> Problem {
        // Unpackers say so by these kinds.
        let damaged = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
        );
        let hint = if damaged && offset > 0 { Some(KEEP_GOING.to_string()) } else { None };
        Problem { what: format!("cannot read {name} after {offset} bytes: {error}"), hint }
    }

    fn of_foreign(name: &str, reason: &str) -> Problem {
        Problem { what: format!("{name}: {reason}"), hint: Some(FORMATS.to_string()) }
    }

    fn of_fault(fault: Fault, packed: bool) -> Problem {
        let unpacked = if packed { " (unpacked)" } else { "" };
        let what = format!("{}: at byte {}{unpacked}: {}", fault.file, fault.offset, fault.reason);
        let hint = if fault.offset > 0 { KEEP_GOING } else { FORMATS };
        Problem { what, hint: Some(hint.to_string()) }
    }
}

impl From<Problem> for Lacking {
    fn from(problem: Problem) -> Lacking {
        Lacking { what: problem.what, hint: problem.hint }
    }
}

const KEEP_GOING: &str = "--keep-going reports the part before that place";
const FORMATS: &str = "weir reads blktrace's per-CPU files, dumps of `blkparse -d`, ftrace's blk tracer in \
    bin mode, and \
                       recordings of `weir trace record`; packed by gzip or zstd or not";
