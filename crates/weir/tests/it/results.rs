//! `weir results` and `weir compare`, on records of schema 1 that were measured once and must stay readable.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::weir::Weir;

const RECORD: &str = include_str!("../fixtures/record-1.json");
const A: &str = "20261120-101112-131-1e57";
const B: &str = "20261121-101112-131-2b0b";

/// A weir whose store holds run A, and B: the same figures under another scheduler and kernel.
fn with_two_runs() -> Weir {
    let weir = Weir::new();
    fs::write(weir.store().join(format!("{A}.json")), RECORD).unwrap();
    let mut b: Value = serde_json::from_str(RECORD).unwrap();
    b["id"] = B.into();
    b["conditions"]["kernel"] = "6.18.0".into();
    b["conditions"]["target"]["stack"][0]["queue"]["scheduler"] = "none".into();
    fs::write(weir.store().join(format!("{B}.json")), b.to_string()).unwrap();
    weir
}

/// Runs and expects an exit code and words on both streams.
fn check(
    weir: &Weir,
    folder: &Path,
    arguments: &[&str],
    code: i32,
    stdout: &[&str],
    stderr: &[&str],
) -> String {
    let ended = weir.run(folder, arguments);
    assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
    for (stream, words) in [(&ended.stdout, stdout), (&ended.stderr, stderr)] {
        words
            .iter()
            .for_each(|word| assert!(stream.contains(word), "{arguments:?}: no `{word}` in {ended:?}"));
    }
    assert!(code == 0 || ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    ended.stdout
}

#[test]
fn results_are_listed_shown_and_exported() {
    let (weir, folder) = (with_two_runs(), tempfile::tempdir().unwrap());
    let run = |arguments: &[&str], code, stdout: &[&str], stderr: &[&str]| {
        check(&weir, folder.path(), arguments, code, stdout, stderr)
    };
    let list = run(&["results"], 0, &["fileio  /srv/db", "read 86.7/s, 1.42 MB/s, p99 31.4 ms"], &[]);
    assert!(list.find(A).unwrap() < list.find(B).unwrap(), "{list}");
    let newest = run(&["results", "list", "-n", "1"], 0, &[B], &["the newest 1 of 2"]);
    assert!(!newest.contains(A));
    fs::write(weir.store().join("20261122-101112-131-0bad.json"), "{").unwrap();
    let json: Value = serde_json::from_str(&run(&["results", "list", "--json"], 0, &[], &[])).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!((&json["schema"], runs.len()), (&"weir.runs/1".into(), 3));
    assert_eq!(
        (&runs[0]["id"], &runs[0]["kind"], &runs[0]["target"]),
        (&A.into(), &"fileio".into(), &"/srv/db".into())
    );
    assert_eq!(runs[0]["started_at"], serde_json::from_str::<Value>(RECORD).unwrap()["started_at"]);
    assert!(
        runs[2]["kind"].is_null() && runs[2]["error"].as_str().unwrap().contains("not a record"),
        "{}",
        runs[2]
    );
    fs::remove_file(weir.store().join("20261122-101112-131-0bad.json")).unwrap();

    let text =
        run(&["results", "show", "1e57"], 0, &["Linux 6.12.0-amd64", "sync      20", "too few", A], &[]);
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let json: Value =
        serde_json::from_str(&run(&["results", "show", "--format", "json"], 0, &[], &[])).unwrap();
    assert_eq!((&json["schema"], &json["id"]), (&"weir.result/1".into(), &B.into()));
    assert_eq!(json["record_path"], weir.store().join(format!("{B}.json")).display().to_string());
    assert_eq!(json["jobs"][0]["classes"]["sync"]["p99"]["insufficient"]["need"], 300);
    let fio: Value =
        serde_json::from_str(&run(&["results", "export", "last~1", "--format", "fio-json"], 0, &[], &[]))
            .unwrap();
    assert_eq!(
        (&fio["jobs"][0]["read"]["total_ios"], &fio["timestamp"]),
        (&607.into(), &1_795_169_472.into())
    );
    let csv = run(&["results", "show", "--format", "csv"], 0, &["oldest_in_flight_us"], &[]);
    assert_eq!(csv.lines().count(), 1 + 7 * 3, "{csv}");

    let export = ["results", "export", "1e57", "-o", "copy.json"];
    run(&export, 0, &[], &[]);
    let copy: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("copy.json")).unwrap()).unwrap();
    assert_eq!(copy, serde_json::from_str::<Value>(RECORD).unwrap());
    run(&export, 3, &[], &["cannot make copy.json"]);
    run(&["results", "show", "./copy.json"], 0, &["Linux 6.12.0-amd64"], &[]);
}

