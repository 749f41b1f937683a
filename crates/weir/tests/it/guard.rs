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
struct Bench {
    weir: Weir,
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
        Some(Bench { weir: Weir::alone(), folder: tempfile::tempdir().unwrap(), device })
    }

    fn name(&self) -> String {
        self.device.device().file_name().unwrap().to_string_lossy().into_owned()
    }

    /// `weir ARGUMENTS`, with `MNT` for where the device is mounted.
    fn command(&self, arguments: &str) -> Command {
        let arguments = arguments.replace("MNT", &self.device.mount().to_string_lossy());
        let words: Vec<&str> = arguments.split(' ').collect();
        let mut command = self.weir.command(self.folder.path(), &words);
        command.env("WEIR_JOURNAL", self.folder.path().join("journal"));
        command.env("WEIR_RUN", self.folder.path().join("run"));
        command.env_remove("NOTIFY_SOCKET");
        command
    }

    fn run(&self, arguments: &str) -> Ended {
        ended(self.command(arguments))
    }

    /// The device's own limit where this kernel has one that may be turned, so that the machine's is left alone.
    fn lever(&self) -> &'static str {
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
    fn guard(&self, more: &str) -> Running {
        let lever = self.lever();
        let command = self.command(&format!("guard run MNT --lever {lever} {more}").trim().to_string());
        let running = Weir::started(command, |_| true);
        self.wait("the guard answers", || self.state().is_some());
        running
    }

    /// What a running guard says.
    fn state(&self) -> Option<Value> {
        let run = self.run("guard status --json");
        (run.code == 0).then(|| serde_json::from_str(&run.stdout).unwrap())
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < until, "never: {what}; {:?}", self.state());
            sleep(Duration::from_millis(50));
        }
    }

    fn journaled(&self) -> usize {
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

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn root_one_limit_has_one_guard() {
    let Some(bench) = Bench::new("root_one_limit_has_one_guard") else { return };
    let found = bench.limits();
    let mut first = bench.guard("");
    let second = format!("guard run MNT --lever {}", bench.lever());
    let refused = bench.run(&second);
    assert_eq!(refused.code, 2, "{refused:?}");
    contains(&refused.stderr, &["another guard runs", "hint:", "weir guard status"]);
    // Apart from the first by its socket, it still cannot have the limit.
    let mut command = bench.command(&second);
    command.env("WEIR_RUN", bench.folder.path().join("elsewhere"));
    let refused = ended(command);
    assert_eq!(refused.code, 3, "{refused:?}");
    contains(&refused.stderr, &["in the hands of another weir", "hint:"]);
    first.signal("TERM");
    assert_eq!(first.finish().code, 143);
    assert_eq!((bench.limits(), bench.journaled()), (found, 0));
}

#[test]
fn root_metrics_are_answered_and_the_rest_is_not() {
    let Some(bench) = Bench::new("root_metrics_are_answered_and_the_rest_is_not") else { return };
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
        ("--config guard.toml", 2, &["guard.toml:3: `target` is no setting of the guard", "target-p99"][..]),
        ("--config nowhere.toml", 2, &["cannot read the settings nowhere.toml"]),
        ("--target-p99 1x", 2, &["must be above 1"]),
        ("--keep 2", 2, &["no share between 0 and 1"]),
        ("--protect mariadb", 2, &["expected all, a unit such as mariadb.service"]),
        ("--metrics 0.0.0.0:9750", 2, &["would be there for others", "--metrics-for-others"]),
        ("nosuch0 --shadow", 2, &["nosuch0", "hint: give a device"]),
        ("/proc --shadow", 2, &["no single block device stands behind /proc"]),
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
