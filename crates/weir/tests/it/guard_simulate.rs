//! `weir guard simulate`: limits compared on simulated machines.

use std::fs;

use serde_json::Value;

use crate::weir::Weir;

#[test]
fn limits_are_compared_phase_by_phase_and_the_same_each_time() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["guard", "simulate", "--script", "flood", "--seconds", "6", "--limit", "default", "--limit", "8MB"];
    let text = weir.run(folder.path(), &arguments);
    assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{text:?}");
    assert_eq!(text.stdout, weir.run(folder.path(), &arguments).stdout);
    assert!(text.stdout.contains("6 to 12 s, 10 threads  default"), "{}", text.stdout);

    let json = weir.run(folder.path(), &[&arguments[..], &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    let kept = |i: usize| {
        let score = &document["rows"][i]["score"];
        score["commits"].as_f64().unwrap() / score["commits_idle"].as_f64().unwrap()
    };
    assert_eq!(document["rows"].as_array().unwrap().len(), 2, "{document}");
    // The first seconds of the flood go to memory.
    assert!(kept(0) < 0.5 && kept(1) > 0.9, "{document}");
}

#[test]
fn machines_and_scripts_are_read_from_files_and_mistakes_in_them_named() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("slow.toml"), "[device]\nrequests_per_second = 300.0\n").unwrap();
    fs::write(folder.path().join("wrong.toml"), "[device]\niops = 300.0\n").unwrap();
    let script = "length_ns = 8000000000\n[[events]]\nat_ns = 1000000000\nevent = { threads = 4 }\n";
    fs::write(folder.path().join("script.toml"), script).unwrap();
    let run = |device: &str, script: &str| {
        let arguments = [
            "guard", "simulate", "--limit", "8MB", "--device", device, "--script", script, "--format", "json",
        ];
        weir.run(folder.path(), &arguments)
    };
    let ended = run("slow.toml", "script.toml");
    assert_eq!(ended.code, 0, "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["rows"][1]["phase"]["threads"], 4, "{document}");
    assert!(document["rows"][1]["score"]["commits"].as_u64().unwrap() <= 150 * 8, "{document}");
    for (device, script, named) in
        [("wrong.toml", "flood", "iops"), ("slow.toml", "slow.toml", "device"), ("e", "flood", "`e`")]
    {
        let ended = run(device, script);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains(named), "{ended:?}");
    }
}
