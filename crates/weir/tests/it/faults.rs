//! What the machine lacks, and what fails under way: a clear error with a hint, the right exit code, no file left, and
//! what was measured until then kept.

use std::fs;
use std::path::Path;

use crate::lab::{LoopDevice, lab, root_or_say};
use crate::weir::{Activity, Ended, Weir, ended, files_under, latency};

/// An end with an error: code, words on stderr (a hint among them), and nothing but `kept` in the folder.
fn check(ended: &Ended, code: i32, says: &[&str], folder: &Path, kept: usize) {
    assert_eq!(ended.code, code, "{ended:?}");
    for word in says.iter().chain(&["error", "hint:"]) {
        assert!(ended.stderr.contains(word), "does not say {word:?}: {}", ended.stderr);
    }
    let left = files_under(folder);
    assert_eq!(left.len(), kept, "left behind: {left:?}");
}

#[test]
fn a_file_shorter_than_the_workload_wants_is_refused_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("short"), vec![1; 10_000]).unwrap();
    let weir = Weir::new();
    for (options, named) in [(&["--size", "1M"][..], "1 MiB"), (&["--block", "64k"][..], "64 KiB")] {
        let arguments = [&["bench", "--file", "short", "--direct=false"], options].concat();
        check(&weir.run(folder.path(), &arguments), 2, &["short", named], folder.path(), 1);
    }
    assert_eq!(fs::read(folder.path().join("short")).unwrap(), vec![1; 10_000]);
}

#[test]
fn places_that_are_not_there_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let weir = Weir::new();
    for place in
        [["--dir", "no/such/folder"], ["--file", "no-such-file"], ["--device", "/dev/no-such-device"]]
    {
        let ended = weir.run(folder.path(), &["bench", place[0], place[1], "--size", "1M"]);
        check(&ended, 3, &[place[1]], folder.path(), 0);
    }
}

#[test]
fn polling_where_nothing_can_be_polled_is_refused_before_the_run() {
    if fs::metadata("/dev/shm").is_err() {
        eprintln!("polling_where_nothing_can_be_polled_is_refused_before_the_run: no /dev/shm here");
        return;
    }
    // A file in memory has no device beneath it, so no queue on any machine.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let weir = Weir::new();
    for pattern in ["randread", "randwrite"] {
        let arguments =
            ["bench", "--dir", ".", "--size", "1M", "--operations", "9", "--iopoll", "--rw", pattern];
        check(&weir.run(folder.path(), &arguments), 3, &[], folder.path(), 0);
    }
}

#[test]
fn results_that_cannot_be_written_are_a_failure_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let weir = Weir::new();
    let mut command = weir.command(folder.path(), &["bench", "--engine", "null", "--operations", "9"]);
    command.stdout(full);
    let ended = ended(command);
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("standard output"), "{ended:?}");
}

#[test]
fn root_a_read_only_file_system_is_named() {
    if !root_or_say("root_a_read_only_file_system_is_named", &["mkfs.ext4"]) {
        return;
    }
    let device = LoopDevice::create(&["fs=ext4", "size=16M", "mount=ro"]);
    let ended = Weir::new().run(&device.mount(), &["bench", "--dir", ".", "--size", "1M"]);
    check(&ended, 3, &["read-only"], &device.mount(), 0);
}

#[test]
fn root_a_file_system_without_room_is_refused_before_anything_is_written() {
    if !root_or_say("root_a_file_system_without_room_is_refused_before_anything_is_written", &["mkfs.ext4"]) {
        return;
    }
    let device = LoopDevice::create(&["fs=ext4", "size=32M"]);
    let ended = Weir::new().run(&device.mount(), &["bench", "--dir", ".", "--size", "1G"]);
    check(&ended, 3, &["free", "1 GiB"], &device.mount(), 0);
}

/// EIO from the device in the middle of a run: exit 4, the error and its place named, and the operations that were
/// measured before it are in the store and in the report.
#[test]
fn root_an_error_in_the_middle_keeps_what_was_measured() {
    if !root_or_say("root_an_error_in_the_middle_keeps_what_was_measured", &["chattr"]) {
        return;
    }
    // (direction, engine, what fails, class whose operations count).
    let cases = [
        ("randread", "psync", "reads", "read"),
        ("randread", "io_uring", "reads", "read"),
        ("randwrite", "libaio", "writes", "write"),
        ("randwrite", "psync", "all", "write"),
        ("randread", "io_uring", "all", "read"),
    ];
    for (rw, engine, fails, class) in cases {
        let device = LoopDevice::create(&["fs=none", "size=32M"]);
        let (node, weir, folder) = (device.device(), Weir::new(), tempfile::tempdir().unwrap());
        let node = node.to_string_lossy();
        let mut arguments =
            vec!["bench", "--device", &*node, "--rw", rw, "--engine", engine, "--duration", "60s"];
        if rw == "randwrite" {
            arguments.extend(["--i-know-this-destroys", &*node]);
        }
        let mut run = weir.start_measuring(folder.path(), &arguments);
        device.fail(fails);
        let ended = run.finish();
        let case = format!("{rw} {engine}, {fails} fail");
        check(&ended, 4, &["Input/output error", &node], folder.path(), 0);
        let records = weir.records();
        assert_eq!(records.len(), 1, "{case}");
        let job = &records[0]["jobs"][0];
        assert!(
            job["error"].as_str().is_some_and(|e| e.contains("Input/output error")),
            "{case}: {}",
            job["error"]
        );
        assert!(latency(job, class).count > 0.0, "{case}: nothing was kept");
        assert!(ended.stdout.contains("IOPS"), "{case}: no report: {}", ended.stdout);
    }
}

