//! `weir bench --replay`: what was recorded is what is played, on a file of weir's own or on a device that was named.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{LoopDevice, root_or_say, seen_of};
use crate::weir::{Ended, Weir};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")
}

/// Plays a fixture in a folder of its own, a thousand times as fast.
fn play(weir: &Weir, folder: &TempDir, recording: &str, options: &[&str]) -> Ended {
    let recording = fixtures().join(recording);
    let start = ["bench", "--replay", recording.to_str().unwrap(), "--speed", "1000", "--gap-max", "10ms"];
    weir.run(folder.path(), &[&start[..], options].concat())
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn recordings_of_others_are_played_on_a_file_that_goes_away() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for (recording, options, expected) in [
        ("ext4-fua", &["--size", "16M"][..], ["sda (8:0)", "wrap"]),
        ("reference-ext4/vda.bin.gz", &["--size", "8M", "--space", "scale"], ["254:0", "scale"]),
        ("ftrace/read.bin.gz", &["--direct=false"], ["254:0", "recorded"]),
        ("dm-delay", &["--replay-device", "dm-0"], ["dm-0 (253:0)", "recorded"]),
    ] {
        let result = json(&play(&weir, &folder, recording, &[options, &["--json"]].concat()));
        let (job, replay) = (&result["jobs"][0], &result["replay"]);
        assert_eq!(
            [replay["device"].as_str(), replay["fitted"]["space"].as_str()],
            expected.map(Some),
            "{recording}"
        );
        assert_eq!(job["lateness"]["intended"], replay["fitted"]["operations"], "{recording}");
        assert_eq!(job["error"], Value::Null, "{recording}");
        assert!(!replay["stages"].as_array().unwrap().is_empty(), "{recording}: {replay}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{recording}");
    }
    // The stored run reads as it was printed, as text too.
    let shown = weir.run(folder.path(), &["results", "show", "last"]);
    for part in ["played", "253:0", "timing", "Q2C"] {
        assert!(shown.stdout.contains(part), "no {part}: {shown:?}");
    }
    let page = weir.run(folder.path(), &["report", "last", "--out", "page.html"]);
    assert_eq!(page.code, 0, "{page:?}");
    assert!(fs::read_to_string(folder.path().join("page.html")).unwrap().contains("What was played"));
}

#[test]
fn what_cannot_be_played_is_refused_with_a_reason() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("jobs.toml"), "[[job]]\n").unwrap();
    fs::write(folder.path().join("no-recording"), "what?").unwrap();
    let here = folder.path().join("no-recording").display().to_string();
    for (recording, options, code, expected) in [
        ("dm-delay", &[][..], 2, "several devices"),
        ("dm-delay", &["--replay-device", "sdz"], 2, "no I/O of sdz"),
        ("ext4-fua", &["--engine", "psync"], 2, "waits for each operation"),
        ("ext4-fua", &["--rw", "read"], 2, "cannot be used with"),
        ("ext4-fua", &["jobs.toml"], 2, "both the job file"),
        ("ext4-fua", &["--space", "recorded", "--size", "1M"], 2, "reaches to"),
        ("ext4-fua", &["--from", "9h"], 3, "no I/O that can be played"),
        ("nowhere", &[], 3, "cannot read"),
        (here.as_str(), &[], 3, "weir reads blktrace's"),
    ] {
        let ended = play(&weir, &folder, recording, options);
        assert_eq!(ended.code, code, "{recording} {options:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{recording} {options:?}: {ended:?}");
    }
    let of = fixtures().join("ext4-fua").display().to_string();
    let stopped = weir.run(folder.path(), &["bench", "--replay", &of, "--speed", "0"]);
    assert!(stopped.code == 2 && stopped.stderr.contains("a speed of 0"), "{stopped:?}");
    assert_eq!(weir.run(folder.path(), &["bench", "--speed", "2"]).code, 2, "without a recording");
    assert_eq!(weir.records().len(), 0);
}

/// What weir records of a known load is played on another device: as many I/Os of each kind and as many bytes, seen by
/// the kernel; and that device only where it was named as lost.
#[test]
fn root_a_recorded_load_is_played_on_a_named_device() {
    if !root_or_say("root_a_recorded_load_is_played_on_a_named_device", &["losetup"]) {
        return;
    }
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let devices = [0, 1].map(|_| LoopDevice::create(&["fs=none", "size=32M"]));
    let [source, target] = devices.each_ref().map(|device| device.device().display().to_string());
    let load = format!(
        "{} bench --device {source} --i-know-this-destroys {source} --rw randrw --read-percent 40 --block 8k \
         --rate 2000 --sync-every 20 --operations 500",
        assert_cmd::cargo::cargo_bin!("weir").display()
    );
    let record = ["trace", "record", "--device", &source, "--out", "a.weirtrace", "--", "sh", "-c", &load];
    assert_eq!(weir.run(folder.path(), &record).code, 0);
    let replay = ["bench", "--replay", "a.weirtrace", "--device", &target];
    let refused = weir.run(folder.path(), &replay);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("--i-know-this-destroys"), "{refused:?}");
    assert!(devices[1].content().iter().all(|byte| *byte == 0), "nothing was written before");
    let allowed = [&replay[..], &["--i-know-this-destroys", &target, "--json"]].concat();
    let result = json(&weir.run(folder.path(), &allowed));
    let fitted = &result["replay"]["fitted"];
    let count = |name: &str| fitted[name].as_u64().unwrap();
    // The load reads 200 and writes 300 blocks, and syncs 15 times and at the end.
    let (reads, writes) = (count("reads"), count("writes"));
    assert!(seen_of(200).contains(&reads) && seen_of(300).contains(&writes), "{fitted}");
    assert_eq!(count("bytes"), (reads + writes) * 8192, "{fitted}");
    assert!(count("flushes") >= 15, "{fitted}");
    assert_eq!(fitted["space"], "recorded");
    let rows = result["replay"]["stages"].as_array().unwrap();
    let row = |class: &str| {
        let is_it = |row: &&Value| row["class"] == class && row["stage"] == "q2c";
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no {class}: {rows:?}"))
    };
    assert_eq!(result["replay"]["unseen"], Value::Null);
    for (class, at_least) in [("read", 200), ("write", 300), ("flush", 15)] {
        for side in ["recorded", "replayed"] {
            let seen = row(class)[side]["count"].as_u64().unwrap_or(0);
            assert!(seen >= *seen_of(at_least).start(), "{class} {side}: {rows:?}");
        }
    }
    assert!(devices[1].content().iter().any(|byte| *byte != 0));
}
