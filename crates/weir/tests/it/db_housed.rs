//! A server in a root, a mount namespace and a process namespace of its own, as in a container: weir outside sees it whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::db_sandbox::{installed, wait_until};
use crate::lab::root_or_say;
use crate::weir::Weir;

/// The socket of the only sandbox.
fn socket(run: &Path) -> Option<PathBuf> {
    let runs = fs::read_dir(run.join("sandbox")).ok()?;
    let sockets = runs.flatten().map(|entry| entry.path().join("s/mysqld.sock"));
    sockets.into_iter().find(|socket| socket.exists())
}

#[test]
fn root_a_server_in_namespaces_of_its_own_is_seen_with_its_storage() {
    let test = "root_a_server_in_namespaces_of_its_own_is_seen_with_its_storage";
    if !root_or_say(test, &["unshare"]) || !installed(test).contains(&"mariadb") {
        return;
    }
    let (weir, place) = (Weir::new(), tempfile::tempdir().unwrap());
    let (hidden, run) = (place.path().join("hidden"), place.path().join("run"));
    fs::create_dir(&hidden).unwrap();
    fs::create_dir(&run).unwrap();
    // What is mounted there is seen in there alone, and its numbers of processes mean nothing here.
    let script = "mount -t tmpfs -o size=600m,mode=755 tmpfs \"$0\" && exec \"$@\"";
    let inside = weir.command(&hidden, &["db", "sandbox", "mariadb", "--dir"]);
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script])
        .arg(&hidden)
        .arg(inside.get_program())
        .args(inside.get_args())
        .arg(hidden.join("d"))
        .env("WEIR_RUN", &run)
        .current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut container = command.spawn().unwrap();
    wait_until("the server listens", || {
        assert!(container.try_wait().unwrap().is_none(), "the container ended");
        socket(&run).is_some()
    });
    let socket = socket(&run).unwrap().display().to_string();
    let login = ["--mysql", "--socket", &socket, "--user", "root"];
    wait_until("the server answers", || {
        weir.run(place.path(), &[&["db", "doctor", "--duration", "1s"], &login[..]].concat()).code == 0
    });
    assert!(!hidden.join("d").exists(), "its data are seen here: this test looks at nothing");

    let doctor = [&["db", "doctor", "--duration", "1s", "--format", "json"], &login[..]].concat();
    let ended = weir.run(place.path(), &doctor);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let found = &report["examination"];
    assert_eq!(found["unseen"], serde_json::json!([]), "{ended:?}");
    let target = &found["conditions"]["target"];
    assert_eq!(target["file_system"]["kind"], "tmpfs", "{target}");
    assert_eq!(target["file_system"]["size_bytes"], 600 << 20, "its room: {target}");

    let prepared = weir.run(place.path(), &[&["db", "prepare", "--table-size", "100"], &login[..]].concat());
    assert_eq!(prepared.code, 0, "{prepared:?}");
    let run = ["db", "run", "point_select", "--table-size", "100", "--time", "1", "--format", "record"];
    let ran = weir.run(place.path(), &[&run[..], &login[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    let unseen = record["extra"]["watched"]["unseen"].to_string();
    assert!(!unseen.contains("the server's threads: it says"), "{unseen}");
    assert!(!unseen.contains("the device of the data"), "{unseen}");
    container.kill().unwrap();
    container.wait().unwrap();
}
