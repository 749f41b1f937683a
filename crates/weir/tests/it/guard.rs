//! The guard on a small throttled device of the test's own: what it turns is back however it ends, and it says what it
//! does.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{LoopDevice, dirty_limits, root_or_say};
use crate::weir::{Ended, Running, Weir, ended};

/// How long a test waits for something that happens by itself.
const PATIENCE: Duration = Duration::from_secs(90);

/// A device, and folders of the guard that nobody else has.
pub struct Bench {
    pub weir: Weir,
    folder: TempDir,
    device: LoopDevice,
}

impl Bench {
    /// `None` where the test may not run, which is said.
    fn new(test: &str) -> Option<Bench> {
        if !root_or_say(test, &["mkfs.ext4"]) {
            return None;
        }
        let device = LoopDevice::create(&[
            "fs=ext4",
            "size=512M",
            "direct=on",
            "write_iops=500",
            "write_bps=20000000",
        ]);
        Some(Bench::on(device))
    }

    pub fn on(device: LoopDevice) -> Bench {
        Bench { weir: Weir::alone(), folder: tempfile::tempdir().unwrap(), device }
    }

    pub fn name(&self) -> String {
        self.device.device().file_name().unwrap().to_string_lossy().into_owned()
    }

    /// `weir ARGUMENTS`, with `MNT` for where the device is mounted.
    fn command(&self, arguments: &str) -> Command {
        self.wrapped(&[], arguments)
    }

    /// The same as the last words of another command.
    pub fn wrapped(&self, wrapper: &[&str], arguments: &str) -> Command {
        let arguments = arguments.replace("MNT", &self.device.mount().to_string_lossy());
        let words: Vec<&str> = arguments.split(' ').collect();
        let mut command = self.weir.wrapped(wrapper, self.folder.path(), &words);
        command.env("WEIR_JOURNAL", self.folder.path().join("journal"));
        command.env("WEIR_RUN", self.folder.path().join("run"));
        command.env_remove("NOTIFY_SOCKET");
        command
    }

    fn run(&self, arguments: &str) -> Ended {
        ended(self.command(arguments))
    }

    /// The device's own limit where this kernel has one that may be turned, so that the machine's is left alone.
    fn actuator(&self) -> &'static str {
        if fs::metadata(self.bdi("max_ratio_fine")).is_ok() { "bdi" } else { "vm" }
    }

    fn bdi(&self, file: &str) -> std::path::PathBuf {
        Path::new("/sys/block").join(self.name()).join("bdi").join(file)
    }

    /// Everything that a guard may turn.
    fn limits(&self) -> Vec<String> {
        let of_device = ["strict_limit", "max_ratio_fine"]
            .map(|file| fs::read_to_string(self.bdi(file)).unwrap_or_default());
        dirty_limits().into_iter().chain(of_device).collect()
    }

    /// A guard that has begun.
    pub fn guard(&self, more: &str) -> Running {
        let actuator = self.actuator();
        let command = self.command(format!("guard run MNT --actuator {actuator} {more}").trim());
        let running = Weir::started(command, |_| true);
        self.wait("the guard answers", || self.state().is_some());
        running
    }

    /// What a running guard says.
    pub fn state(&self) -> Option<Value> {
        let run = self.run("guard status --json");
        (run.code == 0).then(|| serde_json::from_str(&run.stdout).unwrap())
    }

    /// Small writes, each synced, for as long as the value lives.
    pub fn commits(&self) -> Running {
        self.begin(
            &[],
            "--direct=false --size 8M --rw randwrite --block 4k --sync-every 1 --threads 2",
            9 << 20,
        )
    }

    /// A load of weir's own as the last words of another command, once so much is written: more than fills its files.
    pub fn begin(&self, wrapper: &[&str], typed: &str, written: u64) -> Running {
        let typed = format!("bench --dir MNT --engine psync --duration 10m {typed}");
        Weir::started(self.wrapped(wrapper, &typed), |activity| activity.written > written)
    }

    /// Small writes, each synced, and a bulk writer beside them, for as long as the value lives.
    fn load(&self) -> [Running; 2] {
        [self.commits(), self.begin(&[], "--direct=false --size 64M --rw write --block 1M", 80 << 20)]
    }

    /// A guard that holds a limit, and what it guards against.
    fn holding(&self) -> (Running, [Running; 2]) {
        let guard = self.guard("");
        let load = self.load();
        self.wait("the guard holds a limit", || {
            let holding = |state: Value| state["devices"][0]["decision"]["mood"] == "holding";
            self.state().is_some_and(holding) && self.limits() != self.found()
        });
        (guard, load)
    }

    /// The limits as a device has them that was not guarded yet, and the machine's.
    fn found(&self) -> Vec<String> {
        let state = fs::read_to_string(self.folder.path().join("found")).unwrap();
        serde_json::from_str(&state).unwrap()
    }

    /// Notes the limits before anything is turned.
    fn note(&self) -> Vec<String> {
        let limits = self.limits();
        fs::write(self.folder.path().join("found"), serde_json::to_string(&limits).unwrap()).unwrap();
        limits
    }

    pub fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "never: {what}; {:?}", self.state());
            sleep(Duration::from_millis(50));
        }
    }

    pub fn journaled(&self) -> usize {
        let files = fs::read_dir(self.folder.path().join("journal")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|ending| ending == "json")).count()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What a failed test leaves in force goes back before the device does.
        let _ = self.command("knobs rollback --all").output();
    }
}

