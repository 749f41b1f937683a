//! Machines of a few files, for tests.

use std::fs;
use std::path::PathBuf;

use super::journal::Journal;
use crate::host::Host;

/// Process 17, which began at 5555.
pub const STAT: &str =
    "17 (a) b) S 1 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5555 1 1 18446744073709551615";

/// A machine with a loop device under mq-deadline, and a journal of its own. Its files do not know of each other:
/// nothing is reset, and nothing refused.
pub struct Machine {
    folder: tempfile::TempDir,
    pub host: Host,
    pub journal: Journal,
}

impl Machine {
    pub fn new() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let (host, journal) = (Host::at(folder.path()), Journal::at(&folder.path().join("journal")));
        fs::create_dir(journal.folder()).unwrap();
        let machine = Machine { folder, host, journal };
        let own = format!("/proc/{}/stat", std::process::id());
        for (path, text) in [
            ("/proc/sys/kernel/random/boot_id", "this-boot"),
            ("/proc/sys/vm/dirty_bytes", "0"),
            ("/proc/sys/vm/dirty_ratio", "20"),
            ("/proc/sys/vm/dirty_background_bytes", "0"),
            ("/proc/sys/vm/dirty_background_ratio", "10"),
            ("/proc/sys/vm/swappiness", "60"),
            ("/proc/sys/vm/drop_caches", "0"),
            ("/proc/vmstat", "nr_dirty_threshold 1000"),
            ("/proc/meminfo", crate::vm::tests::MEMINFO),
            ("/proc/swaps", "Filename"),
            ("/proc/17/stat", STAT),
            (own.as_str(), STAT),
            (
                "/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                 38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio",
            ),
            ("/proc/self/cgroup", "7:blkio:/a\n0::/db.slice/my.service"),
            ("/sys/block/loop0/size", "131072"),
            ("/sys/block/loop0/diskseq", "7"),
            ("/sys/class/block/loop0/dev", "7:0"),
            ("/sys/block/loop0/queue/scheduler", "none [mq-deadline] kyber"),
            ("/sys/block/loop0/queue/nr_requests", "64"),
            ("/sys/block/loop0/queue/max_sectors_kb", "1280"),
            ("/sys/block/loop0/queue/max_hw_sectors_kb", "2560"),
            ("/sys/block/loop0/queue/read_ahead_kb", "128"),
            ("/sys/block/loop0/queue/wbt_lat_usec", "2000"),
            ("/sys/block/loop0/queue/write_cache", "write back"),
            ("/sys/block/loop0/queue/iosched/fifo_batch", "16"),
            ("/sys/block/loop0/mq/0/nr_tags", "128"),
            ("/sys/block/loop0/device/scsi_disk/0:0:0:0/cache_type", "write through"),
            ("/sys/block/loop1/size", "0"),
            ("/sys/class/bdi/7:0/max_ratio", "100"),
            ("/sys/class/bdi/7:0/max_ratio_fine", "1000000"),
            ("/sys/class/bdi/7:0/max_bytes", "4096000"),
            ("/sys/class/bdi/7:0/min_ratio", "0"),
            ("/sys/class/bdi/7:0/read_ahead_kb", "128"),
            ("/sys/class/bdi/0:44/max_ratio", "100"),
            ("/sys/fs/cgroup/unified/db.slice/memory.high", "max"),
            (
                "/sys/fs/cgroup/unified/db.slice/io.max",
                "8:0 rbps=1 wbps=2 riops=max wiops=max\n7:0 rbps=max wbps=2097152 riops=max wiops=300",
            ),
            ("/sys/fs/cgroup/unified/db.slice/io.latency", "7:0 target=50000"),
            ("/sys/fs/cgroup/unified/db.slice/io.weight", "default 100\n8:0 50"),
            ("/sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device", "8:0 5\n7:0 1048576"),
        ] {
            machine.set(path, text);
        }
        machine
    }

    pub fn real(&self, path: &str) -> PathBuf {
        self.host.tree.real(path)
    }

    pub fn set(&self, path: &str, text: &str) {
        let file = self.real(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{}\n", text.trim_end())).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.real(path)).unwrap();
    }

    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.real(path)).unwrap().trim().to_string()
    }

    /// Files of the journal's folder.
    pub fn journaled(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path().join("journal"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "lock")
            .collect();
        names.sort();
        names
    }
}
