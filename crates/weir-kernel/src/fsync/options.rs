//! Which syncs a session follows.

use std::path::PathBuf;

/// Which syncs to follow; `None` is everybody's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Of this process.
    pub pid: Option<u32>,
    /// Of threads with this name.
    pub comm: Option<String>,
    /// Of a group of cgroup v2 and the groups below it.
    pub cgroup: Option<PathBuf>,
    /// Of this process and what it started, to the eighth generation.
    pub descendants_of: Option<u32>,
    /// Waits at least this long always have their stack taken; shorter ones with probability length/this, but
    /// for the first eight of one sync of a thread in a tenth of a second, which have theirs.
    pub stack_every_ns: u64,
    /// How much the ring between the programs and this process holds, a power of two; `None` is 8 MiB. It is mapped
    /// twice in a row, so that twice as much counts as resident.
    pub ring_bytes: Option<u32>,
}