/// Ends a load in order: it takes its files along.
pub fn end<const N: usize>(load: [Running; N]) {
    for mut writer in load {
        writer.signal("TERM");
        assert_eq!(writer.finish().code, 143);
    }
}

pub fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn root_alone_every_way_out_leads_back() {
    let Some(bench) = Bench::new("root_alone_every_way_out_leads_back") else { return };
    let found = bench.note();
    for (signal, code) in [("TERM", 143), ("INT", 130), ("KILL", 137)] {
        let (mut guard, load) = bench.holding();
        guard.signal(signal);
        let ended = guard.finish();
        assert_eq!(ended.code, code, "{ended:?}");
        // After a kill it is the guardian who does it.
        bench.wait("the limits are back", || bench.limits() == found && bench.journaled() == 0);
        if signal != "KILL" {
            contains(&ended.stdout, &["weir guard", &bench.name(), "last decisions"]);
        }
        end(load);
    }
    // Each left its history, and the one that was killed says so.
    let records = bench.weir.records();
    let guards: Vec<&Value> = records.iter().filter(|record| record["kind"] == "guard").collect();
    assert_eq!(guards.len(), 3);
    assert!(guards[1]["ended_early"].is_null(), "{}", guards[1]["ended_early"]);
    contains(&guards[2]["ended_early"].to_string(), &["killed"]);
    let list = bench.run("results list");
    contains(&list.stdout, &["guard", &bench.name()]);
}

/// btrfs has a number and a bdi of its own. A guard that is told the device has to find both.
#[test]
fn root_alone_a_file_system_with_a_bdi_of_its_own_is_guarded() {
    if !root_or_say("root_alone_a_file_system_with_a_bdi_of_its_own_is_guarded", &["mkfs.btrfs"]) {
        return;
    }
    let options = ["fs=btrfs", "size=512M", "direct=on", "write_iops=500", "write_bps=20000000"];
    let bench = Bench::on(LoopDevice::create(&options));
    let running = bench.command(&format!("guard run {}", bench.name()));
    let mut guard = Weir::started(running, |_| true);
    bench.wait("the guard answers", || bench.state().is_some());
    let load = bench.load();
    let device = || bench.state().map_or(Value::Null, |state| state["devices"][0].clone());
    bench.wait("its syncs are seen, and the limit is held", || {
        let device = device();
        device["totals"]["syncs"].as_u64().is_some_and(|syncs| syncs > 0)
            && device["decision"]["mood"] == "holding"
    });
    let actuator = device()["lever"].to_string();
    let bdi = actuator.split(['"', ' ']).find_map(|word| word.strip_prefix("bdi:")).map(String::from);
    let strict = |bdi: &String| fs::read_to_string(format!("/sys/class/bdi/{bdi}/strict_limit")).unwrap();
    if bench.actuator() == "bdi" {
        assert_eq!(bdi.as_ref().map(strict).as_deref().map(str::trim), Some("1"), "{actuator}");
        assert_eq!(fs::read_to_string(bench.bdi("strict_limit")).unwrap().trim(), "0", "it has no pages");
    }
    guard.signal("TERM");
    assert_eq!(guard.finish().code, 143);
    assert!(bdi.as_ref().is_none_or(|bdi| strict(bdi).trim() == "0"));
    assert_eq!(bench.journaled(), 0);
    end(load);
}

