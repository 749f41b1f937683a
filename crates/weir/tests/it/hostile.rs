//! Another account in folders where root works: nothing outside them changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::lab::{lab, root_or_say};
use crate::weir::{Weir, ended, without_terminal};

/// The account of attackers: one that no process of the machine has, so that nobody but the test is in what is its.
const NOBODY: u32 = 2_013_000_007;

/// A folder of nobody's, and one of root's that must not change.
struct Ground {
    theirs: TempDir,
    ours: TempDir,
}

impl Ground {
    fn new() -> Ground {
        let ground = Ground { theirs: tempfile::tempdir().unwrap(), ours: tempfile::tempdir().unwrap() };
        // Both reachable, the second one not writable by others.
        fs::set_permissions(ground.ours.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(ground.theirs.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        ground
    }

    /// A file of root's that others may read.
    fn precious(&self) -> PathBuf {
        let path = self.ours.path().join("precious");
        fs::write(&path, "root's").unwrap();
        path
    }

    /// Until a file of that name is in the folder of nobody's.
    fn wait_for(&self, name: &str) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while self.theirs.path().join(name).symlink_metadata().is_err() {
            assert!(std::time::Instant::now() < until, "no {name}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Runs a program in Python as nobody in the folder of nobody's, for a minute at most. Its first argument is the
    /// folder of root's.
    fn attack(&self, program: &str) -> Attack {
        let mut command = without_terminal();
        command.args([
            "timeout",
            "60",
            "setpriv",
            &format!("--reuid={NOBODY}"),
            &format!("--regid={NOBODY}"),
        ]);
        command.args(["--clear-groups", "python3", "-c"]);
        // root's own python3 may lie where nobody else may go.
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command.args([program.as_ref(), self.ours.path().as_os_str()]).current_dir(self.theirs.path());
        Attack(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// An attack under way; it ends with this value.
struct Attack(Child);

impl Drop for Attack {
    fn drop(&mut self) {
        // timeout hands the signal on to what it runs.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::TERM,
        );
        let _ = self.0.wait();
    }
}

/// Puts a link to a folder of root's in the place of the first folder of that kind.
fn swap(kind: &str) -> String {
    format!(
        "
import os, sys
os.symlink(sys.argv[1], 'link')
while True:
    for name in os.listdir('.'):
        if name.startswith('.weir-{kind}-'):
            os.rename(name, 'away')
            os.rename('link', name)
            sys.exit()
"
    )
}

#[test]
fn root_a_swapped_folder_leads_nowhere() {
    if !root_or_say("root_a_swapped_folder_leads_nowhere", &["setpriv", "timeout", "python3"]) {
        return;
    }
    let weir = Weir::new();
    for (kind, arguments) in [
        ("bench", &["--files", "300", "--size", "1M", "--operations", "300"][..]),
        ("flood", &["--size", "64M", "--duration", "2s", "--flood", "cp:size=512M,writers=4"][..]),
    ] {
        // Who comes first is the scheduler's business.
        let (ground, run) = (0..20)
            .map(|_| {
                let ground = Ground::new();
                let attack = ground.attack(&swap(kind));
                ground.wait_for("link");
                let folder = ground.theirs.path().to_str().unwrap();
                let run = weir.run(Path::new("/"), &[&["bench", "--dir", folder], arguments].concat());
                drop(attack);
                (ground, run)
            })
            .find(|(ground, _)| ground.theirs.path().join("away").exists())
            .unwrap_or_else(|| panic!("{kind}: the attack never got its turn"));
        let found: Vec<_> = fs::read_dir(ground.ours.path()).unwrap().flatten().collect();
        assert!(found.is_empty(), "{kind}: {found:?}");
        // Where the link is there before the new folder is opened, it is refused.
        let is_refused = run.code == 3 && run.stderr.contains("cannot create a folder in");
        assert!(run.code == 0 || is_refused, "{kind}: {run:?}");
        // What weir wrote is gone, wherever it was moved to.
        let away = ground.theirs.path().join("away");
        assert_eq!(fs::read_dir(away).unwrap().count(), 0, "{kind}");
    }
}

#[test]
fn root_folders_of_others_stay() {
    if !root_or_say("root_folders_of_others_stay", &[]) {
        return;
    }
    let ground = Ground::new();
    let notes = ground.theirs.path().join(".weir-notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("today"), "x").unwrap();
    chown(&notes, Some(NOBODY), Some(NOBODY)).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(&notes).unwrap().set_times(fs::FileTimes::new().set_modified(old)).unwrap();
    let folder = ground.theirs.path().to_str().unwrap();
    let run =
        Weir::new().run(Path::new("/"), &["bench", "--dir", folder, "--size", "1M", "--operations", "9"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(notes.join("today").exists());
}

#[test]
fn root_names_of_weirs_choice_are_not_followed() {
    if !root_or_say("root_names_of_weirs_choice_are_not_followed", &[]) {
        return;
    }
    let weir = Weir::new();
    for (name, command) in [
        ("test_file.0", &["fileio", "--file-num=1", "--file-total-size=1M", "prepare"][..]),
        (
            "test_file.0",
            &[
                "fileio",
                "--file-num=1",
                "--file-total-size=1M",
                "--file-test-mode=rndwr",
                "--events=9",
                "run",
            ],
        ),
        ("weir-bench.0", &["bench", "--dir", ".", "--keep", "--size", "1M", "--operations", "9"]),
    ] {
        // A hard link needs no help of weir's where fs.protected_hardlinks is 0; root may always make one.
        for link in [symlink::<PathBuf, PathBuf>, fs::hard_link] {
            let ground = Ground::new();
            let precious = ground.precious();
            link(precious.clone(), ground.theirs.path().join(name)).unwrap();
            let run = weir.run(ground.theirs.path(), command);
            assert_ne!(run.code, 0, "{command:?}: {run:?}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "root's", "{command:?}");
        }
    }
    // What makes files anew or removes them takes the name, and leaves the file.
    for (mode, command) in [("seqwr", "run"), ("rndrd", "cleanup")] {
        let ground = Ground::new();
        let precious = ground.precious();
        fs::hard_link(&precious, ground.theirs.path().join("test_file.0")).unwrap();
        let mode = format!("--file-test-mode={mode}");
        let words = ["fileio", "--file-num=1", "--file-total-size=1M", &mode, "--events=9", command];
        let run = weir.run(ground.theirs.path(), &words);
        assert_eq!(run.code, 0, "{words:?}: {run:?}");
        let data = fs::metadata(&precious).unwrap();
        assert_eq!(
            (fs::read_to_string(&precious).unwrap().as_str(), data.nlink()),
            ("root's", 1),
            "{words:?}"
        );
    }
}

#[test]
fn root_a_store_of_a_user_gives_nothing_away() {
    if !root_or_say("root_a_store_of_a_user_gives_nothing_away", &["setpriv", "timeout", "python3"]) {
        return;
    }
    let ground = Ground::new();
    let precious = ground.precious();
    // Puts links in the place of every temporary file, as fast as it can.
    let attack = ground.attack(
        "
import os, sys
number = 0
open('ready', 'w')
while True:
    for name in os.listdir('.'):
        if name.endswith('.tmp') and not os.path.islink(name):
            number += 1
            try:
                os.symlink(sys.argv[1] + '/precious', 'link%d' % number)
                os.rename('link%d' % number, name)
            except OSError:
                pass
",
    );
    ground.wait_for("ready");
    let work = tempfile::tempdir().unwrap();
    let weir = Weir::new();
    for _ in 0..40 {
        let mut command =
            weir.command(work.path(), &["bench", "--engine", "null", "--size", "1M", "--operations", "1"]);
        command.env("WEIR_STORE", ground.theirs.path());
        let run = ended(command);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(fs::metadata(&precious).unwrap().uid(), 0, "root's file was given away");
    }
    drop(attack);
}

#[test]
fn root_a_fifo_in_a_store_keeps_nobody() {
    if !root_or_say("root_a_fifo_in_a_store_keeps_nobody", &["mkfifo", "timeout"]) {
        return;
    }
    let ground = Ground::new();
    let fifo = ground.theirs.path().join("20260101-000000-000-aaaa.json");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let weir = Weir::new();
    let mut command = weir.wrapped(&["timeout", "20"], Path::new("/"), &["results", "list"]);
    command.env("WEIR_STORE", ground.theirs.path());
    let run = ended(command);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.unwrapped().contains("not a regular file"), "{run:?}");
}

#[test]
fn root_outputs_are_not_written_through_links() {
    if !root_or_say("root_outputs_are_not_written_through_links", &[]) {
        return;
    }
    let weir = Weir::new();
    for (command, content) in [
        // A recording that is there stays in any case.
        (&["trace", "record", "--out", "link", "--duration", "200ms"][..], ""),
        (&["guard", "run", "--shadow", "--no-history", "--duration", "1s", "--log", "link", "/"], "root's"),
    ] {
        let ground = Ground::new();
        let precious = ground.precious();
        fs::write(&precious, content).unwrap();
        symlink(&precious, ground.theirs.path().join("link")).unwrap();
        let run = weir.run(ground.theirs.path(), command);
        assert_ne!(run.code, 0, "{command:?}: {run:?}");
        assert!(run.stderr.contains("a link in the folder"), "{command:?}: {run:?}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), content, "{command:?}");
    }
}

#[test]
fn root_the_lab_believes_no_folder_of_others() {
    if !root_or_say("root_the_lab_believes_no_folder_of_others", &["mount", "setpriv"]) {
        return;
    }
    let ground = Ground::new();
    let run = |words: &[&str]| Command::new(words[0]).args(&words[1..]).status().unwrap().success();
    let mount = ground.ours.path().to_str().unwrap();
    fs::set_permissions(ground.theirs.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    chown(ground.theirs.path(), Some(0), Some(0)).unwrap();
    assert!(run(&["mount", "-t", "tmpfs", "weir-test", mount]));
    // Its owner is dead, its mount point is a link to another one.
    let made = without_terminal()
        .args(["setpriv", &format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}")])
        .args(["--clear-groups", "sh", "-c"])
        .arg("mkdir weir-lab.abcdef && cd weir-lab.abcdef && echo 4194305 1 >owner && ln -s \"$0\" mnt")
        .arg(mount)
        .current_dir(ground.theirs.path())
        .status();
    // A file system of an account's own says that its root is root's, as FUSE lets it.
    let own = ground.theirs.path().join("weir-lab.uvwxyz");
    fs::create_dir(&own).unwrap();
    let says = own.to_str().unwrap();
    assert!(run(&["mount", "-t", "tmpfs", "-o", "mode=755", "weir-test", says]));
    fs::write(own.join("owner"), "4194305 1\n").unwrap();
    symlink(mount, own.join("mnt")).unwrap();
    let cleaned = Command::new(lab().join("loop-device")).arg("clean").arg(ground.theirs.path()).status();
    let mounted = run(&["mountpoint", "-q", mount]);
    let believed = !own.join("owner").exists();
    for mount in [says, mount] {
        let _ = Command::new("umount").arg(mount).status();
    }
    assert!(made.unwrap().success() && cleaned.unwrap().success());
    assert!(mounted, "root unmounted what somebody's link showed");
    assert!(ground.theirs.path().join("weir-lab.abcdef").exists());
    assert!(!believed, "a mount's word on its owner was believed");
}

/// Files with the names that a built-in test and a module of a script have, in the folder that root stands in.
#[test]
fn root_a_stranger_s_lua_in_the_current_folder_is_not_run() {
    if !root_or_say("root_a_stranger_s_lua_in_the_current_folder_is_not_run", &[]) {
        return;
    }
    let (ground, weir) = (Ground::new(), Weir::new());
    for name in ["oltp_read_write", "run", "oltp_common.lua", "helper.lua", "my.lua"] {
        let path = ground.theirs.path().join(name);
        fs::write(&path, "print('of a stranger')\npcall(require, 'helper')\n").unwrap();
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let script = ground.ours.path().join("my.lua");
    fs::write(&script, "require('oltp_common')\npcall(require, 'helper')\nprint('read')\n").unwrap();
    let script = script.to_str().unwrap();
    let help = |test: &str, folder: &Path| {
        let run = weir.run(folder, &["sysbench", test, "help"]);
        (run.stdout.matches("of a stranger").count(), run.stdout.contains("read"))
    };
    for word in ["oltp_read_write", "run"] {
        assert_eq!(help(word, ground.theirs.path()).0, 0, "{word}");
    }
    assert_eq!(help(script, ground.theirs.path()), (0, true));
    // A stranger's script that was named may have the stranger's modules.
    assert_eq!(help("my.lua", ground.theirs.path()).0, 2);
    // What root has put beside a script is meant.
    fs::write(ground.ours.path().join("oltp_common.lua"), "print('of a stranger')").unwrap();
    assert_eq!(help(script, ground.theirs.path()), (1, true));
}
