//! `weir recorder` on a device of its own: killed, started again, read while it writes, with foreign and torn files beside it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{KERNEL_TYPES, LoopDevice, root_or_say};
use crate::weir::{Ended, Running, Weir, ended};

/// A process that ends with the value.
struct Writing(Child);

impl Writing {
    /// Durable writes of 4 KiB, one after another.
    fn to(folder: &Path) -> Writing {
        // It goes round in a small file, for two minutes at most.
        let blocks = "if=/dev/zero of=data bs=4k count=500 oflag=dsync conv=notrunc status=none";
        let rounds = format!("i=0; while [ $i -lt 2000 ]; do dd {blocks} || exit; i=$((i+1)); done");
        let mut shell = Command::new("timeout");
        shell.args(["120", "sh", "-c", &rounds]).current_dir(folder).stderr(Stdio::null());
        Writing(shell.spawn().unwrap())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // timeout passes it on to the shell and to dd.
        crate::weir::signal("TERM", self.0.id());
        let _ = self.0.wait();
    }
}

struct Bench {
    weir: Weir,
    archive: TempDir,
    /// Where the archive lies, if not in that folder.
    elsewhere: Option<PathBuf>,
}

impl Bench {
    fn new() -> Bench {
        Bench { weir: Weir::new(), archive: tempfile::tempdir().unwrap(), elsewhere: None }
    }

