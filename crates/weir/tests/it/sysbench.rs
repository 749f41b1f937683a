//! `weir fileio` beyond what a comparison with sysbench shows: what weir adds, keeps and refuses to hide.

use std::fs;
use std::path::Path;

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::{Ended, Weir, ended};

const SMALL: [&str; 3] = ["fileio", "--file-num=2", "--file-total-size=4M"];

fn small<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(rest).copied().collect()
}

fn prepared(weir: &Weir, folder: &Path) {
    let made = weir.run(folder, &small(&["prepare"]));
    assert_eq!(made.code, 0, "{made:?}");
}

/// What weir adds after sysbench's report: lines from the first that begins with `weir:`.
fn extra(run: &Ended) -> &str {
    let start =
        run.stdout.find("\nweir: latency by class").unwrap_or_else(|| panic!("nothing added: {run:?}"));
    assert!(
        run.stdout[..start].contains("Threads fairness:"),
        "before the end of sysbench's report: {run:?}"
    );
    &run.stdout[start..]
}

#[test]
fn what_weir_adds_fits_what_ran() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    // (options of the run, what must be said, what must not be)
    let cases: [(&[&str], &[&str], &[&str]); 6] = [
        (
            &["--file-test-mode=rndrd"],
            &["read "],
            &["io_submit", "random;", "syncs of one file", "final sync"],
        ),
        (
            &["--file-test-mode=rndrw"],
            &["write ", "sync ", "syncs of one file", "writes zeros", "final sync of 2"],
            &["commit "],
        ),
        (&["--file-test-mode=rndwr", "--file-fsync-all"], &["commit ", "includes the sync"], &["final sync"]),
        (
            &["--file-test-mode=rndrd", "--file-io-mode=async", "--file-extra-flags=direct", "--threads=2"],
            &["prints the time io_submit takes", "Little's law"],
            &[],
        ),
        (&["--file-test-mode=rndrd", "--rate=200"], &["Open loop: "], &[]),
        (&["--file-test-mode=rndrd", "--rand-type=gaussian"], &["--rand-type=gaussian has no effect"], &[]),
    ];
    for (options, said, unsaid) in cases {
        let run = weir.run(dir.path(), &[&small(options)[..], &["--events=200", "run"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        for text in said {
            assert!(extra(&run).contains(text), "{options:?}: {text:?} is missing in {}", extra(&run));
        }
        for text in unsaid {
            assert!(!extra(&run).contains(text), "{options:?}: {text:?} is in {}", extra(&run));
        }
        let without = weir
            .run(dir.path(), &[&small(options)[..], &["--events=20", "--weir-extra=off", "run"]].concat());
        assert!(!without.stdout.contains("weir:"), "{without:?}");
    }
}

#[test]
fn a_run_that_its_events_end_takes_the_time_that_passed() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    let words = small(&["--file-test-mode=rndrd", "--rate=200", "--events=40", "--time=60", "run"]);
    let run = weir.run(dir.path(), &words);
    let took = run.stdout.lines().find_map(|line| line.trim().strip_prefix("total time:"));
    let seconds: f64 = took.unwrap().trim().trim_end_matches('s').parse().unwrap();
    assert!(seconds < 30.0, "{run:?}");
}

#[test]
fn a_run_is_kept_with_its_command() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    let words =
        small(&["--file-test-mode=rndrw", "--events=300", "--file-fsync-freq=0", "--rand-seed=7", "run"]);
    assert_eq!(weir.run(dir.path(), &words).code, 0);
    let records = weir.records();
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(record["kind"], "fileio");
    let command: Vec<&str> =
        record["command"].as_array().unwrap()[1..].iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(command, words);
    let job = &record["jobs"][0];
    assert_eq!(job["job"]["seed"], 7);
    let counts = ["read", "write"].map(|class| job["classes"][class]["latency"]["count"].as_u64().unwrap());
    // 1.5 reads for each write, whatever the timing.
    assert_eq!(counts, [180, 120]);
}

#[test]
fn an_interrupted_run_reports_what_it_measured() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    let words = small(&["--file-test-mode=seqwr", "--time=60", "run"]);
    // Twice what making its files writes.
    let mut running = weir.start(dir.path(), &words, |activity| activity.written > 8 << 20);
    running.signal("INT");
    let run = running.finish();
    assert_eq!(run.code, 130, "{run:?}");
    assert!(extra(&run).contains("write "), "{run:?}");
    assert_eq!(weir.records()[0]["ended_early"], "SIGINT");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    let words = small(&["--file-test-mode=rndrd", "--time=60", "--report-interval=1", "run"]);
    let mut running = weir.start(dir.path(), &words, |_| true);
    running.stop_reading();
    let run = running.finish();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn a_store_that_cannot_be_written_costs_no_report() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    let mut command = weir.command(dir.path(), &small(&["--file-test-mode=rndrd", "--events=10", "run"]));
    let run = ended({
        command.env("WEIR_STORE", "/proc/nowhere");
        command
    });
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("warning") && run.stdout.contains("Threads fairness:"), "{run:?}");
}

#[test]
fn a_file_a_little_too_short_is_refused_with_a_way_out() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("test_file.0"), vec![0; (1 << 20) - 90112]).unwrap();
    let old = ["--test=fileio", "--file-num=1", "--file-total-size=1M"];
    let with = |rest: &[&'static str]| {
        weir.run(dir.path(), &["fileio"].iter().chain(&old).chain(rest).copied().collect::<Vec<_>>())
    };
    let run = ["--file-test-mode=rndwr", "--file-fsync-all=on", "--max-requests=20", "run"];
    let short = with(&run);
    assert_eq!(short.code, 1, "{short:?}");
    assert!(
        short.stdout.contains("FATAL: Size of file 'test_file.0' is 936KiB, but at least 1MiB is expected.")
    );
    assert!(short.stderr.contains("it is 90112 bytes short; prepare"), "{short:?}");
    let extended = with(&["prepare"]);
    assert!(extended.stdout.contains("Extending existing file test_file.0"), "{extended:?}");
    assert_eq!(with(&run).code, 0);
}

