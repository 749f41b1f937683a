//! The machine around a target: what a record keeps under `conditions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Pressure, TargetFacts};

/// Conditions of a run. The host's name and serial numbers are left out on purpose: records get shared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// `uname -r`.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// Processors.
    pub cpu: Cpu,
    /// Memory and swap at the start.
    pub memory: Memory,
    /// Dirty limits and their neighbours.
    pub vm: VmSettings,
    /// The cgroups of this process, one for each hierarchy that can limit memory, CPU or I/O.
    pub cgroups: Vec<Cgroup>,
    /// What this process may do.
    pub limits: ProcessLimits,
    /// What the machine was doing before the run began.
    pub load_at_start: LoadAtStart,
    /// What the run acted on; `null` where it had no target.
    pub target: Option<TargetFacts>,
    /// Sentences: what could not be read and why.
    pub unreadable: Vec<String>,
}

/// Processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// As the processor names itself.
    pub model: Option<String>,
    /// Processors online.
    pub processors: u32,
    /// Frequency governors in use, with the number of processors under each; empty where frequency is not ours to
    /// set, as in most virtual machines.
    pub governors: BTreeMap<String, u32>,
    /// Why this looks like a virtual machine (`hypervisor flag`, a vendor's name); `null` where nothing does.
    pub virtualised: Option<String>,
}

/// Memory and swap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Usable by the kernel.
    pub total_bytes: u64,
    /// Not used for anything.
    pub free_bytes: u64,
    /// What programs could get without swapping.
    pub available_bytes: u64,
    /// Page cache, buffers included, shared memory left out.
    pub page_cache_bytes: u64,
    /// Changed, not yet being written.
    pub dirty_bytes: u64,
    /// Being written.
    pub writeback_bytes: u64,
    /// Swap.
    pub swap_total_bytes: u64,
    /// Swap not in use.
    pub swap_free_bytes: u64,
    /// Swap areas.
    pub swaps: Vec<Swap>,
}

/// One swap area.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Swap {
    /// Device or file.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Size.
    pub size_bytes: u64,
    /// In use.
    pub used_bytes: u64,
}

/// `/proc/sys/vm`, as far as it bears on storage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmSettings {
    /// Limit at which writers are made to wait.
    pub dirty: DirtyLimit,
    /// Limit at which background writeback starts.
    pub dirty_background: DirtyLimit,
    /// Period of the flusher, 1/100 s; 0 is never.
    pub dirty_writeback_centisecs: Option<u64>,
    /// Age at which a dirty page is due, 1/100 s.
    pub dirty_expire_centisecs: Option<u64>,
    /// 0 to 200.
    pub swappiness: Option<u64>,
    /// What the kernel makes of `dirty` at this moment.
    pub dirty_threshold_bytes: Option<u64>,
    /// What the kernel makes of `dirty_background` at this moment.
    pub dirty_background_threshold_bytes: Option<u64>,
}

/// A pair of sysctls of which one is in force: setting one zeroes the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirtyLimit {
    /// In bytes; 0 when the ratio is in force.
    pub bytes: Option<u64>,
    /// In percent of available memory; 0 when the bytes are in force.
    pub ratio_percent: Option<u64>,
}

/// A cgroup this process is in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// Hierarchy: 1 or 2.
    pub version: u8,
    /// Controllers of a v1 hierarchy (`blkio`); empty for v2.
    pub controllers: String,
    /// Path within the hierarchy.
    pub path: String,
    /// Limits in force here or in a parent that this process can see, as `PATH FILE` → text: `memory.max`,
    /// `memory.high`, `cpu.max`, `io.max`, `io.latency`, `memory.limit_in_bytes`, `cpu.cfs_quota_us`…;
    /// those at "no limit" are left out.
    pub limits: BTreeMap<String, String>,
}

/// What the kernel lets this process do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLimits {
    /// Whether it runs as root.
    pub root: bool,
    /// `kernel.io_uring_disabled`: 0 allowed, 1 for a group only, 2 for nobody; `null` before Linux 6.6.
    pub io_uring_disabled: Option<u64>,
    /// Memory it may lock; `null` is unlimited.
    pub memlock_bytes: Option<u64>,
    /// Files it may open; `null` is unlimited.
    pub open_files: Option<u64>,
}

/// The machine before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadAtStart {
    /// Load averages over 1, 5 and 15 minutes.
    pub loadavg: Option<[f64; 3]>,
    /// Pressure by resource (`cpu`, `io`, `memory`); empty where the kernel keeps none.
    pub pressure: BTreeMap<String, Pressure>,
}
