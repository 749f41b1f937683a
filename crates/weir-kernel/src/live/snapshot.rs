//! What a session hands out.

use std::collections::BTreeMap;

use weir_blocktrace::{ClassSet, Flags, StageTable, Times};
use weir_core::target::DeviceNumber;

/// What one count in the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A request, with all bios merged into it (default detail).
    Request,
    /// A bio, or a part of it after splits (full detail), as in recordings.
    Piece,
}

/// All that was counted since the session's start.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC, ns.
    pub taken_ns: u64,
    /// When the session started, same clock.
    pub started_ns: u64,
    /// Stage distributions by device, classes and size.
    pub table: StageTable,
    /// What the counts in the table are.
    pub unit: Unit,
    /// I/Os in the table that were not looked at, for which others stand, by device ([`super::Options::sampled`]).
    pub estimated: BTreeMap<DeviceNumber, u64>,
    /// How long the issue of requests was not watched ([`super::StageSession::watch_issues`]).
    pub issues_unwatched_ns: u64,
    /// What could not be counted.
    pub losses: Losses,
    /// What watching cost.
    pub overhead: Overhead,
    /// Requests that the kernel counts as under way, by device; devices without any are left out.
    pub in_flight: Vec<(DeviceNumber, u64)>,
    /// How true G is.
    pub start_stamp: StartStamp,
    /// Where D comes from.
    pub issue_stamp: IssueStamp,
}

/// What a request's `start_time_ns`, the G of default detail, means on this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartStamp {
    /// When the request was taken for this I/O (5.15, 6.6 to 6.8), or a program's own stamp (full detail).
    Exact,
    /// When a batch of requests was allocated, of which this was one: up to a batch's submission early (since 5.16;
    /// 6.6 fixed it, which the kernel's types do not tell).
    BatchAllocated,
    /// The first time that the submitter's plug asked for: up to a batch's submission early (since 6.9).
    PlugStarted,
}

impl StartStamp {
    /// In words, for below a table; nothing if there is nothing to say.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            StartStamp::Exact => None,
            StartStamp::BatchAllocated => Some(
                "this kernel may stamp requests when it allocates a batch of them: G2D and G2C then include the submission of the batch",
            ),
            StartStamp::PlugStarted => Some(
                "this kernel stamps a plugged batch of requests once: G2D and G2C may include the submission of the batch",
            ),
        }
    }
}

/// Where D comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueStamp {
    /// From the request's `io_start_time_ns`: no program runs at D.
    Request,
    /// From a program at D.
    Program,
}

/// What could not be counted, or not in full, since the session's start; all zero if everything was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Completions for whose device and kind no distributions were left: not in the table.
    pub cells: u64,
    /// Runs of a program that the kernel skipped because it interrupted itself: not in the table.
    pub skipped: u64,
    /// I/Os that the kernel's counters hold and no program was called for, at least: not in the table. At the instant
    /// another tracer attaches to a tracepoint or leaves it, the kernel may call only some of the programs there; up to a few
    /// completions at each such instant were seen to be missing. 0 with `pids` or `cgroup`, where nothing tells.
    pub unseen: u64,
    /// I/Os that were under way when the session started: counted, without the stages that began before.
    pub before_start: u64,
    /// I/Os whose earlier stamps were pushed out by others': counted, without those stages. Not told with [`super::Options::sampled`].
    pub stamps: u64,
    /// Requests of queues that keep no times (`queue/iostats` is 0): counted, without stages that need them.
    pub untimed: u64,
    /// Requests with more bios than the program at C walks (512); those past it are not in the table.
    pub bios: u64,
    /// Slow requests that found the ring full.
    pub slow: u64,
}

impl Losses {
    /// Whether everything was counted in full.
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}

/// What watching cost since the session's start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overhead {
    /// Completions the programs ran for.
    pub completions: u64,
    /// Time in all programs of the session per completion, ns, from the kernel's own BPF statistics, which run for
    /// instants only, as they cost time themselves; `None` where they are not allowed, or saw too few completions yet.
    pub ns_per_completion: Option<f64>,
    /// CPU time of this process since the session's start, user and system, ns.
    pub process_ns: u64,
    /// Memory of the session's maps, bytes.
    pub memory_bytes: u64,
}

impl Overhead {
    /// CPU time of the programs in the kernel, ns, estimated from the sample.
    pub fn programs_ns(&self) -> Option<f64> {
        Some(self.ns_per_completion? * self.completions as f64)
    }
}

/// A request over the threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow {
    /// Device.
    pub device: DeviceNumber,
    /// Kind of I/O.
    pub flags: Flags,
    /// Classes it counts in.
    pub classes: ClassSet,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length, bytes.
    pub bytes: u32,
    /// When what happened, CLOCK_MONOTONIC; in default detail Q, I and M are unknown.
    pub times: Times,
    /// Negative errno, 0 if none.
    pub error: i32,
    /// The sender's thread, where known.
    pub pid: Option<u32>,
    /// Its name, where known.
    pub comm: Option<String>,
    /// Its cgroup's id (v2), where known.
    pub cgroup: Option<u64>,
}
