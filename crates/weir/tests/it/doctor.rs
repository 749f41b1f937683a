//! `weir doctor`: what it says stands on what it measured, and nothing stays behind, however it ends.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::lab::{DirtyLimits, LoopDevice, dirty_limits, root_or_say};
use crate::weir::{Weir, files_under};

/// The shortest examination, without a flood.
const SHORT: [&str; 5] = ["doctor", "--duration", "20s", "--no-flood", "--size=64M"];
/// What the test file writes before anything else is measured.
const FILE_BYTES: u64 = 64 << 20;

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list `{key}` in {value:.300}"))
}

#[test]
fn alone_an_examination_says_what_it_measured_and_leaves_nothing() {
    let (weir, folder) = (Weir::alone(), tempfile::tempdir().unwrap());
    let bars = ["--require", "read-iops=1", "--require", "commit-p99=1ns", "--format", "json"];
    let ended = weir.run(folder.path(), &[&SHORT[..], &bars].concat());
    assert_eq!(ended.code, 1, "one of the bars cannot be met: {}", ended.stderr);
    assert_eq!(entries(folder.path()), Vec::<PathBuf>::new());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["schema"], "weir.doctor/1");
    let met: Vec<&Value> = list(&report, "bars").iter().map(|bar| &bar["met"]).collect();
    assert_eq!(met, [&Value::Bool(true), &Value::Bool(false)], "{}", report["bars"]);
    let measured: Vec<&Value> = list(&report, "measurements").iter().map(|m| &m["id"]).collect();
    let mut statements = 0;
    for statement in list(&report, "findings").iter().flat_map(|finding| list(finding, "statements")) {
        statements += 1;
        let evidence = list(statement, "evidence");
        assert!(!evidence.is_empty(), "no evidence: {statement}");
        for source in evidence.iter().map(|e| &e["source"]) {
            let known = measured.contains(&source) || source.as_str().unwrap().starts_with("fact:");
            assert!(known, "unknown evidence {source} in {statement}");
        }
    }
    assert!(statements >= 5, "{statements} sentences only");
    derived_again(&weir, folder.path());
}

/// The text is derived from the record, and the page lies beside it.
fn derived_again(weir: &Weir, folder: &Path) {
    let shown = weir.run(folder, &["results", "show", "last"]);
    assert!(shown.stdout.starts_with("weir doctor "), "{shown:?}");
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 100), "{}", shown.stdout);
    let pages: Vec<PathBuf> = files_under(weir.store())
        .into_iter()
        .filter(|f| f.extension().is_some_and(|e| e == "html"))
        .collect();
    assert_eq!(pages.len(), 1);
    let page = fs::read_to_string(&pages[0]).unwrap();
    assert!(
        page.to_lowercase().starts_with("<!doctype html>") && page.len() < 1 << 20,
        "{} bytes",
        page.len()
    );
}

#[test]
fn an_interrupted_examination_keeps_what_it_measured() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let mut run = weir.start(folder.path(), &SHORT, |activity| activity.written > FILE_BYTES * 9 / 8);
    run.signal("INT");
    let ended = run.finish();
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(entries(folder.path()), Vec::<PathBuf>::new());
    let records = weir.records();
    assert_eq!((records.len(), &records[0]["ended_early"]), (1, &Value::String("SIGINT".to_string())));
    assert!(!list(&records[0], "jobs").is_empty() && ended.stdout.contains("SIGINT"), "{}", ended.stdout);
}

#[test]
fn an_examination_outlives_the_reader_of_its_progress() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);

    let status = weir.command(folder.path(), &SHORT).stderr(writer).stdout(Stdio::null()).status();
    assert!(matches!(status.unwrap().code(), Some(0)), "it ended in a panic");
    assert_eq!((entries(folder.path()), weir.records().len()), (Vec::new(), 1));
}

