//! Private folders: what is removed, and what never is.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod as_root;

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use as_root::root_or_say;
use weir_fs::{Abandoned, Access, Dir, Private};

const MARKER: &str = ".weir";
const CONTENT: &str = "weir made this folder, and removes it with all that is in it.\n";
const NAME: &str = ".weir-bench-0123456789abcdef0123456789abcdef";

/// A folder as a killed run leaves it, an hour old.
fn left(parent: &Path, name: &str, marker: Option<&str>) {
    let folder = parent.join(name);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    if let Some(content) = marker {
        fs::write(folder.join(MARKER), content).unwrap();
    }
    age(&folder);
}

fn age(folder: &Path) {
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::open(folder).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
}

#[test]
fn only_what_is_proven_goes() {
    let parent = tempfile::tempdir().unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    let digits = |c: &str| format!(".weir-bench-{}", c.repeat(32));
    left(parent.path(), NAME, Some(CONTENT));
    fs::write(parent.path().join(NAME).join("data"), "x").unwrap();
    left(parent.path(), &digits("a"), None);
    left(parent.path(), &digits("b"), Some(""));
    // What somebody may have called so.
    left(parent.path(), ".weir-notes", None);
    left(parent.path(), ".weir-bench-dead", Some(CONTENT));
    left(parent.path(), ".weir-bench-0123456789ABCDEF0123456789abcdef", Some(CONTENT));
    left(parent.path(), ".weir-sandbox-0123456789abcdef0123456789abcdef", Some(CONTENT));
    left(parent.path(), &digits("c"), Some("weir"));
    left(parent.path(), &digits("d"), None);
    fs::write(parent.path().join(digits("d")).join("notes"), "x").unwrap();
    age(&parent.path().join(digits("d")));
    left(parent.path(), &digits("e"), Some(""));
    fs::write(parent.path().join(digits("e")).join("notes"), "x").unwrap();
    age(&parent.path().join(digits("e")));
    left(parent.path(), &digits("f"), Some(CONTENT));
    fs::set_permissions(parent.path().join(digits("f")), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(parent.path().join(".weir-notes"), parent.path().join(digits("0"))).unwrap();

    let (gone, named): (Vec<_>, Vec<_>) =
        Private::remove_abandoned(&dir, "bench").into_iter().partition(|folder| folder.removed);
    let sorted = |folders: Vec<Abandoned>| {
        let mut paths: Vec<PathBuf> = folders.into_iter().map(|folder| folder.path).collect();
        paths.sort();
        paths
    };
    let expected = [NAME, &digits("a"), &digits("b")].map(|name| parent.path().join(name));
    assert_eq!(sorted(gone), expected);
    assert!(expected.iter().all(|path| !path.exists()));
    // The marker of `e` is as a failure of the power may leave it.
    let alike = ["c", "d", "e", "f"].map(|digit| parent.path().join(digits(digit)));
    assert_eq!(sorted(named), alike);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 9);
    assert!(parent.path().join(digits("d")).join("notes").exists());
    assert!(parent.path().join(digits("e")).join("notes").exists());
}

#[test]
fn a_folder_in_use_stays_and_goes_with_its_owner() {
    let parent = tempfile::tempdir().unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    let private = Private::make(&dir, "bench").unwrap();
    let path = private.path().to_path_buf();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    age(&path);
    assert!(Private::remove_abandoned(&dir, "bench").is_empty());
    private.dir().create_new("data", 0o600).unwrap();
    // The parent's owner moves it away and puts a link there: the folder is emptied, the link's target is not.
    let victim = tempfile::tempdir().unwrap();
    fs::write(victim.path().join("precious"), "x").unwrap();
    let moved = parent.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    symlink(victim.path(), &path).unwrap();
    assert!(private.remove().is_err());
    assert!(victim.path().join("precious").exists());
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
}

