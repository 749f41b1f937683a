//! `weir trace fsync` on devices whose state is known: idle, flooded, and watched through filters.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{KERNEL_TYPES, LoopDevice, root_or_say};
use crate::weir::{Ended, Weir};

/// Programs that trace the whole machine take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A process that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A trace of `dd` writing blocks that are to be durable, as JSON; dd's flags say how.
fn trace_of_dd(weir: &Weir, folder: &Path, options: &[&str], dd: &[&str]) -> Value {
    let mut arguments = vec!["trace", "fsync", "--json"];
    arguments.extend(options);
    arguments.extend(["--", "dd", "if=/dev/zero", "of=data", "status=none"]);
    arguments.extend(dd);
    report(&weir.run(folder, &arguments))
}

fn report(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// Microseconds of folded stacks.
fn folded_us(text: &str) -> u64 {
    text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
fn root_alone_files_for_other_tools_hold_the_same_time() {
    let test = "root_alone_files_for_other_tools_hold_the_same_time";
    if !root_or_say(test, &["dd", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M", "write_iops=300"]);
    let folder = device.mount();
    let options = ["--folded", "dd.folded", "--perfetto", "dd.pftrace"];
    let report = trace_of_dd(&weir, &folder, &options, &["bs=4k", "count=200", "oflag=dsync"]);
    let text = fs::read_to_string(folder.join("dd.folded")).unwrap();
    let of_dd: String =
        text.lines().filter(|line| line.starts_with("dd (")).map(|line| format!("{line}\n")).collect();
    let wall_us = report["processes"][0]["wall_ns"].as_u64().unwrap() / 1000;
    let stacks = of_dd.lines().count() as u64;
    assert!(folded_us(&of_dd).abs_diff(wall_us) <= stacks + 1, "{wall_us}: {text}");
    let trace = fs::read(folder.join("dd.pftrace")).unwrap();
    for name in ["O_SYNC write", "dirty pages", "requests in flight"] {
        assert!(trace.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    let refused = weir.run(&folder, &["trace", "fsync", "--folded", "dd.folded", "--", "true"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for file in ["dd.folded", "dd.pftrace"] {
        assert_eq!(fs::metadata(folder.join(file)).unwrap().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_trace_that_cannot_start_leaves_no_file() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let files =
        ["trace", "fsync", "--folded", "a.folded", "--perfetto", "a.pftrace", "--", "/no/such/program"];
    let refused = weir.run(folder.path(), &files);
    assert!(refused.code != 0 && !refused.stderr.is_empty(), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{refused:?}");
}

#[test]
fn root_alone_a_command_has_time_to_end_and_its_exit_code_counts() {
    let test = "root_alone_a_command_has_time_to_end_and_its_exit_code_counts";
    if !root_or_say(test, &["sh", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let (weir, folder) = (Weir::alone(), tempfile::tempdir().unwrap());
    let ended = weir.run(folder.path(), &["trace", "fsync", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ended.code, 7, "{ended:?}");
    // Told of weir's signal, the command tidies up in its own time.
    let script = "trap 'sleep 1; touch tidied; exit 3' TERM; touch begun; while :; do sleep 0.1; done";
    let words = ["trace", "fsync", "--", "sh", "-c", script];
    let mut running = weir.start(folder.path(), &words, |_| folder.path().join("begun").exists());
    running.signal("TERM");
    let ended = running.finish();
    assert_eq!((ended.code, folder.path().join("tidied").exists()), (3, true), "{ended:?}");
}

#[test]
fn root_alone_a_command_outlives_a_reader_that_went_away() {
    let test = "root_alone_a_command_outlives_a_reader_that_went_away";
    if !root_or_say(test, &["sh", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let (weir, folder) = (Weir::alone(), tempfile::tempdir().unwrap());
    let script = "touch begun; sleep 2; touch done";
    let words = ["trace", "fsync", "--interval", "100ms", "--", "sh", "-c", script];
    let mut running = weir.start(folder.path(), &words, |_| folder.path().join("begun").exists());
    running.stop_reading();
    let ended = running.finish();
    assert!(folder.path().join("done").exists(), "{ended:?}");
}

/// What holds of every anatomy: shares add up, nothing exceeds the whole, nearly all is explained, nothing is lost.
fn check_shape(report: &Value) {
    let all = &report["all"];
    let phases = all["phases"].as_array().unwrap();
    let sum: f64 = phases.iter().map(|row| row["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "phases add up to {sum}: {all}");
    for row in phases {
        let causes = row["causes"].as_array().unwrap();
        let sum: f64 = causes.iter().map(|cause| cause[1].as_f64().unwrap()).sum();
        assert!(causes.is_empty() || (sum - row["share"].as_f64().unwrap()).abs() < 1e-6, "{row}");
    }
    let culprits: f64 =
        all["culprits"].as_array().unwrap().iter().map(|c| c["share"].as_f64().unwrap()).sum();
    assert!(culprits <= 1.0 + 1e-6, "{all}");
    assert!(all["explained"].as_f64().unwrap() >= 0.9, "{all}");
    assert!(report["hooks"] == "fentry" || report["hooks"] == "sys_enter", "{report}");
    assert_eq!(report["losses"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>(), 0);
}

fn share_of(report: &Value, cause: &str) -> f64 {
    let causes = report["all"]["causes"].as_array().unwrap();
    causes.iter().find(|c| c[0] == cause).map_or(0.0, |c| c[1].as_f64().unwrap())
}

fn calls(report: &Value) -> Vec<(String, u64)> {
    let calls = report["all"]["calls"].as_array().unwrap();
    calls.iter().map(|c| (c[0].as_str().unwrap().to_string(), c[1].as_u64().unwrap())).collect()
}

#[test]
fn root_alone_an_idle_device_s_syncs_wait_for_itself() {
    let test = "root_alone_an_idle_device_s_syncs_wait_for_itself";
    if !root_or_say(test, &["dd", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    for (fs, size) in [("ext4", "64M"), ("xfs", "320M"), ("btrfs", "256M")] {
        // In memory: what else uses the disk of its file would be named, and rightly.
        let (fs_option, size) = (format!("fs={fs}"), format!("size={size}"));
        // Slow by bytes, too: a few large writes may pass 300 a second at once.
        let slow = ["write_iops=300", "write_bps=20000000", "dir=/dev/shm"];
        let device = LoopDevice::create(&[&[&*fs_option, &size], &slow[..]].concat());
        // conv=fsync: one fsync at the end; oflag=dsync: each write is durable when it returns. The throttle lets some pass
        // at once and then makes a few wait long: of so many, those that are seen late are not the rule.
        for (flags, call, n) in [
            (["bs=1M", "count=4", "conv=fsync"], "fsync", 1),
            (["bs=4k", "count=300", "oflag=dsync"], "sync_write", 300),
        ] {
            let report = trace_of_dd(&weir, &device.mount(), &[], &flags);
            check_shape(&report);
            assert_eq!(calls(&report), [(call.to_string(), n)], "{fs}: {report}");
            let process = &report["processes"][0]["process"];
            assert_eq!(process["comm"], "dd", "{fs}: {report}");
            // Another file's pages may still be on their way (mkfs, an earlier dd), but they are not the rule.
            assert!(share_of(&report, "others") < 0.4, "{fs}: {report}");
            let in_its_own =
                ["device", "device_flush", "held", "queue"].map(|cause| share_of(&report, cause));
            let in_all: f64 =
                report["all"]["causes"].as_array().unwrap().iter().map(|c| c[1].as_f64().unwrap()).sum();
            assert!(in_its_own.iter().sum::<f64>() > 0.5 * in_all, "{fs}: {report}");
        }
    }
}

#[test]
fn root_alone_a_flood_is_named_with_its_share() {
    let test = "root_alone_a_flood_is_named_with_its_share";
    if !root_or_say(test, &["dd", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let rate = 40_000_000_u64;
    let device =
        LoopDevice::create(&["fs=ext4", "size=700M", "write_iops=300", &format!("write_bps={rate}")]);
    let folder = device.mount();
    // A flood, and once much of it is dirty, an fsync: both within the trace. That the flood's writeback has begun by
    // then is the doing of a syncfs from outside.
    let script = "dd if=/dev/zero of=dump bs=1M count=500 status=none & \
        while [ $(stat -c %s dump 2>/dev/null || echo 0) -lt 400000000 ]; do sleep 0.02; done; touch ready; \
        sleep 0.5; dd if=/dev/zero of=data bs=16k count=5 conv=fsync status=none & wait $!";
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| folder.join("ready").exists());
            let _ = Command::new("sync").arg("-f").arg(folder.join("dump")).status();
        });
        weir.run(&folder, &["trace", "fsync", "--json", "--", "sh", "-c", script])
    });
    let report = report(&done);
    check_shape(&report);
    let first = &report["all"]["culprits"][0];
    assert_eq!((&first["process"]["comm"], &first["way"]), (&"dd".into(), &"writeback".into()), "{report}");
    assert_ne!(first["process"]["pid"], report["processes"][0]["process"]["pid"], "{report}");
    let share = first["share"].as_f64().unwrap();
    assert!(share > 0.5, "{report}");
    // The truth: the throttle lets so many bytes pass a second, so that much of the wait was the flood's.
    let wall_s = report["all"]["wall_ns"].as_f64().unwrap() / 1e9;
    let truth = first["bytes"].as_f64().unwrap() / (rate as f64 * wall_s);
    assert!((share - truth).abs() < 0.25, "share {share}, by the throttle {truth}: {report}");
}

#[test]
fn root_alone_filters_keep_others_out_and_slow_syncs_are_shown() {
    let test = "root_alone_filters_keep_others_out_and_slow_syncs_are_shown";
    if !root_or_say(test, &["dd", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M", "write_iops=200"]);
    let folder = device.mount();
    let script = "while :; do dd if=/dev/zero of=other bs=4k count=20 oflag=dsync status=none; done";
    let other = Command::new("sh").args(["-c", script]).current_dir(&folder).spawn().unwrap();
    let _other = Running(other);
    let path = folder.join("mine");
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let options = File::options().create(true).write(true).custom_flags(libc::O_DSYNC).open(&path);
            let mut file = options.unwrap();
            while !done.load(order) {
                file.write_all(&[0; 4096]).unwrap();
            }
        });
        let pid = std::process::id().to_string();
        let command = ["trace", "fsync", "--pid", &pid, "--duration", "2s", "--slow", "1ns", "--json"];
        let ended = weir.run(&folder, &command);
        done.store(true, order);
        ended
    });
    let report = report(&ended);
    check_shape(&report);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{report}");
    assert_eq!(processes[0]["process"]["pid"], std::process::id(), "{report}");
    let slow = report["slow"].as_array().unwrap();
    assert!(!slow.is_empty() && slow.iter().all(|s| s["call"] == "sync_write"), "{report}");
}

#[test]
fn root_alone_syncs_through_io_uring_are_counted_and_said_not_to_be_followed() {
    let test = "root_alone_syncs_through_io_uring_are_counted_and_said_not_to_be_followed";
    if !root_or_say(test, &["fio", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M"]);
    let fio = "fio --name=ring --filename=data --size=1m --bs=4k --rw=write --ioengine=io_uring --fsync=1 --number_ios=40 \
               --output-format=json --output=fio.json";
    let mut arguments = vec!["trace", "fsync", "--json", "--"];
    arguments.extend(fio.split_ascii_whitespace());
    let report = report(&weir.run(&device.mount(), &arguments));
    let told: Value =
        serde_json::from_str(&fs::read_to_string(device.mount().join("fio.json")).unwrap()).unwrap();
    let syncs = told["jobs"][0]["sync"]["total_ios"].as_u64().unwrap();
    assert!(syncs >= 39, "{told}");
    assert_eq!(report["losses"]["ring_syncs"], syncs, "{report}");
}

/// More threads than the programs have places for: each syncs once and sleeps. Then somebody else commits. At no time do
/// more sync than there is room for, however slow the machine is.
const CROWD: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int file, synced;
static void *sleeper(void *nothing)
{
    fsync(file);
    __atomic_fetch_add(&synced, 1, __ATOMIC_SEQ_CST);
    pause();
    return nothing;
}
int main(void)
{
    enum { CROWD = 8400, AT_ONCE = 500 };
    pthread_attr_t small;
    pthread_t thread;
    file = open("crowd.file", O_CREAT | O_RDWR, 0600);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 << 10);
    for (int i = 0; i < CROWD; i++) {
        while (i - __atomic_load_n(&synced, __ATOMIC_SEQ_CST) >= AT_ONCE)
            usleep(100);
        if (pthread_create(&thread, &small, sleeper, 0))
            return 1;
    }
    while (__atomic_load_n(&synced, __ATOMIC_SEQ_CST) < CROWD)
        usleep(1000);
    return system("dd if=/dev/zero of=data bs=4k count=20 oflag=dsync status=none") != 0;
}
"#;

#[test]
fn root_alone_sleeping_threads_take_no_place_from_who_commits() {
    let test = "root_alone_sleeping_threads_take_no_place_from_who_commits";
    if !root_or_say(test, &["clang", "dd", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M"]);
    fs::write(device.mount().join("crowd.c"), CROWD).unwrap();
    let mut compiler = Command::new("clang");
    compiler.args(["-O1", "-pthread", "-o", "crowd", "crowd.c"]).current_dir(device.mount());
    assert!(compiler.status().unwrap().success());
    let report = report(&weir.run(&device.mount(), &["trace", "fsync", "--json", "--", "./crowd"]));
    assert!(calls(&report).contains(&("sync_write".to_string(), 20)), "{:?}", calls(&report));
    assert_eq!(report["losses"]["tasks"], 0, "{}", report["losses"]);
}

/// Threads that slept in a sync before the trace began are in the table though no program put them there.
#[test]
fn root_alone_short_syncs_are_counted_after_those_from_before_have_ended() {
    let test = "root_alone_short_syncs_are_counted_after_those_from_before_have_ended";
    if !root_or_say(test, &["python3", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let slow = LoopDevice::create(&["fs=ext4", "size=64M", "write_iops=20"]);
    // In memory: on a busy disk a sync takes longer, and of long ones more are looked into.
    let fast = LoopDevice::create(&["fs=ext4", "size=64M", "dir=/dev/shm"]);
    let sleepers = "import os,sys,threading,time\n\
                    end=time.time()+4\n\
                    def sleep(n):\n \
                    f=os.open(f'{sys.argv[1]}/{n}',66)\n \
                    while time.time()<end: os.pwrite(f,b'x'*4096,0); os.fsync(f)\n\
                    all=[threading.Thread(target=sleep,args=(n,)) for n in range(40)]\n\
                    [t.start() for t in all]; [t.join() for t in all]";
    let mut sleepers =
        Running(Command::new("python3").args(["-Ic", sleepers]).arg(slow.mount()).spawn().unwrap());
    wait_until(|| {
        let tasks = format!("/proc/{}/task", sleepers.0.id());
        fs::read_dir(tasks).is_ok_and(|tasks| tasks.count() > 40)
    });
    let short = "import os,time\nf=os.open('short',66); os.write(f,b'x'); os.fsync(f)\n\
                 end=time.time()+8\nwhile time.time()<end: os.fsync(f)";
    let mut short =
        Running(Command::new("python3").args(["-Ic", short]).current_dir(fast.mount()).spawn().unwrap());
    let report = report(&weir.run(&fast.mount(), &["trace", "fsync", "--json", "--duration", "7s"]));
    let _ = (sleepers.0.wait(), short.0.wait());
    let [counted, all] = ["skimmed", "syncs"].map(|key| report["all"][key].as_u64().unwrap());
    // After the sleepers, too: they end in the middle of it.
    assert!(counted > all / 5 * 4, "{counted} of {all}");
}

/// Past the page cache a file's mapping can be written from, whoever wrote the file.
#[test]
fn root_alone_direct_writes_of_another_s_pages_are_the_writer_s() {
    let test = "root_alone_direct_writes_of_another_s_pages_are_the_writer_s";
    if !root_or_say(test, &["python3", "mkfs.ext4", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let device = LoopDevice::create(&["fs=ext4", "size=64M", "direct=on", "write_iops=300"]);
    let program = "import os,mmap,time\n\
                   def name(n): open('/proc/self/comm','w').write(n)\n\
                   end=time.time()+4\n\
                   if os.fork()==0:\n \
                   name('victimd'); f=os.open('v',66); os.write(f,b'x'*65536); os.fsync(f); time.sleep(5); os._exit(0)\n\
                   time.sleep(1)\n\
                   if os.fork()==0:\n \
                   name('evild'); m=mmap.mmap(os.open('v',os.O_RDONLY),65536,prot=mmap.PROT_READ); d=os.open('e',66|os.O_DIRECT)\n \
                   while time.time()<end: os.pwritev(d,[m],0)\n \
                   os._exit(0)\n\
                   name('dbd'); f=os.open('d',66|os.O_DSYNC)\n\
                   while time.time()<end: os.pwrite(f,b'x'*4096,0)\n\
                   os.wait(); os.wait()";
    let report =
        report(&weir.run(&device.mount(), &["trace", "fsync", "--json", "--", "python3", "-Ic", program]));
    let processes = report["processes"].as_array().unwrap();
    let database = processes.iter().find(|process| process["process"]["comm"] == "dbd");
    let database = database.unwrap_or_else(|| panic!("{report}"));
    let culprits = database["culprits"].as_array().unwrap();
    let of = |name: &str| culprits.iter().find(|culprit| culprit["process"]["comm"] == name);
    assert!(of("victimd").is_none() && of("evild").is_some(), "{culprits:?}");
}

/// btrfs compresses in kernel threads, whose requests tell neither file nor writer.
#[test]
fn root_alone_writes_by_kernel_threads_are_no_direct_writer_s() {
    let test = "root_alone_writes_by_kernel_threads_are_no_direct_writer_s";
    if !root_or_say(test, &["python3", "mkfs.btrfs", KERNEL_TYPES]) {
        return;
    }
    let _turn = TURN.lock();
    let weir = Weir::alone();
    let compressed = "mount=compress-force=zstd:1";
    let device = LoopDevice::create(&["fs=btrfs", "size=512M", "direct=on", "write_iops=300", compressed]);
    let program = "import os,time\n\
                   def name(n): open('/proc/self/comm','w').write(n)\n\
                   end=time.time()+4\n\
                   if os.fork()==0:\n \
                   name('dumpd'); f=os.open('dump',66); at=0\n \
                   while time.time()<end:\n  \
                   os.pwrite(f,os.urandom(1<<19).hex().encode(),at<<20); os.fdatasync(f); at=(at+1)%64\n \
                   os._exit(0)\n\
                   name('dbd'); f=os.open('d',66|os.O_DSYNC)\n\
                   while time.time()<end: os.pwrite(f,os.urandom(2048).hex().encode(),0)\n\
                   os.wait()";
    let report =
        report(&weir.run(&device.mount(), &["trace", "fsync", "--json", "--", "python3", "-Ic", program]));
    let processes = report["processes"].as_array().unwrap();
    let database = processes.iter().find(|process| process["process"]["comm"] == "dbd");
    let database = database.unwrap_or_else(|| panic!("{report}"));
    let culprits = database["culprits"].as_array().unwrap();
    let in_way = |way: &str| culprits.iter().find(|culprit| culprit["way"] == way);
    assert!(in_way("direct_writes").is_none(), "{culprits:?}");
    assert!(in_way("writes_passed_on").is_some_and(|by| by["process"]["pid"].is_null()), "{culprits:?}");
}

#[test]
fn without_privilege_it_says_what_is_missing() {
    let weir = Weir::new();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let arguments = ["trace", "fsync", "--duration", "1s"];
    let nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all"];
    let wrapper: &[&str] =
        if root_or_say("without_privilege_it_says_what_is_missing (as nobody)", &["setpriv"]) {
            &nobody
        } else {
            &[]
        };
    let ended = crate::weir::ended(weir.wrapped(wrapper, folder.path(), &arguments));
    if wrapper.is_empty() && ended.code == 0 {
        return;
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{ended:?}");
    assert!(ended.stderr.contains("error: ") && ended.stderr.contains("hint: "), "{ended:?}");
    for (arguments, expected) in [
        (vec!["trace", "fsync", "--comm", "a name longer than fifteen"], "no thread has such a name"),
        (vec!["trace", "fsync", "--interval", "1us"], "too short"),
        (vec!["trace", "fsync", "--pid", "1", "--", "true"], "cannot be used with"),
    ] {
        let ended = weir.run(folder.path(), &arguments);
        assert!(ended.code == 2 && ended.stderr.contains(expected), "{arguments:?}: {ended:?}");
    }
}

fn wait_until(is_there: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < patience, "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}
