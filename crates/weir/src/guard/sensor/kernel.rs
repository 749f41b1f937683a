//! System calls as a sensor, by programs in the kernel.

#[cfg(feature = "trace")]
pub use with::Syscalls;
#[cfg(not(feature = "trace"))]
pub use without::Syscalls;

#[cfg(feature = "trace")]
mod with {
    //! A session of weir's programs, and whose syncs it counts.

    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use weir_control::{Bulk, Syncs};
    use weir_kernel::sync_sensor::{
        Backlog, DeviceLook, LISTED, Look, SyncSession, Whose, processes_of, unit,
    };

    use super::super::{Sight, Watched, whose};
    use crate::guard::exempt::Exempt;
    use crate::guard::settings::Protected;

    /// Lists of processes and whether a unit was started anew are looked at so often.
    const LIST_EVERY_NS: u64 = 1_000_000_000;

    /// Programs in the kernel.
    pub struct Syscalls {
        session: SyncSession,
        protect: Vec<Protected>,
        /// Of each, when it began that is named by number.
        began: Vec<Option<u64>>,
        whose: Whose,
        /// The cgroup's inode: a unit that is started anew has another.
        group: Option<u64>,
        next_ns: u64,
    }

    impl Syscalls {
        /// Loads and attaches them, or says what is missing.
        pub fn start(protect: &[Protected]) -> Result<Syscalls, String> {
            let whose = resolve(protect);
            let session = SyncSession::start(&whose).map_err(|why| why.to_string())?;
            let group = inode(&whose);
            let (protect, began) = (protect.to_vec(), whose::began(protect));
            Ok(Syscalls { session, protect, began, whose, group, next_ns: 0 })
        }

        /// What happened on these devices since the sample before.
        pub fn sample(&mut self, devices: &[Watched], now_ns: u64) -> Vec<Sight> {
            if now_ns >= self.next_ns {
                self.next_ns = now_ns + LIST_EVERY_NS;
                self.follow();
            }
            let Look { devices: mut found, unlocated_bytes, sensor } = self.session.look(now_ns);
            let sight = |device: &Watched| {
                let all = std::iter::once(&device.number).chain(&device.file_systems);
                let all = all.filter_map(|number| found.remove(number)).reduce(joined).unwrap_or_default();
                let DeviceLook { syncs, mut bulk, backlog, .. } = all;
                bulk.unlocated_bytes = unlocated_bytes;
                let backlog_bytes = backlog.map(|backlog| (backlog.dirty_bytes, backlog.writeback_bytes));
                Sight { syncs, bulk, backlog_bytes, sensor }
            };
            devices.iter().map(sight).collect()
        }

        /// Processes that are to be protected: those that have synced, and those that were named.
        pub fn exempt(&self) -> Exempt {
            let named = whose::processes(&self.protect, in_groups);
            let processes = named.into_iter().chain(self.session.protected().iter().copied()).collect();
            Exempt { processes, are_not_all: !self.session.knows_protected() }
        }

        /// Whom it cannot find.
        pub fn remark(&self) -> Option<String> {
            if !self.session.knows_writers() {
                return Some(
                    "this kernel does not show the writers: every process that syncs is \
                     protected"
                        .to_string(),
                );
            }
            if let Whose::Listed(listed) = &self.whose
                && listed.len() > LISTED
            {
                let all = listed.len();
                return Some(format!(
                    "of {all} processes that are to be protected {LISTED} are: those of units, cgroups and numbers first"
                ));
            }
            let is_empty = matches!(&self.whose, Whose::Listed(listed) if listed.is_empty());
            if is_empty && self.protect.is_empty() {
                return Some("the named processes have ended: nothing is protected".to_string());
            }
            let names = || self.protect.iter().map(Protected::to_string).collect::<Vec<_>>().join(", ");
            is_empty.then(|| format!("{} does not run: nothing is protected until it does", names()))
        }

        /// Whoever began since the last time.
        fn follow(&mut self) {
            let has_ended = self.forget_who_ended();
            let knows_itself =
                matches!(self.whose, Whose::Everybody | Whose::Comm(_) | Whose::Descendants(_));
            let is_as_it_was = matches!(self.whose, Whose::Cgroup(_)) && inode(&self.whose) == self.group;
            if !has_ended && (knows_itself || is_as_it_was) {
                return;
            }
            // Nobody is left of those that were named, which is not everybody.
            let nobody = self.protect.is_empty();
            let whose = if nobody { Whose::Listed(Vec::new()) } else { resolve(&self.protect) };
            if let (Whose::Listed(_), Whose::Listed(now)) = (&self.whose, &whose) {
                // A list that is refused keeps the one before.
                let _ = self.session.list(now);
                self.whose = whose;
                return;
            }
            // Where the new programs are refused, the old ones go on seeing nothing, which is tried again.
            if let Ok(session) = SyncSession::start(&whose) {
                (self.session, self.group, self.whose) = (session, inode(&whose), whose);
            }
        }