#[test]
fn a_tree_of_any_shape_goes_and_what_its_links_show_stays() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("outside"), "x").unwrap();
    fs::create_dir(parent.path().join("beside")).unwrap();
    fs::write(parent.path().join("beside/file"), "x").unwrap();
    fs::create_dir(parent.path().join("top")).unwrap();
    let top = Dir::open(&parent.path().join("top")).unwrap();
    // Deeper than a path can be, and than a process may have descriptors.
    let mut at = top.try_clone().unwrap();
    for depth in 0..3000 {
        let next = at.make_dir("d", 0o700).unwrap();
        if depth % 100 == 0 {
            next.create_new("file", 0o600).unwrap();
            rustix_symlink(&parent.path().join("beside"), &next);
        }
        at = next;
    }
    for wide in 0..200 {
        top.make_dir(format!("w{wide}"), 0o700).unwrap().make_dir("in", 0o700).unwrap();
    }
    top.remove_contents().unwrap();
    assert_eq!(fs::read_dir(parent.path().join("top")).unwrap().count(), 0);
    assert!(parent.path().join("outside").exists() && parent.path().join("beside/file").exists());
}

/// Folders of another account are left, wherever they lie; all else goes.
#[test]
fn root_only_what_is_an_accounts_is_removed_of_it() {
    if !root_or_say("root_only_what_is_an_accounts_is_removed_of_it") {
        return;
    }
    for strangers in [true, false] {
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join("top");
        fs::create_dir_all(top.join("a/b/c/d")).unwrap();
        fs::write(top.join("a/b/c/file"), "x").unwrap();
        fs::write(top.join("file"), "x").unwrap();
        fs::write(top.join("a/of root"), "x").unwrap();
        symlink("/etc/passwd", top.join("a/link")).unwrap();
        if strangers {
            fs::create_dir(top.join("a/b/theirs")).unwrap();
            fs::write(top.join("a/b/theirs/file"), "x").unwrap();
        }
        for path in ["", "a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/file", "file", "a/link"] {
            std::os::unix::fs::lchown(top.join(path), Some(65_534), Some(65_534)).unwrap();
        }
        fs::set_permissions(top.join("a/b"), fs::Permissions::from_mode(0o777)).unwrap();
        let removed = Dir::open(&top).unwrap().remove_contents_of(&[65_534]);
        let left: Vec<_> = fs::read_dir(&top).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!((removed.is_err(), left.len()), (strangers, usize::from(strangers)), "{left:?}");
        for folder in left {
            assert!(folder.join("theirs/file").exists() && fs::read_dir(&folder).unwrap().count() == 1);
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}

fn rustix_symlink(target: &Path, folder: &Dir) {
    rustix::fs::symlinkat(target, folder, "link").unwrap();
}

#[test]
fn nothing_but_regular_files_is_opened_and_nothing_waits() {
    let parent = tempfile::tempdir().unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    let status = std::process::Command::new("mkfifo").arg(parent.path().join("fifo")).status().unwrap();
    assert!(status.success());
    fs::write(parent.path().join("file"), "0123456789").unwrap();
    symlink("file", parent.path().join("link")).unwrap();
    fs::create_dir(parent.path().join("folder")).unwrap();
    for access in [Access::Read, Access::ReadWrite, Access::Append] {
        for name in ["fifo", "link", "folder", "../x", "missing"] {
            assert!(dir.open_file(name, access).is_err(), "{name} {access:?}");
        }
        assert!(dir.open_file("file", access).is_ok(), "{access:?}");
    }
    assert!(dir.open_or_create("fifo", Access::ReadWrite, 0o600).is_err());
    assert_eq!(dir.read("file", 10).unwrap(), b"0123456789");
    assert!(dir.read("file", 9).is_err());
    fs::set_permissions(parent.path().join("file"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(dir.open_trusted_file("file", Access::Read).is_err());
}

#[test]
fn a_name_that_comes_and_goes_is_no_only_name() {
    let ours = tempfile::tempdir().unwrap();
    let theirs = ours.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let (precious, name) = (ours.path().join("precious"), theirs.join("name"));
    fs::write(&precious, "mine").unwrap();
    // Where others may write, if they could come here: in a folder of one's own there is nobody to be afraid of.
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
    let dir = Dir::open(&theirs).unwrap();
    fs::write(&name, "theirs").unwrap();
    assert!(dir.open_sole_file("name", Access::ReadWrite).is_ok());
    fs::remove_file(&name).unwrap();
    let done = AtomicBool::new(false);
    let mut opened = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::hard_link(&precious, &name).unwrap();
                fs::remove_file(&name).unwrap();
            }
        });
        for _ in 0..100_000 {
            opened += u32::from(dir.open_sole_file("name", Access::ReadWrite).is_ok());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(opened, 0, "somebody else's file was taken for one without another name");
}

#[test]
fn a_tree_is_measured_without_its_links_and_not_for_ever() {
    let parent = tempfile::tempdir().unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    fs::create_dir_all(parent.path().join("a/b")).unwrap();
    fs::write(parent.path().join("one"), [0; 10]).unwrap();
    fs::write(parent.path().join("a/b/two"), [0; 300]).unwrap();
    symlink("/", parent.path().join("a/out")).unwrap();
    symlink("..", parent.path().join("a/b/up")).unwrap();
    symlink("one", parent.path().join("link")).unwrap();
    assert_eq!(dir.bytes(3).unwrap(), 310);
    assert!(dir.bytes(2).unwrap_err().to_string().contains("too deep"));
    // Deeper than a path can say.
    let mut deep = dir.subdir("a/b").unwrap();
    for _ in 0..3000 {
        deep = deep.make_dir("deep", 0o700).unwrap();
    }
    assert!(dir.bytes(32).is_err());
    dir.remove_contents().unwrap();
}

/// Each makes the same folder for what it puts there, and none takes another's work for a stranger's.
#[test]
fn threads_may_make_one_folder_at_the_same_time() {
    let root = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let below = root.path().join(format!("{round}/same"));
        std::thread::scope(|scope| {
            for nth in 0..8 {
                let path = below.join(nth.to_string());
                scope.spawn(move || Dir::open_or_make(&path, 0o700, |_, _| {}).unwrap());
            }
        });
    }
}

/// It may be a file system of another account's program, which need not answer.
#[test]
fn root_what_is_mounted_at_a_name_of_weir_s_is_not_opened() {
    if !root_or_say("root_what_is_mounted_at_a_name_of_weir_s_is_not_opened") {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    left(parent.path(), NAME, None);
    let folder = parent.path().join(NAME);
    let mut mount = std::process::Command::new("mount");
    assert!(mount.args(["-t", "tmpfs", "-o", "mode=700", "weir"]).arg(&folder).status().unwrap().success());
    fs::write(folder.join(MARKER), CONTENT).unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    let proven = Private::prove(&dir, NAME.as_ref(), "bench").map(|mut proven| proven.keep());
    let removed = Private::remove_abandoned(&dir, "bench");
    assert!(std::process::Command::new("umount").arg(&folder).status().unwrap().success());
    assert_eq!(proven.map_err(|error| error.kind()), Err(std::io::ErrorKind::CrossesDevices));
    assert!(removed.is_empty(), "{removed:?}");
}

/// Mounts what nobody serves for all accounts, as one of another account, and holds it until it is told to end.
const UNSERVED: &str = r"
import os,ctypes,sys
fd=os.open('/dev/fuse',os.O_RDWR)
options=b'fd=%d,rootmode=40000,user_id=1234,group_id=1234,allow_other'%fd
assert ctypes.CDLL(None).mount(b'unserved',sys.argv[1].encode(),b'fuse',0,options)==0
print(flush=True);sys.stdin.read()";

/// Its owner detaches it once weir has it open: then it is in no table of mounts.
#[test]
fn root_a_detached_mount_of_another_s_program_is_neither_believed_nor_waited_for() {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use rustix::fs::{Mode, OFlags};

    if !root_or_say("root_a_detached_mount_of_another_s_program_is_neither_believed_nor_waited_for") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", UNSERVED]).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = python.spawn().unwrap();
    server.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let file = File::from(rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap());
    let attached = weir_fs::owned(&file).unwrap_err();
    assert!(Command::new("umount").arg("--lazy").arg(folder.path()).status().unwrap().success());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(weir_fs::owned(&file)));
    let detached = told.recv_timeout(Duration::from_secs(20));
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(attached.to_string().contains("1234"), "{attached}");
    let why = detached.expect("waits for who need not answer").unwrap_err();
    assert!(why.to_string().contains("serves its file system"), "{why}");
}
