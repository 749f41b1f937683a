//! Which other processes read and write: `/proc/PID/io`. A scan of all processes, so not for every tick.

use std::collections::HashMap;
use std::time::Instant;

use weir_core::target::{ProcessLoad, groups_in_slices};

use crate::cgroup;
use crate::error::{BadLine, HostError};
use crate::host::Host;

/// I/O counters of all processes this one may look at, itself left out.
#[derive(Debug, Clone)]
pub struct ProcessSample {
    at: Instant,
    by_pid: HashMap<u32, Counters>,
    /// Processes whose counters may not be read.
    pub refused: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Counters {
    /// When the process began, in ticks since boot: a number may be used again, and a process may rename itself.
    began: u64,
    parent: u32,
    name: String,
    read_bytes: u64,
    write_bytes: u64,
}

impl Host {
    /// Reads the counters of all processes but weir's own and the kernel's threads.
    pub fn processes(&self) -> ProcessSample {
        let own = std::process::id();
        let (mut by_pid, mut refused) = (HashMap::new(), 0);
        for pid in self.tree.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            if self.live && pid == own {
                continue;
            }
            match self.counters_of(pid) {
                Ok((read_bytes, write_bytes)) => {
                    // What a kernel thread writes, some process made dirty, and counts there.
                    if let Some((began, parent)) = self.birth(pid) {
                        let name = self.tree.line(&format!("/proc/{pid}/comm")).unwrap_or_default();
                        by_pid.insert(pid, Counters { began, parent, name, read_bytes, write_bytes });
                    }
                }
                // A process that ended in the meantime is no refusal.
                Err(error) => {
                    refused += u32::from(!error.is_absent() && self.tree.exists(&format!("/proc/{pid}")))
                }
            }
        }
        ProcessSample { at: Instant::now(), by_pid, refused }
    }

    fn counters_of(&self, pid: u32) -> Result<(u64, u64), HostError> {
        let bad = |bad: BadLine| bad.at(&self.tree.real(&format!("/proc/{pid}/io")));
        parse(&self.text_of_task(pid, "io")?).map_err(bad)
    }

    /// The systemd unit, or the container's scope, that a process runs in. `None` where it runs in none, or is gone.
    pub fn unit_of(&self, process: u32) -> Option<String> {
        let lines = self.tree.parsed(&format!("/proc/{process}/cgroup"), cgroup::parse).ok()?;
        let of = |name: &str| lines.iter().find(|(controllers, _)| controllers == name).map(|(_, path)| path);
        let path = of("name=systemd").or_else(|| of(""))?;
        groups_in_slices(path).next().map(str::to_string)
    }
}

/// What a process read and wrote between two samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Which.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Bytes.
    pub read_bytes: u64,
    /// Bytes.
    pub written_bytes: u64,
}

impl ProcessSample {
    /// The same as [`ProcessSample::since`] in whole bytes, in no order.
    pub fn moved_since(&self, earlier: &ProcessSample) -> Vec<Moved> {
        let inherited = self.inherited(earlier);
        let moved = |(pid, later): (&u32, &Counters)| {
            let before = earlier.of(*pid, later);
            let (of_ended_read, of_ended_written) = inherited.get(pid).copied().unwrap_or_default();
            let grown = |pick: fn(&Counters) -> u64, of_ended: u64| {
                pick(later).saturating_sub(before.map_or(0, pick)).saturating_sub(of_ended)
            };
            let read_bytes = grown(|c| c.read_bytes, of_ended_read);
            let written_bytes = grown(|c| c.write_bytes, of_ended_written);
            let moved = read_bytes.saturating_add(written_bytes) > 0;
            moved.then(|| Moved { pid: *pid, comm: later.name.clone(), read_bytes, written_bytes })
        };
        self.by_pid.iter().filter_map(moved).collect()
    }

