//! Outputs: whole or not there, and never through what another account put in their place.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod as_root;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use as_root::root_or_say;
use weir_fs::{Dir, Output};

/// The account of attackers: one that no process of the machine has, so that nobody but the test is in what is its.
const NOBODY: u32 = 2_013_000_007;

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut output = Output::create(path, 0o640)?;
    output.write_all(text.as_bytes())?;
    output.commit()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_is_replaced_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report");
    write(&path, "one").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    mode(&path, 0o600);
    let mut output = Output::create(&path, 0o640).unwrap();
    output.write_all(b"half").unwrap();
    drop(output);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    write(&path, "two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    // A link in a folder of ours is the user's wish.
    symlink("report", dir.path().join("link")).unwrap();
    write(&dir.path().join("link"), "three").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    assert!(fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "a temporary file was left");
    for bad in ["", "/", "..", "/dev/"] {
        assert!(Output::create(&dir.path().join(bad), 0o600).is_err(), "{bad}");
    }
    write(Path::new("/dev/null"), "x").unwrap();
    // Logs and recordings.
    let log = dir.path().join("log");
    for line in ["a", "b"] {
        Output::append(&log, 0o600).unwrap().write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "ab");
    let mut file = Output::create(&log, 0o600).unwrap().in_place().unwrap();
    assert_eq!(fs::read_to_string(&log).unwrap(), "");
    file.write_all(b"cut off").unwrap();
    assert_eq!(fs::read_to_string(&log).unwrap(), "cut off");
}

#[test]
fn a_new_file_is_there_when_it_is_whole_and_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let names = || fs::read_dir(dir.path()).unwrap().count();
    drop(Output::create_new(&path, 0o600).unwrap());
    assert_eq!(names(), 0, "dropped on failure");
    let mut output = Output::create_new(&path, 0o600).unwrap();
    output.write_all(b"whole").unwrap();
    assert!(!path.exists());
    output.commit().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    // Somebody else's of the same name, made in the meantime.
    let late = dir.path().join("late");
    let mut output = Output::create_new(&late, 0o600).unwrap();
    output.write_all(b"second").unwrap();
    fs::write(&late, "first").unwrap();
    assert_eq!(output.commit().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&late).unwrap(), "first");
    fs::remove_file(&late).unwrap();
    symlink("nothing", dir.path().join("link")).unwrap();
    for there in ["trace", "link"] {
        let error = Output::create_new(&dir.path().join(there), 0o600).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{there}");
    }
    assert!(Output::create_new(&dir.path().join("x/"), 0o600).is_err());
    assert!(Output::create_new(&dir.path().join("no/x"), 0o600).is_err());
    assert_eq!(names(), 2);
}

#[test]
fn what_lies_in_a_folder_of_others_is_not_followed() {
    let victim = tempfile::tempdir().unwrap();
    let target = victim.path().join("precious");
    fs::write(&target, "mine").unwrap();
    // In a closed folder: this is about what may have happened, and nobody is to make it happen.
    let closed = tempfile::tempdir().unwrap();
    let shared = closed.path().join("shared");
    fs::create_dir(&shared).unwrap();
    mode(&shared, 0o1777);
    let link = shared.join("out");
    symlink(&target, &link).unwrap();
    let why = write(&link, "x").unwrap_err();
    assert!(why.to_string().contains("a link in the folder"), "{why}");
    assert!(Output::append(&link, 0o600).is_err());
    fs::remove_file(&link).unwrap();
    fs::write(&link, "own").unwrap();
    write(&link, "new").unwrap();
    assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
}

#[test]
fn what_others_may_have_linked_is_not_appended_to() {
    let closed = tempfile::tempdir().unwrap();
    let victim = closed.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let target = victim.join("precious");
    fs::write(&target, "mine").unwrap();
    let log = victim.join("log");
    fs::hard_link(&target, &log).unwrap();
    mode(&victim, 0o1777);
    let why = Output::append(&log, 0o600).unwrap_err();
    assert!(why.to_string().contains("2 names"), "{why}");
    // In a folder of the caller's alone it is the user's wish.
    mode(&victim, 0o700);
    Output::append(&log, 0o600).unwrap().write_all(b" too").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine too");
}

#[test]
fn root_does_not_write_over_files_of_others_in_their_folders() {
    if !root_or_say("root_does_not_write_over_files_of_others_in_their_folders") {
        return;
    }
    let theirs = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(theirs.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let path = theirs.path().join("out");
    fs::write(&path, "theirs").unwrap();
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    let why = write(&path, "x").unwrap_err();
    assert!(why.to_string().contains("a file of another account"), "{why}");
    // A name that is free is taken, and a file of root's own is replaced.
    write(&theirs.path().join("free"), "1").unwrap();
    write(&theirs.path().join("free"), "2").unwrap();
    // In a folder of root's, a file keeps its owner.
    let ours = tempfile::tempdir().unwrap();
    let given = ours.path().join("given");
    fs::write(&given, "old").unwrap();
    std::os::unix::fs::chown(&given, Some(NOBODY), Some(NOBODY)).unwrap();
    write(&given, "new").unwrap();
    assert_eq!((fs::metadata(&given).unwrap().uid(), fs::read(&given).unwrap()), (NOBODY, b"new".to_vec()));
}

#[test]
fn root_does_not_remove_what_is_mounted() {
    if !root_or_say("root_does_not_remove_what_is_mounted") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("top/in"), dir.path().join("outside"));
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "x").unwrap();
    let run = |words: &[&std::ffi::OsStr]| std::process::Command::new(words[0]).args(&words[1..]).status();
    let bound = run(&["mount".as_ref(), "--bind".as_ref(), outside.as_ref(), inside.as_ref()]);
    assert!(bound.unwrap().success());
    let removed = Dir::open(&dir.path().join("top")).unwrap().remove_contents();
    assert!(run(&["umount".as_ref(), inside.as_ref()]).unwrap().success());
    assert!(removed.is_err());
    assert!(outside.join("precious").exists());
}

#[test]
fn leftovers_of_dead_writers_go() {
    let parent = tempfile::tempdir().unwrap();
    let dir = Dir::open(parent.path()).unwrap();
    let random = "0123456789abcdef0123456789abcdef";
    fs::write(parent.path().join(format!(".a.json.4194305.{random}.tmp")), "half").unwrap();
    let alive = format!(".a.json.{}.{random}.tmp", std::process::id());
    fs::write(parent.path().join(&alive), "half").unwrap();
    symlink("/etc/hostname", parent.path().join(format!(".b.json.4194305.{random}.tmp"))).unwrap();
    dir.remove_leftovers();
    let mut left: Vec<String> = dir.names().unwrap().map(|n| n.unwrap().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [alive.clone(), format!(".b.json.4194305.{random}.tmp")]);
    dir.remove_all_leftovers();
    assert!(!parent.path().join(&alive).exists(), "nobody else writes there");
    dir.replace("c", 0o600, b"whole").unwrap();
    assert_eq!(fs::read(parent.path().join("c")).unwrap(), b"whole");
}
