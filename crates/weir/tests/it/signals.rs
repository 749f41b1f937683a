//! Interrupted runs: what was measured is kept, what was made is removed, by the run itself or, after SIGKILL, by the
//! next one.

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::weir::{Weir, files_under, latency};

const SIZE_BYTES: u64 = 8 << 20;

/// Random reads from a small file of its own, beside a flood. Filling reads nothing, so whoever has read has measured.
const RUN: [&str; 13] = [
    "bench",
    "--dir",
    ".",
    "--size",
    "8M",
    "--direct=false",
    "--engine",
    "psync",
    "--duration",
    "60s",
    "--flood",
    "dd:size=16M",
    "--rw",
];

#[test]
fn signals_end_a_run_in_order() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
        let arguments = [&RUN[..], &["randread"]].concat();
        let mut run = weir.start(folder.path(), &arguments, |activity| activity.read > 4 * SIZE_BYTES);
        assert!(files_under(folder.path()).len() >= 2, "neither file nor flood is there");
        run.signal(signal);
        let ended = run.finish();
        assert_eq!(ended.code, code, "SIG{signal}: {ended:?}");
        assert_eq!(files_under(folder.path()), Vec::<std::path::PathBuf>::new(), "SIG{signal} left files");
        let records = weir.records();
        assert_eq!(records.len(), 1, "SIG{signal}");
        assert!(records[0]["ended_early"].to_string().contains(signal), "{}", records[0]["ended_early"]);
        let read = latency(&records[0]["jobs"][0], "read");
        assert!(read.count * 4096.0 > 2.0 * SIZE_BYTES as f64, "SIG{signal}: {} reads kept", read.count);
        assert!(
            records[0]["floods"][0]["bytes"].as_u64().unwrap() > 0,
            "SIG{signal}: the flood is not recorded"
        );
        let ages = &records[0]["jobs"][0]["flood_ages_ns"];
        assert!(ages[0].as_u64().is_some_and(|ns| ns > 0), "SIG{signal}: the flood is older, got {ages}");
        assert!(ended.stdout.contains("IOPS"), "SIG{signal}: no report: {}", ended.stdout);
    }
}

/// `timeout 60 weir …`: GNU timeout sends its signal to weir, and then to the group, in which weir is. SIGTERM twice may come as one.
#[test]
fn a_signal_that_comes_twice_at_once_ends_a_run_in_order() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let arguments = [&RUN[..], &["randread"]].concat();
    let mut run = weir.start(folder.path(), &arguments, |activity| activity.read > 4 * SIZE_BYTES);
    run.signals(&["TERM", "TERM", "HUP"]);
    let ended = run.finish();
    assert!([129, 143].contains(&ended.code) && ended.stdout.contains("IOPS"), "{ended:?}");
    assert_eq!(files_under(folder.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(weir.records().len(), 1);
}

/// An event that waits for a pipe to which nobody writes keeps weir for a minute after the first signal.
#[test]
fn a_later_signal_ends_weir_at_once() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let waits = "function event() io.open('here', 'w'):close() io.open('pipe'):read() end";
    fs::write(folder.path().join("waits.lua"), waits).unwrap();
    let here = folder.path().join("here");
    let line = ["sysbench", "./waits.lua", "--time=0", "run"];
    let mut running = weir.start(folder.path(), &line, |_| here.exists());
    let (begun, pause) = (Instant::now(), Duration::from_millis(300));
    running.signal("TERM");
    std::thread::sleep(pause);
    assert!(!running.has_ended(), "{:?}", running.finish());
    while !running.has_ended() {
        assert!(begun.elapsed() < Duration::from_secs(50), "it does not end");
        running.signal("TERM");
        std::thread::sleep(pause);
    }
    assert_eq!(running.finish().code, 143);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let arguments = [&RUN[..], &["randread"]].concat();
    let mut run = weir.start(folder.path(), &arguments, |activity| activity.read > 4 * SIZE_BYTES);
    run.signal("KILL");
    assert_eq!(run.finish().code, 137);
    assert!(files_under(folder.path()).len() >= 2, "nothing was left: this test looks at nothing");
    let next = ["bench", "--dir", ".", "--size", "1M", "--direct=false", "--operations", "10"];
    let ended = weir.run(folder.path(), &next);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(files_under(folder.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(weir.records().len(), 1, "half a record of the killed run is in the store");
}

/// `weir … | head -1`: the reader goes away before the report is printed.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let short =
        ["bench", "--dir", ".", "--size", "8M", "--direct=false", "--duration", "1s", "--format", "csv"];
    let mut run = weir.start(folder.path(), &short, |_| true);
    run.stop_reading();
    let ended = run.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(files_under(folder.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(weir.records().len(), 1);
}

/// A script of which every command says by a file that it is at work, and then never ends.
const ENDLESS: &str = "local function endless() io.open('here', 'w'):close() while true do end end\n\
                       function prepare() endless() end\nfunction event() endless() end\n\
                       sysbench.cmdline.commands = { prewarm = { endless } }\n";

#[test]
fn the_first_signal_ends_every_command_of_a_script() {
    // SIGINT is ignored from the start where a shell has put the tests in the background, and SIGHUP under nohup; a run takes both.
    let signals =
        [("prepare", "TERM", 143), ("prewarm", "TERM", 143), ("run", "HUP", 129), ("run", "INT", 130)];
    for (command, signal, code) in signals {
        let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("endless.lua"), ENDLESS).unwrap();
        let here = folder.path().join("here");
        let line = ["sysbench", "./endless.lua", "--time=0", command];
        let mut running = weir.start(folder.path(), &line, |_| here.exists());
        running.signal(signal);
        let ended = running.finish();
        assert_eq!(ended.code, code, "{command}: {ended:?}");
        assert!(!ended.stdout.contains("FATAL"), "{command}: {ended:?}");
    }
}

#[test]
fn a_signal_while_a_script_connects_is_no_failure() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--mysql-port={}", listener.local_addr().unwrap().port());
    let line = ["sysbench", "oltp_point_select", "--mysql-host=127.0.0.1", &port, "run"];
    let mut running = weir.start(folder.path(), &line, |_| true);
    let silent = listener.accept().unwrap();
    running.signal("INT");
    let ended = running.finish();
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(!ended.stdout.contains("FATAL"), "{ended:?}");
    drop(silent);
}

#[test]
fn a_signal_ends_the_wait_for_a_silent_server() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let line = ["db", "run", "--mysql", "--host", "127.0.0.1", "--port", &port, "--connect-timeout", "30s"];
    let mut running = weir.start(folder.path(), &line, |_| true);
    let silent = listener.accept().unwrap();
    running.signal("TERM");
    let ended = running.finish();
    assert_eq!(ended.code, 143, "{ended:?}");
    assert!(!ended.stderr.contains("no answer"), "{ended:?}");
    drop(silent);
}
