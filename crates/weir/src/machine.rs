//! The machine around a run, read through weir-host: what weir-io may not look at by itself.

use weir_host::Host;
use weir_io::runner::Surroundings;

/// This machine.
pub struct Machine(Host);

impl Machine {
    /// This machine, as it is now.
    pub fn live() -> Machine {
        Machine(Host::live())
    }
}

impl Surroundings for Machine {
    fn machine_busy_ns(&self) -> Option<u64> {
        self.0.busy_ns().ok()
    }

    fn ring_workers(&self) -> usize {
        self.0.ring_workers()
    }
}