    /// What processes had read and written at the earlier sample that have ended since, by their nearest ancestors that have not. The
    /// kernel adds the counters of a process to those of the one that waits for its end (kernel/exit.c, wait_task_zombie), and shows the
    /// sum in /proc/PID/io: those bytes were counted before.
    fn inherited(&self, earlier: &ProcessSample) -> HashMap<u32, (u64, u64)> {
        let mut inherited: HashMap<u32, (u64, u64)> = HashMap::new();
        let ended = earlier.by_pid.iter().filter(|(pid, before)| self.of(**pid, before).is_none());
        for (_, gone) in ended.filter(|(_, gone)| gone.read_bytes | gone.write_bytes > 0) {
            if let Some(heir) = self.heir(earlier, gone) {
                let (read, written) = inherited.entry(heir).or_default();
                *read = read.saturating_add(gone.read_bytes);
                *written = written.saturating_add(gone.write_bytes);
            }
        }
        inherited
    }

    /// The nearest ancestor of a process of the earlier sample that has not ended. `None` where one of those between was not read.
    fn heir(&self, earlier: &ProcessSample, gone: &Counters) -> Option<u32> {
        let mut parent = gone.parent;
        // A process is younger than its ancestors; a number that was used again meanwhile makes no circle.
        for _ in 0..earlier.by_pid.len() {
            let before = earlier.by_pid.get(&parent)?;
            if self.of(parent, before).is_some() {
                return Some(parent);
            }
            parent = before.parent;
        }
        None
    }

    /// The counters of the same process.
    fn of(&self, pid: u32, later: &Counters) -> Option<&Counters> {
        self.by_pid.get(&pid).filter(|before| before.began == later.began)
    }

    /// Whether a process's counters were read.
    pub fn holds(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// Processes that read or wrote since the earlier sample, those that moved most bytes first. One that began in
    /// between counts with all it did, and with that of children for whose end it waited.
    pub fn since(&self, earlier: &ProcessSample) -> Vec<ProcessLoad> {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(1e-9);
        let load = |moved: Moved| ProcessLoad {
            pid: moved.pid,
            name: moved.comm,
            read_bytes_per_second: moved.read_bytes as f64 / seconds,
            write_bytes_per_second: moved.written_bytes as f64 / seconds,
        };
        let bytes = |p: &ProcessLoad| p.read_bytes_per_second + p.write_bytes_per_second;
        let mut loads: Vec<ProcessLoad> = self.moved_since(earlier).into_iter().map(load).collect();
        loads.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)).then(a.pid.cmp(&b.pid)));
        loads
    }
}

