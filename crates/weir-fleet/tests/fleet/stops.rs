//! What ends a run early: time, a signal, a kill. Wherever it ends, hosts end weir and remove its folder.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Hosts, Ran};

/// Waits for something that comes soon, or not at all.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn started(hosts: &Hosts, arguments: &[&str]) -> Child {
    let child = hosts.fleet(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for host in ["db1", "db2"] {
        eventually("weir on the host", || hosts.has(host, "started"));
    }
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_host_that_takes_too_long_is_ended_there_too() {
    let hosts = Hosts::new();
    let ran = hosts.run(&["--hosts", "db1", "--timeout", "1s", "wait"]);
    ran.says(3, &["timed out: not in time (running)"]);
    assert!(hosts.has("db1", "ended") && hosts.left().is_empty());
}

/// A second signal would end weir at once, and leave what it made.
#[test]
fn weir_is_asked_once_and_may_take_its_time() {
    let hosts = Hosts::new();
    hosts
        .run(&["--hosts", "db1", "--timeout", "1s", "linger"])
        .says(3, &["timed out: not in time (running)"]);
    let terms = std::fs::read_to_string(hosts.path("db1/terms")).unwrap();
    assert_eq!((terms.as_str(), hosts.has("db1", "ended")), ("term\n", true));
    // GNU timeout would pass the signal on twice.
    assert!(hosts.has("db1", "known"), "the signal went to another process than weir");
    assert!(hosts.left().is_empty());
}

/// bash reads commands no longer than TMOUT says, where it is the shell and somebody's profile sets that.
#[test]
fn a_time_that_shells_wait_at_most_does_not_end_the_script() {
    let hosts = Hosts::new();
    if !std::path::Path::new("/bin/bash").exists() {
        _ = writeln!(
            std::io::stderr(),
            "not run: a_time_that_shells_wait_at_most_does_not_end_the_script: no /bin/bash"
        );
        return;
    }
    hosts.program("db1", "sh", "exec /bin/bash --posix \"$@\"");
    let mut fleet = hosts.fleet(&["--hosts", "db1", "slow"]);
    Ran::of(fleet.env("TMOUT", "1").output().unwrap()).says(0, &["1 of 1 hosts done"]);
}

#[test]
fn a_signal_ends_weir_on_every_host() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let hosts = Hosts::new();
        let child = started(&hosts, &["--hosts", "db1,db2", "wait"]);
        signal(&child, name);
        let ran = Ran::of(child.wait_with_output().unwrap());
        ran.says(code, &["interrupted"]);
        assert!(
            hosts.has("db1", "ended") && hosts.has("db2", "ended") && hosts.left().is_empty(),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_on_hosts() {
    let hosts = Hosts::new();
    let mut child = started(&hosts, &["--hosts", "db1,db2", "wait"]);
    child.kill().unwrap();
    child.wait().unwrap();
    for host in ["db1", "db2"] {
        eventually("the end of weir", || hosts.has(host, "ended"));
    }
    eventually("the end of the folders", || hosts.left().is_empty());
}
