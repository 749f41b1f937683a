//! One operation, and the stream that operations come from.

use crate::workload::spec::SyncMode;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// Read `len` bytes at `offset`.
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Make `file` durable; offset and length count only for `sync_file_range`.
    Sync(SyncMode),
}

/// What follows an operation before it counts as finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing: the operation stands alone.
    Nothing,
    /// Its file is synced, and write + sync together are one **commit**.
    Commit(SyncMode),
}

/// One operation. The same stream yields the same operations whichever thread or engine takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// What follows it.
    pub then: Then,
    /// Index of the file.
    pub file: u32,
    /// Length in bytes.
    pub len: u32,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Open loop: when it is meant to start, in ns since the start of the run. Closed loop: 0.
    pub at_ns: u64,
}

/// A stream of operations, shared by all threads of a job: the runner takes from it under a lock, several at a
/// time where [`OpSource::batch`] allows, so the sequence does not depend on the number of threads.
pub trait OpSource: Send {
    /// Appends up to `n` further operations; fewer (0 included) means that the stream has ended.
    fn fill(&mut self, out: &mut Vec<Op>, n: usize);

    /// How many operations one thread may take at once without changing what the workload means: 1 for
    /// sequential streams, rates and ordered syncs.
    fn batch(&self) -> usize {
        1
    }
}
