//! `weir trace record`: what it records is what a load of known size did, by every source and in every form, and it
//! is there to be read whatever ends the recording.
//!
//! Tests that know every event are alone: at the instant another tracer comes or goes the kernel may leave one out.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{LoopDevice, root_or_say, seen_of};
use crate::weir::{Ended, Weir, ended};

/// The kernel has one tracer `blk`.
static TRACER: Mutex<()> = Mutex::new(());

/// A device without a file system, a folder for recordings, and weir.
struct Setting {
    weir: Weir,
    device: LoopDevice,
    folder: TempDir,
}

impl Setting {
    fn new(options: &[&str]) -> Setting {
        let options = [&["fs=none", "size=64M"], options].concat();
        Setting {
            weir: Weir::new(),
            device: LoopDevice::create(&options),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn node(&self) -> String {
        self.device.device().display().to_string()
    }

    /// Reads the device so often, 4 KiB at a time, past the page cache.
    fn load(&self, reads: u32) -> String {
        format!("dd if={} of=/dev/null bs=4k count={reads} iflag=direct status=none", self.node())
    }

    fn record(&self, options: &[&str], command: &str) -> Ended {
        let node = self.node();
        let start = ["trace", "record", "--device", &node];
        let arguments = [&start[..], options, &["--", "sh", "-c", command]].concat();
        self.weir.run(self.folder.path(), &arguments)
    }

    /// The analysis of all recordings in the folder.
    fn read(&self, options: &[&str]) -> Value {
        let ended = self
            .weir
            .run(self.folder.path(), &[&["trace", "read", ".", "--format", "json"], options].concat());
        assert_eq!(ended.code, 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    }
}

/// Reads that `dd` sent, from Q to C, on the first device.
fn reads(analysis: &Value) -> u64 {
    times(analysis, "q2c")
}

fn times(analysis: &Value, stage: &str) -> u64 {
    analysis["devices"][0]["classes"]["read"]["stages"][stage]["count"].as_u64().unwrap_or(0)
}

#[test]
fn root_alone_every_source_and_form_records_what_a_load_did() {
    if !root_or_say("root_alone_every_source_and_form_records_what_a_load_did", &["dd", "blkparse"]) {
        return;
    }
    let _tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    for (source, blktrace) in
        [("bpf", false), ("bpf", true), ("ftrace", false), ("ftrace", true), ("auto", true)]
    {
        let setting = Setting::new(&[]);
        let form: &[&str] = if blktrace { &["--out", "a", "--blktrace"] } else { &["--out", "a.weirtrace"] };
        let options = [form, &["--source", source]].concat();
        // It waits with a pipe full, so that its I/Os are taken in several rounds and its name comes before them all.
        let node = setting.node();
        let command = format!(
            "dd if={node} bs=4k count=300 iflag=direct status=none | (sleep 0.3; cat >/dev/null); exit 7"
        );
        let ended = setting.record(&options, &command);
        let context = format!("{source}, blktrace {blktrace}: {ended:?}");
        assert_eq!(ended.code, 7, "the command's own: {context}");
        assert!(ended.stdout.contains("dropped    0\n"), "{context}");
        let analysis = setting.read(&["--process", "dd"]);
        let found = reads(&analysis);
        let wanted = if source == "bpf" { seen_of(300) } else { 300..=300 };
        assert!(wanted.contains(&found), "{context}: {}", analysis["devices"][0]["account"]);
        assert_eq!(times(&analysis, "d2c"), found, "{context}");
        let device = &analysis["devices"][0];
        assert!(device["recorded_ns"].as_u64() > device["span_ns"].as_u64(), "{context}: {device}");
        let ends = (&device["recorded_from"], &device["recorded_to"]);
        let expected = if blktrace { "last_event" } else { "end" };
        assert_eq!(ends, (&"start".into(), &expected.into()), "{context}");
        assert_eq!(analysis["unmatched"] == serde_json::json!({}), found == 300, "{context}: {analysis}");
        if blktrace {
            assert_eq!(blkparse(setting.folder.path()), found, "{context}");
        }
    }
}

/// Completed reads by Debian's blkparse.
fn blkparse(folder: &Path) -> u64 {
    let mut command = Command::new("blkparse");
    command.args(["-i", "a", "-a", "complete", "-f", "%a %d %C\\n", "-q"]).current_dir(folder);
    let text = ended(command).stdout;
    text.lines().filter(|line| line.starts_with("C R")).count() as u64
}

/// The live session and the recording watch the same I/Os: the same are in both, throttle and all.
#[test]
fn root_alone_live_and_recording_agree() {
    if !root_or_say("root_alone_live_and_recording_agree", &["dd"]) {
        return;
    }
    let setting = Setting::new(&["read_iops=400"]);
    let node = setting.node();
    let arguments =
        ["trace", "live", "--device", &node, "--detail", "--source", "bpf", "--json", "--duration", "30s"];
    let mut live =
        setting.weir.command(setting.folder.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(live.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let ended = setting.record(&["--out", "a"], &setting.load(500));
    assert_eq!(ended.code, 0, "{ended:?}");
    let line = format!("kill -INT {}", live.id());
    assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
    let last = lines.last().unwrap().unwrap();
    live.wait().unwrap();
    let live: Value = serde_json::from_str(&last).unwrap();
    let recorded = setting.read(&[]);
    for stage in ["q2c", "d2c"] {
        let both = [times(&recorded, stage), times(&live, stage)];
        let lost = [&recorded["devices"][0]["account"], &live["live"]["lost"]];
        assert!(both[0] == both[1] && seen_of(500).contains(&both[0]), "{stage}: {both:?} {lost:?}");
    }
}

#[test]
fn root_what_was_recorded_is_there_however_it_ended() {
    if !root_or_say("root_what_was_recorded_is_there_however_it_ended", &["dd"]) {
        return;
    }
    for (signal, code) in [("INT", 130), ("TERM", 143), ("KILL", 137)] {
        let setting = Setting::new(&[]);
        let out = setting.folder.path().join("a");
        let node = setting.node();
        let mut recorder = setting
            .weir
            .command(setting.folder.path(), &["trace", "record", "--device", &node, "--out", "a"])
            .spawn()
            .unwrap();
        let load = format!("while :; do {}; done", setting.load(100));
        let mut load = Command::new("sh").arg("-c").arg(load).stdin(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while fs::metadata(&out).map_or(0, |data| data.len()) < 300_000 && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        let line = format!("kill -{signal} {}", recorder.id());
        assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
        use std::os::unix::process::ExitStatusExt;
        let status = recorder.wait().unwrap();
        assert_eq!(status.code().unwrap_or(128 + status.signal().unwrap_or(0)), code, "SIG{signal}");
        load.kill().unwrap();
        load.wait().unwrap();
        let analysis = setting.weir.run(setting.folder.path(), &["trace", "read", "a", "--format", "json"]);
        let found = reads(&serde_json::from_str(&analysis.stdout).unwrap());
        assert!(found > 1000, "SIG{signal}: {found} reads");
        let said = format!("{}{}", analysis.stderr, analysis.stdout).contains("truncated");
        assert_eq!(said, signal == "KILL", "SIG{signal}: {}", analysis.stderr);
    }
}

#[test]
fn root_a_full_disk_and_a_reached_size_end_a_recording_in_order() {
    if !root_or_say("root_a_full_disk_and_a_reached_size_end_a_recording_in_order", &["dd"]) {
        return;
    }
    let setting = Setting::new(&[]);
    let small = setting.folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=3M", "none"]).arg(&small).status().unwrap();
    assert!(mounted.success());
    // 30,000 I/Os are about 5 MB of events; the device has 16,384 blocks.
    let load = format!("{0}; {0}", setting.load(15_000));
    let ended = setting.record(&["--out", "small/a"], &load);
    let kept = setting.weir.run(&small, &["trace", "read", "a", "--format", "json"]);
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(
        ended.stderr.contains("No space left on device") && ended.stderr.contains("are lost"),
        "{ended:?}"
    );
    let kept: Value = serde_json::from_str(&kept.stdout).unwrap();
    assert!(reads(&kept) > 1000, "{kept}");

    let ended = setting.record(&["--out", "b", "--size-max", "2MiB"], &load);
    assert!(ended.code == 0 && ended.stdout.contains("largest size"), "{ended:?}");
    let length = fs::metadata(setting.folder.path().join("b")).unwrap().len();
    assert!((1 << 20..=2 << 20).contains(&length), "{length} bytes");
    let kept = setting.weir.run(setting.folder.path(), &["trace", "read", "b", "--format", "json"]);
    assert!(kept.code == 0, "{kept:?}");
    let kept: Value = serde_json::from_str(&kept.stdout).unwrap();
    assert!(reads(&kept) > 1000, "{kept}");
    // What came after the end is no loss.
    assert!(ended.stdout.contains("dropped    0\n"), "{ended:?}");
    assert_eq!(kept["events_dropped"], 0, "{ended:?}");
}

#[test]
fn root_drops_are_counted_in_the_recording() {
    if !root_or_say("root_drops_are_counted_in_the_recording", &["dd"]) {
        return;
    }
    let setting = Setting::new(&[]);
    let ended =
        setting.record(&["--out", "a", "--ring-bytes", "4KiB", "--events", "all"], &setting.load(16_000));
    let dropped = ended.stdout.lines().find_map(|line| line.strip_prefix("dropped")).unwrap().trim();
    let dropped: u64 = dropped.parse().unwrap();
    assert!(dropped > 0 && ended.stderr.contains(&format!("{dropped} events were dropped")), "{ended:?}");
    let analysis = setting.read(&[]);
    assert_eq!(analysis["events_dropped"], dropped, "{analysis}");
}

/// A killed run leaves the kernel's tracer set up; the next run puts it back as it was, and somebody else's is left alone.
#[test]
fn root_the_tracer_is_put_back_and_never_taken_from_others() {
    if !root_or_say("root_the_tracer_is_put_back_and_never_taken_from_others", &["dd", "unshare"]) {
        return;
    }
    let _tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    let setting = Setting::new(&[]);
    let before = tracer("");
    let node = setting.node();
    let killed = ["trace", "record", "--device", &node, "--source", "ftrace", "--out", "a"];
    let mut run = setting.weir.command(setting.folder.path(), &killed).spawn().unwrap();
    wait_until(|| tracer("").starts_with("blk"));
    std::thread::sleep(Duration::from_millis(200));
    let held = setting.record(&["--source", "ftrace", "--out", "b"], "true");
    assert!(held.code == 3 && held.stderr.contains("a weir too, has the kernel's tracer"), "{held:?}");
    run.kill().unwrap();
    run.wait().unwrap();
    assert_ne!(tracer(""), before, "nothing was left: this test looks at nothing");
    let next = setting.record(&["--source", "ftrace", "--out", "b"], &setting.load(10));
    assert_eq!(next.code, 0, "{next:?}");
    assert_eq!(tracer(""), before);

    tracer("echo function >current_tracer 2>/dev/null || echo blk >current_tracer");
    let refused = setting.record(&["--source", "ftrace", "--out", "c"], "true");
    tracer("echo nop >current_tracer");
    assert!(refused.code == 3 && refused.stderr.contains("is in use: current_tracer is"), "{refused:?}");
    assert_eq!(tracer(""), before);
}

/// Another program reads the kernel's tracer while weir records, so the kernel keeps `blk` when weir wants to go back to `nop`.
#[test]
fn root_alone_a_tracer_that_another_program_reads_is_restored_by_the_next_run() {
    let name = "root_alone_a_tracer_that_another_program_reads_is_restored_by_the_next_run";
    if !root_or_say(name, &["dd", "unshare"]) {
        return;
    }
    let _tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    let setting = Setting::new(&[]);
    let before = tracer("");
    let node = setting.node();
    let arguments = ["trace", "record", "--device", &node, "--source", "ftrace", "--out", "a"];
    let mut run = setting.weir.command(setting.folder.path(), &arguments).spawn().unwrap();
    wait_until(|| tracer("").starts_with("blk"));
    let pipe = "mount -t tracefs none /mnt && exec sleep 600 </mnt/per_cpu/cpu0/trace_pipe_raw";
    let mut reader = Command::new("unshare").args(["-m", "sh", "-c", pipe]).spawn().unwrap();
    let read = format!("/proc/{}/fd/0", reader.id());
    wait_until(|| fs::read_link(&read).is_ok_and(|path| path.ends_with("trace_pipe_raw")));
    let line = format!("kill -INT {}", run.id());
    assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
    let mut said = String::new();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    run.wait().unwrap();
    let refused = setting.record(&["--source", "ftrace", "--out", "b"], "true");
    reader.kill().unwrap();
    reader.wait().unwrap();
    let next = setting.record(&["--source", "ftrace", "--out", "b"], &setting.load(10));
    let after = tracer("");
    let reason = "cannot restore tracefs:current_tracer to nop: Device or resource busy";
    assert!(said.contains(reason), "{said}");
    assert!(refused.code == 3 && refused.stderr.contains(reason), "{refused:?}");
    assert!(next.code == 0 && after == before, "{next:?}: {after} instead of {before}");
}

#[test]
fn root_alone_ring_sizes_that_differ_between_cpus_are_restored() {
    if !root_or_say("root_alone_ring_sizes_that_differ_between_cpus_are_restored", &["dd", "unshare"]) {
        return;
    }
    let _tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    let setting = Setting::new(&[]);
    // Rings that were never used get their size from the first tracer.
    let sizes = "cat per_cpu/cpu*/buffer_size_kb";
    let before = tracer(&format!("echo blk >current_tracer; echo nop >current_tracer; {sizes}"));
    let differ = tracer(&format!("echo 77 >per_cpu/cpu0/buffer_size_kb; {sizes}"));
    let recorded = setting.record(&["--source", "ftrace", "--out", "a"], &setting.load(10));
    let after = tracer(sizes);
    let first = before.lines().next().unwrap();
    let restored = tracer(&format!("echo {first} >per_cpu/cpu0/buffer_size_kb; {sizes}"));
    assert_ne!(differ, before, "nothing was set: this test looks at nothing");
    assert!(recorded.code == 0 && after == differ, "{recorded:?}: {after} instead of {differ}");
    assert_eq!(restored, before);
}

/// A killed run leaves its relay set up, with its mark; the next run ends that one, and none that somebody else has set up since.
/// Kernels in lockdown keep weir from recording by the relay, not from setting one up and ending it.
#[test]
fn root_alone_a_relay_is_ended_by_the_next_run_unless_it_is_anothers() {
    if !root_or_say("root_alone_a_relay_is_ended_by_the_next_run_unless_it_is_anothers", &[]) {
        return;
    }
    let _tracer = TRACER.lock().unwrap_or_else(PoisonError::into_inner);
    let setting = Setting::new(&[]);
    let node = setting.node();
    let disk = node.strip_prefix("/dev/").unwrap();
    let trace = Path::new("/sys/block").join(disk).join("trace");
    for is_anothers in [false, true] {
        fs::write("/run/weir-trace-record", format!("1\nrelay\t{disk}\t{}\n", u64::MAX)).unwrap();
        fs::write(trace.join("enable"), "1").unwrap();
        if !is_anothers {
            fs::write(trace.join("end_lba"), u64::MAX.to_string()).unwrap();
        }
        let next = setting.record(&["--source", "relay", "--out", "a"], "true");
        let stays = fs::read_to_string(trace.join("enable")).unwrap().trim() == "1";
        fs::write(trace.join("enable"), "0").unwrap();
        assert_eq!(stays, is_anothers, "{next:?}");
        assert_eq!(next.stderr.contains("is being traced already"), is_anothers, "{next:?}");
        assert!(!Path::new("/run/weir-trace-record").exists(), "{next:?}");
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a command in tracefs, and returns the state of all that a recording changes.
fn tracer(act: &str) -> String {
    let state = "cat current_tracer trace_clock buffer_size_kb tracing_on options/bin options/context-info";
    let place = "/mnt";
    let script = format!(
        "mount -t tracefs none {place} && cd {place} && {{ {act}\n{state}; cat /sys/block/*/trace/enable; }}"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    ended(command).stdout
}

#[test]
fn what_cannot_be_recorded_is_refused_with_its_reason() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--device", "nosuchdevice"], 3, "nosuchdevice"),
        (&["--device", "/proc"], 3, "/proc"),
        (&["--ring-bytes", "5000"], 2, "not a power of two"),
        (&["--ring-bytes", "1GiB"], 2, "out of range"),
        (&["--out", "."], 2, "expected a file for --out"),
    ];
    for (options, code, reason) in cases {
        let arguments = [&["trace", "record", "--duration", "1s"], options].concat();
        let ended = weir.run(folder.path(), &arguments);
        assert!(ended.code == code && ended.stderr.contains(reason), "{options:?}: {ended:?}");
    }
}

#[test]
fn root_alone_without_privileges_it_names_what_is_missing() {
    if !root_or_say("root_alone_without_privileges_it_names_what_is_missing", &["setpriv"]) {
        return;
    }
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let wrapper = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"];
    for (source, missing) in [("bpf", "CAP_BPF"), ("ftrace", "CAP_SYS_ADMIN"), ("relay", "CAP_SYS_ADMIN")] {
        let arguments = ["trace", "record", "--duration", "1s", "--source", source, "--out", "a"];
        let ended = ended(weir.wrapped(&wrapper, folder.path(), &arguments));
        assert!(ended.code == 3 && ended.stderr.contains(missing), "{source}: {ended:?}");
        assert!(!folder.path().join("a").exists(), "{source} left a file");
    }
}