    fn dir(&self) -> PathBuf {
        self.elsewhere.clone().unwrap_or_else(|| self.archive.path().join("archive"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.weir.command(self.archive.path(), arguments);
        command.env("WEIR_RECORDER", self.dir()).env("WEIR_RUN", self.archive.path().join("run"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// A recorder that has written so many intervals of a second.
    fn started(&self, arguments: &[&str], intervals: u64) -> Running {
        let arguments = [&["recorder", "run", "--interval", "1s"], arguments].concat();
        let mut running = Weir::started(self.command(&arguments), |_| true);
        let patience = Instant::now() + Duration::from_secs(60);
        while self.intervals() < intervals {
            assert!(!running.has_ended() && Instant::now() < patience, "{:?}", running.finish());
            std::thread::sleep(Duration::from_millis(50));
        }
        running
    }

    /// Intervals that can be read.
    fn intervals(&self) -> u64 {
        if !self.dir().exists() {
            return 0;
        }
        let shown = self.json(&["recorder", "show", "--since", "1h", "--json"]);
        shown["intervals"].as_u64().unwrap()
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
    }

    /// Rows of a table, as CSV without its head.
    fn rows(&self, table: &str) -> Vec<Vec<String>> {
        let ended = self.run(&["recorder", "export", table, "--since", "1h"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
    }
}

#[test]
fn root_a_recorder_keeps_what_it_saw_through_kills() {
    if !root_or_say("root_a_recorder_keeps_what_it_saw_through_kills", &["mkfs.ext4", "dd", KERNEL_TYPES]) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::create(&["fs=ext4"]));
    let name = device.device().file_name().unwrap().to_string_lossy().into_owned();
    let _writing = Writing::to(&device.mount());
    let mut killed = bench.started(&["--slow", "1ms"], 3);
    let second = bench.run(&["recorder", "run", "--duration", "1s"]);
    assert_eq!(second.code, 2, "{second:?}");
    assert!(second.stderr.contains("another recorder writes"), "{second:?}");
    killed.signal("KILL");
    killed.finish();
    let before = bench.intervals();
    assert!(before >= 3 && bench.files(".journal").len() == 1 && bench.files(".parquet").is_empty());
    // A torn tail, as a failure of the power leaves it.
    let journal = &bench.files(".journal")[0];
    let mut torn = fs::read(journal).unwrap();
    torn.extend([99, 0, 0, 0, 31, 139]);
    fs::write(journal, torn).unwrap();
    fs::write(bench.dir().join("notes.txt"), "mine").unwrap();
    fs::write(bench.dir().join("stages-20200101T000000Z-20990101T000000Z.parquet"), "PAR1 no").unwrap();
    let shown = bench.json(&["recorder", "show", "--since", "1h", "--json"]);
    assert!(shown["unrecorded_ms"].as_i64().unwrap() > 3_000_000, "{shown}");
    let other = bench.json(&["recorder", "show", "--device", "/dev/sdz", "--json"]);
    assert_eq!(other["unseen_device"], "sdz");
    assert_eq!(shown["intervals"], before);
    assert!(shown["unread"][0].as_str().unwrap().contains("torn"), "{shown}");
    let mut next = bench.started(&[], before + 2);
    next.signal("TERM");
    let next = next.finish();
    assert_eq!(next.code, 128 + 15, "{next:?}");
    assert!(next.stderr.contains("torn"), "{next:?}");
    assert!(bench.files(".journal").is_empty(), "{next:?}");
    check_rows(&bench, &name);
    let listed = bench.json(&["recorder", "list", "--json"]);
    assert_eq!(listed["foreign"], serde_json::json!(["notes.txt"]));
    assert_eq!(fs::read_to_string(bench.dir().join("notes.txt")).unwrap(), "mine");
    let export = bench.run(&["recorder", "export", "stages", "--parquet", "--to", "all.parquet"]);
    assert_eq!(export.code, 0, "{export:?}");
    assert!(export.stderr.contains("PAR1 at both ends"), "{export:?}");
    assert!(fs::read(bench.archive.path().join("all.parquet")).unwrap().ends_with(b"PAR1"));
}

/// What both recorders saw of the writer and its device.
fn check_rows(bench: &Bench, device: &str) {
    let number = |row: &Vec<String>, at: usize| row[at].parse::<i64>().unwrap();
    let syncs = bench.rows("syncs");
    let of_dd: i64 = syncs.iter().filter(|row| row[2] == "dd").map(|row| number(row, 6)).sum();
    assert!(of_dd > 10, "{syncs:?}");
    // As many and as long by their parts as by their durations, to within a bucket.
    let least_ns: i64 =
        syncs.iter().filter(|row| row[2] == "dd").map(|row| number(row, 5) * number(row, 6)).sum();
    let waited_ns: i64 =
        bench.rows("waits").iter().filter(|row| row[2] == "dd").map(|row| number(row, 7)).sum();
    assert!(waited_ns as f64 > 0.8 * least_ns as f64, "{waited_ns} against {least_ns}");
    let stages = bench.rows("stages");
    let writes: i64 = stages
        .iter()
        .filter(|row| row[2] == device && row[3] == "write" && row[4] == "d2c")
        .map(|row| number(row, 6))
        .sum();
    assert!(writes > 10, "{writes}");
    let counters = bench.rows("counters");
    assert!(counters.iter().any(|row| row[2] == device && row[3] == "write_bytes"), "{counters:?}");
    assert!(counters.iter().any(|row| row[2].is_empty() && row[3] == "recorder_memory_bytes"));
    assert!(bench.rows("processes").iter().any(|row| row[2] == "dd"));
    let events: Vec<String> = bench.rows("events").into_iter().map(|row| row[1].clone()).collect();
    let count = |kind: &str| events.iter().filter(|event| *event == kind).count();
    assert_eq!((count("start"), count("end")), (2, 1), "{events:?}");
}

/// The segment with the start goes some day, and an export may begin after it.
#[test]
fn each_segment_says_what_is_so_on_the_machine() {
    let bench = Bench::new();
    let mut running = bench.started(&["--segment", "1s"], 4);
    let of = |kind: &str| -> Vec<Value> {
        let events = bench.run(&["recorder", "export", "events", "--since", "1h"]).stdout;
        let rows = events.lines().map(|line| line.splitn(8, ',').collect::<Vec<_>>());
        let detail = |row: Vec<&str>| row[7].trim_matches('"').replace("\"\"", "\"");
        let meant = rows.filter(|row| row[1] == kind);
        meant.map(|row| serde_json::from_str(&detail(row)).unwrap()).collect()
    };
    let patience = Instant::now() + Duration::from_secs(60);
    while of("facts").is_empty() {
        assert!(!running.has_ended() && Instant::now() < patience, "{:?}", running.finish());
        std::thread::sleep(Duration::from_millis(100));
    }
    running.signal("TERM");
    running.finish();
    let (starts, facts) = (of("start"), of("facts"));
    assert_eq!(starts.len(), 1, "no restart: {starts:?}");
    for key in ["kernel", "machine", "devices", "weir_version"] {
        assert_eq!(starts[0][key], facts[0][key], "{key}");
    }
    assert!(facts[0]["knobs"].as_object().unwrap().contains_key("vm.swappiness"), "{}", facts[0]);
}

/// The page of metrics at a socket.
fn scraped(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn root_a_running_recorder_keeps_what_is_asked_for_and_tells_what_it_counts() {
    let name = "root_a_running_recorder_keeps_what_is_asked_for_and_tells_what_it_counts";
    if !root_or_say(name, &["mkfs.ext4", "dd", KERNEL_TYPES]) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::create(&["fs=ext4"]));
    let _writing = Writing::to(&device.mount());
    let socket = bench.archive.path().join("metrics.sock");
    let at = format!("unix:{}", socket.display());
    let mut running = bench.started(&["--metrics", &at, "--slow", "10s"], 2);
    let snap = bench.run(&["recorder", "snap", "--last", "5s"]);
    assert_eq!(snap.code, 0, "{snap:?}");
    let path = PathBuf::from(snap.stdout.trim());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let snapshot: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(snapshot["trigger"], "asked");
    let some = |key: &str| snapshot[key].as_array().unwrap().len();
    assert!(some("completions") > 10 && some("seconds") > 0, "{snapshot}");
    let page = scraped(&socket);
    let of_dd =
        |line: &&str| line.starts_with("weir_recorder_sync_seconds_count") && line.contains("comm=\"dd\"");
    let counted: u64 =
        page.lines().find(of_dd).and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap();
    assert!(counted > 10 && page.ends_with("# EOF\n"), "{page}");
    let long = bench.run(&["recorder", "snap", "--last", "61s"]);
    assert_eq!(long.code, 2, "{long:?}");
    running.signal("KILL");
    running.finish();
    // What a kill leaves is in nobody's way.
    let none = bench.run(&["recorder", "snap"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("no recorder answers"), "{none:?}");
    let before = bench.intervals();
    let mut next = bench.started(&["--metrics", &at], before + 2);
    let answer = bench.json(&["recorder", "snap", "--json"]);
    assert!(Path::new(answer["file"].as_str().unwrap()).exists(), "{answer}");
    next.signal("TERM");
    next.finish();
    assert!(!bench.dir().join("control").exists() && !socket.exists());
    assert_eq!(bench.json(&["recorder", "list", "--json"])["foreign"], serde_json::json!([]));
    let shown = bench.json(&["recorder", "show", "--json"]);
    // The kill may have taken the interval that named the first one.
    assert!(!shown["snapshots"].as_array().unwrap().is_empty(), "{shown}");
    let html = bench.run(&["recorder", "show", "--html", "page.html"]);
    assert_eq!(html.code, 0, "{html:?}");
    assert!(fs::read_to_string(bench.archive.path().join("page.html")).unwrap().contains("<svg"));
}

#[test]
fn root_a_device_that_stands_still_is_told_and_kept() {
    if !root_or_say("root_a_device_that_stands_still_is_told_and_kept", &["mkfs.ext4", "dd", "fsfreeze"]) {
        return;
    }
    // The disk's file lies on the platter: while nothing can be written there, nothing completes here.
    let (bench, platter) = (Bench::new(), LoopDevice::create(&["size=200M", "fs=ext4"]));
    let folder = format!("dir={}", platter.mount().display());
    let disk = LoopDevice::create(&["size=64M", "fs=ext4", "direct=on", &folder]);
    let name = disk.device().file_name().unwrap().to_string_lossy().into_owned();
    let _writing = Writing::to(&disk.mount());
    let mut running = bench.started(&["--slow", "1h"], 2);
    let frozen = platter.freeze();
    let patience = Instant::now() + Duration::from_secs(60);
    let of = |kind: &str| -> Vec<Vec<String>> {
        bench.rows("events").into_iter().filter(|row| row[1] == kind && row[2] == name).collect()
    };
    let mut told = |count: usize| {
        while of("stall").len() < count {
            assert!(!running.has_ended() && Instant::now() < patience, "{:?}", bench.rows("events"));
            std::thread::sleep(Duration::from_millis(200));
        }
        let row = of("stall").pop().unwrap();
        (row[0].clone(), row[6].parse::<i64>().unwrap(), row[7].contains("goes_on"))
    };
    // While it hangs, and when that is over.
    let (began, so_far_ns, goes_on) = told(1);
    assert!(so_far_ns >= 1_000_000_000 && goes_on, "{so_far_ns}");
    drop(frozen);
    let (since, took_ns, goes_on) = told(2);
    assert!(took_ns > so_far_ns && since == began && !goes_on, "{took_ns}");
    assert_eq!(of("snapshot").len(), 1, "{:?}", bench.rows("events"));
    running.signal("TERM");
    running.finish();
    let shown = bench.run(&["recorder", "show", "--since", "1h"]);
    assert!(shown.unwrapped().contains(&format!("{name} completed nothing for")), "{shown:?}");
    let file = fs::read_dir(bench.dir().join("snapshots")).unwrap().next().unwrap().unwrap().path();
    let snapshot: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!((&snapshot["trigger"], &snapshot["device"]), (&"stall".into(), &name.as_str().into()));
    let stands = |second: &Value| second["counters"][&name]["in_flight"].as_u64().is_some_and(|n| n > 0);
    assert!(snapshot["seconds"].as_array().unwrap().iter().any(stands), "{snapshot}");
}

#[test]
fn root_what_a_full_disk_refused_is_told_when_it_has_space() {
    if !root_or_say("root_what_a_full_disk_refused_is_told_when_it_has_space", &["mkfs.ext4", "dd"]) {
        return;
    }
    let disk = LoopDevice::create(&["size=32M", "fs=ext4"]);
    let bench = Bench { elsewhere: Some(disk.mount().join("archive")), ..Bench::new() };
    let run = ["recorder", "run", "--interval", "1s"];
    let made = bench.run(&[&run[..], &["--duration", "1s"]].concat());
    assert_eq!(made.code, 0, "{made:?}");
    // It ends when nothing more fits; what was held for it until it was written does then.
    let fill = disk.mount().join("fill");
    for size in ["bs=64k", "bs=4k", "bs=1k", "bs=1k", "bs=1k"] {
        let mut dd = Command::new("dd");
        dd.args([
            "if=/dev/zero",
            size,
            "conv=notrunc,fsync",
            "oflag=append",
            &format!("of={}", fill.display()),
        ]);
        assert!(!dd.stderr(Stdio::null()).status().unwrap().success());
    }
    let full = bench.run(&[&run[..], &["--duration", "2s"]].concat());
    assert!(full.code == 3 && full.stderr.contains("intervals are not in the archive"), "{full:?}");
    assert!(!full.stderr.contains(", 0 lost"), "{full:?}");
    // A block may have been left for one interval; not a journal for each.
    assert!(bench.files(".journal").len() <= 1, "{:?}", bench.files(""));
    let before = bench.intervals();
    let starts = || bench.rows("events").iter().filter(|row| row[1] == "start").count();
    let starts_before = starts();
    let mut next = bench.started(&[], before);
    next.says("records to ");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(bench.intervals(), before);
    fs::remove_file(fill).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while bench.intervals() == before {
        assert!(!next.has_ended() && Instant::now() < patience, "{:?}", next.finish());
        std::thread::sleep(Duration::from_millis(100));
    }
    next.signal("TERM");
    let next = next.finish();
    let lost: u64 =
        next.stderr.split(" recorded, ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(next.code == 3 && lost > 0, "{next:?}");
    // What the third could not write at first is there.
    assert_eq!(starts(), starts_before + 1, "{:?}", bench.rows("events"));
    let shown = bench.json(&["recorder", "show", "--json"]);
    let said = format!("not recorded: {lost} intervals");
    let blind = shown["blind"].as_array().unwrap();
    assert!(blind.iter().any(|sentence| sentence.as_str().unwrap().starts_with(&said)), "{shown} {next:?}");
}

/// It lies in memory, and reads are as many as go.
#[test]
fn root_alone_of_a_fast_device_the_archive_says_how_much_is_estimated() {
    if !root_or_say("root_alone_of_a_fast_device_the_archive_says_how_much_is_estimated", &["dd"]) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::create(&["size=64M", "fs=none", "dir=/dev/shm"]));
    let name = device.device().file_name().unwrap().to_string_lossy().into_owned();
    let mut running = bench.started(&[], 1);
    let of_device = |table: &str, at: usize, what: &str| -> u64 {
        let rows = bench.rows(table).into_iter().filter(|row| row[2] == name && row[at] == what);
        rows.map(|row| row.last().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(of_device("counters", 3, "requests_estimated"), 0);
    let reads = format!(
        "while :; do dd if={} of=/dev/null bs=4k iflag=direct status=none; done",
        device.device().display()
    );
    let reader = || {
        let mut shell = Command::new("timeout");
        shell.args(["60", "sh", "-c", &reads]);
        Writing(shell.spawn().unwrap())
    };
    let _readers = [reader(), reader(), reader()];
    let patience = Instant::now() + Duration::from_secs(50);
    while of_device("counters", 3, "requests_estimated") == 0 {
        assert!(
            !running.has_ended() && Instant::now() < patience,
            "{} reads",
            of_device("counters", 3, "reads")
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    running.signal("TERM");
    running.finish();
    let (counted, estimated) =
        (of_device("stages", 4, "g2c"), of_device("counters", 3, "requests_estimated"));
    assert!(estimated < counted, "{estimated} of {counted}");
}

#[test]
fn root_what_the_kernel_refuses_is_said_and_the_rest_recorded() {
    if !root_or_say("root_what_the_kernel_refuses_is_said_and_the_rest_recorded", &["dd"]) {
        return;
    }
    let with_refused = |refused: &str| {
        let bench = Bench::new();
        let mut command = bench.command(&["recorder", "run", "--interval", "1s", "--duration", "2s"]);
        command.env("WEIR_REFUSE_PROGRAMS", refused);
        let run = ended(command);
        assert_eq!(run.code, 0, "{refused}: {run:?}");
        (bench, run)
    };
    // Each form of the programs does without the other, also of those that draw requests.
    for refused in ["stages", "stages_raw"] {
        let (_, run) = with_refused(refused);
        assert!(!run.stderr.contains("stages of requests are not seen"), "{refused}: {run:?}");
    }
    let (bench, run) = with_refused("all");
    assert!(run.stderr.contains("syncs and what they wait for are not seen"), "{run:?}");
    assert!(bench.rows("counters").len() > 5 && bench.rows("syncs").is_empty());
    let shown = bench.json(&["recorder", "show", "--json"]);
    let blind = shown["blind"].as_array().unwrap();
    for said in ["no syncs were recorded", "syncs and what they wait for are not seen"] {
        assert!(blind.iter().any(|sentence| sentence.as_str().unwrap().contains(said)), "{shown}");
    }
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let bench = Bench::new();
    let none = bench.run(&["recorder", "show"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("weir recorder run"), "{none:?}");
    let table = bench.run(&["recorder", "export", "nothing"]);
    assert_eq!(table.code, 2, "{table:?}");
    let short = bench.run(&["recorder", "run", "--interval", "10ms"]);
    assert_eq!(short.code, 2, "{short:?}");
    for (option, value, unit) in [("--max-age", "14", "14d"), ("--max-bytes", "2", "2g")] {
        let nothing = bench.run(&["recorder", "run", option, value]);
        assert!(nothing.code == 2 && nothing.stderr.contains(unit), "{nothing:?}");
    }
    let unit = bench.run(&["recorder", "install", "--dry-run", "--interval", "5s"]);
    assert!(unit.stdout.contains("recorder run --interval 5s\n"), "{unit:?}");
    assert!(unit.stdout.contains("\"title\": \"weir recorder\""), "{unit:?}");
    let others = bench.run(&["recorder", "run", "--metrics", "0.0.0.0:9751"]);
    assert!(others.code == 2 && others.stderr.contains("readable by every host"), "{others:?}");
    let folder = bench.archive.path().to_string_lossy().into_owned();
    for (arguments, said) in [
        (["install", "--root", &folder], "wrote"),
        (["install", "--root", &folder], "wrote"),
        (["uninstall", "--root", &folder], "removed"),
        (["uninstall", "--root", &folder], "nothing to remove"),
    ] {
        let done = bench.run(&[&["recorder"], &arguments[..]].concat());
        assert!(done.code == 0 && done.stdout.contains(said), "{done:?}");
    }
}

#[test]
fn the_screen_of_then_comes_from_the_archive() {
    let bench = Bench::new();
    let then = ["top", "--once", "--size", "80x24", "--at", "1h"];
    let absent = bench.run(&then);
    assert!(absent.code == 3 && absent.stderr.contains("cannot read the archive"), "{absent:?}");
    let mut recorder = bench.started(&[], 2);
    let meanwhile = bench.run(&then);
    assert!(meanwhile.code == 0 && meanwhile.stdout.contains("recorded"), "{meanwhile:?}");
    recorder.signal("TERM");
    recorder.finish();
    let done = bench.run(&then);
    assert_eq!(
        (done.code, &done.stdout),
        (0, &meanwhile.stdout),
        "the first interval there is, however it is kept"
    );
    assert!(done.stdout.contains("the recorder\n") && done.stdout.contains("PROCESSES"), "{done:?}");
}
