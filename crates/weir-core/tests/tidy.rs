//! The house rules that a compiler does not enforce. Each rule is a function from text to complaints, and each is
//! shown to complain about a small bad input, so that none of them passes because it looks at nothing.
#![allow(clippy::disallowed_methods, reason = "this test reads the repository; the library reads nothing")]
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/words.rs"]
mod words;

/// A crate's modules, and which others each may use.
type Edges = &'static [(&'static str, &'static [&'static str])];

/// Crates whose modules have a table of edges. Between crates the picture in ARCHITECTURE.md is the table.
const TABLES: [(&str, Edges); 2] =
    [("crates/weir-core/src/", CORE_EDGES), ("crates/weir/src/", BINARY_EDGES)];

const CORE_EDGES: Edges = &[
    ("dialect", &[]),
    ("glob", &[]),
    ("json", &[]),
    ("junit", &[]),
    ("printable", &[]),
    ("stop", &[]),
    ("units", &[]),
    ("stats", &[]),
    ("target", &[]),
    ("workload", &["stats", "units"]),
    ("result", &["stats", "units", "workload"]),
];

/// The binary: `cmd` takes what was typed (`cli`) and the files it names (`inputs`) through `settings` into plain values, has `doctor`, `experiments`,
/// `databases`, `guard` act on them, and prints. None of these knows how it was asked.
const BINARY_EDGES: Edges = &[
    ("clock", &[]),
    ("failure", &[]),
    ("progress", &[]),
    ("moments", &[]),
    ("quiet", &[]),
    ("servers", &[]),
    ("stages", &[]),
    ("terminal", &[]),
    ("devices", &["failure"]),
    ("machine", &["failure", "servers"]),
    ("manual", &[]),
    ("output", &["failure"]),
    ("page", &[]),
    ("store", &["failure"]),
    ("change_journal", &["failure", "store"]),
    ("session", &["machine", "moments", "quiet", "store"]),
    ("live", &["failure"]),
    ("top", &["live", "recorder", "terminal"]),
    ("trace_input", &["failure", "progress"]),
    ("databases", &["clock", "failure", "progress", "servers", "session", "stages", "terminal"]),
    ("kernel_traces", &["clock", "failure"]),
    ("doctor", &["failure", "guard", "machine", "progress", "quiet", "session", "stages"]),
    (
        "experiments",
        &[
            "databases",
            "devices",
            "failure",
            "change_journal",
            "guard",
            "machine",
            "moments",
            "progress",
            "quiet",
            "servers",
            "session",
            "stages",
            "store",
        ],
    ),
    ("daemon", &["failure"]),
    ("guard", &["change_journal", "clock", "daemon", "devices", "failure", "machine", "session", "store"]),
    ("recorder", &["clock", "daemon", "failure", "guard"]),
    ("cli", &["daemon", "guard", "manual", "output"]),
    ("completion", &["cli", "manual", "store"]),
    ("settings", &["cli", "databases", "experiments", "failure", "guard", "output", "recorder"]),
    ("inputs", &["cli", "databases", "experiments", "failure", "guard", "recorder", "servers", "settings"]),
    (
        "cmd",
        &[
            "cli",
            "daemon",
            "databases",
            "devices",
            "doctor",
            "experiments",
            "failure",
            "guard",
            "inputs",
            "change_journal",
            "kernel_traces",
            "live",
            "machine",
            "manual",
            "output",
            "page",
            "progress",
            "recorder",
            "servers",
            "session",
            "settings",
            "stages",
            "store",
            "terminal",
            "top",
            "trace_input",
        ],
    ),
];

/// Crates that are pure, as weir-core's clippy.toml has it.
const PURE_CRATES: [&str; 12] = [
    "weir-archive",
    "weir-blocktrace",
    "weir-control",
    "weir-core",
    "weir-experiment",
    "weir-knobs",
    "weir-oltp",
    "weir-record",
    "weir-store",
    "weir-sysbench",
    "weir-top",
    "weir-verdict",
];

/// Crates that talk to the kernel and may say `unsafe`.
const UNSAFE_CRATES: [&str; 5] = ["weir-db", "weir-fs", "weir-host", "weir-io", "weir-kernel"];

