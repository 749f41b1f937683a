//! What the guard looks at: one device, from one look to the next.

use serde::{Deserialize, Serialize};

use weir_core::stats::CoarseHistogram;
use weir_core::target::DeviceNumber;

/// One look at one device. Counts are of the time since the look before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The device whose write-back is meant: the whole disk, not a partition.
    pub device: DeviceNumber,
    /// When, on a clock that stands still in suspend and is never set (monotonic).
    pub at_ns: u64,
    /// Since the look before.
    pub elapsed_ns: u64,
    /// Where the latencies come from.
    pub sensor: Sensor,
    /// The syncs that are to be protected.
    pub syncs: Syncs,
    /// Everybody else who writes into the page cache.
    pub bulk: Bulk,
    /// The device.
    pub flow: DeviceFlow,
    /// The limit that is turned.
    pub limits: Limits,
}

/// Where the latencies come from, and whether anything comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    /// Which.
    pub source: SensorSource,
    /// Time since the sensor last answered, whether or not there were syncs.
    pub silent_ns: u64,
    /// Syncs it could not follow, since the look before.
    pub lost: u64,
}

/// A way to know what syncs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorSource {
    /// The system calls of the protected processes, by eBPF.
    Syscalls,
    /// A small write and fdatasync of weir's own, several times a second.
    Canary,
    /// Nothing but the device's counters.
    Diskstats,
}

/// Syncs: fsync, fdatasync, writes that are durable by themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Syncs {
    /// Durations of those that ended, in nanoseconds.
    pub ended: CoarseHistogram,
    /// Under way now.
    pub under_way: u32,
    /// Threads that synced in the last second; 0 where that is not known.
    #[serde(default)]
    pub threads: u32,
    /// Age of the oldest one under way; 0 without one. A stalled sync never ends, so this is seen first.
    pub oldest_ns: u64,
    /// Time that the protected processes were throttled for their own dirty pages, summed over their threads.
    pub held_back_ns: u64,
    /// How often.
    pub held_back: u64,
}

/// Bulk writers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// Time that they were throttled, summed over their threads.
    pub held_back_ns: u64,
    /// How often.
    pub held_back: u64,
    /// Who dirties most, most first; not all of them.
    pub writers: Vec<Writer>,
    /// Bytes that they all are known to have dirtied since the look before. Writers are told of in lumps: what two looks
    /// say of shares is as far apart as who was told of in them, sums over a second are not.
    pub dirtied_bytes: u64,
    /// The same of the protected processes. Where that is nearly all, the database itself is the bulk writer.
    pub protected_bytes: u64,
    /// Bytes of bulk writers of whom it is not known where they write: they may write to this device. Not part of a record.
    #[serde(skip)]
    pub unlocated_bytes: u64,
}

impl Bulk {
    /// Whether anybody was told of.
    pub fn is_told(&self) -> bool {
        self.dirtied_bytes > 0 || self.protected_bytes > 0
    }
}

/// One who dirties pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// Process.
    pub pid: u32,
    /// Its command.
    pub comm: String,
    /// Bytes dirtied since the look before.
    pub bytes: u64,
    /// When it began, CLOCK_BOOTTIME; not part of a record.
    #[serde(skip)]
    pub start_ns: u64,
}

/// A process, told from others that had its number or will have it: whoever likes can see to it that another's next process gets
/// the one of a process that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Life {
    /// Its number.
    pub pid: u32,
    /// When it began, CLOCK_BOOTTIME.
    pub start_ns: u64,
}

impl Writer {
    /// Which process it is.
    pub fn life(&self) -> Life {
        Life { pid: self.pid, start_ns: self.start_ns }
    }
}

/// What the device and its write-back did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFlow {
    /// Written to the device, by all.
    pub written_bytes: u64,
    /// Write requests that ended.
    pub writes: u64,
    /// Dirty and not yet under way (of this device where the kernel tells, else of the machine).
    pub dirty_bytes: u64,
    /// Under way.
    pub writeback_bytes: u64,
}

/// What a cgroup without a limit counts as, in bytes of a tenth of a second: more than a device takes.
pub const UNLIMITED_BYTES: u64 = 4 << 30;

/// The limit that the guard turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// In force now, in bytes.
    pub now_bytes: u64,
    /// The baseline, in bytes: never exceeded.
    pub saved_bytes: u64,
    /// The kernel or its overshoot allows no less: never fallen below.
    pub floor_bytes: u64,
}

impl Sample {
    /// Dirty pages and those under way.
    pub fn backlog_bytes(&self) -> u64 {
        self.flow.dirty_bytes + self.flow.writeback_bytes
    }
}
