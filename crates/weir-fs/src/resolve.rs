//! From a folder's descriptor to what lies below it, never out of it and never through a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Set once this kernel, or the filter of system calls around this process, has refused openat2.
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

/// Opens what lies under `path` below `folder`. `path` is relative and has neither `..` nor links in it.
pub fn open_below(folder: &File, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    open(folder, path, flags, mode, ResolveFlags::empty())
}

/// The same for one name, and not across a mount.
pub fn open_same_mount(folder: &File, name: &OsStr, flags: OFlags) -> io::Result<File> {
    open(folder, Path::new(name), flags, Mode::empty(), ResolveFlags::NO_XDEV)
}

fn open(folder: &File, path: &Path, flags: OFlags, mode: Mode, more: ResolveFlags) -> io::Result<File> {
    check(path)?;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if !WITHOUT_OPENAT2.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | more;
        match rustix::fs::openat2(folder, path, flags, mode, resolve) {
            Err(Errno::NOSYS) => WITHOUT_OPENAT2.store(true, Ordering::Relaxed),
            // A container's filter may say this of the call, and a file system of the file: the other way tells.
            Err(Errno::PERM) => {}
            result => return Ok(File::from(result?)),
        }
    }
    step_by_step(folder, path, flags, mode, more.contains(ResolveFlags::NO_XDEV))
}

/// Opens each folder of the path from the one before it.
fn step_by_step(folder: &File, path: &Path, flags: OFlags, mode: Mode, same_mount: bool) -> io::Result<File> {
    let mut parts: Vec<&OsStr> = path.components().map(|part| part.as_os_str()).collect();
    let last = parts.pop().ok_or(Errno::NOENT)?;
    let mut above = None;
    for part in parts {
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = above.as_ref().unwrap_or(folder);
        above = Some(File::from(rustix::fs::openat(from, part, through, Mode::empty())?));
    }
    let from = above.as_ref().unwrap_or(folder);
    let is_here = |there: &File| Ok::<_, io::Error>(!same_mount || mount_of(there)? == mount_of(folder)?);
    // To open what is mounted may take as long as its owner likes; to find it does not.
    let place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if same_mount && !is_here(&File::from(rustix::fs::openat(from, last, place, Mode::empty())?))? {
        return Err(Errno::XDEV.into());
    }
    let opened = File::from(rustix::fs::openat(from, last, flags, mode)?);
    if is_here(&opened)? { Ok(opened) } else { Err(Errno::XDEV.into()) }
}

/// Device and, where the kernel tells it (5.8), the mount.
fn mount_of(file: &File) -> io::Result<(u32, u32, u64)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let flags = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let answer = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, flags)?;
    let known = answer.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Ok((answer.stx_dev_major, answer.stx_dev_minor, if known { answer.stx_mnt_id } else { 0 }))
}

/// A relative path of plain names.
fn check(path: &Path) -> io::Result<()> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !path.as_os_str().is_empty() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{} does not lie below a folder", path.display()),
    ))
}

/// One plain name.
pub fn check_name(name: &OsStr) -> io::Result<()> {
    check(Path::new(name))?;
    if name.as_encoded_bytes().contains(&b'/') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not one name", name.display()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_ways_stay_below_and_follow_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(inside.join("a/b/file"), "x").unwrap();
        fs::write(dir.path().join("outside"), "secret").unwrap();
        symlink(dir.path(), inside.join("out")).unwrap();
        symlink("a", inside.join("link")).unwrap();
        symlink("file", inside.join("a/b/last")).unwrap();
        let folder = File::open(&inside).unwrap();
        let flags = OFlags::RDONLY;
        for (path, good) in [
            ("a/b/file", true),
            ("a", true),
            ("out/outside", false),
            ("link/b/file", false),
            ("a/b/last", false),
            ("a/../a", false),
            ("../outside", false),
            ("/etc/hostname", false),
            ("", false),
            ("missing", false),
        ] {
            let fast = open_below(&folder, Path::new(path), flags, Mode::empty());
            assert_eq!(fast.is_ok(), good, "{path}: {fast:?}");
            let slow = check(Path::new(path)).and_then(|()| {
                step_by_step(&folder, Path::new(path), flags | OFlags::NOFOLLOW, Mode::empty(), true)
            });
            assert_eq!(slow.is_ok(), good, "{path}, step by step: {slow:?}");
        }
        let root = File::open("/").unwrap();
        assert!(open_same_mount(&root, OsStr::new("proc"), flags).is_err());
        assert!(step_by_step(&root, Path::new("proc"), flags, Mode::empty(), true).is_err());
    }
}
