//! `weir db scale`, `io-capacity`, `disk-vs-ram` and `flood` on throw-away servers, and variables of servers as knobs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_db::sandbox::Flavour;

use crate::db_server::{TestServer, server_or_say};
use crate::lab::root_or_say;
use crate::weir::{Ended, Weir, files_under};

/// Short waits for a clean start: what others write keeps the machine's pages dirty for as long as they please.
const SMALL: [&str; 8] = ["--time", "500ms", "--table-size", "500", "--threads", "2", "--washout", "1s"];

/// The record that `--format record` printed, once the folder is as empty as it was.
fn record(ended: &Ended, folder: &Path) -> Value {
    assert_eq!(ended.code, 0, "{ended:?}");
    let left: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn trials(record: &Value) -> &Vec<Value> {
    record["extra"]["trials"].as_array().unwrap()
}

/// Every trial ran transactions, and its figures are those of its own record.
fn all_measured(record: &Value) {
    for trial in trials(record) {
        let measured = &trial["observation"]["outcome"]["measured"];
        let counted = trial["transactions"]["kinds"]["transaction"]["latency"]["count"].as_u64();
        assert!(counted > Some(0), "{trial}");
        assert_eq!(measured["operations"].as_u64(), counted);
        assert!(measured["values"]["rate"].as_f64() > Some(0.0), "{measured}");
    }
}

#[test]
fn how_a_server_scales_is_said_of_both_families() {
    for server in ["mariadb", "postgres"] {
        let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
        let line =
            ["db", "scale", "point_select", "--sandbox", server, "--ladder", "1,2,3,4", "--repeats", "2"];
        let size = ["--time", "500ms", "--table-size", "500", "--washout", "1s", "--format", "record"];
        let ended = weir.run(folder.path(), &[&line[..], &size].concat());
        let record = record(&ended, folder.path());
        assert_eq!(
            (record["extra"]["design"].as_str(), trials(&record).len()),
            (Some("scale"), 8),
            "{server}"
        );
        all_measured(&record);
        // Its server is gone: nothing can go on.
        let path = files_under(weir.store()).into_iter().find(|path| path.extension().is_some()).unwrap();
        let cut = record.to_string().replacen("\"ended_early\":null", "\"ended_early\":\"SIGINT\"", 1);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, cut).unwrap();
        let id = record["id"].as_str().unwrap();
        let resumed = weir.run(folder.path(), &["tune", "resume", id]);
        assert!(resumed.code == 3 && resumed.stderr.contains("throw-away"), "{resumed:?}");
        let resumed = weir.run(folder.path(), &["tune", "resume"]);
        assert!(resumed.stderr.contains("no interrupted experiment"), "{resumed:?}");
        fs::write(&path, whole).unwrap();
        let shown = weir.run(folder.path(), &["results", "show", "last"]);
        assert!(shown.unwrapped().contains("weir db scale: Of the numbers tried,"), "{shown:?}");
        assert!(
            shown.stdout.contains("Universal Scalability Law") && shown.stdout.contains("4 connections"),
            "{shown:?}"
        );
    }
}