/// Modules of the binary that only merge values, and what would read something.
const PURE_MODULES: [&str; 2] = ["crates/weir/src/cli/", "crates/weir/src/settings/"];
const READS: [&str; 16] = [
    ".canonicalize()",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".metadata()",
    "Around::live",
    "Instant::now",
    "Zoned::now",
    "rustix::",
    "std::env",
    "std::fs",
    "std::net::Tcp",
    "weir_fs",
    "weir_host",
    "weir_io",
    "weir_kernel",
];

const LINES_MAX: usize = 800;
const MAIN_LINES_MAX: usize = 60;

/// What a test named `root_…` must have: each of these asks before it acts, and says what is lacking.
const PRIVILEGE_CHECKS: [&str; 5] = ["root_or_say(", "lab(", "Bench::new(", "Device::create(", "not run: "];

#[test]
fn the_repository_keeps_its_rules() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let files = text_files(&repository);
    assert!(files.len() > 30, "found only {} files under {}", files.len(), repository.display());
    let mut complaints = Vec::new();
    for (path, text) in &files {
        for complaint in complaints_about(path, text) {
            complaints.push(format!("{path}: {complaint}"));
        }
    }
    complaints.extend(missing_paths(&files));
    complaints.extend(unused_edges(&files));
    complaints.extend(impure(&files));
    complaints.extend(picture(&files));
    complaints.extend(modules::circles(&files));
    complaints.extend(words::broken_links(&files));
    complaints.extend(words::outside_the_book(&files));
    complaints.extend(words::retired_words(&files));
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn every_rule_complains_about_a_bad_input() {
    let core = "crates/weir-core/src";
    let long = "//! Long.\n".repeat(LINES_MAX + 1);
    let long_main = "//! Main.\n".repeat(MAIN_LINES_MAX + 1);
    let workplace = format!("see {}shared\n", concat!("/wo", "rk/"));
    let later = format!("//! A.\n// {}: later\n", concat!("TO", "DO"));
    let skipped = format!("#[test]\n#[{}]\nfn a() {{}}\n", "ignore");
    let hidden = format!("//! A.\nfn f() {{ {} {{ g() }} }}\n", "unsafe");
    let open_port = "kind: DaemonSet\n- --metrics=0.0.0.0:9751\n---\nkind: NetworkPolicy\n- port: 80\n";
    let mounts = "//! A.\nfn f() { fs::read_to_string(\"/proc/self/mounts\"); }\n";
    let captured = format!("fn a() {{ {}(\"not run: a\") }}\n", "eprintln!");
    let cases: [(&str, &str, &str); 21] = [
        ("crates/weir-kernel/src/a.rs", mounts, "others choose bytes"),
        ("crates/weir/src/settings/a.rs", "//! A.\nuse crate::cmd::tune;\n", "settings may not use cmd"),
        ("crates/weir/src/settings/a.rs", "//! A.\nuse std::fs::read;\n", "may not name std::fs"),
        ("crates/weir/src/doctor/a.rs", "//! A.\nuse crate::{cli, failure};\n", "doctor may not use cli"),
        (&format!("{core}/units.rs"), "//! A.\nuse crate::stats::Histogram;\n", "units may not use stats"),
        (&format!("{core}/target/a.rs"), "//! A.\nuse crate::{units, result::view};\n", "may not use result"),
        (
            &format!("{core}/target/a.rs"),
            "//! A.\nuse crate::{units::{Bytes, Nanos}, result};\n",
            "may not use result",
        ),
        (
            &format!("{core}/stats/a.rs"),
            "//! A.\nfn f() -> crate::workload::Job {}\n",
            "may not use workload",
        ),
        (&format!("{core}/stats/a.rs"), "//! A.\nuse super::super::result::Record;\n", "may not use result"),
        (&format!("{core}/cellar/a.rs"), "//! A.\n", "no module called cellar"),
        ("crates/weir-io/src/lib.rs", &long, "lines"),
        ("crates/weir/src/main.rs", &long_main, "lines"),
        ("crates/weir/src/cmd/a.rs", "fn f() {}\n", "say what the file is"),
        ("README.md", &workplace, "speaks of itself alone"),
        ("crates/weir/src/cmd/a.rs", &later, "without an issue"),
        ("crates/weir/tests/a.rs", &skipped, "ignored"),
        ("crates/weir/tests/a.rs", &captured, "captures"),
        ("crates/weir/src/cmd/a.rs", &hidden, "unsafe"),
        ("crates/weir-io/src/a.rs", "//! A.\n#[test]\nfn root_mounts() {\n    mount();\n}\n", "does not ask"),
        ("crates/weir-io/Cargo.toml", "[package]\nname = \"weir-io\"\n", "workspace lints"),
        ("packaging/kubernetes/a.yaml", open_port, "any pod may ask port 9751"),
    ];
    for (path, text, expected) in cases {
        let complaints = complaints_about(path, text);
        assert!(
            complaints.iter().any(|c| c.contains(expected)),
            "{path}: {text:.80}: expected {expected:?}, got {complaints:?}"
        );
    }
}

