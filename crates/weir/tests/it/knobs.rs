//! Knobs looked at, changed, confirmed and taken back, on a loop device of the test's own; files for the next boot
//! under a folder of the test's own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::lab::{LoopDevice, root_or_say};
use crate::weir::{Ended, Weir, ended};

/// A device to turn knobs of, and a journal that nobody else has.
struct Bench {
    weir: Weir,
    folder: TempDir,
    device: LoopDevice,
}

impl Bench {
    /// `None` where the test may not run, which is said.
    fn new(test: &str) -> Option<Bench> {
        if !root_or_say(test, &["losetup"]) {
            return None;
        }
        let device = LoopDevice::create(&["fs=none", "size=16M"]);
        let bench = Bench { weir: Weir::new(), folder: tempfile::tempdir().unwrap(), device };
        // A loop device keeps the scheduler of whoever had it before, and sets the rest anew with it.
        fs::write(bench.file("scheduler"), "mq-deadline").unwrap();
        fs::write(bench.file("scheduler"), "none").unwrap();
        Some(bench)
    }

    fn name(&self) -> String {
        self.device.device().file_name().unwrap().to_string_lossy().into_owned()
    }

    fn command(&self, arguments: &str) -> Command {
        let arguments = arguments.replace("DEV", &self.name());
        let words: Vec<&str> = ["knobs"].into_iter().chain(arguments.split(' ')).collect();
        let mut command = self.weir.command(self.folder.path(), &words);
        command.env("WEIR_JOURNAL", self.folder.path().join("journal"));
        command
    }

    /// `weir knobs …` as a line for a shell at a terminal.
    fn at_terminal(&self, before: &str, arguments: &str) -> Command {
        let weir = self.command(arguments);
        let words = [weir.get_program()].into_iter().chain(weir.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let mut terminal = Command::new("script");
        terminal.args(["-qfc", &format!("{before}{}", words.join(" ")), "/dev/null"]);
        terminal.env("WEIR_JOURNAL", self.folder.path().join("journal")).stdin(Stdio::piped());
        terminal
    }

    /// Runs `weir knobs …`, with `DEV` for the device.
    fn run(&self, arguments: &str) -> Ended {
        ended(self.command(arguments))
    }

    /// The same, which must succeed; what it printed.
    fn done(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, 0, "{arguments}: {run:?}");
        run.stdout.replace(&self.name(), "DEV")
    }

    fn file(&self, setting: &str) -> PathBuf {
        Path::new("/sys/block").join(self.name()).join("queue").join(setting)
    }

    fn value(&self, setting: &str) -> String {
        fs::read_to_string(self.file(setting)).unwrap().trim().to_string()
    }