/// Trials that fail because there is no server say nothing of what they tried: they are not kept.
#[test]
fn an_experiment_ends_where_its_server_goes() {
    const TEST: &str = "an_experiment_ends_where_its_server_goes";
    let Some(mut server) = server_or_say(TEST, Flavour::Mariadb) else { return };
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let run = |words: &[&str]| {
        let line = server.line(words);
        weir.command(folder.path(), &line.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(run(&["prepare", "--table-size", "500"]).output().unwrap().status.success());
    let scale = ["scale", "--table-size", "500", "--ladder", "1,2", "--repeats", "50", "--time", "1s"];
    let mut command = run(&[&scale[..], &["--washout", "1s", "--no-trace"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let kept = || weir.records().first().map_or(0, |record| trials(record).len());
    while kept() < 2 {
        assert!(Instant::now() < until, "no trial came");
        std::thread::sleep(Duration::from_millis(100));
    }
    server.sandbox.stop().unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(3) && said.contains("the server cannot be used any more"),
        "{ended:?}"
    );
    assert!(said.contains("weir tune resume"), "{said}");
    let record = &weir.records()[0];
    assert!(
        record["ended_early"].as_str().is_some_and(|why| why.contains("the server cannot be used any more"))
    );
    all_measured(record);
}

#[test]
fn disk_and_memory_hold_the_same_data() {
    for server in ["mariadb", "postgres"] {
        let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
        let line =
            ["db", "disk-vs-ram", "commit", "--sandbox", server, "--repeats", "2", "--format", "record"];
        let record = record(&weir.run(folder.path(), &[&line[..], &SMALL].concat()), folder.path());
        assert_eq!((record["extra"]["design"].as_str(), trials(&record).len()), (Some("ab"), 4), "{server}");
        all_measured(&record);
        let verdict = &record["extra"]["plan"]["claim"]["verdict"];
        assert!(verdict["headline"].as_str().is_some_and(|text| !text.is_empty()), "{server}: {verdict}");
        let shown = weir.run(folder.path(), &["results", "show", "last", "--format", "json"]);
        let tested = &serde_json::from_str::<Value>(&shown.stdout).unwrap()["finding"]["tested"];
        assert_eq!((tested["change"].as_str(), tested["pairs"].as_u64()), (Some("in-memory"), Some(2)));
        assert_eq!(tested["bound"], verdict["bounds"]["faster_disk"], "{server}: {tested}");
        let servers: Vec<_> = ["a", "b"]
            .map(|arm| record["extra"]["plan"][arm]["workload"]["transactions"]["server"].clone())
            .into();
        assert_ne!(servers[0], servers[1]);
    }
    let left = fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    let own = format!("-{}-ram", std::process::id());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(&own)));
}

#[test]
fn alone_transactions_beside_a_flood_are_compared_with_those_alone() {
    let (weir, folder) = (Weir::alone(), tempfile::tempdir().unwrap());
    let line =
        ["db", "flood", "--sandbox", "mariadb", "--no-guard", "--flood", "dd:size=64M", "--repeats", "2"];
    let record = record(
        &weir.run(folder.path(), &[&line[..], &SMALL, &["--format", "record"]].concat()),
        folder.path(),
    );
    assert_eq!((record["extra"]["design"].as_str(), trials(&record).len()), (Some("beside"), 4));
    all_measured(&record);
    assert_eq!(record["floods"].as_array().map(Vec::len), Some(2), "one for each flooded trial");
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    for (line, words) in [
        (&["disk-vs-ram"][..], "--sandbox"),
        (&["flood"], "--flood-dir"),
        (&["scale", "--sandbox", "mariadb", "--threads", "3"], "--ladder"),
        (&["scale", "--sandbox", "mariadb", "--transactions", "3"], "--time"),
        (&["scale", "--sandbox", "mariadb", "--set", "x"], "NAME=VALUE"),
        (&["scale", "--server", "mysql://root@/weir?socket=/nowhere", "--memory", "1G"], "throw-away"),
        (&["io-capacity", "--sandbox", "oracle"], "expected mysql, mariadb or postgres"),
        (
            &["io-capacity", "--sandbox", "postgres", "--table-size", "100"],
            "innodb_io_capacity is a variable of MySQL",
        ),
    ] {
        let ended = weir.run(folder.path(), &[&["db"], line].concat());
        assert_eq!(ended.code, 2, "{line:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{line:?}: no `{words}` in {ended:?}");
        assert!(ended.stdout.is_empty() && fs::read_dir(folder.path()).unwrap().next().is_none(), "{line:?}");
    }
}

/// innodb_io_capacity and its upper bound in a running server.
fn capacity(server: &TestServer) -> (String, String) {
    let of = |name: &str| server.ask("", &format!("SELECT @@GLOBAL.{name}")).remove(0);
    (of("innodb_io_capacity"), of("innodb_io_capacity_max"))
}

#[test]
fn root_alone_a_variable_of_a_server_is_a_knob_that_survives_a_kill() {
    const TEST: &str = "root_alone_a_variable_of_a_server_is_a_knob_that_survives_a_kill";
    if !root_or_say(TEST, &[]) {
        return;
    }
    let weir = Weir::alone();
    let Some(server) = server_or_say(TEST, Flavour::Mariadb) else { return };
    let socket = server.sandbox.socket().display().to_string();
    let found = capacity(&server);
    assert_eq!(found, ("200".to_string(), "2000".to_string()));
    let name = format!("mysql:root@{socket}/innodb_io_capacity");
    let folder = tempfile::tempdir().unwrap();

    let applied = weir.run(folder.path(), &["knobs", "apply", &format!("{name}=700")]);
    assert_eq!((applied.code, capacity(&server).0.as_str()), (0, "700"), "{applied:?}");
    let back = weir.run(folder.path(), &["knobs", "rollback", "--all"]);
    assert_eq!((back.code, capacity(&server)), (0, found.clone()), "{back:?}");

    // One that is not whole: the server takes no string for it.
    let share = "innodb_max_dirty_pages_pct";
    server.ask("", &format!("SET GLOBAL {share} = 75.5"));
    let now = || server.ask("", &format!("SELECT @@GLOBAL.{share}")).remove(0);
    let fraction = now();
    let applied = weir.run(folder.path(), &["knobs", "apply", &format!("mysql:root@{socket}/{share}=50")]);
    assert_eq!((applied.code, now().parse::<f64>().unwrap()), (0, 50.0), "{applied:?}");
    let back = weir.run(folder.path(), &["knobs", "rollback", "--all"]);
    assert_eq!((back.code, now()), (0, fraction), "{back:?}");

    // In the middle of a sweep, with the guardian: what is left is restored by itself.
    let named = format!("mysql://root@/?socket={socket}");
    let prepared = weir.run(folder.path(), &["db", "prepare", "--server", &named, "--table-size", "500"]);
    assert_eq!(prepared.code, 0, "{prepared:?}");
    let sweep = [
        "db",
        "io-capacity",
        "--server",
        &socket,
        "--table-size",
        "500",
        "--grid",
        "900",
        "--time",
        "2",
        "--warmup",
        "1",
        "--washout",
        "1s",
        "--repeats",
        "2",
    ];
    for kills_guardian in [false, true] {
        let mut child = weir.command(folder.path(), &sweep).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        while capacity(&server).0 != "900" {
            assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "the sweep never set it");
            std::thread::sleep(Duration::from_millis(50));
        }
        if kills_guardian {
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
            for pid in children.split_whitespace() {
                let _ = Command::new("kill").args(["-KILL", pid]).status();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if kills_guardian {
            let back = weir.run(folder.path(), &["knobs", "rollback"]);
            assert_eq!(back.code, 0, "{back:?}");
        }
        let until = Instant::now() + Duration::from_secs(20);
        while capacity(&server) != found {
            assert!(
                Instant::now() < until,
                "left at {:?} (guardian killed: {kills_guardian})",
                capacity(&server)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