#[test]
fn paths_that_documents_name_must_exist() {
    let text = "`crates/a/src/b.rs`, `crates/a/`, `crates/a/src/NAME.rs`, `bench/gone`, `--dir`".to_string();
    let others = ["crates/a/src/b.rs", "LICENSE-MIT"].map(|path| (path.to_string(), String::new()));
    let files = others.into_iter().chain([("README.md".to_string(), text)]).collect();
    assert_eq!(
        missing_paths(&files),
        ["LICENSE-APACHE is missing", "README.md: names `bench/gone`, which is not there"]
    );
}

#[test]
fn no_rule_complains_about_a_good_input() {
    let guarded =
        "kind: DaemonSet\n- --metrics=0.0.0.0:9751\n---\nkind: NetworkPolicy\ningress:\n- port: 9751\n";
    let cases = [
        ("packaging/kubernetes/a.yaml", guarded),
        ("packaging/kubernetes/a.yaml", "kind: DaemonSet\n# - --metrics=0.0.0.0:9751\n"),
        (
            "crates/weir-core/src/result/a.rs",
            "//! See [`crate::workload`].\nuse crate::units::Bytes;\nuse super::record::Record;\n",
        ),
        ("crates/weir-verdict/src/a.rs", "//! A.\nuse crate::{result::Record, trace::Stage};\n"),
        (
            "crates/weir-io/src/a.rs",
            "//! A.\n#[test]\nfn root_mounts() {\n    if !root_or_say(\"root_mounts\") {\n        return;\n    }\n}\n",
        ),
        ("crates/weir/src/cmd/a.rs", "//! A.\n// TODO(#12): later\n"),
        (
            "crates/weir-io/Cargo.toml",
            "[lints]\nworkspace = true\n[dependencies]\nweir-core.workspace = true\n",
        ),
    ];
    for (path, text) in cases {
        assert_eq!(complaints_about(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

/// All rules, applied to one file; `path` is relative to the repository.
fn complaints_about(path: &str, text: &str) -> Vec<String> {
    let mut complaints = own_words(text);
    if path.ends_with("Cargo.toml") && path.starts_with("crates/") {
        complaints.extend(manifest(text));
    }
    if path.starts_with("packaging/kubernetes/") {
        complaints.extend(open_ports(text));
    }
    let script = !path.contains('.') && text.starts_with("#!");
    if [".rs", ".c", ".py", ".sh", ".js", ".css"].iter().any(|e| path.ends_with(e)) || script {
        complaints.extend(length(path, text));
    }
    if path.ends_with(".rs") {
        complaints.extend(rust(path, text));
    }
    complaints
}

/// A pod that answers others, without a log-in, needs a policy that says which others.
fn open_ports(manifest: &str) -> Vec<String> {
    let lines: Vec<&str> = manifest.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let text = lines.join("\n");
    let guards = |port: &str| {
        let of_port = format!("port: {port}");
        let is_guard = |part: &str| {
            part.contains("kind: NetworkPolicy") && part.lines().any(|line| line.ends_with(&of_port))
        };
        text.split("\n---").any(is_guard)
    };
    let ports = lines.iter().filter_map(|line| line.split_once("0.0.0.0:")).map(|(_, port)| port.trim());
    ports
        .filter(|port| !guards(port))
        .map(|port| format!("any pod may ask port {port}: no NetworkPolicy has it"))
        .collect()
}

/// The licences, and every path in backquotes in a document; words in capitals stand for names and are not looked up.
fn missing_paths(files: &BTreeMap<String, String>) -> Vec<String> {
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].into_iter().filter(|path| !files.contains_key(*path));
    let mut complaints: Vec<String> = licences.map(|path| format!("{path} is missing")).collect();
    for (document, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for path in text.split('`').skip(1).step_by(2).filter(|quoted| is_fixed_path(quoted)) {
            if !files
                .keys()
                .any(|file| file == path || file.starts_with(&format!("{}/", path.trim_end_matches('/'))))
            {
                complaints.push(format!("{document}: names `{path}`, which is not there"));
            }
        }
    }
    complaints
}

fn is_fixed_path(quoted: &str) -> bool {
    let rooms = ["crates/", "docs/", "bench/", "lab/", "scripts/", "fuzz/", "fixtures/"];
    let placeholder =
        quoted.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace() || c == '*' || c == '{');
    rooms.iter().any(|room| quoted.starts_with(room)) && !placeholder
}

fn length(path: &str, text: &str) -> Option<String> {
    let most = if path.ends_with("src/main.rs") { MAIN_LINES_MAX } else { LINES_MAX };
    let lines = text.lines().count();
    (lines > most).then(|| format!("{lines} lines, {most} at most: probably two rooms in one"))
}

fn own_words(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.contains(concat!("/wo", "rk/")) {
        complaints.push("the project speaks of itself alone".to_string());
    }
    for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        let without_issue =
            text.match_indices(word).any(|(at, _)| !text[at + word.len()..].starts_with("(#"));
        if without_issue {
            complaints.push(format!("{word} without an issue's number"));
        }
    }
    complaints
}

fn rust(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let code = without_comments(text);
    if path.contains("/src/") && !text.starts_with("//!") {
        complaints.push("the first line does not say what the file is".to_string());
    }
    if code.contains(&format!("#[{}", "ignore")) {
        complaints.push("a test is ignored: it runs, or it says what it lacks".to_string());
    }
    if code.split_whitespace().collect::<String>().contains(&format!("{}(\"notrun", "eprintln!")) {
        complaints.push(
            "what did not run is said past what the harness captures: writeln!(io::stderr(), …)".to_string(),
        );
    }
    let may_be_unsafe = UNSAFE_CRATES.iter().any(|krate| path.starts_with(&format!("crates/{krate}/")));
    let is_unsafe = ["{", "fn", "impl"].iter().any(|what| code.contains(&format!("{} {what}", "unsafe")));
    if is_unsafe && !may_be_unsafe && !path.starts_with("fuzz/") {
        complaints.push(format!("unsafe code belongs in {}", UNSAFE_CRATES.join(", ")));
    }
    complaints.extend(module_edges(path, &code));
    complaints.extend(reads(path, &code));
    complaints.extend(strict_reads(path, &code));
    complaints.extend(root_tests(&code));
    complaints
}

/// Comments name what they like, links included; only code makes an edge.
fn without_comments(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n")
}

fn module_edges(path: &str, code: &str) -> Vec<String> {
    let Some((inside, edges)) = in_table(path) else { return Vec::new() };
    let module = module_of(inside);
    if ["lib", "main"].contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = edges.iter().find(|(name, _)| *name == module) else {
        return vec![format!(
            "there is no module called {module} in the table of edges: say there what it may use"
        )];
    };
    modules_used(inside, code, edges)
        .into_iter()
        .filter(|used| used != module && !allowed.contains(&used.as_str()))
        .map(|used| format!("{module} may not use {used}"))
        .collect()
}

/// What a module names that reads, though it is only to merge values.
fn reads(path: &str, code: &str) -> Vec<String> {
    let is_pure = PURE_MODULES.iter().any(|module| path.starts_with(module));
    let named = READS.iter().filter(|what| is_pure && code.contains(**what));
    named.map(|what| format!("this module is pure and may not name {what}: read in inputs")).collect()
}

/// Files of the kernel in which any account chooses bytes, read so that one that is no UTF-8 is an error.
fn strict_reads(path: &str, code: &str) -> Vec<String> {
    const CHOSEN: [&str; 8] = [
        "/mounts\"",
        "/mountinfo\"",
        "/stat\"",
        "/status\"",
        "/comm\"",
        "/cmdline\"",
        "/etc/passwd\"",
        "/etc/group\"",
    ];
    let code =
        if path.contains("/src/") { code.split("#[cfg(test)]").next().unwrap_or_default() } else { "" };
    let strict = code.lines().filter(|line| line.contains("fs::read_to_string("));
    let named = strict.filter_map(|line| CHOSEN.iter().find(|name| line.contains(**name)));
    named.map(|name| format!("others choose bytes of {name}: weir_fs::read_lossily reads it")).collect()
}

/// The path inside a crate that has a table, and the table.
fn in_table(path: &str) -> Option<(&str, Edges)> {
    TABLES.iter().find_map(|(root, edges)| Some((path.strip_prefix(root)?, *edges)))
}

/// The top-level module that a file belongs to.
fn module_of(inside: &str) -> &str {
    inside.split(['/', '.']).next().unwrap_or_default()
}

/// Top-level modules that the code of a file names: after `crate::`, or after as many `super::` as lead there.
fn modules_used(inside: &str, code: &str, edges: Edges) -> Vec<String> {
    let depth = inside.matches('/').count() + usize::from(!inside.ends_with("mod.rs"));
    let climb = "super::".repeat(depth);
    let mut used = Vec::new();
    for root in ["crate::", climb.as_str()] {
        for (at, _) in code.match_indices(root) {
            let names_more = root != "crate::"
                && (code[..at].ends_with("super::") || code[at + root.len()..].starts_with("super::"));
            if !names_more && !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                used.extend(first_names(&code[at + root.len()..]));
            }
        }
    }
    used.retain(|name| edges.iter().any(|(module, _)| module == name));
    used
}