    /// Waits until a setting has a value, however long the machine takes.
    fn wait_for(&self, setting: &str, value: &str) {
        let patience = Instant::now() + Duration::from_secs(60);
        while self.value(setting) != value {
            assert!(Instant::now() < patience, "{setting} stays {}", self.value(setting));
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What a failed test leaves in force goes back before the device does.
        let _ = self.command("rollback --all").output();
    }
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn anybody_may_look() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let weir = Weir::new();
    let list = weir.run(folder.path(), &["knobs", "list"]);
    assert_eq!(list.code, 0, "{list:?}");
    contains(&list.stdout, &["this machine", "vm.dirty ", "vm.swappiness ", "0 to 200", "mount options"]);
    assert!(list.stdout.lines().all(|line| line.chars().count() <= 100), "{}", list.stdout);
    let json = weir.run(folder.path(), &["knobs", "list", "--all", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["schema"], "weir.knobs/1");
    let names: Vec<&str> =
        json["knobs"].as_array().unwrap().iter().map(|k| k["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"vm.dirty") && names.iter().any(|name| name.ends_with("/scheduler")),
        "{names:?}"
    );
    for (name, parts) in [
        ("vm.dirty", &["vm.dirty = ", "beware", "set by", "weir knobs apply vm.dirty_bytes="][..]),
        ("nr_requests", &["DEV/nr_requests", "4 to 2048 requests"]),
        ("nosuch0/nr_requests", &["DEV/nr_requests"]),
    ] {
        let show = weir.run(folder.path(), &["knobs", "show", name]);
        assert_eq!(show.code, 0, "{show:?}");
        contains(&show.stdout, parts);
    }
    let nowhere = weir.run(folder.path(), &["knobs", "list", "nowhere"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (3, ""), "{nowhere:?}");
    contains(&nowhere.stderr, &["nowhere", "does not exist", "hint:"]);
}

#[test]
fn what_cannot_be_is_refused_with_every_reason() {
    let folder = tempfile::tempdir().unwrap();
    let weir = Weir::new();
    for (settings, code, parts) in [
        (
            &["vm.swappiness=999", "vm.swapiness=1", "vm.nr_hugepages=5"][..],
            2,
            &[
                "3 reasons not to change anything",
                "/proc/sys/vm/swappiness takes 0 to 200, not 999",
                "did you mean vm.swappiness?",
                "weir shows this knob and does not change it",
            ][..],
        ),
        (&["vm.dirty_bytes=1"], 2, &["/proc/sys/vm/dirty_bytes takes ", " or more bytes, not 1"]),
        (&["vm.dirty_bytes=1MB", "vm.dirty_background_bytes=2MB"], 2, &["not below vm.dirty_bytes=1000000"]),
        (&["vm.swappiness"], 2, &["expected NAME=VALUE, got `vm.swappiness`"]),
        (&["nosuch0/nr_requests=64"], 2, &["no /sys/block/nosuch0/queue/nr_requests on this machine"]),
        (&["vm.swappiness=1", "--i-accept-data-loss-risk", "vm.swappiness"], 2, &["puts data at risk"]),
        (&["vm.swappiness=1", "--confirm-within", "0s"], 2, &["must be more than 0"]),
    ] {
        let arguments: Vec<&str> = ["knobs", "apply", "--dry-run"].iter().chain(settings).copied().collect();
        let run = weir.run(folder.path(), &arguments);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run:?}");
        contains(&run.stderr, parts);
    }
}

#[test]
fn root_changes_are_for_root() {
    if !root_or_say("root_changes_are_for_root", &["setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all"];
    let weir = Weir::new();
    let swappiness = || fs::read_to_string("/proc/sys/vm/swappiness").unwrap().trim().to_string();
    let before = swappiness();
    let other = format!("vm.swappiness={}", if before == "61" { 62 } else { 61 });
    for (arguments, code, says) in [
        (&["list"][..], 0, ""),
        (&["journal"], 0, ""),
        (&["apply", &other, "--dry-run"], 0, ""),
        (&["apply", &other], 3, "changing knobs takes root"),
        (&["apply", &other, "--persist", "sysctl.d", "--write"], 3, "takes root"),
        (&["rollback"], 3, "putting settings back takes root"),
        (&["confirm"], 3, "confirming a change takes root"),
    ] {
        let arguments: Vec<&str> = ["knobs"].iter().chain(arguments).copied().collect();
        let run = ended(weir.wrapped(&nobody, folder.path(), &arguments));
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        contains(&run.stderr, &[says]);
    }
    assert_eq!(swappiness(), before);

    // What stands in a journal that is closed to them they do not learn, and are told so.
    let journal = |path: &str, owner| {
        let journal = folder.path().join(path);
        fs::create_dir_all(&journal).unwrap();
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o700)).unwrap();
        chown(&journal, Some(owner), None).unwrap();
        journal
    };
    let mut closed = weir.wrapped(&nobody, folder.path(), &["knobs", "journal"]);
    closed.env("WEIR_JOURNAL", journal("closed", 0));
    let closed = ended(closed);
    assert!(closed.code == 0 && !closed.stdout.contains("nothing in force"), "{closed:?}");
    contains(&closed.stdout, &["/closed may be read by root alone"]);

    // Variables of servers are theirs to change and to restore. No server is there.
    let own = journal("weir/journal", 65_534);
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let entry = serde_json::json!({
        "schema": "weir.journal/1", "boot_id": boot_id.trim(), "pid": 4_194_305, "pid_started_ticks": 1,
        "changes": [{ "knob": "mysql:root@127.0.0.1:1/innodb_io_capacity", "old": "200", "new": ["400"] }],
    });
    fs::write(own.join("1.json"), entry.to_string()).unwrap();
    for (command, says) in [("journal", "innodb_io_capacity"), ("rollback", "nothing to restore")] {
        let mut run = weir.wrapped(&nobody, folder.path(), &["knobs", command]);
        run.env("XDG_STATE_HOME", folder.path());
        let run = ended(run);
        assert_eq!(run.code, 0, "{command}: {run:?}");
        contains(&run.stdout, &[says]);
    }
    assert!(!own.join("1.json").exists());
}

#[test]
fn root_a_transaction_goes_and_comes_back_twice() {
    let Some(bench) = Bench::new("root_a_transaction_goes_and_comes_back_twice") else { return };
    let (scheduler, requests) = (bench.value("scheduler"), bench.value("nr_requests"));
    let plan = bench.done("apply DEV/nr_requests=32 DEV/scheduler=mq-deadline --dry-run");
    contains(&plan, &["1  DEV/scheduler    none → mq-deadline", "2  DEV/nr_requests", "nothing was changed"]);
    assert_eq!(bench.value("scheduler"), scheduler);
    let applied = bench.done("apply DEV/nr_requests=32 DEV/scheduler=mq-deadline");
    contains(&applied, &["in force, each value read back", "undo: weir knobs rollback", "journal"]);
    assert_eq!(bench.value("nr_requests"), "32");
    contains(&bench.value("scheduler"), &["[mq-deadline]"]);
    contains(&bench.done("journal"), &["DEV/scheduler", "none → mq-deadline", "stays until"]);
    contains(&bench.done("apply DEV/nr_requests=32"), &["DEV/nr_requests=32 already", "nothing to change"]);
    contains(&bench.done("rollback"), &["DEV/scheduler is back at none"]);
    assert_eq!((bench.value("scheduler"), bench.value("nr_requests")), (scheduler, requests));
    contains(&bench.done("rollback"), &["nothing to restore"]);
    contains(&bench.done("journal"), &["weir has nothing in force"]);
}

#[test]
fn root_a_value_that_others_changed_is_left_alone() {
    let Some(bench) = Bench::new("root_a_value_that_others_changed_is_left_alone") else { return };
    bench.done("apply DEV/nr_requests=32 DEV/max_sectors_kb=128");
    fs::write(bench.file("nr_requests"), "48").unwrap();
    let sectors = bench.done("rollback");
    contains(&sectors, &["DEV/max_sectors_kb is back at", "DEV/nr_requests"]);
    assert!(!sectors.contains("DEV/nr_requests is back"), "{sectors}");
    assert_eq!(bench.value("nr_requests"), "48");
}

#[test]
fn root_unconfirmed_it_goes_back_and_confirmed_it_stays() {
    let Some(bench) = Bench::new("root_unconfirmed_it_goes_back_and_confirmed_it_stays") else { return };
    let before = bench.value("nr_requests");
    // Nobody sits at a terminal: it returns at once, and the guardian is left.
    contains(&bench.done("apply DEV/nr_requests=32 --confirm-within 2s"), &["goes back by itself"]);
    bench.wait_for("nr_requests", &before);
    bench.done("apply DEV/nr_requests=32 --confirm-within 10m");
    contains(&bench.done("journal"), &["unless confirmed"]);
    let held = bench.run("apply DEV/nr_requests=16");
    assert_eq!(held.code, 3, "{held:?}");
    contains(&held.stderr, &["in use by another weir", "weir knobs confirm"]);
    contains(&bench.done("confirm --of 1"), &["nothing of process 1 waits"]);
    contains(&bench.done("journal"), &["unless confirmed"]);
    contains(&bench.done("confirm"), &["kept until"]);
    contains(&bench.done("journal"), &["stays until"]);
    assert_eq!(bench.value("nr_requests"), "32");
    contains(&bench.done("confirm"), &["nothing waits"]);
    bench.done("rollback");
    assert_eq!(bench.value("nr_requests"), before);
}

/// As in a container whose command is weir: the kernel ends the guardian with it.
#[test]
fn root_as_the_first_process_it_stays_until_the_change_is_settled() {
    let test = "root_as_the_first_process_it_stays_until_the_change_is_settled";
    if !root_or_say(test, &["unshare"]) {
        return;
    }
    let Some(bench) = Bench::new(test) else { return };
    let before = bench.value("nr_requests");
    let contained = |wrapper: &[&str], arguments: &str| {
        let weir = bench.command(arguments);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).args(wrapper);
        command.arg(weir.get_program()).args(weir.get_args()).stdin(Stdio::null());
        weir.get_envs().for_each(|(name, value)| _ = command.env(name, value.unwrap_or_default()));
        command
    };
    let back = ended(contained(&[], "apply DEV/nr_requests=32 --confirm-within 2s"));
    assert_eq!((back.code, bench.value("nr_requests")), (0, before.clone()), "{back:?}");
    contains(&back.stdout, &["weir waits for that", "not confirmed: taken back"]);

    let waits = "apply DEV/nr_requests=32 --confirm-within 10m";
    let running = |command: &mut Command| {
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        bench.wait_for("nr_requests", "32");
        let patience = Instant::now() + Duration::from_secs(60);
        while !bench.done("journal").contains("unless confirmed") {
            assert!(Instant::now() < patience, "{}", bench.done("journal"));
        }
        running
    };
    let kept = running(&mut contained(&[], waits));
    contains(&bench.done("confirm"), &["kept until"]);
    let kept = kept.wait_with_output().unwrap();
    assert!(kept.status.success() && String::from_utf8_lossy(&kept.stdout).contains("kept\n"), "{kept:?}");
    bench.done("rollback");

    // As `podman stop` does.
    let stopped = running(&mut contained(&[], waits));
    let children = format!("/proc/{0}/task/{0}/children", stopped.id());
    let first = fs::read_to_string(children).unwrap();
    // It hears of signals from now on.
    sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-TERM", first.trim()]).status().unwrap().success());
    let stopped = stopped.wait_with_output().unwrap();
    assert_eq!((stopped.status.code(), bench.value("nr_requests")), (Some(143), before), "{stopped:?}");
    contains(&bench.done("journal"), &["nothing in force"]);

    // Another process is the first one.
    let beside =
        ended(contained(&["sh", "-c", "\"$@\"; true", "sh"], "apply DEV/nr_requests=32 --confirm-within 2s"));
    assert_eq!(beside.code, 0, "{beside:?}");
    contains(&beside.stdout, &["note: the guardian ends with"]);
}

/// Any account may mount over a folder whose name is no text, by FUSE: then it stands in every table of mounts.
#[test]
fn root_a_mount_whose_name_is_no_text_keeps_nothing_from_being_restored() {
    let test = "root_a_mount_whose_name_is_no_text_keeps_nothing_from_being_restored";
    if !root_or_say(test, &["unshare", "mount"]) {
        return;
    }
    let Some(bench) = Bench::new(test) else { return };
    let before = bench.value("nr_requests");
    let beside = |script: &str, arguments: &str| {
        let weir = bench.command(arguments);
        let mut command = Command::new("unshare");
        let script = format!("cd \"$0\" && bad=$(printf '\\377') && mkdir -p \"$bad\" && {script}");
        command.args(["-m", "sh", "-c", &script]).arg(bench.folder.path()).arg(weir.get_program());
        command.args(weir.get_args());
        weir.get_envs().for_each(|(name, value)| _ = command.env(name, value.unwrap_or_default()));
        ended(command)
    };
    let mount = "mount -t tmpfs none \"$bad\"";
    let applied = beside(
        &format!("\"$@\" && {mount} && sleep 6 && cat /sys/block/{}/queue/nr_requests", bench.name()),
        "apply DEV/nr_requests=32 --confirm-within 2s",
    );
    assert_eq!((applied.code, applied.stdout.lines().last()), (0, Some(before.as_str())), "{applied:?}");
    for (arguments, words, value) in
        [("apply DEV/nr_requests=16", "16", "16"), ("rollback", "is back", before.as_str())]
    {
        let ran = beside(&format!("{mount} && \"$@\""), arguments);
        assert!(ran.code == 0 && ran.stdout.contains(words), "{arguments}: {ran:?}");
        assert_eq!(bench.value("nr_requests"), value);
    }
}

#[test]
fn root_it_goes_back_though_the_terminal_dies() {
    if !root_or_say("root_it_goes_back_though_the_terminal_dies", &["script"]) {
        return;
    }
    let Some(bench) = Bench::new("root_it_goes_back_though_the_terminal_dies") else { return };
    let before = bench.value("nr_requests");
    let mut terminal = bench.at_terminal("", "apply DEV/nr_requests=32 --confirm-within 3s");
    let mut terminal = terminal.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    bench.wait_for("nr_requests", "32");
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    bench.wait_for("nr_requests", &before);
    // The entry goes after the value.
    let patience = Instant::now() + Duration::from_secs(60);
    while !bench.done("journal").contains("nothing in force") {
        assert!(Instant::now() < patience, "{}", bench.done("journal"));
    }
}

#[test]
fn root_nothing_but_enter_keeps_a_change() {
    let test = "root_nothing_but_enter_keeps_a_change";
    if !root_or_say(test, &["script"]) {
        return;
    }
    let Some(bench) = Bench::new(test) else { return };
    let said = bench.folder.path().join("said");
    let hears = |words: &str| {
        let patience = Instant::now() + Duration::from_secs(60);
        while !fs::read_to_string(&said).unwrap().contains(words) {
            assert!(Instant::now() < patience, "{words}: {}", fs::read_to_string(&said).unwrap());
            sleep(Duration::from_millis(20));
        }
    };
    let output = fs::File::create(&said).unwrap();
    let mut terminal =
        bench.at_terminal("read -r first && exec ", "apply DEV/nr_requests=32 --confirm-within 10m");
    let mut terminal = terminal.stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let mut keyboard = terminal.stdin.take().unwrap();
    // The second line waits in the terminal before weir asks.
    keyboard.write_all(b"\n\n").unwrap();
    hears("Enter keeps it");
    keyboard.write_all(b"y\n").unwrap();
    hears("expected Enter alone, got `y`");
    contains(&bench.done("journal"), &["unless confirmed"]);
    keyboard.write_all(b"\n").unwrap();
    hears("kept until");
    assert!(terminal.wait().unwrap().success());
    contains(&bench.done("journal"), &["stays until"]);
}

#[test]
fn root_a_script_does_and_undoes_the_same() {
    let Some(bench) = Bench::new("root_a_script_does_and_undoes_the_same") else { return };
    let before = (bench.value("scheduler"), bench.value("nr_requests"));
    let text = bench
        .run("apply DEV/scheduler=mq-deadline DEV/nr_requests=32 DEV/iosched/fifo_batch=4 --print")
        .stdout;
    assert_eq!((bench.value("scheduler"), bench.value("nr_requests")), before);
    let file = bench.folder.path().join("knobs.sh");
    fs::write(&file, text).unwrap();
    assert!(Command::new("sh").arg(&file).status().unwrap().success());
    assert_eq!((bench.value("nr_requests"), bench.value("iosched/fifo_batch")), ("32".into(), "4".into()));
    assert!(Command::new("sh").arg(&file).arg("undo").status().unwrap().success());
    assert_eq!((bench.value("scheduler"), bench.value("nr_requests")), before);
}

#[test]
fn a_script_passes_shellcheck() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "knobs",
        "apply",
        "vm.dirty_bytes=15MB",
        "vm.dirty_background_bytes=7MB",
        "vm.drop_caches=1",
        "--print",
    ];
    let script = Weir::new().run(folder.path(), &arguments);
    assert_eq!(script.code, 0, "{script:?}");
    contains(&script.stdout, &["#!/bin/sh\n", "weir_put /proc/sys/vm/dirty_bytes 15000000", "weir_undo() {"]);
    let file = folder.path().join("knobs.sh");
    fs::write(&file, &script.stdout).unwrap();
    assert!(Command::new("sh").arg("-n").arg(&file).status().unwrap().success());
    match Command::new("shellcheck").arg(&file).output() {
        Ok(checked) => assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout)),
        Err(_) => {
            let lacks = "not run: a_script_passes_shellcheck lacks shellcheck\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), lacks.as_bytes());
        }
    }
}