/// Its bdi goes with an unmount, and the next mount brings one of another name. The device stays.
#[test]
fn root_alone_a_file_system_that_is_mounted_again_is_guarded_again() {
    if !root_or_say("root_alone_a_file_system_that_is_mounted_again_is_guarded_again", &["mkfs.btrfs"]) {
        return;
    }
    let bench = Bench::on(LoopDevice::create(&["fs=btrfs", "size=256M"]));
    if bench.actuator() != "bdi" {
        let _ = writeln!(std::io::stderr(), "not run: the rest lacks a limit of the device's own");
        return;
    }
    let typed = format!("guard run {} --actuator bdi --sensor diskstats --no-history", bench.name());
    let mut guard = Weir::started(bench.command(&typed), |_| true);
    let guards = |of: &str| {
        let device = bench.state().map_or(Value::Null, |state| state["devices"][0].clone());
        let actuator = device["lever"].as_str().filter(|_| device["standing"] == "guarding")?;
        actuator.starts_with(of).then(|| actuator.to_string())
    };
    bench.wait("the file system is guarded", || guards("bdi:btrfs-").is_some());
    let first = guards("bdi:btrfs-");
    bench.device.unmount();
    bench.wait("the device is guarded", || guards(&format!("{}/bdi", bench.name())).is_some());
    bench.device.mount_again();
    bench.wait("the file system is guarded again", || guards("bdi:btrfs-").is_some());
    assert_ne!(guards("bdi:btrfs-"), first);
    assert_eq!(bench.journaled(), 1, "what it turned before is restored");
    guard.signal("TERM");
    assert_eq!((guard.finish().code, bench.journaled()), (143, 0));
}

