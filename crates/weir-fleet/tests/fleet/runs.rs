//! Commands on hosts that do well, and on hosts that cannot.

use std::fs;

use super::Hosts;

const DOCTOR: &str = r#"{"schema":"weir.doctor/1","headline":{"grade":"good","text":"Good."},"facts":[],"findings":[],
    "measurements":[{"id":"commit-16k-t1","iops":{"mean":749.0},"latency":{"p50_ns":1300000,"p95_ns":2000000}}]}"#;

#[test]
fn results_are_pulled_into_partitions_and_hosts_are_left_clean() {
    let hosts = Hosts::new();
    for host in ["db1", "db2", "db3"] {
        hosts.set(host, "doctor.json", DOCTOR);
    }
    let junit = hosts.path("junit.xml");
    let ran =
        hosts.run(&["--hosts", "db[1:3]", "--junit", junit.to_str().unwrap(), "doctor", "--quick", "/data"]);
    ran.says(0, &["3 of 3 hosts done", "db2         749  1.30 ms  2.00 ms", "GOOD"]);
    assert!(ran.err.contains("[3/3]"), "{}", ran.err);
    assert_eq!(hosts.left(), Vec::<std::path::PathBuf>::new());
    let files = hosts.pulled();
    assert_eq!(files.len(), 6, "{files:?}");
    assert!(files[0].starts_with("kind=doctor/date=20") && files[0].contains("/host=db1/20"), "{files:?}");
    assert!(
        files.iter().any(|file| file.ends_with("-record.json"))
            && files.iter().any(|file| file.ends_with("-stdout.json"))
    );
    assert_eq!(crate::mode(&junit), 0o600);
    assert!(fs::read_to_string(junit).unwrap().contains("tests=\"3\" failures=\"0\" errors=\"0\""));
}

#[test]
fn a_folder_in_which_others_may_rename_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let hosts = Hosts::new();
    hosts.program("db1", "mktemp", "echo \"$@\" >>\"$HOME/made\"; exec /usr/bin/mktemp \"$@\"");
    let mode = |mode| std::fs::set_permissions(hosts.path("db1"), std::fs::Permissions::from_mode(mode));
    let made = || {
        let _ = std::fs::remove_file(hosts.path("db1/made"));
        hosts.run(&["--hosts", "db1", "say", "x"]).says(0, &[]);
        std::fs::read_to_string(hosts.path("db1/made")).unwrap()
    };
    let home = hosts.path("db1").display().to_string();
    for (bits, is_taken) in [(0o755, true), (0o1777, true), (0o1770, true), (0o777, false), (0o770, false)] {
        mode(bits).unwrap();
        let made = made();
        assert_eq!(made.contains(&home), is_taken, "{bits:o}: {made}");
    }
    mode(0o755).unwrap();
    // Only root can give a folder away.
    if std::os::unix::fs::chown(hosts.path("db1"), Some(12_345), None).is_ok() {
        let made = made();
        assert!(!made.contains(&home), "another's: {made}");
    }
}

#[test]
fn nobody_waits_for_a_pipe_where_an_agent_s_number_should_be() {
    let hosts = Hosts::new();
    hosts.set("db1", "weir-fleet.old/x", "");
    let old = hosts.path("db1/weir-fleet.old");
    let made = std::process::Command::new("mkfifo").arg(old.join("agent")).status().unwrap();
    let aged = std::process::Command::new("touch").args(["-d", "3 days ago"]).arg(&old).status().unwrap();
    assert!(made.success() && aged.success());
    hosts.run(&["--hosts", "db1", "say", "x"]).says(0, &[]);
    assert!(old.exists(), "it is not proven to be an agent's");
}

