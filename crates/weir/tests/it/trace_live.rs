//! `weir trace live` and `weir trace util`: every source sees a load of known size, and says what it cannot see.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::lab::{LoopDevice, root_or_say, seen_of};
use crate::weir::{Weir, ended};

const READS: u64 = 3000;

/// A live view under way.
struct Live {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Live {
    /// Starts one, and returns once its source is at work.
    fn start(weir: &Weir, folder: &Path, arguments: &[&str]) -> Live {
        let mut child = weir.command(folder, &[&["trace", "live"], arguments].concat()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("weir: source "), "{line}");
        Live { child, stderr }
    }

    /// Ends it as Ctrl-C does: its code, and what it said.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let line = format!("kill -INT {}", self.child.id());
        assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout)
    }
}

fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A load of known size: direct random reads, one request each.
fn read_some(weir: &Weir, folder: &Path) {
    let reads = READS.to_string();
    let arguments = ["bench", "--rw", "randread", "--size", "8M", "--depth", "4", "--operations", &reads];
    let ended = weir.run(folder, &[&arguments[..], &["--duration", "60s"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn mistakes_are_named() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for (arguments, code, says) in [
        (&["live", "--interval", "1ms"][..], 2, "--interval 1.00 ms is too short"),
        (&["live", "-d", "no-such-device"], 3, "no-such-device"),
        (&["live", "--source", "diskstats", "--slow", "1ms"], 3, "--slow needs single requests"),
        (&["live", "--cgroup", "no/such/group"], 2, "is not a cgroup"),
        (&["util", "/proc"], 3, "no single block device stands behind /proc"),
        (&["util", "/", "--duration", "1ms"], 2, "too short for %util"),
    ] {
        let ended = weir.run(folder.path(), &[&["trace"], arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn counters_need_no_privilege_and_say_what_they_lack() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let arguments = ["trace", "live", "--source", "diskstats", "--interval", "0.2s", "--duration", "0.5s"];
    let text = weir.run(folder.path(), &arguments);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stderr.contains("no percentiles, no stages"), "{}", text.stderr);
    assert!(text.stdout.contains("\nOver 0.") && text.stdout.contains("source diskstats"), "{}", text.stdout);
    let json = weir.run(folder.path(), &[&arguments[..], &["--json"]].concat());
    let kinds: Vec<Value> = objects(&json.stdout).into_iter().map(|o| o["type"].clone()).collect();
    let (last, intervals) = kinds.split_last().unwrap();
    assert!(!intervals.is_empty() && intervals.iter().all(|kind| kind == "interval"), "{}", json.stdout);
    assert_eq!(last, "summary", "{}", json.stdout);
}

#[test]
fn root_alone_every_source_counts_the_same_load() {
    if !root_or_say("root_alone_every_source_counts_the_same_load", &["mkfs.ext4"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=256M", "direct=on"]);
    let node = device.device().display().to_string();
    for (source, stages) in [("bpf", true), ("tracefs", true), ("diskstats", false)] {
        let arguments = ["-d", &node, "--json", "--interval", "0.3s", "--source", source];
        let live = Live::start(&weir, &device.mount(), &arguments);
        read_some(&weir, &device.mount());
        let (code, stdout) = live.interrupt();
        assert_eq!(code, Some(130), "{source}: {stdout}");
        let all = objects(&stdout);
        let (summary, intervals) = all.split_last().unwrap();
        assert_eq!((&summary["type"], &summary["source"]), (&"summary".into(), &source.into()));
        let row = |object: &Value| {
            let rows = object["devices"][0]["rows"].as_array().cloned().unwrap_or_default();
            rows.into_iter().find(|row| row["class"] == "read").unwrap_or_default()
        };
        let reads: u64 = intervals.iter().filter_map(|interval| row(interval)["ios"].as_u64()).sum();
        // Neighbours that are sent together may be merged; the file system reads some blocks of its own.
        assert!((READS - 50..READS + 200).contains(&reads), "{source}: {reads} reads");
        let whole = row(&summary["live"]);
        assert_eq!(whole["ios"].as_u64(), Some(reads), "{source}: {whole}");
        assert_eq!(whole["device"]["p99_ns"].is_u64(), stages, "{source}: {whole}");
        if stages {
            let class = &summary["devices"][0]["classes"]["read"];
            let d2c = &class["stages"]["d2c"];
            assert_eq!(d2c["count"].as_u64(), Some(reads), "{source}: {class}");
            assert!(d2c["p50_ns"].as_f64() <= d2c["p99_ns"].as_f64() && d2c["min_ns"].as_f64() > Some(0.0));
        }
    }
}

/// A disk in memory, which passes no requests on and has none; taken away again.
struct MemoryDisk(String);

impl MemoryDisk {
    /// Nothing where the kernel has none.
    fn new(mib: u64) -> Option<MemoryDisk> {
        let number = fs::read_to_string("/sys/class/zram-control/hot_add").ok()?;
        let disk = MemoryDisk(number.trim().to_string());
        fs::write(format!("/sys/block/zram{}/disksize", disk.0), format!("{mib}M")).unwrap();
        Some(disk)
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.0), "1");
        if let Err(error) = fs::write("/sys/class/zram-control/hot_remove", &self.0) {
            eprintln!("left behind: zram{}: {error}", self.0);
        }
    }
}

#[test]
fn root_alone_a_device_without_requests_is_seen_by_its_bios() {
    const TEST: &str = "root_alone_a_device_without_requests_is_seen_by_its_bios";
    const WRITES: u64 = 200;
    if !root_or_say(TEST, &["dd"]) {
        return;
    }
    let Some(disk) = MemoryDisk::new(16) else {
        let _ = writeln!(io::stderr(), "not run: {TEST} lacks zram");
        return;
    };
    let (weir, folder) = (Weir::alone(), tempfile::tempdir().unwrap());
    let node = format!("/dev/zram{}", disk.0);
    for source in ["bpf", "tracefs"] {
        let arguments = ["-d", &node, "--json", "--interval", "0.3s", "--source", source];
        let live = Live::start(&weir, folder.path(), &arguments);
        let count = format!("count={WRITES}");
        let dd = ["if=/dev/zero", &format!("of={node}"), "bs=16k", &count, "oflag=direct", "status=none"];
        assert!(Command::new("dd").args(dd).status().unwrap().success());
        let (code, stdout) = live.interrupt();
        assert_eq!(code, Some(130), "{source}: {stdout}");
        let summary = objects(&stdout).pop().unwrap();
        let rows = summary["live"]["devices"][0]["rows"].as_array().cloned().unwrap_or_default();
        let writes = rows.iter().find(|row| row["class"] == "write").and_then(|row| row["ios"].as_u64());
        let wanted = if source == "bpf" { seen_of(WRITES) } else { WRITES..=WRITES };
        assert!(writes.is_some_and(|writes| wanted.contains(&writes)), "{source}: {rows:?}");
    }
}

#[test]
fn root_alone_slow_requests_come_with_stages_and_sender() {
    if !root_or_say("root_alone_slow_requests_come_with_stages_and_sender", &["mkfs.ext4"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=256M", "direct=on"]);
    let node = device.device().display().to_string();
    for source in ["bpf", "tracefs"] {
        let arguments =
            ["-d", &node, "--json", "--detail", "--slow", "1us", "--interval", "0.3s", "--source", source];
        let live = Live::start(&weir, &device.mount(), &arguments);
        read_some(&weir, &device.mount());
        let (_, stdout) = live.interrupt();
        let intervals = objects(&stdout);
        let slow: Vec<&Value> = intervals.iter().filter_map(|o| o["slow"].as_array()).flatten().collect();
        let of_weir = slow.iter().filter(|io| io["sender"].as_str().is_some_and(|name| !name.is_empty()));
        let complete = of_weir.filter(|io| {
            let stage = |name: &str| io["stages"][name].as_u64();
            let parts = [stage("q2g_ns"), stage("g2d_ns").or(Some(0)), stage("d2c_ns")];
            stage("q2c_ns").is_some_and(|total| parts.iter().flatten().all(|part| *part <= total))
        });
        let complete = complete.count();
        assert!(complete > 10, "{source}: {complete} of {} slow requests are complete", slow.len());
    }
}

#[test]
fn a_terminal_is_given_back() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let view = weir.command(folder.path(), &["trace", "live", "--source", "diskstats", "--duration", "0.4s"]);
    let line = format!(
        "stty rows 20 cols 60; {} trace live --source diskstats --interval 0.1s --duration 0.4s",
        view.get_program().display()
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = ended(script);
    assert_eq!(ended.code, 0, "{ended:?}");
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    let (at, until) = (ended.stdout.find(enter).unwrap(), ended.stdout.find(leave).unwrap());
    let screens = &ended.stdout[at..until];
    assert!(screens.matches("\u{1b}[H").count() >= 2, "{screens:?}");
    for line in screens.split("\u{1b}[H").last().unwrap().split("\r\n") {
        let plain = line.replace("\u{1b}[K", "");
        let shown = plain.split('\u{1b}').next().unwrap().trim_end_matches('\r');
        assert!(shown.chars().count() <= 60, "{shown:?}");
    }
    assert!(ended.stdout[until..].contains("Over 0."), "{ended:?}");
}

#[test]
fn root_alone_util_is_held_against_the_stored_curve() {
    if !root_or_say("root_alone_util_is_held_against_the_stored_curve", &["mkfs.ext4"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=256M", "direct=on"]);
    let folder = device.mount();
    let node = device.device().display().to_string();
    let util = |more: &[&str]| {
        let arguments = ["trace", "util", &node, "--duration", "1s", "--format", "json"];
        let ended = weir.run(&folder, &[&arguments[..], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    // Whoever watches for new devices may still be probing this one.
    let is_idle = |seen: &Value| seen["statements"][0].as_str().unwrap().starts_with("No I/O");
    let seen: Vec<Value> = (0..5).map(|_| util(&[])).take_while(|seen| !is_idle(seen)).collect();
    assert!(seen.len() < 5, "{seen:?}");
    read_some(&weir, &folder);
    let load = ["bench", "--rw", "randread", "--size", "8M", "--rate", "300", "--duration", "30s"];
    let running = weir.start(&folder, &load, |done| done.read > 100 * 4096);
    let busy = util(&["--against", "last"]);
    drop(running);
    let side = &busy["against"][0];
    assert_eq!((&side["class"], &side["max_depth"]), (&"read".into(), &4.into()), "{busy}");
    let (share, max) = (busy["saturation"].as_f64().unwrap(), side["max_iops"].as_f64().unwrap());
    assert!((share - side["iops"].as_f64().unwrap() / max).abs() < 1e-9 && share > 0.0, "{busy}");
    let again = util(&[]);
    assert_eq!(again["record_id"], busy["record_id"], "the newest run of this device is found");
}