/// What the guard says at its end that runs beside a small device, in a namespace whose mounts a script has changed.
fn in_a_namespace(script: &str, more: &str) -> (Bench, Value) {
    let bench = Bench::on(LoopDevice::create(&["fs=ext4", "size=64M"]));
    let mount = bench.device.mount().to_string_lossy().into_owned();
    let script = format!("{script} && exec \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &script, &mount];
    let typed = format!("guard run --shadow --no-history --duration 1s --format json{more}");
    let run = ended(bench.wrapped(&wrapper, &typed));
    assert_eq!(run.code, 0, "{run:?}");
    let state = serde_json::from_str(&run.stdout).unwrap();
    (bench, state)
}

/// As `ProtectSystem=strict` mounts them for the service: read-only, in a namespace of its own, while others write.
#[test]
fn root_a_device_that_the_guard_may_not_write_to_is_guarded() {
    let test = "root_a_device_that_the_guard_may_not_write_to_is_guarded";
    if !root_or_say(test, &["mkfs.ext4", "unshare"]) {
        return;
    }
    let (bench, state) = in_a_namespace("mount -o remount,bind,ro \"$0\"", "");
    let names = state["devices"].as_array().unwrap().iter().map(|device| &device["name"]);
    assert!(names.clone().any(|name| *name == bench.name()), "{:?}", names.collect::<Vec<_>>());
}

/// As the root disk is to the service, which may write to `/var/lib/weir` alone.
#[test]
fn root_a_canary_finds_a_folder_of_the_device_that_takes_writes() {
    let test = "root_a_canary_finds_a_folder_of_the_device_that_takes_writes";
    if !root_or_say(test, &["mkfs.ext4", "unshare"]) {
        return;
    }
    let script =
        "mkdir \"$0/state\" && mount --bind \"$0/state\" \"$0/state\" && mount -o remount,bind,ro \"$0\"";
    let (bench, state) = in_a_namespace(script, " --sensor canary MNT");
    assert_eq!(state["devices"][0]["sensor"]["source"], "canary", "{state}");
    assert_eq!(bench.device.mount().join("state").read_dir().unwrap().count(), 0);
}

#[test]
fn root_alone_its_time_is_over() {
    let Some(bench) = Bench::new("root_alone_its_time_is_over") else { return };
    let found = bench.note();
    let load = bench.load();
    let run =
        bench.run(&format!("guard run MNT --actuator {} --duration 8s --format json", bench.actuator()));
    assert_eq!((run.code, bench.limits(), bench.journaled()), (0, found, 0), "{run:?}");
    end(load);
    let state: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(state["schema"], "weir.guard.state/1");
    let device = &state["devices"][0];
    assert_eq!(device["name"], bench.name());
    assert!(device["totals"]["written_bytes"].as_u64().unwrap() > 0, "{device}");
    for line in run.stderr.lines().filter(|line| line.starts_with('{')) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["schema"], "weir.guard.log/1");
        assert!(!line["sentence"].as_str().unwrap().is_empty(), "{line}");
    }
    // The history holds the seconds, also through the store.
    let run = bench.run("results export last --format record");
    let record: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(record["extra"]["schema"], "weir.guard/1");
    let seconds = record["extra"]["devices"][0]["seconds"].as_array().unwrap();
    assert!(!seconds.is_empty() && seconds.iter().all(|second| second.as_array().unwrap().len() == 15));
    let removed = bench.run("results rm last");
    assert_eq!(removed.code, 0, "{removed:?}");
    let left = fs::read_dir(bench.weir.store()).unwrap().flatten();
    let left: Vec<_> = left.filter(|file| file.path().extension().is_some_and(|e| e == "seconds")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn root_alone_one_limit_has_one_guard() {
    let Some(bench) = Bench::new("root_alone_one_limit_has_one_guard") else { return };
    let found = bench.note();
    let mut first = bench.guard("");
    let second = format!("guard run MNT --actuator {}", bench.actuator());
    let refused = bench.run(&second);
    assert_eq!(refused.code, 2, "{refused:?}");
    contains(&refused.stderr, &["another guard runs", "hint:", "weir guard status"]);
    // Apart from the first by its socket, it still cannot have the limit.
    let mut command = bench.command(&second);
    command.env("WEIR_RUN", bench.folder.path().join("elsewhere"));
    let refused = ended(command);
    assert_eq!(refused.code, 3, "{refused:?}");
    contains(&refused.stderr, &["in use by another weir", "hint:"]);
    first.signal("TERM");
    assert_eq!(first.finish().code, 143);
    assert_eq!((bench.limits(), bench.journaled()), (found, 0));
}

#[test]
fn root_alone_somebody_elses_limit_is_left_alone() {
    let Some(bench) = Bench::new("root_alone_somebody_elses_limit_is_left_alone") else { return };
    let (found, file) = (bench.note(), bench.bdi("max_ratio_fine"));
    if bench.actuator() != "bdi" {
        let _ = writeln!(std::io::stderr(), "not run: the rest lacks a limit of the device's own");
        return;
    }
    let (mut guard, load) = bench.holding();
    fs::write(&file, "987654").unwrap();
    let standing = || bench.state().unwrap()["devices"][0]["standing"].clone();
    bench.wait("the guard stands down", || standing()["stood-down"].is_object());
    // It measures on, and leaves that limit alone, now and at its end.
    let at_ms = || bench.state().unwrap()["at_ms"].as_u64().unwrap();
    let then_ms = at_ms();
    bench.wait("more looks are taken", || at_ms() > then_ms + 2000);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "987654");
    // Told to, it takes the limit over again.
    guard.signal("USR1");
    bench.wait("it guards again", || standing() == "guarding");
    guard.signal("TERM");
    let ended = guard.finish();
    contains(&ended.stderr, &["yielded", "guards again"]);
    assert_eq!((fs::read_to_string(&file).unwrap().trim(), bench.journaled()), ("987654", 0));
    end(load);
    fs::write(&file, found[5].trim()).unwrap();
}

