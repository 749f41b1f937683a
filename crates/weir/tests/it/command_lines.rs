//! Command lines are alike: what they are about stands without an option, a shell completes it, and reports fit the terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::weir::{Ended, Weir, ended};

#[test]
fn what_a_command_is_about_needs_no_option_and_may_have_one() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let simulated = |line: &str| {
        let line =
            ["guard", "simulate", "--seconds", "6", "--limit", "4MB"].into_iter().chain(line.split(' '));
        let ended = weir.run(folder.path(), &line.collect::<Vec<_>>());
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout
    };
    assert_eq!(simulated("b"), simulated("--device b"));
    // (as it was typed until now, without the option, exit code, what stderr names)
    for (option, positional, code, names) in [
        ("trace live --device no-such-device", "trace live no-such-device", 3, "no-such-device"),
        ("trace record -d no-such-device", "trace record no-such-device -- true", 3, "no-such-device"),
        (
            "db sandbox mariadb --dir d --binary /nonexistent/server",
            "db sandbox mariadb d --binary /nonexistent/server",
            2,
            "/nonexistent/server",
        ),
        ("db doctor --server unix:/nowhere.sock", "db doctor unix:/nowhere.sock", 3, "/nowhere.sock"),
    ] {
        for line in [option, positional] {
            let ended = weir.run(folder.path(), &line.split(' ').collect::<Vec<_>>());
            assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{line}: {ended:?}");
            assert!(ended.stderr.contains(names), "{line}: {ended:?}");
        }
    }
    for both in ["db sandbox mariadb d --dir e", "db doctor a --server b", "guard simulate a --device b"] {
        let ended = weir.run(folder.path(), &both.split(' ').collect::<Vec<_>>());
        assert!(ended.code == 2 && ended.stderr.contains("cannot be used with"), "{both}: {ended:?}");
    }
}

/// What bash is offered for the last word of a line.
fn offered(weir: &Weir, folder: &Path, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = weir.command(folder, &[]);
    command.arg("--").args(&words);
    command.env("WEIR_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let Ended { code, stdout, stderr } = ended(command);
    assert_eq!((code, stderr.as_str()), (0, ""), "{line}");
    stdout.lines().map(String::from).collect()
}

#[test]
fn a_shell_is_offered_runs_devices_and_knobs() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let run = weir.run(folder.path(), &["bench", "--engine", "null", "--size", "1M", "--operations", "100"]);
    assert_eq!(run.code, 0, "{run:?}");
    let id = weir.records()[0]["id"].as_str().unwrap().to_string();
    for line in ["weir report ", "weir results show ", "weir compare last ", "weir results rm "] {
        let offered = offered(&weir, folder.path(), line);
        assert!(offered.contains(&id) && offered.contains(&"last".to_string()), "{line}: {offered:?}");
    }
    assert_eq!(
        offered(&weir, folder.path(), &format!("weir report {}", &id[..20])),
        std::slice::from_ref(&id)
    );

    let has_size = |name: &str| {
        let size = std::fs::read_to_string(format!("/sys/class/block/{name}/size"));
        size.is_ok_and(|size| size.trim() != "0")
    };
    let devices: Vec<String> = std::fs::read_dir("/sys/class/block")
        .map(|entries| entries.flatten().map(|e| e.file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    // Not those that other tests make and take away.
    for device in devices.iter().filter(|name| !name.starts_with("loop") && has_size(name)) {
        for line in ["weir trace live ", "weir trace util ", "weir trace record --device ", "weir guard run "]
        {
            assert!(offered(&weir, folder.path(), line).contains(device), "{line}: no {device}");
        }
    }
    for (line, knob) in [
        ("weir knobs show vm.dirty_b", "vm.dirty_bytes"),
        ("weir knobs apply vm.swap", "vm.swappiness="),
        ("weir tune sweep @/nr_r", "@/nr_requests"),
    ] {
        let offered = offered(&weir, folder.path(), line);
        assert!(offered.iter().any(|offer| offer == knob), "{line}: {offered:?}");
    }
    assert!(offered(&weir, folder.path(), "weir trace ").contains(&"fsync".to_string()));
}

#[test]
fn completion_makes_no_store_and_each_shell_has_a_script() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let store = folder.path().join("none/yet");
    let mut command = weir.command(folder.path(), &["--", "weir", "report", ""]);
    command.env("WEIR_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").env("WEIR_STORE", &store);
    let offered = ended(command);
    assert!(offered.code == 0 && offered.stdout.starts_with("last"), "{offered:?}");
    assert!(!folder.path().join("none").exists());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = weir.run(folder.path(), &["completions", shell]);
        assert!(script.code == 0 && script.stdout.contains("WEIR_COMPLETE"), "{shell}: {script:?}");
    }
}

