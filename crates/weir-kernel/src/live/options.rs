//! What a session shall watch.

use weir_core::target::DeviceNumber;

/// How many devices can be asked for.
pub const LIMIT_DEVICES: usize = 64;
/// How many processes can be asked for.
pub const LIMIT_PIDS: usize = 64;

/// How closely to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// As few hooks as the totals need: by request, G to D to C.
    #[default]
    Default,
    /// Every bio: Q, G, I, M, D, C by piece, with its sender.
    Full,
}

/// What a session shall watch. Empty lists and `None` mean everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Whole disks only.
    pub devices: Vec<DeviceNumber>,
    /// Processes (thread groups) whose I/O counts. The sender is known at Q only, so this takes the full detail's hooks.
    pub pids: Vec<u32>,
    /// The id of the cgroup (v2) whose I/O counts, the groups below it included; takes the full detail's hooks.
    pub cgroup: Option<u64>,
    /// How closely.
    pub detail: Detail,
    /// Lengths are not told apart: all I/O counts as of size class 0, in a sixth or so of the memory.
    pub any_size: bool,
    /// Of a queue that completes twice as many requests a second, only so many or more are looked at, and each stands for the same
    /// number (`bpf/sampling.h`). Errors and requests that take unusually long are all looked at. Not in full detail, and not
    /// with `slow_ns`.
    pub sampled: Option<u32>,
    /// Requests that take at least this long, ns, are handed out one by one by [`super::StageSession::slow`].
    pub slow_ns: Option<u64>,
}

impl Options {
    /// The detail that the options need.
    pub fn needed(&self) -> Detail {
        if self.pids.is_empty() && self.cgroup.is_none() { self.detail } else { Detail::Full }
    }
}
