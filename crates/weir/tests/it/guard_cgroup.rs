//! A guard that may throttle cgroups, beside a writer that goes past the page cache in a cgroup of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::guard::{Bench, contains, end};
use crate::lab::{LoopDevice, root_or_say};
use crate::weir::Running;

const BLKIO: &str = "/sys/fs/cgroup/blkio";
const WRITE_BPS: &str = "blkio.throttle.write_bps_device";

/// A device with few places for requests, which a writer in a slow cgroup takes all: the others' syncs wait for one. In
/// cgroup version 1 a throttle of a device holds one cgroup and leaves the others alone, so the slowness that they share
/// is of the device beneath: there each of them is throttled, the writer to what keeps its requests waiting for long.
struct Narrow {
    bench: Bench,
    group: PathBuf,
    requests: String,
    _beneath: LoopDevice,
}

impl Narrow {
    /// `None` where there is no such cgroup, which is said.
    fn new(test: &str) -> Option<Narrow> {
        if !Path::new(BLKIO).join(WRITE_BPS).exists() {
            let _ = writeln!(std::io::stderr(), "not run: {test} lacks cgroup version 1 with blkio");
            return None;
        }
        let beneath =
            LoopDevice::create(&["fs=xfs", "size=760M", "direct=off", "dir=/dev/shm", "write_iops=300"]);
        let dir = format!("dir={}", beneath.mount().display());
        let bench = Bench::on(LoopDevice::create(&["fs=xfs", "size=400M", "direct=on", &dir]));
        let group = Path::new(BLKIO).join(format!("weir-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let slow = beneath.device().file_name().unwrap().to_string_lossy().into_owned();
        fs::write(group.join(WRITE_BPS), format!("{} 40000000", number(&slow))).unwrap();
        let places = Path::new("/sys/block").join(bench.name()).join("queue/nr_requests");
        let requests = fs::read_to_string(&places).unwrap();
        fs::write(&places, "4").unwrap();
        Some(Narrow { bench, group, requests, _beneath: beneath })
    }

    /// A writer past the page cache, in the cgroup, for as long as the value lives.
    fn flood(&self) -> Running {
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", self.group.display());
        self.bench.begin(
            &["sh", "-c", &enter],
            "--direct=true --size 64M --rw write --block 1M --threads 8",
            70 << 20,
        )
    }

    /// What the cgroup may write to the device, bytes a second.
    fn limit(&self) -> Option<u64> {
        let number = number(&self.bench.name());
        let lines = fs::read_to_string(self.group.join(WRITE_BPS)).unwrap();
        lines.lines().find_map(|line| line.strip_prefix(&format!("{number} "))?.parse().ok())
    }

    /// Syncs a second, as the guard sees them.
    fn syncs_per_second(&self, time: Duration) -> f64 {
        let so_far = || self.bench.state().unwrap()["devices"][0]["totals"]["syncs"].as_f64().unwrap();
        let (begun, before) = (Instant::now(), so_far());
        sleep(time);
        (so_far() - before) / begun.elapsed().as_secs_f64()
    }

    /// What the guard turns now.
    fn actuator(&self) -> String {
        self.bench.state().map_or(String::new(), |state| state["devices"][0]["lever"].to_string())
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        let places = Path::new("/sys/block").join(self.bench.name()).join("queue/nr_requests");
        let _ = fs::write(places, self.requests.trim());
        // Its processes may take a moment to go.
        for _ in 0..50 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn number(name: &str) -> String {
    fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_string()
}

#[test]
fn root_alone_a_writer_past_the_page_cache_is_held_in_its_cgroup() {
    const TEST: &str = "root_alone_a_writer_past_the_page_cache_is_held_in_its_cgroup";
    if !root_or_say(TEST, &["mkfs.xfs"]) {
        return;
    }
    let Some(narrow) = Narrow::new(TEST) else { return };
    let bench = &narrow.bench;
    let commits = bench.commits();
    // What it costs, and whom the guard would throttle.
    let flood = narrow.flood();
    let mut shadow = bench.guard("--shadow --no-history --may cgroup");
    bench.wait("the shadow finds the cgroup", || narrow.actuator().contains(WRITE_BPS));
    let flooded = narrow.syncs_per_second(Duration::from_secs(3));
    assert_eq!(narrow.limit(), None);
    shadow.signal("TERM");
    contains(&shadow.finish().stderr, &["would turn cgroup:/weir-", "writes past the page cache"]);
    end([flood]);

    // It learns what syncs do undisturbed, then finds the cgroup and holds it.
    let mut guard = bench.guard("--may cgroup");
    sleep(Duration::from_secs(5));
    let flood = narrow.flood();
    bench.wait("the cgroup is throttled", || narrow.limit().is_some());
    bench.wait(&format!("more than twice the {flooded} syncs a second without a throttle"), || {
        narrow.syncs_per_second(Duration::from_secs(2)) > 2.0 * flooded
    });
    guard.signal("TERM");
    let ended = guard.finish();
    assert_eq!((ended.code, narrow.limit(), bench.journaled()), (143, None, 0), "{ended:?}");
    contains(&ended.stderr, &["turns cgroup:/weir-", "writes past the page cache", " MB/s from no limit ("]);

    // After a kill the guardian puts it back.
    let mut guard = bench.guard("--no-history --may cgroup");
    bench.wait("the cgroup is throttled again", || narrow.limit().is_some());
    guard.signal("KILL");
    assert_eq!(guard.finish().code, 137);
    bench.wait("the limit is back", || narrow.limit().is_none() && bench.journaled() == 0);
    end([flood, commits]);
}
