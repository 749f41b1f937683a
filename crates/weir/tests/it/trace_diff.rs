//! `weir trace diff`: the three stories of a suspected drive, from recordings whose latencies are known, and from
//! devices made for it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::{LoopDevice, lab, root_or_say};
use crate::weir::{Ended, Weir, signal};

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17 | 1 << 19;

/// How a machine of the test serves I/Os, µs.
#[derive(Clone, Copy)]
struct Machine {
    device: u32,
    /// I and the wait after it, where there is a scheduler.
    scheduler_us: Option<u64>,
    read_us: u64,
    write_us: u64,
    /// Of 100 I/Os, so many are reads of 4 KiB; of the others half are writes of 16, half of 64 KiB.
    reads: u64,
    /// All I/Os are writes of 1 MiB.
    large: bool,
    seed: u64,
}

const DRIVE: Machine = Machine {
    device: 8 << 20,
    scheduler_us: None,
    read_us: 90,
    write_us: 60,
    reads: 50,
    large: false,
    seed: 1,
};

/// Writes a recording of 20,000 I/Os, one after another, their times scattered by half around the machine's.
fn record(folder: &Path, name: &str, machine: Machine) -> PathBuf {
    let mut state = machine.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut bytes = Vec::new();
    let mut time_ns = 5_000_000_000_u64;
    for nth in 0..20_000_u64 {
        let read = random(100) < machine.reads && !machine.large;
        let sectors = match (machine.large, read, random(2)) {
            (true, ..) => 2048,
            (_, true, _) => 8,
            (_, _, 0) => 32,
            _ => 128,
        };
        let sector = random(1 << 20) * 2048;
        let kind = if read { READ } else { WRITE };
        let mut scattered = |us: u64| us * 500 + random(us * 1000);
        let mut events = vec![(0, 1 << 20 | 1), (700, 1 << 20 | 4)];
        let mut at_ns = 1200 + scattered(1);
        if let Some(wait_us) = machine.scheduler_us {
            events.push((at_ns, 1 << 24 | 12));
            at_ns += scattered(wait_us);
        }
        events.push((at_ns, 1 << 22 | 7));
        at_ns += scattered(if read { machine.read_us } else { machine.write_us } * (1 + sectors / 256));
        events.push((at_ns, 1 << 23 | 8));
        for (after_ns, action) in events {
            append(
                &mut bytes,
                machine.device,
                (nth + 1) as u32,
                time_ns + after_ns,
                (sector, sectors),
                kind | action,
            );
        }
        time_ns += at_ns + 5000;
    }
    let path = folder.join(format!("{name}.blktrace.0"));
    fs::write(&path, bytes).unwrap();
    path
}

/// A record of version 7, without a number, so that none seem missing.
fn append(bytes: &mut Vec<u8>, device: u32, pid: u32, time_ns: u64, at: (u64, u64), action: u32) {
    bytes.extend(0x6561_7407_u32.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(time_ns.to_le_bytes());
    bytes.extend(at.0.to_le_bytes());
    bytes.extend(((at.1 * 512) as u32).to_le_bytes());
    for field in [action, pid, device, 0, 0] {
        bytes.extend(field.to_le_bytes());
    }
}

fn json(arguments: &[&str]) -> Value {
    let ended = run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn run(arguments: &[&str]) -> Ended {
    Weir::new().run(Path::new("/"), &[&["trace", "diff"], arguments].concat())
}

fn stage<'a>(diff: &'a Value, class: &str, stage: &str) -> &'a Value {
    let classes = diff["classes"].as_array().unwrap();
    let class = classes.iter().find(|of| of["class"] == class).unwrap();
    class["stages"].as_array().unwrap().iter().find(|of| of["stage"] == stage).unwrap_or(&Value::Null)
}

