//! Records of earlier versions are read, and say what they said.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::weir::Weir;

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The first place where something that was shown is shown differently, or no more.
fn first_difference(at: &str, old: &Value, new: &Value) -> Option<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(key, old)| {
            let at = format!("{at}.{key}");
            new.get(key).map_or(Some(format!("{at} is gone")), |new| first_difference(&at, old, new))
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let mut pairs = old.iter().zip(new).enumerate();
            pairs.find_map(|(n, (old, new))| first_difference(&format!("{at}[{n}]"), old, new))
        }
        (Value::String(old), Value::String(new)) if is_sentence(old) => {
            (figures(old) != figures(new)).then(|| format!("{at}: {old:.200} is now {new:.200}"))
        }
        (Value::Number(old), Value::Number(new)) if is_estimate(at) && is_near(old, new) => None,
        _ => (old != new).then(|| format!("{at}: {old:.200} is now {new:.200}")),
    }
}

/// Quantiles of a regime are estimated from the buckets of its intervals, and have come nearer to the exact ones since.
fn is_estimate(at: &str) -> bool {
    at.contains(".regimes[") && (at.ends_with(".p50_ns") || at.ends_with(".p99_ns"))
}

fn is_near(old: &serde_json::Number, new: &serde_json::Number) -> bool {
    new.as_f64().zip(old.as_f64()).is_some_and(|(new, old)| (new / old - 1.0).abs() < 0.06)
}

/// Sentences may be worded anew; names and keys may not.
fn is_sentence(text: &str) -> bool {
    text.split(' ').count() > 3
}

/// The numbers of a sentence, in their order.
fn figures(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    parts.map(|part| part.trim_end_matches(['.', ','])).filter(|part| !part.is_empty()).collect()
}

#[test]
fn a_difference_is_found() {
    let old = serde_json::json!({"a": [1, {"b": 2}]});
    let sentence = serde_json::json!("Throttled to 1,500 IOPS (p99 8.1 ms).");
    for (old, new, expected) in [
        (&old, serde_json::json!({"a": [1, {"b": 2, "c": 3}], "d": 4}), None),
        (&old, serde_json::json!({"a": [1, {"b": 3}]}), Some(".a[1].b: 2 is now 3")),
        (&old, serde_json::json!({"a": [1, {"b": 2.01}]}), Some(".a[1].b: 2 is now 2.01")),
        (&old, serde_json::json!({"a": [1, {}]}), Some(".a[1].b is gone")),
        (&old, serde_json::json!({"a": [1]}), Some(".a: [1,{\"b\":2}] is now [1]")),
        (&sentence, "A volume of 1,500 IOPS, p99 8.1 ms.".into(), None),
        (
            &sentence,
            "A volume, p99 8.1 ms.".into(),
            Some(": Throttled to 1,500 IOPS (p99 8.1 ms). is now A volume, p99 8.1 ms."),
        ),
        (&"as-set".into(), "as-found".into(), Some(": \"as-set\" is now \"as-found\"")),
    ] {
        assert_eq!(first_difference("", old, &new).as_deref(), expected);
    }
}

#[test]
fn records_of_earlier_versions_say_what_they_said() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/records");
    let mut seen = 0;
    for version in fs::read_dir(fixtures).unwrap() {
        let folder = version.unwrap().path();
        for name in ["bench", "doctor", "db", "tune", "guard"] {
            let (weir, place) = (Weir::new(), tempfile::tempdir().unwrap());
            let packed = |end: &str| folder.join(format!("{name}.{end}.gz"));
            let unpack = |end: &str| -> PathBuf {
                let path = place.path().join(format!("{name}.{end}"));
                fs::write(&path, unpacked(&packed(end))).unwrap();
                path
            };
            let record = unpack("json");
            if packed("seconds").exists() {
                unpack("seconds");
            }
            let record = record.to_str().unwrap();
            let what = format!("{name} of {}", folder.display());
            let shown = weir.run(place.path(), &["results", "show", record, "--format", "json"]);
            assert_eq!(shown.code, 0, "{what}: {}", shown.stderr);
            let new: Value = serde_json::from_str(&shown.stdout).unwrap();
            let mut old: Value = serde_json::from_slice(&unpacked(&packed("shown.json"))).unwrap();
            // Where it lies is no figure.
            old.as_object_mut().unwrap().remove("record_path");
            assert_eq!(first_difference("", &old, &new), None, "{what}");
            for arguments in [&["results", "show", record][..], &["report", record, "--output", "page.html"]]
            {
                let ended = weir.run(place.path(), arguments);
                assert_eq!(ended.code, 0, "{what}: {arguments:?}: {}", ended.stderr);
            }
            assert!(
                fs::read_to_string(place.path().join("page.html")).unwrap().ends_with("</html>\n"),
                "{what}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 5);
}
