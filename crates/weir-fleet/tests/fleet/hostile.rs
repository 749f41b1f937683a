//! Hosts that answer something else than weir does.

use std::process::Command;

use super::{Hosts, Ran};

#[test]
fn nothing_that_a_host_answers_reaches_a_terminal_or_a_path() {
    let hosts = Hosts::new();
    let ran = hosts.run(&["--hosts", "db1,hostile-line,hostile-words,hostile-file,hostile-size", "say", "x"]);
    ran.says(
        3,
        &[
            "1 of 5 hosts done",
            "its shell prints more than weir ever does",
            "an answer that means nothing: rm -rf",
            "it calls a file ../../../../owned",
            "it answers more than weir ever does",
        ],
    );
    for text in [&ran.out, &ran.err] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    let files = hosts.pulled();
    assert!(files.iter().all(|file| file.starts_with("kind=say/")), "{files:?}");
    assert!(!hosts.path("owned").exists());
}

#[test]
fn a_host_answers_each_question_by_one_file_of_its_name() {
    for (host, code, words) in [
        ("hostile-twice", 3, "it answers more than weir ever does (pulling)"),
        ("hostile-other", 3, "an answer that means nothing: file err"),
        ("hostile-none", 3, "an answer that means nothing: no file out"),
        ("hostile-large", 3, "it answers more than weir ever does (pulling)"),
        ("hostile-invalid", 0, "a\u{fffd}b"),
    ] {
        let hosts = Hosts::new();
        hosts.run(&["--hosts", host, "say", "x"]).says(code, &[words]);
    }
}

#[test]
fn what_is_longer_than_is_pulled_is_a_failure_that_is_said() {
    for (host, words) in [
        ("cut-out", "failed: its standard output has 16777217 bytes, more than is pulled"),
        ("cut-file", "failed: large.csv has 268435457 bytes, more than is pulled"),
    ] {
        let hosts = Hosts::new();
        hosts.run(&["--hosts", host, "say", "x"]).says(3, &[words]);
        // The output, or a record and nothing of the output.
        let files = hosts.pulled();
        let of = |ending: &str| files.iter().filter(|file| file.ends_with(ending)).count();
        let whole = if host == "cut-file" { (3, 2, 0) } else { (1, 0, 1) };
        assert_eq!((files.len(), of(".csv"), of("-record.json")), whole, "{files:?}");
        assert!(!files.iter().any(|file| file.contains("large")), "{files:?}");
    }
}

/// Memory that a run may address. Its threads, and what two hosts answer at most, take a part of it.
const MOST_KIB: u32 = 700_000;

#[test]
fn a_host_that_answers_without_end_does_not_take_the_memory() {
    let hosts = Hosts::new();
    let run = hosts.fleet(&["--hosts", "hostile-send,hostile-json,hostile-many", "doctor"]);
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\""))
        .arg(run.get_program())
        .args(run.get_args());
    // glibc addresses 64 MiB for the heap of each thread.
    limited.env("MALLOC_ARENA_MAX", "1");
    limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Ran::of(limited.output().unwrap());
    let words = [
        "1 of 3 hosts done",
        "failed: it answers more than weir ever does (copying)",
        "failed: it answers more than weir ever does (pulling)",
    ];
    ran.says(3, &words);
}