/// The first identifiers of a path or of a `{…}` list of paths.
fn first_names(path: &str) -> Vec<String> {
    let Some(list) = path.strip_prefix('{') else { return vec![identifier(path)] };
    let (mut names, mut level, mut start) = (Vec::new(), 1, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => level += 1,
            '}' => level -= 1,
            _ => {}
        }
        if level == 0 || (level == 1 && c == ',') {
            names.push(identifier(list[start..at].trim()));
            start = at + 1;
        }
        if level == 0 {
            break;
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Tests named `root_…` that do not ask whether they may.
fn root_tests(code: &str) -> Vec<String> {
    let starts: Vec<usize> = code.match_indices("#[test]\n").map(|(at, _)| at).collect();
    let mut complaints = Vec::new();
    for (nth, &start) in starts.iter().enumerate() {
        let end = starts.get(nth + 1).copied().unwrap_or(code.len());
        let test = &code[start..end];
        let Some(name) = test.split_once("fn ").map(|(_, rest)| identifier(rest)) else { continue };
        if name.starts_with("root_") && !PRIVILEGE_CHECKS.iter().any(|check| test.contains(check)) {
            complaints
                .push(format!("{name} does not ask for its privileges ({})", PRIVILEGE_CHECKS.join(" or ")));
        }
    }
    complaints
}

/// Edges of the tables that no file of the module needs.
fn unused_edges(files: &BTreeMap<String, String>) -> Vec<String> {
    TABLES.iter().flat_map(|(root, edges)| unused_edges_of(files, root, edges)).collect()
}

fn unused_edges_of(files: &BTreeMap<String, String>, root: &str, edges: Edges) -> Vec<String> {
    let mut needed: BTreeSet<(String, String)> = BTreeSet::new();
    for (path, text) in files {
        if let Some(inside) = path.strip_prefix(root) {
            let used = modules_used(inside, &without_comments(text), edges);
            needed.extend(used.into_iter().map(|used| (module_of(inside).to_string(), used)));
        }
    }
    let all = edges.iter().flat_map(|(module, all)| all.iter().map(move |used| (*module, *used)));
    all.filter(|(module, used)| !needed.contains(&(module.to_string(), used.to_string())))
        .map(|(module, used)| format!("{module} does not use {used}: the table of edges says it may"))
        .collect()
}

/// Pure crates that lack the rules of purity, or use one that is not pure.
fn impure(files: &BTreeMap<String, String>) -> Vec<String> {
    let rules = &files["crates/weir-core/clippy.toml"];
    let lacks = |krate: &&&str| files.get(&format!("crates/{krate}/clippy.toml")) != Some(rules);
    let lacking =
        PURE_CRATES.iter().filter(lacks).map(|krate| format!("{krate} lacks weir-core's clippy.toml"));
    let edges = crate_edges(files);
    let uses = edges
        .iter()
        .filter(|(from, to)| PURE_CRATES.contains(&from.as_str()) && !PURE_CRATES.contains(&to.as_str()));
    lacking.chain(uses.map(|(from, to)| format!("{from} is pure and may not use {to}"))).collect()
}

/// Which crates name which others in their manifests.
fn crate_edges(files: &BTreeMap<String, String>) -> BTreeSet<(String, String)> {
    let mut edges = BTreeSet::new();
    for (path, text) in files {
        let parts: Vec<&str> = path.split('/').collect();
        if let ["crates", krate, "Cargo.toml"] = parts.as_slice() {
            let names = dependencies(&toml::from_str(text).unwrap());
            let own = names.into_iter().filter(|name| name.starts_with("weir") && name != krate);
            edges.extend(own.map(|name| (krate.to_string(), name)));
        }
    }
    edges
}

/// The picture of the crates, without edges that follow from others.
fn drawn(edges: &BTreeSet<(String, String)>) -> String {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let next = |from: &str| next.get(from).into_iter().flatten().copied();
    let reaches = |from: &str, to: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_string()]);
        while let Some(at) = open.pop() {
            open.extend(next(&at).map(str::to_string).filter(|other| seen.insert(other.clone())));
        }
        seen.contains(to)
    };
    let follows = |(from, to): &&(String, String)| next(from).any(|via| via != to && reaches(via, to));
    let lines = edges.iter().filter(|edge| !follows(edge)).map(|(from, to)| format!("  {from} --> {to}\n"));
    format!("```mermaid\ngraph TD\n{}```\n", lines.collect::<String>())
}

