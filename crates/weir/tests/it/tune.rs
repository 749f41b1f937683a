//! Experiments: what needs no root is measured without it, every way out leads the settings back, and an experiment
//! that was killed goes on from its record.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{LoopDevice, dirty_limits, root_or_say};
use crate::weir::{Weir, ended};

/// Two ways to run that differ in nothing that matters, in trials as short as they can be.
const NULL: [&str; 12] = [
    "tune",
    "ab",
    "job:threads=1",
    "job:threads=2",
    "--engine",
    "null",
    "--duration",
    "200ms",
    "--warmup",
    "0s",
    "--pairs",
    "6",
];

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
fn two_jobs_are_compared_without_root_and_every_trial_is_kept() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let ended = weir.run(folder.path(), &[&NULL[..], &["--format", "json"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(report["finding"]["headline"].as_str().is_some_and(|line| !line.is_empty()), "{report}");
    let records = weir.records();
    assert_eq!((records.len(), records[0]["kind"].as_str()), (1, Some("tune")));
    assert_eq!(outcomes(&records[0]), ["measured"; 12]);
    assert_eq!(records[0]["jobs"].as_array().unwrap().len(), 12);
    assert_eq!(records[0]["ended_early"], Value::Null);
}

#[test]
fn two_commands_are_compared_by_the_figures_they_print() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let common =
        ["--metric", "tps=tps=([0-9]+)", "--duration", "200ms", "--pairs", "3", "--format", "record"];
    let ab = |a: &'static str, b: &'static str| {
        weir.run(folder.path(), &[&["tune", "ab", "--a-command", a, "--b-command", b], &common[..]].concat())
    };
    let good = ab("echo tps=100", "echo tps=200");
    assert_eq!(good.code, 0, "{good:?}");
    let record: Value = serde_json::from_str(&good.stdout).unwrap();
    let figure = |trial: &Value| trial["observation"]["outcome"]["measured"]["values"]["tps"].as_f64();
    let mut figures: Vec<f64> = trials(&record).iter().filter_map(figure).collect();
    figures.sort_by(f64::total_cmp);
    assert_eq!(figures, [100.0, 100.0, 100.0, 200.0, 200.0, 200.0]);

    let bad = ab("echo no figure", "echo none here");
    assert_eq!(bad.code, 3, "{bad:?}");
    assert!(bad.stderr.contains("fits nothing") && bad.stderr.contains("no figure"), "{bad:?}");
}

#[test]
fn a_dry_run_says_what_would_be_and_does_nothing() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let grid = ["--grid", "4100000,15100000", "--repeats", "2", "--dry-run"];
    let ended = weir.run(folder.path(), &[&["tune", "sweep", "vm.dirty_bytes"], &grid[..]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    // Idle, the baseline and two values, twice.
    assert!(ended.stdout.contains("8 trials"), "{ended:?}");
    assert_eq!(ended.stdout.matches("vm.dirty_bytes=15100000").count(), 2, "{ended:?}");
    assert_eq!((left_in(folder.path()).len(), weir.records().len()), (0, 0));
    // The baseline is one arm, also where its value was typed.
    let swappiness = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let (found, other) = (swappiness.trim(), if swappiness.trim() == "1" { "2" } else { "1" });
    let grid = format!("--grid={found},{other}");
    let ended =
        weir.run(folder.path(), &["tune", "sweep", "vm.swappiness", &grid, "--repeats=1", "--dry-run"]);
    assert!(ended.stdout.contains("2 trials") && !ended.stdout.contains(&format!("={found} ")), "{ended:?}");
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, complaint) in [
        (&["tune", "sweep", "vm.swapiness", "--grid", "1"][..], 2, "vm.swappiness"),
        (&["tune", "ab", "job:threads=0", "found"][..], 2, "threads"),
        (&["tune", "ab", "found"][..], 2, "<B>"),
        (&["tune", "ladder", "blok=4k"][..], 2, "block"),
        (&["tune", "sweep", "vm.dirty_bytes", "--grid", "4MB", "--dir", "/nowhere"][..], 3, "/nowhere"),
        (&["tune", "resume"][..], 2, "no interrupted experiment"),
        (&["tune", "ab", "found", "job:threads=2", "--engine=null", "--goal=max speed"][..], 2, "speed"),
    ] {
        let ended = weir.run(folder.path(), arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(complaint), "{arguments:?}: {ended:?}");
    }
    assert_eq!((left_in(folder.path()).len(), weir.records().len()), (0, 0));
}

/// Waits until so many trials are in the store.
fn wait_for_trials(weir: &Weir, least: usize) {
    let patience = Instant::now() + Duration::from_secs(60);
    while weir.records().first().is_none_or(|record| trials(record).len() < least) {
        assert!(Instant::now() < patience, "no trial was kept in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_experiment_goes_on_from_its_record() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let small = ["--size", "1M", "--block", "4k", "--pairs", "4", "--duration", "300ms", "--warmup", "0s"];
    let arguments = [&["tune", "ab", "job:threads=1", "job:threads=2"], &small[..]].concat();
    let mut running = weir.start(folder.path(), &arguments, |activity| activity.written > 1 << 20);
    wait_for_trials(&weir, 2);
    running.signal("KILL");
    running.finish();
    let before = weir.records().remove(0);
    assert_eq!(before["ended_early"], "not finished");

    // A record says what commands run and what files are written: what others can write is not acted on.
    let id = before["id"].as_str().unwrap();
    let record = weir.store().join(format!("{id}.json"));
    for (path, bits, usual) in [(record.as_path(), 0o666, 0o644), (weir.store(), 0o777, 0o755)] {
        fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
        let refused = weir.run(folder.path(), &["tune", "resume", id]);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.stderr.contains("other accounts may write to it"), "{refused:?}");
        let skipped = weir.run(folder.path(), &["tune", "resume"]);
        assert_eq!(skipped.code, 2, "{skipped:?}");
        assert!(skipped.stderr.contains(&format!("note: skips {id}")), "{skipped:?}");
        fs::set_permissions(path, Permissions::from_mode(usual)).unwrap();
    }

    let resumed = weir.run(folder.path(), &["tune", "resume"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("weir: trials write to "), "nobody typed it this time: {resumed:?}");
    let after = weir.records();
    assert_eq!(after.len(), 1, "it goes on in the same record");
    assert_eq!(trials(&after[0]).len(), 8);
    let kept = trials(&before).len();
    assert_eq!(trials(&after[0])[..kept], trials(&before)[..], "what was measured stays");
    assert_eq!(after[0]["ended_early"], Value::Null);
    assert_eq!(left_in(folder.path()), Vec::<std::ffi::OsString>::new());
    let again = weir.run(folder.path(), &["tune", "resume"]);
    assert_eq!(again.code, 2, "{again:?}");
}

#[test]
fn an_interrupted_experiment_prints_what_it_has_and_how_to_go_on() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let mut running = weir.start(folder.path(), &NULL, |activity| activity.read > 0);
    wait_for_trials(&weir, 3);
    running.signal("INT");
    let ended = running.finish();
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(ended.stdout.contains("weir tune ab"), "{ended:?}");
    assert!(ended.stderr.contains("weir tune resume"), "{ended:?}");
    assert_eq!(weir.records()[0]["ended_early"], "SIGINT");
    let resumed = weir.run(folder.path(), &["tune", "resume"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(trials(&weir.records()[0]).len(), 12);
}

#[test]
fn a_full_budget_ends_an_experiment_in_time() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let ended = weir.run(folder.path(), &[&NULL[..], &["--budget", "1s", "--format", "record"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    let made = trials(&record).len();
    assert!(made < 12, "12 trials of 200 ms do not fit into a second: {made}");
}

/// A small sweep of the dirty limit beside a flood.
pub const SWEEP: [&str; 16] = [
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
    "--flood",
    "dd:size=1G",
];

#[test]
fn root_alone_a_sweep_shows_both_axes_and_leads_the_limit_back() {
    if !root_or_say("root_alone_a_sweep_shows_both_axes_and_leads_the_limit_back", &["losetup", "mkfs.xfs"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=2G", "fs=xfs", "write_iops=1500", "write_bps=200000000"]);
    let before = dirty_limits();
    let ended = weir.run(&device.mount(), &[&SWEEP[..], &["--format", "record"]].concat());
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
fn root_without_root_a_knob_is_refused_by_name() {
    if !root_or_say("root_without_root_a_knob_is_refused_by_name", &["setpriv"]) {
        return;
    }
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // Values that follow from the device's rate are not measured first.
    for (line, knob) in [
        ("sweep vm.swappiness --grid 1", "vm.swappiness"),
        ("sweep vm.dirty_bytes", "vm.dirty"),
        ("race vm.dirty_bytes vm.swappiness", "vm.swappiness"),
    ] {
        let line = format!("tune {line} --engine null");
        let arguments: Vec<&str> = line.split(' ').collect();
        let ended = ended(weir.wrapped(&wrapper, folder.path(), &arguments));
        assert_eq!(ended.code, 3, "{line}: {ended:?}");
        assert!(ended.stderr.contains(&format!("{knob} takes root")), "{line}: {ended:?}");
        assert!(!ended.stderr.contains("write rate"), "{line}: {ended:?}");
    }
}
