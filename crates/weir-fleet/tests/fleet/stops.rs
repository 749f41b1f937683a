//! What ends a run early: time, a signal, a kill. Wherever it ends, hosts end weir and remove its folder.

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