#[test]
fn what_cannot_be_read_is_named_and_removal_is_exact() {
    let (weir, folder) = (with_two_runs(), tempfile::tempdir().unwrap());
    let run = |arguments: &[&str], code, stdout: &[&str], stderr: &[&str]| {
        check(&weir, folder.path(), arguments, code, stdout, stderr)
    };
    fs::write(weir.store().join("20270101-newer.json"), r#"{"schema":"weir.record/2"}"#).unwrap();
    run(&["results", "list"], 0, &["20270101-newer", "unreadable: its schema is weir.record/2"], &[]);
    run(
        &["results", "show", "last"],
        3,
        &[],
        &["its schema is weir.record/2, this weir reads weir.record/1"],
    );
    run(
        &["results", "show", "nothing"],
        2,
        &[],
        &["no run `nothing` among the 3", "hint: `weir results list`"],
    );
    run(&["results", "show", "2026"], 2, &[], &["`2026` fits 2 runs"]);
    run(&["results", "show", "/nowhere.json"], 3, &[], &["cannot read the record /nowhere.json"]);

    run(&["results", "rm", "1e57", "nothing"], 2, &[], &["no run `nothing`"]);
    fs::write(folder.path().join("mine.json"), RECORD).unwrap();
    run(&["results", "rm", "mine.json"], 2, &[], &["is not in the store"]);
    run(&["results", "list"], 0, &[A, B], &[]);
    run(&["results", "rm", "1e57", "newer"], 0, &[], &["removed"]);
    assert!(!run(&["results", "list"], 0, &[B], &[]).contains(A));
}

#[test]
fn a_comparison_says_no_difference_and_what_was_changed() {
    let (weir, folder) = (with_two_runs(), tempfile::tempdir().unwrap());
    let run = |arguments: &[&str], stdout: &[&str]| check(&weir, folder.path(), arguments, 0, stdout, &[]);
    let expected = [
        "the data show no difference",
        "kernel: 6.12.0-amd64 (A), 6.18.0 (B)",
        "scheduler: mq-deadline (A), none (B)",
        "the requested rate set the throughput",
    ];
    let text = run(&["compare", "last~1", "last"], &expected);
    assert_eq!(text, run(&["compare", "1e57", "2b0b"], &[]), "the same seed gives the same intervals");
    let json: Value =
        serde_json::from_str(&run(&["compare", "1e57", "2b0b", "--format", "json"], &[])).unwrap();
    assert_eq!(json["jobs"][0]["effects"][0]["verdict"], "no-difference");
    assert_eq!(json["condition_differences"].as_array().unwrap().len(), 2, "{json}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (weir, folder) = (with_two_runs(), tempfile::tempdir().unwrap());
    // More than a pipe holds, so that the writer must notice.
    let mut long: Value = serde_json::from_str(RECORD).unwrap();
    long["command"] = vec!["x".repeat(1000); 1000].into();
    fs::write(weir.store().join("20270101-long.json"), long.to_string()).unwrap();
    for arguments in [["results", "show"], ["results", "list"]] {
        let program = assert_cmd::cargo::cargo_bin!("weir").display().to_string();
        let script = format!("set -o pipefail; {program} {} | true; echo \"code $?\"", arguments.join(" "));
        let output = std::process::Command::new("bash")
            .args(["-c", &script])
            .current_dir(folder.path())
            .env("WEIR_STORE", weir.store())
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((out.as_ref(), err.as_ref()), ("code 0\n", ""), "{arguments:?}");
    }
}
