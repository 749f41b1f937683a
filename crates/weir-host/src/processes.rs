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
                    if let Some(began) = self.began(pid) {
                        let name = self.tree.line(&format!("/proc/{pid}/comm")).unwrap_or_default();
                        by_pid.insert(pid, Counters { began, name, read_bytes, write_bytes });
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
        let moved = |(pid, later): (&u32, &Counters)| {
            let before = earlier.of(*pid, later);
            let bytes = |pick: fn(&Counters) -> u64| pick(later).saturating_sub(before.map_or(0, pick));
            let (read_bytes, written_bytes) = (bytes(|c| c.read_bytes), bytes(|c| c.write_bytes));
            let moved = read_bytes.saturating_add(written_bytes) > 0;
            moved.then(|| Moved { pid: *pid, comm: later.name.clone(), read_bytes, written_bytes })
        };
        self.by_pid.iter().filter_map(moved).collect()
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
    /// between counts with all it did.
    pub fn since(&self, earlier: &ProcessSample) -> Vec<ProcessLoad> {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(1e-9);
        let load = |(pid, later): (&u32, &Counters)| {
            let before = earlier.of(*pid, later);
            let rate = |pick: fn(&Counters) -> u64| {
                pick(later).saturating_sub(before.map_or(0, pick)) as f64 / seconds
            };
            let (read, write) = (rate(|c| c.read_bytes), rate(|c| c.write_bytes));
            let name = later.name.clone();
            ProcessLoad { pid: *pid, name, read_bytes_per_second: read, write_bytes_per_second: write }
        };
        let bytes = |p: &ProcessLoad| p.read_bytes_per_second + p.write_bytes_per_second;
        let mut loads: Vec<ProcessLoad> = self.by_pid.iter().map(load).filter(|p| bytes(p) > 0.0).collect();
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
}
