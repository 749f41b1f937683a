//! How long syncs take and how old those under way are, of the processes that are to be protected; and who else writes.
//!
//! Programs in the kernel ([`SyncSession`]) count durations by device into tables of fixed size that are mapped into this
//! process: a look at them is a read of memory, cheap enough for ten a second. What a *sync* is: fsync, fdatasync, a
//! write that is durable when it returns (O_DSYNC, O_SYNC, RWF_DSYNC, RWF_SYNC), msync with MS_SYNC, and fsync through
//! io_uring, which is counted when it has ended and not shown before. sync(2) and syncfs(2) are left out: they wait for
//! everybody's pages, and say how much is dirty rather than what a commit takes; so is sync_file_range(2), which makes
//! nothing durable.
//!
//! Whose syncs count where nobody was named is the matter of [`Debt`].

mod account;
mod debt;
mod programs;
mod session;
mod tables;
mod unit;
mod writers;

use std::path::PathBuf;

pub use crate::brackets::Brackets;
pub use crate::live::overhead::ProgramFigures;
pub use debt::{Class, Debt};
pub use session::{DeviceLook, Look, SyncSession};
pub use tables::Backlog;
pub use unit::{Unit, processes_of, unit};

/// Processes that [`Whose::Listed`] holds at most; `LISTED` in `bpf/syncs_state.h`.
pub const LISTED: usize = 4096;

/// Whose syncs are protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Whose {
    /// Everybody's but those of bulk writers.
    #[default]
    Everybody,
    /// Of processes of this name, which is that of their first thread (15 bytes at most).
    Comm(String),
    /// Of this process and what it started, to the eighth generation.
    Descendants(u32),
    /// Of a group of cgroup v2 and the groups below it: its directory.
    Cgroup(PathBuf),
    /// Of these processes; [`SyncSession::list`] says others later.
    Listed(Vec<u32>),
}
