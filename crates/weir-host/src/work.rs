//! Work done on this machine: what a run is charged with beside its own threads.

use crate::cpu::parse_stat;
use crate::error::HostError;
use crate::host::Host;

/// `/proc/stat` counts in hundredths of a second on every architecture that weir runs on (USER_HZ).
const TICK_NS: u64 = 10_000_000;

/// Time of all processors together since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// On work that gives way to nothing.
    pub pressing_ns: u64,
    /// On work of a lowered priority (nice).
    pub niced_ns: u64,
    /// Taken by a hypervisor while there was work (steal).
    pub stolen_ns: u64,
}

impl Host {
    /// Time in ns that all processors together have spent on anything but idling and waiting, since boot.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read.
    pub fn busy_ns(&self) -> Result<u64, HostError> {
        Ok(self.tree.parsed("/proc/stat", parse_stat)?.busy * TICK_NS)
    }

    /// The same in its parts, with what a hypervisor took.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read.
    pub fn spent(&self) -> Result<Spent, HostError> {
        let ticks = self.tree.parsed("/proc/stat", parse_stat)?;
        Ok(Spent {
            pressing_ns: ticks.busy.saturating_sub(ticks.nice) * TICK_NS,
            niced_ns: ticks.nice * TICK_NS,
            stolen_ns: ticks.steal * TICK_NS,
        })
    }

    /// Threads of this process that the kernel made to carry out io_uring operations which would have blocked.
    pub fn ring_workers(&self) -> usize {
        let tasks = self.tree.names("/proc/self/task");
        let name =
            |task: &String| self.tree.line(&format!("/proc/self/task/{task}/comm")).unwrap_or_default();
        tasks.iter().filter(|task| name(task).starts_with("iou-wrk")).count()
    }
}