fn verdict(diff: &Value) -> String {
    let sentences: Vec<&str> =
        diff["verdict"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    sentences.join("\n")
}

/// Whether the interval of a ratio of means holds the truth, and nothing far from it.
fn assert_ratio(diff: &Value, class: &str, name: &str, truth: f64) {
    let mean = &stage(diff, class, name)["mean"];
    let interval = mean["interval"].as_array().unwrap();
    let [low, high] = [0, 1].map(|n| interval[n].as_f64().unwrap());
    let ratio = mean["ratio"].as_f64().unwrap();
    assert!((ratio / truth - 1.0).abs() < 0.05, "{class} {name}: {mean}, not {truth}");
    assert!(low <= ratio && ratio <= high && high / low < 1.2, "{class} {name}: {mean}");
}

#[test]
fn a_controllers_cache_shows_in_d2c_whatever_the_mix() {
    let folder = tempfile::tempdir().unwrap();
    let cached = record(folder.path(), "off", DRIVE);
    // 2.4 times as slow, and with many more of the large, slow writes: the mix must not be taken for the drive.
    let slow = Machine { read_us: 216, write_us: 144, reads: 20, seed: 2, ..DRIVE };
    let slow = record(folder.path(), "on", slow);
    let diff = json(&[cached.to_str().unwrap(), slow.to_str().unwrap()]);
    assert_ratio(&diff, "all", "d2c", 2.4);
    assert_ratio(&diff, "read", "d2c", 2.4);
    assert_eq!(stage(&diff, "all", "q2g")["judgement"], "same");
    let words = verdict(&diff);
    assert!(words.contains("D2C 2.4 × as long in B as in A"), "{words}");
    assert!(words.contains("hardware or its cache"), "{words}");
    let back = json(&[slow.to_str().unwrap(), cached.to_str().unwrap()]);
    assert!(verdict(&back).contains("D2C 2.4 × as long in A as in B"), "{}", verdict(&back));
}

#[test]
fn a_scheduler_is_held_against_none_by_the_whole_way_to_the_driver() {
    let folder = tempfile::tempdir().unwrap();
    let none = record(folder.path(), "none", DRIVE);
    let deadline = record(folder.path(), "deadline", Machine { scheduler_us: Some(8), seed: 3, ..DRIVE });
    let diff = json(&[none.to_str().unwrap(), deadline.to_str().unwrap()]);
    assert_eq!(stage(&diff, "all", "d2c")["judgement"], "same");
    assert_eq!(stage(&diff, "all", "i2d")["judgement"], "only_b");
    assert_eq!(stage(&diff, "all", "g2d")["judgement"], "only_a");
    assert_eq!(stage(&diff, "all", "g2d_all")["judgement"], "longer");
    let words = verdict(&diff);
    assert!(words.contains("B's I/Os go through a scheduler (G2I and I2D), A's go straight"), "{words}");
    assert!(words.contains("D2C the same within"), "{words}");
}

#[test]
fn a_peer_that_is_as_fast_is_called_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let here = record(folder.path(), "here", DRIVE);
    let peer = record(folder.path(), "peer", Machine { seed: 4, device: 259 << 20, reads: 40, ..DRIVE });
    let diff = json(&[here.to_str().unwrap(), peer.to_str().unwrap()]);
    assert!(verdict(&diff).starts_with("the same within"), "{}", verdict(&diff));
    assert!(verdict(&diff).contains("healthy"), "{}", verdict(&diff));

    // Saved analyses say the same, and the same seed the same intervals.
    let saved = ["here", "peer"].map(|name| {
        let ended = Weir::new().run(folder.path(), &["trace", "read", "--format", "json", name]);
        let path = folder.path().join(format!("{name}.json"));
        fs::write(&path, ended.stdout).unwrap();
        path
    });
    let again = json(&[saved[0].to_str().unwrap(), saved[1].to_str().unwrap()]);
    assert_eq!((&again["classes"], &again["verdict"]), (&diff["classes"], &diff["verdict"]));

    let text = run(&[saved[0].to_str().unwrap(), saved[1].to_str().unwrap()]).stdout;
    assert!(text.starts_with("verdict  the same within"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn mixes_without_common_kinds_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let small = record(folder.path(), "small", DRIVE);
    let large = record(folder.path(), "large", Machine { large: true, ..DRIVE });
    let diff = json(&[small.to_str().unwrap(), large.to_str().unwrap()]);
    assert!(verdict(&diff).starts_with("the mixes cannot be compared"), "{}", verdict(&diff));
    assert!(diff["classes"].as_array().unwrap().iter().all(|class| class["comparable"] == false), "{diff}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let drive = record(folder.path(), "drive", DRIVE);
    let drive = drive.to_str().unwrap();
    let (foreign, other_json) =
        (path("foreign", "no recording of anything"), path("other.json", "{\"a\": 1}\n"));
    for (arguments, code, said) in [
        (vec![drive, &foreign], 3, "magic is missing"),
        (vec![drive, &other_json], 3, "not an analysis of a recording"),
        (vec![drive, drive, "--device", "9:9"], 2, "has no device 9:9; it has 8:0"),
        (vec![drive, drive, "--margin", "0"], 2, "expected a share"),
        (vec![drive, "/nowhere"], 3, "/nowhere"),
    ] {
        let ended = run(&arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
}

/// Half a recording is not held against a whole one.
#[test]
fn a_signal_ends_a_comparison_without_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let drive = record(folder.path(), "drive", DRIVE);
    let bytes = fs::read(&drive).unwrap();
    let drive = drive.to_str().unwrap();
    for arguments in [["-", drive], [drive, "-"]] {
        let weir = Weir::new();
        let mut command = weir.command(folder.path(), &[&["trace", "diff"][..], &arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds, so that it is being read once all is written; without the signal there would be no end.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&bytes).unwrap();
        signal("INT", child.id());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{arguments:?}: {stderr}");
        assert!(stderr.contains("nothing is compared"), "{arguments:?}: {stderr}");
    }
}

/// A loop device over another one, so that what throttles the lower is, for the upper, its hardware.
struct Drive {
    node: String,
    below: LoopDevice,
}

impl Drive {
    fn create(options: &[&str]) -> Drive {
        let below = LoopDevice::create(&[&["fs=none", "size=64M"], options].concat());
        let arguments = ["--find", "--show", "--direct-io=on"];
        let output = Command::new("losetup").args(arguments).arg(below.device()).output().unwrap();
        assert!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr));
        Drive { node: String::from_utf8(output.stdout).unwrap().trim().to_string(), below }
    }

    fn set_scheduler(&self, name: &str) {
        let block = Path::new("/sys/block").join(Path::new(&self.node).file_name().unwrap());
        fs::write(block.join("queue/scheduler"), name).unwrap();
    }

    /// Records random reads; where events cannot be recorded here, what is lacking.
    fn record(&self, folder: &Path, name: &str) -> Result<PathBuf, String> {
        let (lab, base) = (lab().join("loop-device"), self.below.mount());
        let wrapper = [lab.to_str().unwrap(), "run", base.parent().unwrap().to_str().unwrap()];
        let weir = assert_cmd::cargo::cargo_bin!("weir").display().to_string();
        let path = folder.join(name);
        let recorder =
            ["trace", "record", "--device", &self.node, "--events", "all", "--out", path.to_str().unwrap()];
        let load = ["--", &weir, "bench", "--device", &self.node, "--rw", "randread", "--block", "4k"];
        let how = ["--direct", "--engine", "psync", "--duration", "2s"];
        let output =
            Weir::new().wrapped(&wrapper, folder, &[&recorder[..], &load, &how].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => Ok(path),
            Some(3) => Err(said.lines().next().unwrap_or_default().to_string()),
            _ => panic!("{}: {said}", self.node),
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

#[test]
fn root_a_slowed_drive_a_scheduler_and_a_twin_are_told_apart() {
    let test = "root_a_slowed_drive_a_scheduler_and_a_twin_are_told_apart";
    if !root_or_say(test, &["losetup"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (drive, twin, slow) = (Drive::create(&[]), Drive::create(&[]), Drive::create(&["read_iops=200"]));
    [&drive, &twin, &slow].iter().for_each(|drive| drive.set_scheduler("none"));
    let here = match drive.record(folder.path(), "here") {
        Ok(path) => path,
        Err(lacking) => {
            let _ = writeln!(io::stderr(), "not run: {test} lacks a way to record: {lacking}");
            return;
        }
    };
    let compare = |other: &PathBuf| json(&[here.to_str().unwrap(), other.to_str().unwrap()]);

    // 200 reads a second, one at a time, take 5 ms each.
    let slowed = compare(&slow.record(folder.path(), "slow").unwrap());
    assert_eq!(stage(&slowed, "all", "d2c")["judgement"], "longer", "{slowed}");
    let words = verdict(&slowed);
    assert!(words.contains("as long in B as in A") && words.contains("the hardware or its cache"), "{words}");

    drive.set_scheduler("mq-deadline");
    let deadline = compare(&drive.record(folder.path(), "deadline").unwrap());
    assert_eq!(stage(&deadline, "all", "i2d")["judgement"], "only_b", "{deadline}");
    assert!(verdict(&deadline).contains("B's I/Os go through a scheduler"), "{}", verdict(&deadline));
    assert!(stage(&deadline, "all", "g2d_all")["mean"]["interval"].is_array(), "{deadline}");

    let peer = compare(&twin.record(folder.path(), "twin").unwrap());
    let all = peer["classes"].as_array().unwrap().iter().find(|class| class["class"] == "all").unwrap();
    assert_eq!(all["common"], serde_json::json!([1.0, 1.0]), "{peer}");
    assert!(stage(&peer, "all", "q2c")["mean"]["interval"].is_array(), "{peer}");
    assert!(!verdict(&peer).contains("scheduler,"), "{}", verdict(&peer));
}
