//! What weir says of a run, against what is known about it: a stall that really happened, a depth that was asked for.

use std::time::{Duration, Instant};

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::Weir;

/// 1000 writes per second for 6 s, and nothing can be written for 1 s of them: a sixth of the requests is late, and
/// a tool that stops asking while it waits would not see it.
#[test]
fn root_alone_an_open_loop_counts_the_requests_that_a_stall_made_late() {
    if !root_or_say(
        "root_alone_an_open_loop_counts_the_requests_that_a_stall_made_late",
        &["mkfs.ext4", "fsfreeze"],
    ) {
        return;
    }
    // Where others keep the machine busy, their stalls add to this one, and the truth is not known: once more then.
    let mut attempts = Vec::new();
    while attempts.len() < ATTEMPTS_MAX {
        attempts.push(a_stall_in_an_open_loop());
        if attempts.last().is_some_and(Stalled::is_as_expected) {
            return;
        }
    }
    panic!("{attempts:?}");
}

const ATTEMPTS_MAX: usize = 4;

/// What weir said of a stall, and what the stall was.
#[derive(Debug)]
struct Stalled {
    late_percent: f64,
    /// Frozen surely between the two calls, at most around them.
    surely: Duration,
    at_most: Duration,
}

impl Stalled {
    /// 10 ms late is the limit, and the backlog of a thousand takes its moment.
    fn is_as_expected(&self) -> bool {
        let percent = |stall: Duration| stall.as_secs_f64() / 6.0 * 100.0;
        (percent(self.surely) - 1.0..=percent(self.at_most) + 3.0).contains(&self.late_percent)
    }
}

fn a_stall_in_an_open_loop() -> Stalled {
    // Backed by memory, so that nothing but the freeze makes a request late.
    let device = LoopDevice::create(&["fs=ext4", "size=192M", "dir=/dev/shm"]);
    let weir = Weir::alone();
    let options = [
        "bench",
        "--dir",
        ".",
        "--size",
        "64M",
        "--rw",
        "randwrite",
        "--block",
        "4k",
        "--open-sync",
        "dsync",
    ];
    let rate = ["--rate", "1000", "--threads", "8", "--duration", "6s"];
    let mut run = weir
        .start(&device.mount(), &[&options[..], &rate[..]].concat(), |activity| activity.written > 68 << 20);
    let before = Instant::now();
    let frozen = device.freeze();
    let froze = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let surely = froze.elapsed();
    drop(frozen);
    let at_most = before.elapsed();
    let ended = run.finish();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let lateness = &weir.records()[0]["jobs"][0]["lateness"];
    let (late, intended) = (lateness["late"].as_f64().unwrap(), lateness["intended"].as_f64().unwrap());
    assert!((5900.0..=6100.0).contains(&intended), "{intended} requests intended");
    Stalled { late_percent: late / intended * 100.0, surely, at_most }
}

/// IOPS × mean latency is the number of requests in flight (Little), or the latency is not what it says.
#[test]
fn alone_latencies_of_asynchronous_engines_satisfy_littles_law() {
    // Beside the build, which is on a disk where /tmp may be memory, whose I/O is never asynchronous.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for engine in ["io_uring", "libaio"] {
        let weir = Weir::alone();
        let options =
            ["bench", "--dir", ".", "--size", "64M", "--rw", "randread", "--block", "4k", "--direct"];
        let depth = ["--engine", engine, "--depth", "128", "--duration", "2s"];
        let ended = weir.run(folder.path(), &[&options[..], &depth[..]].concat());
        assert_eq!(ended.code, 0, "{engine}: {}", ended.stderr);
        let record = weir.records().remove(0);
        let job = &record["jobs"][0];
        let seconds = job["elapsed_ns"].as_f64().unwrap() / 1e9;
        let latency = crate::weir::latency(job, "read");
        let in_flight = latency.count / seconds * latency.mean_ns / 1e9;
        assert!((in_flight / 128.0 - 1.0).abs() < 0.05, "{engine}: {in_flight:.1} in flight, 128 asked for");
    }
}

/// A file of 64 MiB is written anew while it is still dirty.
#[test]
fn root_alone_a_flood_that_stays_in_memory_is_named() {
    if !root_or_say("root_alone_a_flood_that_stays_in_memory_is_named", &["mkfs.ext4"]) {
        return;
    }
    let (weir, device) = (Weir::alone(), LoopDevice::create(&["fs=ext4", "size=512M"]));
    let line = "bench --dir . --size 1M --duration 2s --flood dd:size=64M";
    let run = weir.run(&device.mount(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(run.code, 0, "{run:?}");
    let said = run.unwrapped();
    for part in ["handed to the page cache beside the jobs (stopped)", "warning the flood filled memory for "]
    {
        assert!(said.contains(part), "no `{part}` in {run:?}");
    }
}