#[test]
fn prepared_files_hold_no_zeros() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    prepared(&weir, dir.path());
    let content = fs::read(dir.path().join("test_file.1")).unwrap();
    assert_eq!(content.len(), 2 << 20);
    let sectors: std::collections::HashSet<&[u8]> = content.chunks(512).collect();
    assert_eq!(sectors.len(), 4096, "sectors repeat");
}

#[test]
fn validation_finds_what_was_changed_behind_its_back() {
    let (weir, dir) = (Weir::new(), tempfile::tempdir().unwrap());
    let run = |options: &[&str]| weir.run(dir.path(), &[&small(&["--validate"])[..], options].concat());
    assert_eq!(run(&["prepare"]).code, 0);
    let whole: [&[&str]; 3] = [
        &["--file-test-mode=seqrd", "--events=256", "run"],
        &["--file-test-mode=rndrw", "--events=500", "--threads=2", "run"],
        &["--file-test-mode=seqrd", "--events=256", "run"],
    ];
    for options in whole {
        let sound = run(options);
        assert_eq!(sound.code, 0, "{sound:?}");
        assert!(extra(&sound).contains("0 stale, 0 torn, 0 misplaced; 0 held no checksum"), "{sound:?}");
    }
    let path = dir.path().join("test_file.1");
    let mut content = fs::read(&path).unwrap();
    content[(1 << 20) + 100] ^= 1;
    let (left, right) = content.split_at_mut(512 << 10);
    left[..16384].swap_with_slice(&mut right[..16384]);
    fs::write(&path, content).unwrap();
    let corrupt = run(&["--file-test-mode=seqrd", "--events=256", "run"]);
    assert_eq!(corrupt.code, 1, "{corrupt:?}");
    assert!(extra(&corrupt).contains("0 stale, 1 torn, 2 misplaced; 0 held no checksum"), "{corrupt:?}");
    assert!(corrupt.stdout.contains("FATAL: Validation failed on file 1, offset 524288"), "{corrupt:?}");
}

#[test]
fn root_a_stuck_run_is_given_up() {
    if !root_or_say("root_a_stuck_run_is_given_up", &["mkfs.ext4", "fsfreeze"]) {
        return;
    }
    let weir = Weir::new();
    let device = LoopDevice::create(&["fs=ext4", "size=64M"]);
    let folder = device.mount();
    // In one where others may write, the check of the files' names would wait for the frozen file system, too.
    let folder = folder.join("own");
    std::fs::create_dir(&folder).unwrap();
    prepared(&weir, &folder);
    let frozen = device.freeze();
    let words = small(&["--file-test-mode=rndwr", "--time=1", "--forced-shutdown=1", "run"]);
    let mut running = weir.start(&folder, &words, |_| true);
    // The record is kept before anything is printed. The process itself cannot end while the kernel holds its write.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while weir.records().is_empty() && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let records = weir.records().len();
    drop(frozen);
    assert_eq!(records, 1, "not given up");
    let run = running.finish();
    assert_eq!(run.code, 2, "{run:?}");
    let said = [
        "FATAL: The --max-time limit has expired, forcing shutdown...",
        "Number of unfinished transactions on forced shutdown: 1",
        "An operation took ",
    ];
    said.iter().for_each(|text| assert!(run.stdout.contains(text), "{text:?} is missing in {run:?}"));
    assert!(run.stderr.contains("s ] an operation has been in flight for "), "told while it lasts: {run:?}");
}

#[test]
fn root_failing_devices_are_no_success() {
    if !root_or_say("root_failing_devices_are_no_success", &["mkfs.ext4"]) {
        return;
    }
    let weir = Weir::new();
    let device = LoopDevice::create(&["fs=ext4", "size=64M"]);
    let folder = device.mount();
    prepared(&weir, &folder);
    device.fail("writes");
    // Buffered writes succeed; only the last sync meets the device. sysbench exits 0 here.
    let words = small(&["--file-test-mode=rndwr", "--file-fsync-freq=0", "--events=20", "run"]);
    let run = weir.run(&folder, &words);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("FATAL: ") && run.stdout.contains("Threads fairness:"), "{run:?}");
    assert!(run.stdout.contains("FAILED"), "{run:?}");
    let words = small(&["--file-test-mode=rndwr", "--file-fsync-all", "--events=20", "run"]);
    let run = weir.run(&folder, &words);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("FATAL: ") && !run.stdout.contains("Threads fairness:"), "{run:?}");
    assert!(
        weir.records().iter().all(|record| record["ended_early"].is_string()),
        "errors are kept with the record"
    );
}

#[test]
fn root_a_full_file_system_keeps_nothing_of_a_prepare() {
    if !root_or_say("root_a_full_file_system_keeps_nothing_of_a_prepare", &["mkfs.ext4"]) {
        return;
    }
    let weir = Weir::new();
    let device = LoopDevice::create(&["fs=ext4", "size=32M"]);
    let run = weir.run(&device.mount(), &["fileio", "--file-num=2", "--file-total-size=200M", "prepare"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("FATAL: Failed to write file! errno = 28 (No space left on device)"),
        "{run:?}"
    );
    assert!(!device.mount().join("test_file.0").exists());
}
