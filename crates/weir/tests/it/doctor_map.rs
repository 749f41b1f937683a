//! `weir doctor --map`: planted limits come out as the model's ends, the record is read again like any other, and nothing
//! stays behind, however it ends.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::Weir;

const MAP: [&str; 4] = ["doctor", "--map", "--quick", "--size=64M"];
const FILE_BYTES: u64 = 64 << 20;

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list `{key}` in {value:.300}"))
}

#[test]
fn root_quiet_a_map_finds_planted_limits_and_leaves_nothing() {
    let name = "root_quiet_a_map_finds_planted_limits_and_leaves_nothing";
    if !root_or_say(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    if !Path::new("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device").exists() {
        // cgroup v2 cannot limit what writes from the root group.
        let said = format!("{name} is not run: no blkio of cgroup v1 here\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=1500M", "fs=ext4", "read_iops=1500", "write_iops=600"]);
    let ended = weir.run(&device.mount(), &[&MAP[..], &["--json"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(entries(&device.mount()), [device.mount().join("lost+found")]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let map = &report["map"];
    for (end, planted) in [("reads", 1500.0), ("writes", 600.0)] {
        let found = map["model"][end].as_f64().unwrap_or_else(|| panic!("no {end}: {map:.2000}"));
        // The bench has the tenth; here programs that compile beside it may take a processor.
        assert!((found / planted - 1.0).abs() < 0.3, "{end}: {found}, planted {planted}");
    }
    assert!(list(map, "edges").len() >= 3 && list(map, "commits").len() == 4, "{map:.2000}");
    let lines = list(map, "lines");
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["sure"].is_string() && line["why"].is_string()), "{lines:?}");
    shown_again(&weir, &device.mount(), map);
}

/// Text, JSON and a comparison are made of the record.
fn shown_again(weir: &Weir, folder: &Path, map: &Value) {
    let shown = weir.run(folder, &["results", "show", "last"]);
    assert!(shown.stdout.starts_with("weir doctor --map "), "{shown:?}");
    assert!(shown.stdout.contains("ctrl=user model=linear rbps="), "{}", shown.stdout);
    let json = weir.run(folder, &["results", "show", "last", "--json"]);
    let again: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(&again["map"], map);
    let compared = weir.run(folder, &["compare", "last", "last"]);
    assert_eq!(compared.code, 0, "{compared:?}");
    assert!(compared.stdout.contains("map-edge-w0"), "{}", compared.stdout);
}

#[test]
fn an_interrupted_map_keeps_its_points_and_is_called_incomplete() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let mut run = weir.start(folder.path(), &MAP, |activity| activity.written > FILE_BYTES * 9 / 8);
    run.signal("INT");
    let ended = run.finish();
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(entries(folder.path()), Vec::<PathBuf>::new());
    let records = weir.records();
    assert_eq!((records.len(), &records[0]["ended_early"]), (1, &Value::String("SIGINT".to_string())));
    assert!(ended.unwrapped().contains("so this is incomplete"), "{}", ended.stdout);
}
