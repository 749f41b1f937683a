//! Follows syncs as they happen: programs in the kernel bracket them and stamp their waits, [`FsyncSession`] reads what
//! they say and hands it to weir-core's [`Analyst`](weir_blocktrace::fsync::Analyst).

pub(crate) mod files;
pub(crate) mod kernel;
mod options;
pub(crate) mod ring_entry;
mod session;
mod skims;
mod symbols;

pub use crate::brackets::Brackets;
pub use options::Options;
pub use session::{FsyncSession, Storage};
