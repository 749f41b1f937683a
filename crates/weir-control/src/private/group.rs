//! What is seen of one cgroup, and whether its limits may be turned.

use std::fmt;

/// Memory that a cgroup is charged with (memory.current, memory.stat), in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub current: u64,
    /// Of processes.
    pub anon: u64,
    /// The kernel's own: slab, stacks, page tables.
    pub kernel: u64,
    /// Shared memory and tmpfs.
    pub shmem: u64,
    /// Page cache, shared memory included as the kernel counts it.
    pub file: u64,
    /// Of it, mapped by processes: their programs.
    pub file_mapped: u64,
    /// Dirty.
    pub file_dirty: u64,
    /// Under way to a device.
    pub file_writeback: u64,
}

impl Memory {
    /// What it holds besides page cache that it could do without. No limit may come near that.
    pub fn held(&self) -> u64 {
        let cache = self.file.saturating_sub(self.shmem).saturating_sub(self.file_mapped);
        let known = self.anon + self.kernel + self.shmem + self.file_mapped;
        self.current.saturating_sub(cache).max(known)
    }

    /// Dirty or under way.
    pub fn backlog(&self) -> u64 {
        self.file_dirty + self.file_writeback
    }
}

/// One look at a cgroup. Counts are of the time since the look before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// Its memory.
    pub memory: Memory,
    /// memory.high, as it was asked for.
    pub high: Option<u64>,
    /// Written to the device under guard, in bytes (io.stat); `None` where no io controller counts it.
    pub written_bytes: Option<u64>,
    /// Written to all other devices (io.stat): what it gives to write(2) may be theirs.
    pub elsewhere_bytes: u64,
    /// Given to write(2) by its processes, as far as it is known, in bytes.
    pub sent_bytes: u64,
    /// The same in the seconds before it was held, in the first look at it: a writer may be in its next write for as long as the device takes.
    pub before_bytes: u64,
    /// Processor time that it used, in microseconds (cpu.stat); `None` where nothing counts it.
    pub cpu_us: Option<u64>,
    /// Read from any device, in bytes.
    pub read_bytes: u64,
    /// Time in which all of it waited for memory, in nanoseconds (memory.pressure, `full`).
    pub memory_stall_ns: u64,
    /// The same for I/O (io.pressure).
    pub io_stall_ns: u64,
    /// Pages that were needed again soon after they had been dropped (workingset_activate) or swapped out
    /// (workingset_refault_anon), in bytes.
    pub refault_bytes: u64,
    /// Whether it writes in bulk, by its last seconds ([`super::are_at_work`]).
    pub is_at_work: bool,
}

impl Group {
    /// What it wrote: given to write(2), or written back of what it gave before.
    pub fn bytes(&self) -> u64 {
        self.sent_bytes.max(self.written_bytes.unwrap_or(0))
    }

    /// What it wrote to any device in its own name; where no io controller counts that, all of it.
    pub fn counted_bytes(&self) -> u64 {
        self.written_bytes.map_or(self.sent_bytes, |here| here + self.elsewhere_bytes)
    }
}

/// A cgroup that bulk writers are in, before any of its limits is turned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its path.
    pub path: String,
    /// It holds those who are in no other cgroup.
    pub is_root: bool,
    /// Somebody in it who must not be held, by name.
    pub shared_with: Option<String>,
    /// The user said that it is to be left alone.
    pub is_spared: bool,
    /// It has memory.high.
    pub has_high: bool,
    /// Its memory.high is a limit already. To restore one, the kernel reclaims memory in the very write, as long as those inside
    /// like: whoever holds the journal's lock meanwhile keeps every other restoration waiting.
    pub is_limited: bool,
    /// It has io.max.
    pub has_pace: bool,
    /// It has cpu.max, and that is no limit.
    pub has_quota: bool,
    /// The kernel tells how long it waits for memory (memory.pressure).
    pub has_pressure: bool,
    /// Its threads are spread over cgroups, which memory limits do not follow (cgroup.type).
    pub is_threaded: bool,
    /// A cgroup below it that has a limit of its own, by path.
    pub limited_below: Option<String>,
}

/// Why a cgroup's limits are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is the root.
    Root,
    /// Somebody shares it.
    Shared(String),
    /// The user said so.
    Spared,
    /// It has no memory controller.
    NoController,
    /// It is threaded.
    Threaded,
    /// It has a limit of its own.
    Limited,
    /// A cgroup below has limits of its own.
    Nested(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Root => f.write_str("it is in the root cgroup, which holds everybody else"),
            Refusal::Shared(other) => write!(f, "it shares its cgroup with {other}"),
            Refusal::Spared => f.write_str("its cgroup is to be left alone (--spare)"),
            Refusal::NoController => {
                f.write_str("its cgroup has no memory.high (cgroup v2 with the memory controller)")
            }
            Refusal::Threaded => f.write_str("its cgroup is threaded"),
            Refusal::Limited => f.write_str("its cgroup has a memory.high of its own"),
            Refusal::Nested(path) => write!(f, "the cgroup {path} below its own has limits already"),
        }
    }
}

/// Whether a cgroup may be held.
///
/// # Errors
/// Why not.
pub fn may_hold(candidate: &Candidate) -> Result<(), Refusal> {
    if candidate.is_root {
        return Err(Refusal::Root);
    }
    if candidate.is_spared {
        return Err(Refusal::Spared);
    }
    if let Some(other) = &candidate.shared_with {
        return Err(Refusal::Shared(other.clone()));
    }
    if candidate.is_threaded {
        return Err(Refusal::Threaded);
    }
    if !candidate.has_high {
        return Err(Refusal::NoController);
    }
    if candidate.is_limited {
        return Err(Refusal::Limited);
    }
    candidate.limited_below.clone().map_or(Ok(()), |path| Err(Refusal::Nested(path)))
}
