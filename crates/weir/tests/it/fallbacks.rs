//! A kernel that refuses a program ends no command that can do with another source: that one is used, and named.

use std::process::Command;

use serde_json::Value;

use crate::lab::{KERNEL_TYPES, LoopDevice, root_or_say};
use crate::weir::{Ended, Weir, ended};

/// A device with a file system, and a weir whose programs the kernel refuses as a test wants it.
struct Bench {
    weir: Weir,
    device: LoopDevice,
}

impl Bench {
    /// `None` where the test may not run, which is said.
    fn new(test: &str, size: &str) -> Option<Bench> {
        if !root_or_say(test, &["mkfs.ext4", "dd", KERNEL_TYPES]) {
            return None;
        }
        Some(Bench { weir: Weir::new(), device: LoopDevice::create(&["fs=ext4", size]) })
    }

    fn node(&self) -> String {
        self.device.device().to_string_lossy().into_owned()
    }

    /// Programs are refused by the names that weir-kernel's loader gives them.
    fn run(&self, refused: &str, arguments: &[&str]) -> Ended {
        let folder = self.device.mount();
        let mut command: Command = self.weir.command(&folder, arguments);
        command.env("WEIR_REFUSE_PROGRAMS", refused);
        command.env("WEIR_JOURNAL", folder.join("journal")).env("WEIR_RUN", folder.join("run"));
        ended(command)
    }
}

