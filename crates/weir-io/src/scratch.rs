//! Folders that weir makes for its own files and removes again, whatever happens.
//!
//! A folder holds a file `lock` with an exclusive flock. The kernel lets go of the lock when the process dies, so
//! the next run can tell a folder in use from one that a killed run left behind, and removes the latter.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::IoError;
use crate::error::Fault;

const PREFIX: &str = ".weir-";
const LOCK: &str = "lock";
/// A folder younger than this may be one whose owner has not taken its lock yet.
const SETTLING: Duration = Duration::from_secs(60);

/// A folder of our own; dropping it removes it with everything in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes `.weir-{kind}-{random}` in `parent`, for this user only.
    pub fn create(parent: &Path, kind: &str) -> Result<Scratch, IoError> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unique = format!("{:x}{:x}", std::process::id(), since_epoch.as_nanos() & 0xffff_ffff);
        let path = parent.join(format!("{PREFIX}{kind}-{unique}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(|e| cannot_create(&path, e))?;
        let lock =
            File::create(path.join(LOCK)).and_then(|file| lock(&file).map(|()| file)).map_err(|e| {
                let _ = fs::remove_dir_all(&path);
                cannot_create(&path, e)
            })?;
        Ok(Scratch { path, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
            let line = format!("weir: could not remove {}: {error}\n", self.path.display());
            let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
        }
    }
}

fn cannot_create(path: &Path, error: io::Error) -> IoError {
    let hint = match error.raw_os_error() {
        Some(libc::EROFS) => "the file system is mounted read-only: choose a folder elsewhere",
        Some(libc::ENOSPC | libc::EDQUOT) => "the file system is full",
        Some(libc::ENOENT | libc::ENOTDIR) => "the folder does not exist",
        Some(libc::EACCES | libc::EPERM) => "this user may not write there: choose another folder or user",
        _ => "weir needs a folder it may write to",
    };
    IoError { fault: Fault::Environment, ..IoError::io("cannot create", path, error) }.hint(hint)
}

/// Takes the lock without waiting.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: flock takes a descriptor and a number.
    let status = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Removes the folders in `parent` whose owners were killed, and returns their paths.
pub fn remove_abandoned(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let ours = entries.flatten().filter(|entry| {
        entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type().is_ok_and(|t| t.is_dir())
    });
    ours.map(|entry| entry.path())
        .filter(|path| is_abandoned(path) && fs::remove_dir_all(path).is_ok())
        .collect()
}

fn is_abandoned(path: &Path) -> bool {
    match File::open(path.join(LOCK)) {
        Ok(file) => lock(&file).is_ok(),
        // Killed before it had its lock, or being made at this very moment.
        Err(_) => fs::metadata(path)
            .and_then(|m| m.modified())
            .is_ok_and(|t| t.elapsed().is_ok_and(|age| age > SETTLING)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_use_stays_and_an_abandoned_one_goes() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path(), "bench").unwrap();
        fs::write(scratch.path().join("data"), "x").unwrap();
        assert!(remove_abandoned(parent.path()).is_empty());
        assert!(scratch.path().join("data").exists());

        let left = parent.path().join(".weir-bench-dead");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        assert_eq!(remove_abandoned(parent.path()), vec![left.clone()]);
        assert!(!left.exists());

        let path = scratch.path().to_path_buf();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn errors_name_the_path_and_help() {
        let error = Scratch::create(Path::new("/nonexistent/folder"), "bench").unwrap_err();
        assert_eq!(error.fault, Fault::Environment);
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("the folder does not exist"));
    }
}