#[test]
fn hosts_that_cannot_are_named_and_the_others_go_on() {
    let hosts = Hosts::new();
    hosts.set("full", "x", "");
    hosts.program("full", "df", "echo Filesystem; echo fs 1 1 17 1 /");
    hosts.program("bare", "sha256sum", "exit 1");
    hosts.set("broken", "code", "3");
    let all = "good,dead1,changed1,refused1,full,bare,broken";
    let ran = hosts.run(&["--hosts", all, "doctor", "/data"]);
    ran.says(
        3,
        &[
            "1 of 7 hosts done",
            "unreachable: no answer in time",
            "unreachable: its host key has changed",
            "unreachable: no key of this account is accepted",
            "has 17 KiB free and",
            "failed: the copy is damaged there",
            "failed: as the test wants it",
        ],
    );
    assert_eq!(hosts.left(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_exit_code_is_that_of_the_worst_host() {
    for (codes, expected) in
        [(["0", "0"], 0), (["0", "1"], 1), (["1", "4"], 4), (["4", "3"], 3), (["1", "2"], 3)]
    {
        let hosts = Hosts::new();
        hosts.set("a", "code", codes[0]);
        hosts.set("b", "code", codes[1]);
        hosts.run(&["--hosts", "a,b", "doctor"]).says(expected, &[]);
    }
}

#[test]
fn another_architecture_needs_another_binary() {
    let hosts = Hosts::new();
    hosts.program("arm", "uname", "echo aarch64");
    let program = fs::canonicalize("/bin/true").unwrap();
    let mut command = hosts.fleet(&["--hosts", "arm", "doctor"]);
    let arguments: Vec<_> = command
        .get_args()
        .map(|word| {
            if word.to_string_lossy().ends_with("/weir") {
                program.clone().into()
            } else {
                word.to_os_string()
            }
        })
        .collect();
    let mut ran = std::process::Command::new(command.get_program());
    ran.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?)))).args(arguments);
    super::Ran::of(ran.output().unwrap()).says(3, &["no weir for aarch64, only for x86_64"]);
    command.output().unwrap();
    assert_eq!(hosts.left(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn sudo_gives_root_and_its_absence_is_said() {
    let hosts = Hosts::new();
    for host in ["may", "not"] {
        hosts.program(host, "id", "echo 1000");
    }
    // As sudo does, it runs what follows `--`; and there it is root.
    hosts.program("may", "sudo", "echo \"$2\" >\"$HOME/asked\"; shift 2; exec \"$@\"");
    hosts.program("not", "sudo", "echo 'sudo: a password is required' >&2; exit 1");
    let ran = hosts.run(&["--sudo", "--hosts", "may,not", "say", "hello"]);
    ran.says(3, &["1 of 2 hosts done", "failed: no root by sudo -n: sudo: a password is required"]);
    assert!(hosts.has("may", "asked") && hosts.left().is_empty());
}

#[test]
fn arguments_arrive_as_they_were_typed() {
    let hosts = Hosts::new();
    let odd = ["a b", "it's", "$(touch $HOME/owned)", "\"", "*", "-x", "\\n", ";exit"];
    let ran = hosts.run(&[&["--hosts", "db1", "say"][..], &odd].concat());
    ran.says(0, &[]);
    let files = hosts.pulled();
    let printed = fs::read_to_string(hosts.path("results").join(&files[0])).unwrap();
    assert_eq!(printed, odd.join("\n") + "\n");
    assert!(!hosts.has("db1", "owned"));
    hosts.run(&["--hosts", "db1", "say", "a\nbye"]).says(2, &[]);
}

#[test]
fn files_of_the_out_folder_are_pulled() {
    let hosts = Hosts::new();
    hosts.run(&["--hosts", "db1", "leave", "{out}"]).says(0, &[]);
    let files = hosts.pulled();
    assert_eq!(files.len(), 1, "links, hidden files and odd names stay: {files:?}");
    assert!(files[0].ends_with("-a.csv"));
}

#[test]
fn starts_together_say_how_far_apart_they_were() {
    let hosts = Hosts::new();
    let ran = hosts.run(&["--hosts", "db[1:4],dead1", "--together", "say", "x"]);
    ran.says(3, &["4 of 5 hosts done", "started within", "their clocks differ from this one's by up to"]);
    // A start is by this machine's clock, or it is not said.
    for (together, said) in [(&["--together"][..], true), (&[], false)] {
        let ran = hosts.run(&[&["--hosts", "db1", "--json"], together, &["say", "x"]].concat());
        assert_eq!(ran.out.contains("began_ns"), said, "{}", ran.out);
    }
}

#[test]
fn names_that_are_options_are_usage_errors() {
    let hosts = Hosts::new();
    for bad in ["-oProxyCommand=touch owned", "a;b", "../x", ""] {
        let ran = hosts.run(&[&format!("--hosts={bad}"), "doctor"]);
        assert_eq!(ran.code, Some(2), "{bad}: {}", ran.err);
    }
    hosts.run(&["doctor"]).says(2, &[]);
    hosts.run(&["--hosts", "a", "fleet", "run"]).says(2, &[]);
}

#[test]
fn the_last_run_is_shown_again_and_slow_hosts_are_named() {
    let hosts = Hosts::new();
    for n in 1..=6 {
        hosts.set(
            &format!("db{n}"),
            "doctor.json",
            &if n == 4 { DOCTOR.replace("749.0", "90.0") } else { DOCTOR.to_string() },
        );
    }
    let page = hosts.path("page.html");
    let file = page.to_str().unwrap();
    hosts.run(&["--hosts", "db[1:6]", "--html", file, "doctor"]).says(0, &[]);
    assert_eq!(crate::mode(&page), 0o600);
    let first = fs::read_to_string(&page).unwrap();
    for part in
        ["<h1>1 of 6 hosts is slower than its peers</h1>", "<figure id=\"commits\">", "href=\"#host-4\""]
    {
        assert!(first.contains(part), "{part}");
    }
    let show = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_weir-fleet"));
        super::Ran::of(
            command.env("WEIR_FLEET", hosts.path("results")).arg("show").args(arguments).output().unwrap(),
        )
    };
    show(&[]).says(0, &["6 of 6 hosts done"]);
    show(&["slow"]).says(1, &["1 of 6 hosts are slow", "db4", "not known"]);
    show(&["slow", "--json"]).says(1, &["\"schema\": \"weir.fleet.slow/1\""]);
    show(&["slow", "--peers", "9"]).says(0, &["0 of 0", "not judged, with fewer than 9 hosts"]);
    show(&["nothing"]).says(2, &[]);
    // The page again, and with other peers.
    show(&["--html", file]).says(0, &["6 of 6 hosts done"]);
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    show(&["slow", "--peers", "9", "--html", file]).says(0, &[]);
    assert!(fs::read_to_string(&page).unwrap().contains("<h1>6 of 6 hosts are done</h1>"));
}
