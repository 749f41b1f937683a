//! Which unit and cgroup a process belongs to. What was found stays known for a while after the process has ended: its rows come
//! at the end of the interval.

use std::collections::HashMap;

use weir_archive::interval::Whose;
use weir_host::Host;

/// Processes known at most; then all are looked up again.
const KNOWN_MAX: usize = 4096;

/// Processes that were looked up.
pub struct Known {
    host: Host,
    of: HashMap<(u32, String), Whose>,
}

impl Known {
    /// None yet.
    pub fn new(host: &Host) -> Known {
        Known { host: host.clone(), of: HashMap::new() }
    }

    /// Looks a process up, if it was not.
    pub fn meet(&mut self, pid: u32, comm: &str) {
        let key = (pid, comm.to_string());
        if self.of.contains_key(&key) {
            return;
        }
        if let Some(cgroup) = self.host.cgroup_path_of(pid) {
            if self.of.len() >= KNOWN_MAX {
                self.of.clear();
            }
            self.of.insert(key, Whose::of(comm, &cgroup));
        }
    }

    /// Whose something is; of a process that is not known, its name.
    pub fn whose(&self, pid: Option<u32>, comm: &str) -> Whose {
        let known = pid.and_then(|pid| self.of.get(&(pid, comm.to_string())));
        known.cloned().unwrap_or_else(|| Whose { comm: comm.to_string(), ..Whose::default() })
    }
}
