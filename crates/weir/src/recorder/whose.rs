//! Which unit and cgroup a process belongs to. What was found stays known after the process has ended: its rows come at the end of
//! the interval. It is asked for anew in each: another process may have its number by then.

use std::collections::HashMap;
use std::mem;

use weir_archive::interval::Whose;
use weir_host::Host;

/// Processes known in an interval, at most. Those met later have no unit in it; those with syncs are met first.
const KNOWN_MAX: usize = 4096;

/// Processes that were looked up.
pub struct Known {
    host: Host,
    of: HashMap<(u32, String), Whose>,
    /// As they were in the interval before.
    before: HashMap<(u32, String), Whose>,
}

impl Known {
    /// None yet.
    pub fn new(host: &Host) -> Known {
        Known { host: host.clone(), of: HashMap::new(), before: HashMap::new() }
    }

    /// Looks a process up, if it was not.
    pub fn meet(&mut self, pid: u32, comm: &str) {
        let key = (pid, comm.to_string());
        // One with very many processes, or very many names, must not have those of others forgotten.
        if self.of.len() >= KNOWN_MAX || self.of.contains_key(&key) {
            return;
        }
        let now = self.host.cgroup_path_of(pid).map(|cgroup| Whose::of(comm, &cgroup));
        // One that has ended in this interval may have been met in the one before.
        if let Some(whose) = now.or_else(|| self.before.get(&key).cloned()) {
            self.of.insert(key, whose);
        }
    }

    /// The interval is over.
    pub fn next_interval(&mut self) {
        self.before = mem::take(&mut self.of);
    }

    /// Whose something is; of a process that is not known, its name.
    pub fn whose(&self, pid: Option<u32>, comm: &str) -> Whose {
        let known = pid.and_then(|pid| self.of.get(&(pid, comm.to_string())));
        known.cloned().unwrap_or_else(|| Whose { comm: comm.to_string(), ..Whose::default() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_units() {
        let folder = tempfile::tempdir().unwrap();
        let runs_in = |cgroup: Option<&str>| {
            let process = folder.path().join("proc/7");
            fs::create_dir_all(&process).unwrap();
            match cgroup {
                Some(path) => fs::write(process.join("cgroup"), format!("0::/{path}\n")).unwrap(),
                None => fs::remove_file(process.join("cgroup")).unwrap(),
            }
        };
        let mut known = Known::new(&Host::at(folder.path()));
        let unit = |known: &mut Known| {
            known.meet(7, "postgres");
            let unit = known.whose(Some(7), "postgres").unit;
            known.next_interval();
            unit
        };
        runs_in(Some("postgresql.service"));
        assert_eq!(unit(&mut known), "postgresql.service");
        runs_in(None);
        assert_eq!(unit(&mut known), "postgresql.service", "it ended in this interval");
        runs_in(Some("evil.service"));
        assert_eq!(unit(&mut known), "evil.service");
        // It gives itself ever other names, after somebody else was met.
        known.meet(7, "first");
        (0..KNOWN_MAX).for_each(|n| known.meet(7, &format!("name {n}")));
        assert_eq!(known.whose(Some(7), "first").unit, "evil.service");
        assert_eq!(known.of.len(), KNOWN_MAX);
    }
}