/// A folder of an image that is a link to one elsewhere: nothing is made, changed or taken away there.
fn check_that_links_stay_inside(weir: &Weir, keeper: &str, path: &str) {
    let (image, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = Path::new(path).parent().unwrap();
    fs::create_dir_all(image.path().join(folder).parent().unwrap()).unwrap();
    fs::create_dir_all(image.path().join("etc/tuned")).unwrap();
    let _ = fs::remove_dir(image.path().join(folder));
    std::os::unix::fs::symlink(elsewhere.path(), image.path().join(folder)).unwrap();
    let root = image.path().to_string_lossy().into_owned();
    let write: &[&str] =
        &["knobs", "apply", "vm.swappiness=8", "--persist", keeper, "--write", "--root", &root];
    let _ = weir.run(Path::new("/"), write);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{keeper}");
    let theirs = elsewhere.path().join(Path::new(path).file_name().unwrap());
    fs::write(&theirs, "# weir: vm.swappiness=8, was vm.swappiness=60\n").unwrap();
    let _ = weir.run(Path::new("/"), &["knobs", "rollback", "--persist", keeper, "--root", &root]);
    assert!(theirs.exists(), "{keeper}: it was taken away");
}

#[test]
fn files_for_the_next_boot_are_shown_written_joined_and_removed() {
    let weir = Weir::new();
    for (keeper, path, says) in [
        ("sysctl.d", "etc/sysctl.d/90-weir.conf", "vm.swappiness = 7"),
        ("tuned", "etc/tuned/weir/tuned.conf", "include=balanced"),
        (
            "systemd",
            "etc/systemd/system/weir-knobs.service",
            "ExecStart=-/bin/sh -c 'echo 7 > /proc/sys/vm/swappiness'",
        ),
    ] {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(path);
        check_that_links_stay_inside(&weir, keeper, path);
        let run = |arguments: &[&str]| {
            let root = root.path().to_string_lossy().into_owned();
            let arguments: Vec<&str> =
                ["knobs"].iter().chain(arguments).copied().chain(["--root", &root]).collect();
            let run = weir.run(Path::new("/"), &arguments);
            assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
            run.stdout
        };
        fs::create_dir_all(root.path().join("etc/tuned")).unwrap();
        fs::write(root.path().join("etc/tuned/active_profile"), "balanced\n").unwrap();
        fs::create_dir_all(root.path().join("etc/sysctl.d")).unwrap();
        fs::write(root.path().join("etc/sysctl.d/99-late.conf"), "vm.swappiness=3\n").unwrap();
        let shown = run(&["apply", "vm.swappiness=7", "--persist", keeper]);
        let is_overruled = shown.contains("overruled at boot by /etc/sysctl.d/99-late.conf:1");
        assert_eq!(is_overruled, keeper != "systemd", "{shown}");
        contains(&shown, &["would write /etc/", says, "nothing was written"]);
        assert!(!file.exists());
        run(&["apply", "vm.swappiness=8", "--persist", keeper, "--write"]);
        // As TuneD has it once weir's profile is active, which is to keep what lies beneath it.
        fs::write(root.path().join("etc/tuned/active_profile"), "weir\n").unwrap();
        run(&["apply", "vm.swappiness=7", "vm.vfs_cache_pressure=90", "--persist", keeper, "--write"]);
        let text = fs::read_to_string(&file).unwrap();
        contains(&text, &[says, "vfs_cache_pressure", "# Take away: weir knobs rollback --persist"]);
        assert!(!text.contains("swappiness=8"), "{text}");
        let link = root.path().join("etc/systemd/system/multi-user.target.wants/weir-knobs.service");
        assert_eq!(link.is_symlink(), keeper == "systemd");
        contains(&run(&["rollback", "--persist", keeper]), &["removed /etc/"]);
        assert!(!file.exists() && !link.is_symlink());
        contains(&run(&["rollback", "--persist", keeper]), &["nothing to remove"]);
    }
}

#[test]
fn a_file_of_others_is_left_alone_and_so_is_an_edited_one() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("etc/sysctl.d/90-weir.conf");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let weir = Weir::new();
    let folder = root.path().to_string_lossy().into_owned();
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--root", &folder]).collect();
        weir.run(root.path(), &arguments)
    };
    let write = ["knobs", "apply", "vm.swappiness=7", "--persist", "sysctl.d", "--write"];
    let written = run(&write);
    assert_eq!(written.code, 0, "{written:?}");
    let edited = fs::read_to_string(&file).unwrap().replace("swappiness = 7", "swappiness = 3");
    for (text, says) in [
        ("vm.swappiness = 3\n", "is there already and not weir's"),
        (&edited, "was edited after weir wrote it, at the line `vm.swappiness = 3`"),
    ] {
        fs::write(&file, text).unwrap();
        for arguments in [&write[..], &["knobs", "rollback", "--persist", "sysctl.d"]] {
            let run = run(arguments);
            assert_eq!(run.code, 3, "{run:?}");
            contains(&run.stderr, &[says, "move it away"]);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let none = ["knobs", "apply", "vm.swappiness=7", "--persist", "udev", "--root", &folder];
    let none = weir.run(root.path(), &none);
    assert_eq!(none.code, 2, "{none:?}");
    contains(&none.stderr, &["udev holds none of this", "use sysctl.d, tuned or systemd"]);
}
