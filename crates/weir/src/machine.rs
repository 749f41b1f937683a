//! The machine around a run, read through weir-host: what weir-io may not look at by itself; and whether weir is root.

use weir_host::Host;
use weir_io::runner::Surroundings;

use crate::failure::Lacking;
use crate::servers::Reached;

/// This machine, the variables of its database servers among its knobs.
pub fn host() -> Host {
    Host::live().reaching(&Reached)
}

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

/// Refuses where the user is not root; `without` says what works all the same.
pub fn root_or(what: &str, without: &str) -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let hint = format!("run it as root; {without}");
    Err(Lacking { what: format!("{what} takes root"), hint: Some(hint) }.into())
}