/// bash takes what it is offered as it is: a file's name may be a command.
#[test]
fn bash_is_offered_nothing_that_it_would_run() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for name in ["plain-1.json", "data;echo${IFS}x|sh", "$(id)", "`id`", "a b", "--allow-write=sda"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let program = weir.command(folder.path(), &[]).get_program().to_owned();
    let offered = |command: &str, typed: &str| {
        let script = "eval \"$(\"$0\" completions bash)\"; weir() { \"$0\" \"$@\"; }; COMP_WORDS=(weir \"$1\" \"$2\"); \
                      COMP_CWORD=2; COMP_TYPE=9; _weir_plain \"$0\" \"$2\" \"$1\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).arg(&program).args([command, typed]);
        bash.current_dir(folder.path()).env("WEIR_STORE", weir.store());
        bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ended(bash).stdout
    };
    assert_eq!(offered("report", "./"), "./--allow-write=sda\n./plain-1.json\n");
    // Nor a file that would be an option; those there are it is offered.
    let options = offered("bench", "--");
    assert!(options.contains("--size") && !options.contains("--allow-write=sda"), "{options}");
    let all = offered("bench", "");
    assert!(all.contains("plain-1.json") && !all.contains("--allow-write=sda"), "{all}");
}

/// So does PowerShell.
#[test]
fn powershell_is_offered_nothing_that_it_would_run() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for name in ["plain-1.json", "data;id", "$(id)", "a|b", "a`b", "a b", "x\n$(id)", "--out=x"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let offered = |command: &str, typed: &str| {
        let mut command = weir.command(folder.path(), &["--", "weir", command, typed]);
        command.env("WEIR_COMPLETE", "powershell").env("WEIR_STORE", weir.store());
        ended(command).stdout
    };
    assert_eq!(offered("report", "./"), "./--out=x\n./plain-1.json\n./x\n");
    let all = offered("bench", "");
    let words: Vec<&str> = all.lines().filter_map(|line| line.split('\t').next()).collect();
    assert!(words.contains(&"plain-1.json") && words.contains(&"--size"), "{all}");
    assert!(!words.contains(&"--out=x") && !words.iter().any(|word| word.contains('$')), "{all}");
}

#[test]
fn reports_are_as_wide_as_the_terminal_and_no_wider_than_can_be_read() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let line = ["knobs", "show", "vm.dirty_bytes"];
    let piped = weir.run(folder.path(), &line);
    let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    for (columns, widest) in [(60, 60), (80, 80), (300, 100)] {
        let program = weir.command(folder.path(), &[]).get_program().display().to_string();
        let typed = format!("stty rows 20 cols {columns}; {program} {}", line.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &typed, "/dev/null"]).env("WEIR_STORE", weir.store());
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = ended(script).stdout.replace('\r', "");
        let most = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(most <= widest && most > widest - 20, "{most} of {columns} columns: {shown}");
        assert_eq!(words(&shown), words(&piped.stdout), "{columns}");
    }
}
