//! The crates of Cargo.lock beside what deny.toml allows, and the notices that the binary owes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// What cargo says of every crate that this platform builds.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform"])
        .arg(if cfg!(target_arch = "aarch64") {
            "aarch64-unknown-linux-gnu"
        } else {
            "x86_64-unknown-linux-gnu"
        })
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// The strings of an array of deny.toml, or the member `crate` of its tables.
fn list(deny: &toml::Table, section: &str, key: &str) -> Vec<String> {
    let entries = deny[section][key].as_array().unwrap();
    let text = |entry: &toml::Value| entry.as_str().or_else(|| entry["crate"].as_str()).unwrap().to_string();
    entries.iter().map(text).collect()
}

/// Whether one of the allowed licences, or several together, satisfy an expression. Old crates write `/` for OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let parsed = spdx::Expression::parse(&expression.replace('/', " OR ")).unwrap();
    parsed.evaluate(|requirement| allowed.contains(&requirement.to_string()))
}

#[test]
fn every_crate_has_a_licence_and_a_source_that_deny_toml_allows() {
    let deny: toml::Table = text_of("deny.toml").parse().unwrap();
    let allowed = list(&deny, "licenses", "allow");
    assert!(!is_allowed("GPL-3.0-only", &allowed) && is_allowed("MIT/Apache-2.0", &allowed));
    for package in packages() {
        let name = name(&package);
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} names no licence"));
        assert!(is_allowed(licence, &allowed), "{name} is under {licence}, which deny.toml does not allow");
        let source = package["source"].as_str().unwrap_or("workspace");
        let known = source == "workspace" || source.starts_with("registry+");
        assert!(known, "{name} comes from {source}");
    }
}

#[test]
fn no_crate_comes_in_two_versions_but_those_that_deny_toml_names() {
    let deny: toml::Table = text_of("deny.toml").parse().unwrap();
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    packages().iter().for_each(|package| *versions.entry(name(package).to_string()).or_default() += 1);
    versions.retain(|_, count| *count > 1);
    let skipped: Vec<String> = list(&deny, "bans", "skip")
        .iter()
        .map(|entry| entry.split('@').next().unwrap().to_string())
        .collect();
    assert_eq!(versions.into_keys().collect::<Vec<_>>(), skipped, "crates in two versions; the skip list");
}

#[test]
fn the_notice_names_every_licence_text_and_every_part_that_is_not_rust() {
    let notice = text_of("NOTICE.md");
    for part in ["libbpf", "libelf", "zlib", "LuaJIT", "src/bpf"] {
        assert!(notice.contains(part), "NOTICE.md does not name {part}");
    }
    for entry in std::fs::read_dir(root().join("licenses")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(notice.contains(&format!("licenses/{file}")), "NOTICE.md does not name licenses/{file}");
    }
    for entry in std::fs::read_dir(root().join("crates/weir-kernel/src/bpf")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.contains("SPDX-License-Identifier: GPL-2.0"), "{}: {first}", path.display());
    }
}