/// The kernel, or a container's filter, does not let weir have a ring.
#[test]
fn a_machine_without_io_uring_is_told_what_else_there_is() {
    for errno in ["ENOSYS", "EPERM"] {
        let folder = tempfile::tempdir().unwrap();
        let without = lab().join("without-syscall");
        let wrapper = [&*without.to_string_lossy(), errno, "425"].map(str::to_string);
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        let weir = Weir::new();
        let arguments = ["bench", "--dir", ".", "--size", "1M", "--engine", "io_uring", "--duration", "1s"];
        let ended = ended(weir.wrapped(&wrapper, folder.path(), &arguments));
        check(&ended, 3, &["io_uring", "libaio"], folder.path(), 0);
    }
}

/// Registered buffers count against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK. weir does without them then,
/// and the record says so.
#[test]
fn root_a_small_memlock_limit_costs_registered_buffers_and_nothing_else() {
    if !root_or_say(
        "root_a_small_memlock_limit_costs_registered_buffers_and_nothing_else",
        &["setpriv", "prlimit"],
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let weir = Weir::new();
    let wrapper =
        ["prlimit", "--memlock=65536", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
    let options =
        ["bench", "--dir", ".", "--size", "8M", "--direct=false", "--engine", "io_uring", "--depth", "64"];
    let arguments = [&options[..], &["--block", "64k", "--operations", "1000"]].concat();
    let ended = ended(weir.wrapped(&wrapper, folder.path(), &arguments));
    assert_eq!(ended.code, 0, "{ended:?}");
    let engine = &weir.records()[0]["jobs"][0]["engine"];
    assert!(engine["refused"].to_string().contains("buffers"), "{engine}");
    assert!(!engine["granted"].to_string().contains("buffers"), "{engine}");
}

/// Whoever holds a file system or a partition table is not overwritten by accident.
#[test]
fn root_a_device_in_use_is_refused_without_the_users_word_for_it() {
    if !root_or_say(
        "root_a_device_in_use_is_refused_without_the_users_word_for_it",
        &["mkfs.ext4", "mkfs.xfs"],
    ) {
        return;
    }
    let write = |node: &str, word: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["bench", "--device", node, "--rw", "randwrite", "--operations", "100"];
        Weir::new().run(folder.path(), &[&arguments[..], word].concat())
    };
    let folder = tempfile::tempdir().unwrap();
    // (file system made, unmounted before, what the refusal names).
    for (options, unmounted, named) in [
        (&["fs=ext4", "size=16M"][..], false, "mounted"),
        (&["fs=ext4", "size=16M"][..], true, "ext4"),
        (&["fs=xfs", "size=320M"][..], true, "xfs"),
        (&["fs=none", "size=16M"][..], true, "partition table"),
        (&["fs=none", "size=16M"][..], true, "i-know-this-destroys"),
    ] {
        let device = LoopDevice::create(options);
        let node = device.device();
        let node = node.to_string_lossy();
        if named == "partition table" {
            device.write_partition_table();
        }
        if unmounted {
            device.unmount();
        }
        let before = device.content();
        check(&write(&node, &[]), 2, &[&node, named, "--i-know-this-destroys"], folder.path(), 0);
        check(&write(&node, &["--i-know-this-destroys", "/dev/null"]), 2, &[&node], folder.path(), 0);
        if named == "mounted" {
            // A mounted file system writes to its device by itself.
            continue;
        }
        assert!(device.content() == before, "{named}: the refused device was written to");
        let ended = write(&node, &["--i-know-this-destroys", &node]);
        assert_eq!(ended.code, 0, "{named}: {ended:?}");
        assert!(device.content() != before, "{named}: nothing was written");
    }
}

impl Weir {
    /// Starts a workload on what exists, and returns once it has moved more than filling files would.
    fn start_measuring(&self, folder: &Path, arguments: &[&str]) -> crate::weir::Running {
        let moved = |activity: &Activity| activity.read + activity.written > 1 << 20;
        self.start(folder, arguments, moved)
    }
}