fn last(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn root_a_live_view_goes_down_the_ladder() {
    let Some(bench) = Bench::new("root_a_live_view_goes_down_the_ladder", "size=64M") else { return };
    let node = bench.node();
    let base = ["trace", "live", "-d", &node, "--duration", "0.5s", "--interval", "0.2s", "--json"];
    for (refused, more, source, says) in [
        ("", &[][..], "bpf", "source bpf"),
        // Each form of the same programs does without the other.
        ("stages", &[], "bpf", "source bpf"),
        ("stages_raw", &[], "bpf", "source bpf"),
        ("stages,stages_raw", &[], "tracefs", "no programs in the kernel: cannot load stages"),
        (
            "stages:on_complete,stages_raw:on_complete",
            &[],
            "tracefs",
            "no programs in the kernel: cannot load stages",
        ),
        ("pieces", &["--detail"], "bpf", "every bio from its Q"),
        ("pieces_raw", &["--detail"], "bpf", "every bio from its Q"),
        ("pieces,pieces_raw", &["--detail"], "tracefs", "no programs in the kernel: cannot load pieces"),
        ("all", &["--slow", "1s"], "tracefs", "no programs in the kernel: cannot load stages"),
    ] {
        let ended = bench.run(refused, &[&base[..], more].concat());
        assert_eq!(last(&ended)["source"], source, "{refused}: {ended:?}");
        assert!(ended.stderr.contains(says), "{refused}: {}", ended.stderr);
    }
    let asked_for = bench.run("all", &[&base[..], &["--source", "bpf"]].concat());
    assert_eq!(asked_for.code, 3, "{asked_for:?}");
    assert!(asked_for.stderr.contains("cannot be used here: cannot load stages"), "{asked_for:?}");
}

#[test]
fn root_a_recording_takes_the_kernel_s_tracer() {
    let Some(bench) = Bench::new("root_a_recording_takes_the_kernel_s_tracer", "size=64M") else { return };
    let node = bench.node();
    for refused in ["record", "record:on_complete", "record:on_queue", "all"] {
        let out = bench.device.mount().join(format!("recording of {refused}")).to_string_lossy().into_owned();
        let arguments = ["trace", "record", "-d", &node, "--out", &out, "--", "true"];
        let ended = bench.run(refused, &arguments);
        assert_eq!(ended.code, 0, "{refused}: {ended:?}");
        assert!(
            ended.stderr.contains("not used: bpf: cannot load the recorder"),
            "{refused}: {}",
            ended.stderr
        );
        // Somebody else may have the tracer of the whole machine.
        let by = ["by ftrace", "by relay"].iter().any(|source| ended.stdout.contains(source));
        assert!(by, "{refused}: {}", ended.stdout);
    }
}

#[test]
fn root_syncs_are_traced_by_what_the_kernel_takes() {
    let Some(bench) = Bench::new("root_syncs_are_traced_by_what_the_kernel_takes", "size=64M") else {
        return;
    };
    let syncs = "dd if=/dev/zero of=data bs=4k count=20 oflag=dsync status=none";
    let arguments = ["trace", "fsync", "--json", "--", "sh", "-c", syncs];
    let names = |report: &Value| {
        report["unknown"]
            .as_array()
            .unwrap()
            .iter()
            .map(|what| what.as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    for (refused, unknown) in [
        ("", None),
        ("function", None),
        ("fsync:enter_fsync", None),
        ("fsync:on_pause_12,fsync:on_pause_8", Some("pauses of buffered writers")),
        (
            "fsync:on_dirty_folio,fsync:on_dirty_page",
            Some("writers of files that no process has open any more"),
        ),
        ("fsync:on_queue", Some("a sync's own I/O, and the senders of reads, direct writes and discards")),
        ("fsync:on_issue", Some("the times of issue on devices that keep none")),
        ("fsync:on_complete", Some("the block layer's and the devices' work, and the owners of other I/O")),
        (
            "fsync:on_ring_work_2,fsync:on_ring_work_5,fsync:on_ring_work_7",
            Some("the number of syncs through io_uring"),
        ),
    ] {
        let ended = bench.run(refused, &arguments);
        assert_eq!(ended.code, 0, "{refused}: {ended:?}");
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["all"]["syncs"], 20, "{refused}: {report}");
        assert_eq!(names(&report), unknown.into_iter().collect::<Vec<_>>(), "{refused}");
        if refused == "function" || refused == "fsync:enter_fsync" {
            assert_eq!(report["hooks"], "sys_enter", "{refused}");
        }
        if let Some(unknown) = unknown {
            let says = format!("weir: not known here: {unknown} (cannot load");
            assert!(ended.stderr.contains(&says), "{refused}: {}", ended.stderr);
        }
    }
    for refused in ["fsync:on_switch", "all"] {
        let ended = bench.run(refused, &arguments);
        assert_eq!(ended.code, 3, "{refused}: {ended:?}");
        let says =
            ["cannot load the programs of the fsync trace", "weir trace live shows what the devices do"];
        assert!(says.iter().all(|part| ended.stderr.contains(part)), "{refused}: {}", ended.stderr);
    }
}

#[test]
fn root_a_guard_without_programs_has_a_canary() {
    let Some(bench) = Bench::new("root_a_guard_without_programs_has_a_canary", "size=64M") else { return };
    let mount = bench.device.mount().to_string_lossy().into_owned();
    let arguments = ["guard", "run", &mount, "--shadow", "--no-history", "--duration", "2s"];
    let lost = "syncs are not seen at the system call";
    for (refused, has_lost) in
        [("", false), ("function", false), ("syncs", false), ("syncs,syncs_raw", true), ("all", true)]
    {
        let ended = bench.run(refused, &arguments);
        assert_eq!(ended.code, 0, "{refused}: {ended:?}");
        assert_eq!(ended.stderr.contains(lost), has_lost, "{refused}: {}", ended.stderr);
        let why = "(cannot load the programs that time syncs";
        assert_eq!(ended.stderr.contains(why), has_lost, "{refused}: {}", ended.stderr);
    }
}

#[test]
fn root_the_doctor_says_that_stages_are_not_seen() {
    // It leaves a GiB free.
    let Some(bench) = Bench::new("root_the_doctor_says_that_stages_are_not_seen", "size=1500M") else {
        return;
    };
    let arguments =
        ["doctor", "--duration", "20s", "--no-flood", "--no-knobs", "--size", "16M", "--json", "."];
    let ended = bench.run("all", &arguments);
    assert_eq!(ended.code, 0, "{ended:?}");
    let says = "Stages of the I/O were not seen (cannot load stages";
    assert!(ended.stdout.contains(says), "{}", ended.stdout);
}
