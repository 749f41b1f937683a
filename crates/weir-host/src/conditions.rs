//! The conditions of a run, gathered.

use weir_core::target::{Conditions, LoadAtStart, TargetFacts};

use crate::host::Host;
use crate::tree::noted;
use crate::{cgroup, cpu, limits, psi, vm};

impl Host {
    /// Everything a record keeps of the machine. Never fails: what cannot be read is listed in
    /// [`Conditions::unreadable`].
    pub fn conditions(&self, target: Option<&TargetFacts>) -> Conditions {
        let mut notes = Vec::new();
        let mounts = noted(self.mounts(), &mut notes).unwrap_or_default();
        let members = cgroup::memberships(&self.tree, &mounts, &mut notes);
        let memory =
            vm::memory(&self.tree).map_err(|error| notes.push(error.to_string())).unwrap_or_default();
        let conditions = Conditions {
            kernel: self.tree.line("/proc/sys/kernel/osrelease").unwrap_or_default(),
            architecture: self
                .tree
                .line("/proc/sys/kernel/arch")
                .unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            cpu: cpu::read(&self.tree, &mut notes),
            memory,
            vm: vm::settings(&self.tree, self.page_bytes(), &mut notes),
            cgroups: cgroup::limits(&self.tree, &members),
            limits: limits::read(&self.tree, &mut notes),
            load_at_start: LoadAtStart {
                loadavg: noted(self.tree.parsed("/proc/loadavg", cpu::parse_loadavg), &mut notes),
                pressure: psi::read(&self.tree, &mut notes),
            },
            target: target.cloned(),
            unreadable: Vec::new(),
        };
        Conditions { unreadable: self.unreadable(&conditions, notes), ..conditions }
    }

    /// The notes so far, and what is missing as a whole.
    fn unreadable(&self, conditions: &Conditions, mut notes: Vec<String>) -> Vec<String> {
        if conditions.load_at_start.pressure.is_empty() {
            notes.push("pressure (PSI): the kernel keeps none; it may need psi=1 at boot".to_string());
        }
        if conditions.kernel.is_empty() {
            notes.push(
                "/proc/sys/kernel/osrelease: not readable, so the kernel's release is unknown".to_string(),
            );
        }
        if !self.tree.exists("/sys/kernel/debug/bdi") {
            let why =
                if conditions.limits.root { "debugfs is not mounted" } else { "needs root and debugfs" };
            notes.push(format!("writeback rates of single devices (/sys/kernel/debug/bdi): {why}"));
        }
        if !conditions.limits.root {
            notes.push("I/O of other users' processes (/proc/PID/io): needs root".to_string());
        }
        notes
    }
}
