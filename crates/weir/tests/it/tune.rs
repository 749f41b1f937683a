//! Experiments: what needs no root is measured without it, every way out leads the settings back, and an experiment
//! that was killed goes on from its record.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::{Weir, ended};

fn trials(record: &Value) -> &Vec<Value> {
    record["extra"]["trials"].as_array().unwrap()
}

fn outcomes(record: &Value) -> Vec<&str> {
    let outcome = |trial: &Value| trial["observation"]["outcome"].as_object().unwrap().keys().next().cloned();
    let known = ["measured", "aborted", "failed"];
    let name = |trial: &Value| known.into_iter().find(|k| outcome(trial).as_deref() == Some(*k)).unwrap();
    trials(record).iter().map(name).collect()
}

/// What is left in a folder, hidden files too.
fn left_in(folder: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_dry_run_says_what_would_be_and_does_nothing() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let grid = ["--grid", "4MB,15MB", "--repeats", "2", "--dry-run"];
    let ended = weir.run(folder.path(), &[&["tune", "sweep", "vm.dirty_bytes"], &grid[..]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    // Idle, as found and two values, twice.
    assert!(ended.stdout.contains("8 trials"), "{ended:?}");
    assert_eq!(ended.stdout.matches("vm.dirty_bytes=15000000").count(), 2, "{ended:?}");
    assert_eq!((left_in(folder.path()).len(), weir.records().len()), (0, 0));
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, complaint) in [
        (&["tune", "sweep", "vm.swapiness", "--grid", "1"][..], 2, "vm.swappiness"),
        (&["tune", "sweep", "vm.dirty_bytes", "--grid", "4MB", "--dir", "/nowhere"][..], 3, "/nowhere"),
        (&["tune", "resume"][..], 2, "cut short"),
    ] {
        let ended = weir.run(folder.path(), arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(complaint), "{arguments:?}: {ended:?}");
    }
    assert_eq!((left_in(folder.path()).len(), weir.records().len()), (0, 0));
}

fn dirty_limits() -> Vec<String> {
    let files = ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];
    files.map(|file| fs::read_to_string(Path::new("/proc/sys/vm").join(file)).unwrap()).to_vec()
}

const SWEEP: [&str; 14] = [
    "tune",
    "sweep",
    "vm.dirty_bytes",
    "--grid",
    "8MB,16MB,64MB",
    "--repeats",
    "2",
    "--duration",
    "1s",
    "--size",
    "32M",
    "--build-up",
    "1200ms",
    "--even-if-busy",
];

#[test]
fn root_a_sweep_shows_both_axes_and_leads_the_limit_back() {
    if !root_or_say("root_a_sweep_shows_both_axes_and_leads_the_limit_back", &["losetup", "mkfs.xfs"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=2G", "fs=xfs", "write_iops=1500", "write_bps=200000000"]);
    let before = dirty_limits();
    let flood = ["--flood", "dd:size=1G", "--format", "record"];
    let ended = weir.run(&device.mount(), &[&SWEEP[..], &flood].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(dirty_limits(), before);
    assert_eq!(left_in(&device.mount()), Vec::<std::ffi::OsString>::new());
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(outcomes(&record), ["measured"; 10], "{}", ended.stderr);
    for trial in trials(&record) {
        let values = &trial["observation"]["outcome"]["measured"]["values"];
        let flooded = trial["observation"]["proposal"]["arm"] != 0;
        assert!(values["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{trial}");
        assert_eq!(values["bulk"].is_number(), flooded, "{trial}");
    }
}

#[test]
fn root_a_sweep_killed_at_any_moment_leaves_the_settings_as_they_were() {
    let name = "root_a_sweep_killed_at_any_moment_leaves_the_settings_as_they_were";
    if !root_or_say(name, &["losetup", "mkfs.xfs"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=2G", "fs=xfs", "write_iops=1500", "write_bps=200000000"]);
    let before = dirty_limits();
    let arguments = [&SWEEP[..], &["--flood", "dd:size=1G"]].concat();
    for kill in 0..4u64 {
        let mut running = weir.start(&device.mount(), &arguments, |activity| activity.written > 32 << 20);
        // Another moment of a trial each time: while a limit is lowered, holds, or is led back.
        std::thread::sleep(Duration::from_millis(1700 + kill * 937));
        running.signal("KILL");
        running.finish();
        // The guardian outlives what it guards.
        let patience = Instant::now() + Duration::from_secs(10);
        while dirty_limits() != before && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(dirty_limits(), before, "kill {kill}");
    }
}

#[test]
fn root_without_root_a_knob_is_refused_by_name() {
    if !root_or_say("root_without_root_a_knob_is_refused_by_name", &["setpriv"]) {
        return;
    }
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let arguments = ["tune", "sweep", "vm.swappiness", "--grid", "1", "--engine", "null"];
    let ended = ended(weir.wrapped(&wrapper, folder.path(), &arguments));
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("vm.swappiness takes root"), "{ended:?}");
}