#[test]
fn root_alone_a_shadow_touches_nothing() {
    let Some(bench) = Bench::new("root_alone_a_shadow_touches_nothing") else { return };
    let found = bench.note();
    let mut shadow = bench.guard("--shadow --no-history");
    let load = bench.load();
    bench.wait("the shadow would hold", || {
        let state = bench.state().unwrap();
        assert_eq!((&state["shadow"], bench.limits()), (&Value::Bool(true), found.clone()));
        state["devices"][0]["decision"]["mood"] == "holding"
    });
    let state = bench.state().unwrap();
    assert_eq!(state["devices"][0]["standing"], "shadow");
    contains(&bench.run("guard status").stdout, &["shadow"]);
    shadow.signal("TERM");
    let ended = shadow.finish();
    contains(&ended.stderr, &["would turn", "would be cut"]);
    assert!(!bench.folder.path().join("journal").exists(), "it has written a journal");
    end(load);
    assert!(bench.weir.records().iter().all(|record| record["kind"] != "guard"));
}

#[test]
fn root_alone_metrics_are_answered_and_the_rest_is_not() {
    let Some(bench) = Bench::new("root_alone_metrics_are_answered_and_the_rest_is_not") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut guard = bench.guard(&format!("--shadow --no-history --metrics 127.0.0.1:{port}"));
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    contains(
        &page,
        &[
            "HTTP/1.1 200 OK",
            "application/openmetrics-text; version=1.0.0",
            "# UNIT weir_guard_limit_bytes bytes",
            &format!("weir_guard_limit_bytes{{device=\"{}\"}} ", bench.name()),
            "weir_guard_shadow 1\n",
        ],
    );
    assert!(page.ends_with("# EOF\n"), "{page}");
    contains(&ask("GET /state HTTP/1.1\r\n\r\n"), &["404"]);
    contains(&ask("DELETE /metrics HTTP/1.1\r\n\r\n"), &["405"]);
    // Somebody who connects and says nothing does not keep the others waiting for ever.
    let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    contains(&ask("GET /metrics HTTP/1.0\r\n\r\n"), &["200 OK"]);
    guard.signal("INT");
    assert_eq!(guard.finish().code, 130);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("guard.toml"), "keep = 0.9\n\ntarget = \"5x\"\n").unwrap();
    let weir = Weir::new();
    for (arguments, code, parts) in [
        (
            "--config guard.toml",
            2,
            &["guard.toml:3: expected a setting of the guard, got `target`", "target-p99"][..],
        ),
        ("--config nowhere.toml", 3, &["cannot read the settings nowhere.toml"]),
        ("--target-p99 1x", 2, &["must be above 1"]),
        ("--keep 2", 2, &["expected a share from 0 to 1"]),
        ("--protect mariadb", 2, &["expected all, a unit such as mariadb.service"]),
        ("--metrics 0.0.0.0:9750", 2, &["are readable by every host", "--metrics-for-others"]),
        ("nosuch0 --shadow", 3, &["nosuch0", "hint: give a device"]),
        ("/proc --shadow", 3, &["no single block device stands behind /proc"]),
    ] {
        let mut words = vec!["guard", "run"];
        words.extend(arguments.split(' '));
        let mut command = weir.command(folder.path(), &words);
        command.env("WEIR_RUN", folder.path().join("run"));
        let run = ended(command);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{arguments}: {run:?}");
        contains(&run.stderr, parts);
    }
    let mut command = weir.command(folder.path(), &["guard", "status"]);
    command.env("WEIR_RUN", folder.path().join("run"));
    let run = ended(command);
    assert_eq!(run.code, 3, "{run:?}");
    contains(&run.stderr, &["no guard answers on", "`weir guard run` starts one"]);
}

#[test]
fn settings_are_printed_as_a_file_that_says_the_same() {
    let (weir, folder) = (Weir::new(), tempfile::tempdir().unwrap());
    let typed = [
        "guard",
        "run",
        "/srv",
        "--target-p99",
        "20ms",
        "--keep",
        "0.8",
        "--protect",
        "comm:a",
        "--print-config",
    ];
    let printed = weir.run(folder.path(), &typed);
    assert_eq!(printed.code, 0, "{printed:?}");
    contains(&printed.stdout, &["devices = [\"/srv\"]", "target-p99 = \"20ms\"", "keep = 0.8"]);
    fs::write(folder.path().join("guard.toml"), &printed.stdout).unwrap();
    let again = weir.run(folder.path(), &["guard", "run", "--config", "guard.toml", "--print-config"]);
    assert_eq!(again.stdout, printed.stdout);
}