#[test]
fn a_killed_examination_is_cleaned_up_by_the_next() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let mut run = weir.start(folder.path(), &SHORT, |activity| activity.written > FILE_BYTES / 2);
    run.signal("KILL");
    assert_eq!(run.finish().code, 137);
    assert_eq!(entries(folder.path()).len(), 1, "nothing was left: this test looks at nothing");
    let mut next = weir.start(folder.path(), &SHORT, |activity| activity.written > FILE_BYTES / 2);
    next.signal("TERM");
    let ended = next.finish();
    assert!(ended.code == 143 && ended.stderr.contains("left by a killed run"), "{ended:?}");
    assert_eq!(entries(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_examined_is_refused_with_a_hint() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("file"), "x").unwrap();
    for (arguments, code, says) in [
        (&["nowhere"][..], 3, "cannot examine nowhere"),
        (&["file"], 2, "is not a folder"),
        (&["--duration", "5s"], 2, "cannot take 5"),
        (&["--html", "file"], 2, "not a page of weir's"),
        (&["--html", "nowhere/page.html"], 3, "nowhere is not a folder"),
        (&["--require", "luck=7"], 2, "expected one of commit-p99"),
        (&["--for", "postgres", "--require", "commit-p99=5ms"], 2, "--for postgres leaves out what the bar"),
        (&["--for", "etcd", "--require", "write-rate=1", "--require", "flood=50"], 2, "the bar `flood=50`"),
        (&["--for", "etcd", "--require", "write-rate=1", "--size", "1000T"], 3, "is too full"),
        (&["--no-flood", "--require", "flood=50"], 2, "leave out --no-flood or --require flood=50"),
        (&["--no-flood", "--require", "read-iops=1", "--size", "1000T"], 3, "is too full"),
        (&["--quick", "--thorough"], 2, "cannot be used with"),
        (&["--sustained=10s"], 2, "--sustained takes 30s to 6h"),
        (&["--sustained", "--quick"], 2, "cannot be used with"),
        (&["--map", "--sustained"], 2, "cannot be used with"),
        (&["--map", "--for", "etcd"], 2, "cannot be used with"),
        (&["--map", "--size", "1000T"], 3, "is too full"),
        (&["--size", "1000T"], 3, "is too full"),
        (&["/proc"], 3, "error: "),
    ] {
        let ended = weir.run(folder.path(), &[&["doctor"], arguments].concat());
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(says) && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
    assert_eq!(entries(folder.path()).len(), 1);
}

#[test]
fn root_alone_a_flood_is_survived_and_the_dirty_limit_comes_back() {
    if !root_or_say("root_alone_a_flood_is_survived_and_the_dirty_limit_comes_back", &["losetup", "mkfs.xfs"])
    {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=5G", "fs=xfs", "write_iops=1000", "write_bps=50000000"]);
    // Reached within seconds, also where other programs leave the bulk writer little of a processor.
    let _limits = DirtyLimits::set(200_000_000);
    let before = dirty_limits();
    let mount = device.mount();
    let ended = weir.run(
        &mount,
        &["doctor", "--duration", "25s", "--size=128M", "--even-if-busy", "--format", "json", "."],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(dirty_limits(), before);
    assert_eq!(entries(&mount), Vec::<PathBuf>::new());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let story = &report["flood"];
    let effect = &list(story, "effects")[0];
    let rate = |side: &Value| side["iops"]["mean"].as_f64().unwrap();
    // Ten to a hundred times fewer as a rule; half leaves room for any machine.
    assert!(rate(&effect["flood"]) < rate(&effect["idle"]) / 2.0, "no collapse: {effect}");
    let rescues = list(effect, "rescues");
    assert_eq!(rescues.len(), 1, "no trial: {} {}", story["remarks"], ended.stderr);
    assert!(rescues[0]["dirty_bytes"].as_u64().is_some_and(|bytes| bytes >= 5_000_000), "{effect}");
    assert!(list(story, "samples").len() > 10, "no timeline");
}

/// An examination for a product, and the test cases it wrote.
fn fit(weir: &Weir, folder: &Path, product: &str) -> (i32, Value, String) {
    let file = folder.join("fit.xml");
    let place = file.to_str().unwrap();
    let others = || entries(folder).into_iter().filter(|entry| *entry != file).collect::<Vec<_>>();
    let before = others();
    let arguments =
        ["doctor", "--for", product, "--duration", "20s", "--size", "64M", "--json", "--junit", place];
    let ended = weir.run(folder, &arguments);
    assert_eq!(others(), before, "{product}: something stayed behind");
    let report = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{product}: {ended:?}"));
    (ended.code, report, fs::read_to_string(file).unwrap())
}

/// The first of three that is as it should be, else the third.
fn within_three<T>(once: impl Fn() -> T, is_fine: impl Fn(&T) -> bool) -> T {
    (0..2).map(|_| once()).find(is_fine).unwrap_or_else(once)
}

/// The same device, fit while nothing throttles it and unfit for every product once it does 20 writes and 20 MB a second.
#[test]
fn root_alone_products_are_told_whether_storage_is_fit() {
    if !root_or_say("root_alone_products_are_told_whether_storage_is_fit", &["losetup", "mkfs.ext4"]) {
        return;
    }
    let weir = Weir::alone();
    let slow = LoopDevice::create(&["size=3G", "fs=ext4", "write_iops=20", "write_bps=20000000"]);
    let fast = LoopDevice::create(&["size=3G", "fs=ext4", "on=zram"]);
    for product in ["etcd", "kafka", "sqlite"] {
        let (code, report, cases) = fit(&weir, &slow.mount(), product);
        assert_eq!(
            (code, &report["headline"]["grade"]),
            (1, &Value::from("poor")),
            "{product}: {}",
            report["bars"]
        );
        assert!(cases.contains("<failure message="), "{product}: {cases}");
        assert!(list(&report, "bars").iter().all(|bar| bar["source"].is_string()), "{}", report["bars"]);
        // Beside others that take its processor time it is not fit, and that is no fault.
        let (code, report, cases) =
            within_three(|| fit(&weir, &fast.mount(), product), |(code, ..)| *code == 0);
        assert_eq!(code, 0, "{product}: {}", report["bars"]);
        assert!(!cases.contains("<failure") && !cases.contains("<error"), "{product}: {cases}");
    }
}

/// Credit on a device of the lab, until it is dropped.
struct Bucket(std::process::Child);

impl Bucket {
    fn plant(device: &LoopDevice, options: &[&str]) -> Bucket {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/token-bucket");
        let mut command = std::process::Command::new(program);
        command.arg(device.mount().parent().unwrap()).args(options);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 6];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"ready\n");
        Bucket(child)
    }
}

impl Drop for Bucket {
    /// Its limits go with its input.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn root_quiet_a_planted_bucket_is_recognised() {
    let name = "root_quiet_a_planted_bucket_is_recognised";
    if !root_or_say(name, &["losetup", "mkfs.ext4", "python3"]) {
        return;
    }
    let limits = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device";
    if !Path::new(limits).exists() {
        // cgroup v2 cannot limit what writes from the root group.
        let _ = writeln!(std::io::stderr(), "{name} is not run: no blkio of cgroup v1 here");
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=1500M", "fs=ext4", "on=zram"]);
    let planted = ["unit=operations", "burst=2500", "base=500", "credit=6000"];
    let node = device.device();
    let examined = || {
        let bucket = Bucket::plant(&device, &planted);
        let ended =
            weir.run(&device.mount(), &["doctor", "--sustained=30s", "--size=64M", "--format", "json", "."]);
        drop(bucket);
        assert_eq!(ended.code, 0, "{ended:?}");
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        list(&report["sustained"], "pressures")[0].clone()
    };
    // The bucket is a program: beside others that take its processor it is none.
    let found = within_three(examined, |found| found["kind"] == "token-bucket");
    let number =
        fs::read_to_string(Path::new("/sys/class/block").join(node.file_name().unwrap()).join("dev"));
    let of_device = format!("{} ", number.unwrap().trim());
    let left = fs::read_to_string(limits).unwrap();
    assert!(!left.lines().any(|line| line.starts_with(&of_device)), "a limit stayed: {left}");
    assert_eq!(entries(&device.mount()), [device.mount().join("lost+found")]);
    assert_eq!((&found["kind"], &found["unit"]), (&"token-bucket".into(), &"operations".into()), "{found}");
    for (figure, planted) in [("burst", 2500.0), ("sustained", 500.0), ("credit", 6000.0), ("refill", 500.0)]
    {
        let value = found[figure]["value"].as_f64().unwrap_or_else(|| panic!("no {figure}: {found}"));
        // The bench has the tenth; here programs that compile beside it may take a processor.
        assert!((value / planted - 1.0).abs() < 0.3, "{figure}: {value}, planted {planted}");
    }
}

#[test]
fn what_is_asked_for_a_product_is_checked_first() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("mine.xml"), "<mine/>").unwrap();
    for (arguments, code, says) in [
        (&["--for", "oracle"][..], 2, "possible values: mysql, mariadb, postgres, etcd"),
        (&["--for", "etcd", "--no-flood"], 2, "cannot be used with"),
        (&["--junit", "new.xml"], 2, "no test case to write"),
        (&["--for", "etcd", "--junit", "mine.xml"], 2, "not a file of weir's"),
        (&["--for", "etcd", "--size", "1000T"], 3, "is too full"),
    ] {
        let ended = weir.run(folder.path(), &[&["doctor"], arguments].concat());
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(says) && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
}