        /// Whether somebody has ended who was named by number. The next process with that number is another one.
        fn forget_who_ended(&mut self) -> bool {
            let now = whose::began(&self.protect);
            let before = std::mem::replace(&mut self.began, now);
            let mut same = before.iter().zip(&self.began).map(|(before, now)| before == now);
            let named = self.protect.len();
            self.protect.retain(|_| same.next().unwrap_or(false));
            let has_ended = self.protect.len() < named;
            if has_ended {
                self.began = whose::began(&self.protect);
            }
            has_ended
        }
    }

    fn inode(whose: &Whose) -> Option<u64> {
        let Whose::Cgroup(path) = whose else { return None };
        fs::metadata(path).ok().map(|facts| facts.ino())
    }

    /// One alone the programs know by itself; of several, or of a unit of cgroup v1, processes are listed.
    fn resolve(protect: &[Protected]) -> Whose {
        match protect {
            [] | [Protected::All] => Whose::Everybody,
            [Protected::Comm(name)] => Whose::Comm(name.clone()),
            [Protected::Pid(pid)] => Whose::Descendants(*pid),
            [Protected::Unit(name)] => unit(name).map_or(Whose::Listed(Vec::new()), |unit| unit.whose()),
            [Protected::Cgroup(path)] => match whose::group(path, &mounts()) {
                Some(path) => Whose::Cgroup(path),
                None => Whose::Listed(Vec::new()),
            },
            several => Whose::Listed(whose::processes(several, in_groups)),
        }
    }

    fn in_groups(protected: &Protected) -> Vec<u32> {
        match protected {
            Protected::Unit(name) => unit(name).map(|unit| unit.processes()).unwrap_or_default(),
            Protected::Cgroup(path) => whose::group(path, &mounts())
                .map(|path: std::path::PathBuf| processes_of(Path::new(&path)))
                .unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn mounts() -> String {
        weir_fs::read_lossily("/proc/self/mounts").unwrap_or_default()
    }

    /// A device and its file systems that have numbers of their own: syncs, pauses and dirty pages are counted there.
    fn joined(mut one: DeviceLook, other: DeviceLook) -> DeviceLook {
        let Syncs { ended, under_way, threads, oldest_ns, held_back_ns, held_back } = other.syncs;
        one.syncs.ended.merge(&ended);
        one.syncs.under_way += under_way;
        one.syncs.threads += threads;
        one.syncs.oldest_ns = one.syncs.oldest_ns.max(oldest_ns);
        one.syncs.held_back_ns += held_back_ns;
        one.syncs.held_back += held_back;
        let Bulk { held_back_ns, held_back, writers, dirtied_bytes, protected_bytes, .. } = other.bulk;
        one.bulk.held_back_ns += held_back_ns;
        one.bulk.held_back += held_back;
        one.bulk.writers.extend(writers);
        one.bulk.dirtied_bytes += dirtied_bytes;
        one.bulk.protected_bytes += protected_bytes;
        one.backlog = one.backlog.into_iter().chain(other.backlog).reduce(|one, other| Backlog {
            dirty_bytes: one.dirty_bytes + other.dirty_bytes,
            writeback_bytes: one.writeback_bytes + other.writeback_bytes,
        });
        one.left_out += other.left_out;
        one
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn root_or_say<T>(test: &str, needed: Result<T, String>) -> Option<T> {
            needed.map_err(|lacking| say!("not run: {test} lacks {lacking}")).ok()
        }

        #[test]
        fn root_who_has_a_number_next_is_not_who_was_named() {
            let own = std::process::id();
            let started = Syscalls::start(&[Protected::Pid(own)]);
            let Some(mut syscalls) = root_or_say("root_who_has_a_number_next_is_not_who_was_named", started)
            else {
                return;
            };
            syscalls.follow();
            assert_eq!(syscalls.whose, Whose::Descendants(own));
            // As if another process had had it.
            syscalls.began = vec![Some(1)];
            syscalls.follow();
            assert_eq!(syscalls.whose, Whose::Listed(Vec::new()));
            assert!(syscalls.remark().unwrap().contains("nothing is protected"));
            syscalls.follow();
            assert_eq!(syscalls.whose, Whose::Listed(Vec::new()), "and not everybody");
        }
    }
}

#[cfg(not(feature = "trace"))]
mod without {
    //! Built without programs for the kernel.

    use super::super::{Sight, Watched};
    use crate::guard::exempt::Exempt;
    use crate::guard::settings::Protected;

    /// Never there.
    pub enum Syscalls {}

    impl Syscalls {
        /// Says that it cannot be.
        pub fn start(_protect: &[Protected]) -> Result<Syscalls, String> {
            Err("this weir was built without tracing".to_string())
        }

        /// Never asked for.
        pub fn sample(&mut self, _devices: &[Watched], _now_ns: u64) -> Vec<Sight> {
            match *self {}
        }

        /// Never asked for.
        pub fn exempt(&self) -> Exempt {
            match *self {}
        }

        /// Never asked for.
        pub fn remark(&self) -> Option<String> {
            match *self {}
        }
    }
}
