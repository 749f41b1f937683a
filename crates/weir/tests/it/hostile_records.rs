//! Records that somebody else wrote: whatever is in them, they are shown or refused, and never a panic nor more memory
//! than they are worth.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weir_core::stats::random::Random;

use crate::weir::{Weir, ended};

/// As many changes of each record; `WEIR_MUTATIONS=2000` tries more.
const CHANGES: usize = 60;

/// Every place in a record, deep or not, as likely as any other.
fn places(value: &Value, at: String, out: &mut Vec<String>) {
    let inner = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, inner(key), out)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| places(value, inner(&n.to_string()), out));
        }
        _ => {}
    }
    out.push(at);
}

/// Another value in the place of one.
fn changed(old: &Value, dice: &mut Random) -> Value {
    let numbers = [
        json!(0),
        json!(-1),
        json!(1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(u32::MAX),
        json!(1_u64 << 53),
        json!(1_u64 << 60),
    ];
    let number = |dice: &mut Random| numbers[dice.below(numbers.len())].clone();
    match old {
        Value::Number(_) => number(dice),
        Value::String(_) => match dice.below(3) {
            0 => json!(""),
            1 => json!("\u{1b}]0;x\u{7}<script>\u{202e}\0"),
            _ => json!("9".repeat(300)),
        },
        Value::Array(list) => match dice.below(4) {
            0 => json!([]),
            1 => Value::Array(list.iter().rev().cloned().collect()),
            2 => Value::Array(list.iter().chain(list).cloned().collect()),
            _ => Value::Array(list.iter().take(1).cloned().collect()),
        },
        Value::Object(map) if !map.is_empty() => {
            let mut map = map.clone();
            let key = map.keys().nth(dice.below(map.len())).cloned().unwrap_or_default();
            map.remove(&key);
            Value::Object(map)
        }
        Value::Bool(old) => json!(!old),
        _ => number(dice),
    }
}

fn check(weir: &Weir, folder: &Path, what: &str) {
    let page = folder.join("page.html");
    let page = page.to_str().unwrap();
    for words in [
        &["results", "show", "record.json"][..],
        &["results", "show", "--format", "json", "record.json"],
        &["report", "record.json", "--output", page],
        &["compare", "record.json", "record.json"],
    ] {
        let run = ended(weir.wrapped(&["prlimit", "--as=6000000000", "--cpu=60"], folder, words));
        let _ = fs::remove_file(page);
        assert!(run.code != 101 && run.code < 128, "{words:?} of {what}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{words:?} of {what}: {run:?}");
    }
}

fn try_changes(weir: &Weir, whole: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("record.json");
    let mut at = Vec::new();
    places(whole, String::new(), &mut at);
    let mut dice = Random::new(7);
    let changes = std::env::var("WEIR_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(CHANGES);
    for _ in 0..changes {
        let place = &at[dice.below(at.len())];
        let mut record = whole.clone();
        let there = record.pointer_mut(place).unwrap();
        let new = changed(there, &mut dice);
        let what = format!("{} with {place} = {new:.200}", whole["kind"]);
        *there = new;
        fs::write(&file, serde_json::to_vec(&record).unwrap()).unwrap();
        check(weir, folder.path(), &what);
    }
    let text = serde_json::to_vec(whole).unwrap();
    for _ in 0..changes / 4 {
        let mut bytes = text.clone();
        let from = dice.below(bytes.len());
        match dice.below(3) {
            0 => bytes.truncate(from),
            1 => bytes[from] ^= 1 << dice.below(8),
            _ => drop(bytes.drain(from..(from + 40).min(text.len()))),
        }
        fs::write(&file, bytes).unwrap();
        check(weir, folder.path(), &format!("{} with other bytes at {from}", whole["kind"]));
    }
}

#[test]
fn no_change_of_a_record_makes_weir_panic() {
    let work = tempfile::tempdir().unwrap();
    for command in [
        &["bench", "--dir", ".", "--size", "4M", "--duration", "1s", "--rw", "randrw", "--sync-every", "8"][..],
        &[
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
        ],
        &["fileio", "--file-num=1", "--file-total-size=1M", "--file-test-mode=seqwr", "--time=1", "run"],
    ] {
        let weir = Weir::new();
        let run = weir.run(work.path(), command);
        assert_eq!(run.code, 0, "{run:?}");
        try_changes(&weir, &weir.records()[0]);
    }
}

#[test]
fn small_records_of_large_numbers_are_refused() {
    let work = tempfile::tempdir().unwrap();
    let weir = Weir::new();
    let run = weir.run(work.path(), &["bench", "--engine", "null", "--size", "1M", "--operations", "100"]);
    assert_eq!(run.code, 0, "{run:?}");
    let whole = &weir.records()[0];
    let mut record = whole.clone();
    let classes = record["jobs"][0]["classes"].as_object_mut().unwrap();
    let latency = &mut classes.values_mut().next().unwrap()["latency"];
    (latency["min_ns"], latency["max_ns"]) = (json!(9), json!(5));
    fs::write(work.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    let run = weir.run(work.path(), &["results", "show", "record.json"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("min_ns 9 is above max_ns 5"), "{run:?}");
}
