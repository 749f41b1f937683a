//! The renderings of an analysed recording, over every recording among the fixtures.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// Folders of fixtures with per-CPU files of blktrace.
fn recordings() -> Vec<PathBuf> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(traces)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.ends_with("ftrace"))
        .filter(|path| {
            let mut names = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name());
            names.any(|name| name.to_string_lossy().contains(".blktrace."))
        })
        .collect();
    folders.sort();
    assert!(folders.len() >= 8, "{folders:?}");
    folders
}

fn read(folder: &Path, arguments: &[&str]) -> String {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.to_string_lossy().contains(".blktrace."));
    let mut command = Command::cargo_bin("weir").unwrap();
    let output = command.args(["trace", "read"]).args(files).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", folder.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn text_fits_the_terminal_and_says_first_where_the_time_goes() {
    for folder in recordings() {
        let text = read(&folder, &[]);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", folder.display());
        }
        let at = |label: &str| text.lines().position(|line| line.starts_with(label));
        assert!(at("device").is_some() && at("where") > at("device") && at("class") > at("where"), "{text}");
        assert!(at("events").is_some() && at("process").is_some(), "{text}");
    }
}

#[test]
fn shares_add_up_rows_and_classes_agree_and_csv_says_what_json_says() {
    for folder in recordings() {
        let name = folder.display();
        let document: Value = serde_json::from_str(&read(&folder, &["--format", "json"])).unwrap();
        let csv = read(&folder, &["--format", "csv"]);
        for device in document["devices"].as_array().unwrap() {
            let number = device["device"].as_str().unwrap();
            for (class, figures) in device["classes"].as_object().unwrap() {
                let shares = figures["shares"].as_object().unwrap();
                let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
                assert!(shares.is_empty() || (sum - 1.0).abs() < 1e-9, "{name} {number} {class}: {sum}");
                for (stage, f) in figures["stages"].as_object().unwrap() {
                    let line = format!("{number},{class},all,{stage},{},{},", f["count"], f["min_ns"]);
                    assert!(csv.contains(&line), "{name}: no line {line}");
                    let order = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"];
                    let values = order.map(|key| f[key].as_u64().unwrap());
                    assert!(values.is_sorted(), "{name} {class} {stage}: {values:?}");
                }
            }
            // Sizes are a partition of each class.
            for (class, sizes) in device["sizes"].as_object().unwrap() {
                let pieces = sizes.as_object().unwrap().values().map(|size| size["pieces"].as_u64().unwrap());
                assert_eq!(pieces.sum::<u64>(), device["classes"][class]["pieces"], "{name} {class}");
            }
        }
        for (unit, key) in [("request", "requests"), ("piece", "pieces"), ("bio", "bios")] {
            let expected: u64 =
                document["devices"].as_array().unwrap().iter().map(|d| d[key].as_u64().unwrap()).sum();
            let rows = read(&folder, &["--per-request", "csv", "--unit", unit]);
            assert_eq!(rows.lines().count() as u64 - 1, expected, "{name} {unit}");
            let columns = rows.lines().next().unwrap().split(',').count();
            assert!(rows.lines().all(|row| row.split(',').count() == columns), "{name} {unit}");
            for row in read(&folder, &["--per-request", "jsonl", "--unit", unit]).lines() {
                let row: Value = serde_json::from_str(row).unwrap();
                let stage = |key: &str| row.get(key).and_then(Value::as_u64);
                if let (Some(q), Some(c), Some(q2c)) = (stage("q_ns"), stage("c_ns"), stage("q2c_ns")) {
                    assert_eq!(c - q, q2c, "{name}: {row}");
                }
            }
        }
    }
}

/// Where no event is lost, depth × time is the sum of latencies.
#[test]
fn depth_follows_littles_law() {
    let mut compared = 0;
    for folder in recordings() {
        let document: Value = serde_json::from_str(&read(&folder, &["--format", "json"])).unwrap();
        for device in document["devices"].as_array().unwrap() {
            let complete =
                device["unmatched"].as_object().unwrap().is_empty() && document["events_dropped"] == 0;
            let requeued = device["requests_requeued"] != 0;
            if !complete || requeued {
                continue;
            }
            let sum =
                |figures: &Value| figures["count"].as_f64().unwrap() * figures["mean_ns"].as_f64().unwrap();
            let d2c: f64 = device["by_request"].as_object().unwrap().values().map(|r| sum(&r["d2c"])).sum();
            let q2c: f64 = device["classes"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(class, _)| ["all", "flush", "passthrough"].contains(&class.as_str()))
                .filter_map(|(_, figures)| figures["stages"].get("q2c").map(sum))
                .sum();
            let recorded_ns = device["recorded_ns"].as_f64().unwrap();
            for (which, latency) in [("issue", d2c), ("queue", q2c)] {
                let area = device["depth"][which]["mean"].as_f64().unwrap() * recorded_ns;
                let off = (area - latency) / latency.max(1.0);
                // A bio is one until it is split, and the latency of its parts counts from its Q.
                let split = which == "queue" && device["events"]["splits"] != 0;
                let least = if split { -0.5 } else { -1e-3 };
                assert!(
                    (least..1e-3).contains(&off),
                    "{} {} {which}: {area} against {latency}",
                    folder.display(),
                    device["device"]
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 8, "only {compared} devices without loss");
}

#[test]
fn btt_has_its_sections_in_its_order_with_the_right_numbers() {
    let folder = recordings().into_iter().find(|path| path.ends_with("reference-ext4")).unwrap();
    let text = read(&folder, &["--btt"]);
    let titles = [
        "Per Process",
        "Per Device",
        "All Devices",
        "Device Overhead",
        "Device Merge Information",
        "Device Q2Q Seek Information",
        "Device D2D Seek Information",
        "Plug Information",
        "Active Requests At Q Information",
        "I/O Active Period Information",
        "Q2D Histogram",
    ];
    let at = titles.map(|title| text.find(&format!("==================== {title} ====================")));
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}");
    let all = &text[at[2].unwrap()..at[3].unwrap()];
    // The reference's figures for this recording, in seconds.
    for line in [
        "Q2G               0.000005230   0.000077937   0.002992430         282",
        "G2I               0.000008150   0.000081349   0.005938470         228",
        "Q2M               0.000001060   0.000006583   0.000075080          59",
        "I2D               0.000002630   0.000021316   0.000425930         287",
        "M2D               0.000028110   0.000052101   0.000241300          59",
        "D2C               0.000084440   0.001890538   0.035933530         341",
        "Q2C               0.000120360   0.002156182   0.041805630         341",
    ] {
        assert!(all.lines().any(|l| l == line), "{line}\n{all}");
    }
    assert!(
        text.contains(" (254,  0) |      323      282     1.1 |        8      183     2560    51712"),
        "{text}"
    );
}