fn picture(files: &BTreeMap<String, String>) -> Option<String> {
    let drawn = drawn(&crate_edges(files));
    let is_there = files["ARCHITECTURE.md"].contains(&drawn);
    (!is_there).then(|| {
        format!("ARCHITECTURE.md: the picture of the crates is not what their manifests say:\n{drawn}")
    })
}

#[test]
fn a_picture_has_no_edge_that_follows_from_others() {
    let edges = [("weir", "weir-a"), ("weir", "weir-b"), ("weir-a", "weir-b")];
    let edges = edges.map(|(from, to)| (from.to_string(), to.to_string())).into();
    assert_eq!(drawn(&edges), "```mermaid\ngraph TD\n  weir --> weir-a\n  weir-a --> weir-b\n```\n");
}

fn manifest(text: &str) -> Option<String> {
    let manifest: toml::Table = toml::from_str(text).unwrap();
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    (lints != Some(true)).then(|| "does not take the workspace lints".to_string())
}

/// Names in every table of dependencies: normal, dev, build, and those of a target or feature.
fn dependencies(table: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            names.extend(inner.keys().cloned());
        } else {
            names.extend(dependencies(inner));
        }
    }
    names
}

/// A page that `make doctor` or `weir report` left in the folder they ran in.
fn is_report(name: &str) -> bool {
    name.starts_with("weir-") && name.ends_with(".html")
}

/// Text files of the repository by relative path; what is built, fetched or captured from machines is left out.
fn text_files(repository: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![repository.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                let built = name == "target" && !folder.starts_with(repository.join("crates"));
                let foreign = [".git", "corpus"].contains(&name.as_str());
                let foreign = built || foreign || name.starts_with("weir-doctor");
                if !foreign {
                    folders.push(entry.path());
                }
            } else if entry.path().is_file()
                && !["Cargo.lock", ".git"].contains(&name.as_str())
                && !is_report(&name)
            {
                let path = entry.path();
                // Of what machines left behind only the name counts: documents may point there.
                let captured = folder.components().any(|part| part.as_os_str() == "fixtures");
                let text = if captured { Ok(String::new()) } else { fs::read_to_string(&path) };
                let Ok(text) = text else { continue };
                files.insert(path.strip_prefix(repository).unwrap().to_string_lossy().into_owned(), text);
            }
        }
    }
    files
}