/// (read_bytes, write_bytes): what reached the block layer, or will.
pub(crate) fn parse(text: &str) -> Result<(u64, u64), BadLine> {
    let field = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let number = value.and_then(|v| v.trim().parse().ok());
        number.ok_or_else(|| BadLine::new(text.lines().count(), key, value.unwrap_or("end of file")))
    };
    Ok((field("read_bytes")?, field("write_bytes")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_the_first_group_that_is_no_slice() {
        let machine = crate::knob::testing::Machine::new();
        for (text, expected) in [
            ("0::/system.slice/mariadb.service\n", Some("mariadb.service")),
            ("0::/user.slice/user-0.slice/session-1.scope\n", Some("session-1.scope")),
            ("0::/machine.slice/libpod-1.scope/system.slice/x.service\n", Some("libpod-1.scope")),
            ("12:blkio:/\n1:name=systemd:/system.slice/cron.service\n0::/\n", Some("cron.service")),
            ("0::/\n", None),
        ] {
            machine.set("/proc/7/cgroup", text);
            assert_eq!(machine.host.unit_of(7).as_deref(), expected, "{text}");
        }
        assert_eq!(machine.host.unit_of(8), None);
    }

    #[test]
    fn counters_parse_and_make_rates() {
        let text = "rchar: 6976\nwchar: 0\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n";
        assert_eq!(parse(text).unwrap(), (4096, 8192));
        assert!(parse("read_bytes: x\nwrite_bytes: 1\n").unwrap_err().item.contains("`x`"));
        let at = Instant::now();
        let counters = |began, name: &str, write_bytes| Counters {
            began,
            parent: 0,
            name: name.into(),
            read_bytes: 0,
            write_bytes,
        };
        let sample = |seconds, list: Vec<(u32, Counters)>| ProcessSample {
            at: at + std::time::Duration::from_secs(seconds),
            by_pid: list.into_iter().collect(),
            refused: 0,
        };
        let of = |seconds, list: [(u64, &str, u64); 4]| {
            let list = (1..).zip(list).map(|(pid, (began, name, bytes))| (pid, counters(began, name, bytes)));
            sample(seconds, list.collect())
        };
        // The third renames itself, the fourth has the number and the name of one that ended.
        let earlier = of(0, [(7, "cp", 100), (7, "sh", 50), (7, "old", 800), (7, "dd", 9)]);
        let later = of(2, [(7, "cp", 500), (7, "sh", 50), (7, "new", 1000), (8, "dd", 1000)]);
        let loads: Vec<(String, f64)> =
            later.since(&earlier).into_iter().map(|p| (p.name, p.write_bytes_per_second)).collect();
        assert_eq!(loads, [("dd", 500.0), ("cp", 200.0), ("new", 100.0)].map(|(n, r)| (n.to_string(), r)));
        let moved = later.moved_since(&earlier).into_iter().find(|moved| moved.pid == 3).unwrap();
        assert_eq!((moved.comm.as_str(), moved.written_bytes), ("new", 200));
    }

    /// A backup's gzip, the shell that waits for it, cron, which waits for both; and a database whose workers end.
    #[test]
    fn bytes_of_a_process_that_ends_count_once() {
        let sample = |list: &[(u32, u32, &str, u64, u64)]| ProcessSample {
            at: Instant::now(),
            by_pid: list
                .iter()
                .map(|&(pid, parent, name, read_bytes, write_bytes)| {
                    (pid, Counters { began: 7, parent, name: name.into(), read_bytes, write_bytes })
                })
                .collect(),
            refused: 0,
        };
        let moved = |later: &ProcessSample, earlier: &ProcessSample| {
            let mut moved: Vec<(u32, u64, u64)> = later
                .moved_since(earlier)
                .into_iter()
                .map(|moved| (moved.pid, moved.read_bytes, moved.written_bytes))
                .collect();
            moved.sort_unstable();
            moved
        };
        let running = sample(&[
            (1, 0, "init", 9, 9),
            (10, 1, "cron", 0, 10),
            (11, 10, "backup.sh", 1, 20),
            (12, 11, "gzip", 900, 5000),
            (20, 1, "postgres", 100, 100),
            (21, 20, "postgres", 70, 7000),
        ]);
        // gzip and a backend have ended; each had moved a little more by then, and the postmaster wrote, too.
        let ended = sample(&[
            (1, 0, "init", 9, 9),
            (10, 1, "cron", 0, 10),
            (11, 10, "backup.sh", 905, 5120),
            (20, 1, "postgres", 170, 7150),
        ]);
        assert_eq!(moved(&ended, &running), [(11, 4, 100), (20, 0, 50)]);
        // The shell as well, in the next interval, or in the same.
        let over =
            sample(&[(1, 0, "init", 9, 9), (10, 1, "cron", 905, 5130), (20, 1, "postgres", 170, 7150)]);
        assert_eq!(moved(&over, &ended), []);
        assert_eq!(moved(&over, &running), [(10, 4, 100), (20, 0, 50)]);
        // No more is taken off than there is; where the parent was not read, nothing is.
        let loads =
            over.since(&sample(&[(10, 1, "cron", 905, 5000), (30, 10, "a", 0, 999), (31, 99, "b", 0, 9)]));
        assert!(loads.iter().all(|load| load.pid != 10), "{loads:?}");
    }
}
