//! Hosts that answer something else than weir does.

use super::Hosts;

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
