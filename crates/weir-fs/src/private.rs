//! Folders of weir's own in folders of anybody, and the proof that a folder is one.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dir::{Access, Dir, lock};
use crate::owner::caller;
use crate::remove::Kept;

/// The file in a private folder that says whose it is. The maker holds a lock on it while it lives.
const MARKER: &str = ".weir";
/// All of its content.
const CONTENT: &[u8] = b"weir made this folder, and removes it with all that is in it.\n";
/// A folder younger than this may be one that is being made.
const SETTLING: Duration = Duration::from_secs(60);
/// Hex digits at the end of the name.
const RANDOM_DIGITS: usize = 32;

/// A folder that only this account may enter, under a name that nobody can guess. Dropping it removes it with
/// everything in it; after a kill, the next [`Private::make`] of its kind there does.
#[derive(Debug)]
pub struct Private {
    parent: Dir,
    dir: Dir,
    name: OsString,
    lock: File,
    kept: bool,
}

/// A folder that nobody uses any more, called as weir calls its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is gone now. One that stays belongs to the caller, but is not proven to be weir's.
    pub removed: bool,
}

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if self.removed {
            return write!(f, "removed {path}, left by a killed run");
        }
        write!(
            f,
            "{path} is called like a folder of weir's, but no marker proves it: remove it if nobody needs it"
        )
    }
}

impl Private {
    /// Makes `.weir-{kind}-{random}` in `parent` (mode 0700) with its marker. Those of this kind that a kill has left there
    /// are removed first.
    ///
    /// # Errors
    /// Those of mkdirat(2) and of writing the marker; `PermissionDenied` when another account interferes.
    pub fn make(parent: &Dir, kind: &str) -> io::Result<Private> {
        Private::remove_abandoned(parent, kind);
        let name = OsString::from(format!("{}{}", prefix(kind), crate::unguessable()?));
        let parent = parent.try_clone()?;
        let dir = parent.make_dir(&name, 0o700)?;
        let marked = mark(&dir);
        let lock = marked.inspect_err(|_| {
            let _ = dir.remove_file(MARKER);
            let _ = parent.remove_dir(&name);
        })?;
        Ok(Private { parent, dir, name, lock, kept: false })
    }

    /// The folder.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path, for messages and for programs that want paths. Nobody can change what the last part leads to but the
    /// owner of the folder it lies in.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The open marker, whose lock tells that the folder is in use; for a process that takes over from this one.
    pub fn lock(&self) -> &File {
        &self.lock
    }

    /// Leaves the folder where it is when this value goes.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Removes the folder now.
    ///
    /// # Errors
    /// What could not be removed; it stays, proven, for [`Private::remove_abandoned`].
    pub fn remove(mut self) -> io::Result<()> {
        self.kept = true;
        remove(&self.parent, &self.dir, &self.name)
    }

    /// Removes the folders of this kind in `parent` whose makers live no more. A folder of the caller's that is not proven
    /// to be weir's stays, see [`Private::prove`], and is among the answers.
    pub fn remove_abandoned(parent: &Dir, kind: &str) -> Vec<Abandoned> {
        let Ok(names) = parent.names() else { return Vec::new() };
        let alike = names.flatten().filter(|name| is_name(name, kind));
        let abandoned = alike.filter_map(|name| {
            let done = match Private::prove(parent, &name, kind) {
                Ok(mut proven) => {
                    proven.kept = true;
                    remove(parent, &proven.dir, &name)
                }
                Err(_) => remove_unmarked(parent, &name),
            };
            let unproven = |error: &io::Error| {
                matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::DirectoryNotEmpty)
            };
            let is_told = done.as_ref().err().is_none_or(unproven);
            is_told.then(|| Abandoned { path: parent.path().join(name), removed: done.is_ok() })
        });
        abandoned.collect()
    }

    /// Takes over a folder that is proven to be weir's and in nobody's use: its name has the pattern of this kind, and
    /// folder and marker, both as opened, belong to the caller, cannot be written by others, and the marker holds
    /// exactly what weir writes.
    ///
    /// # Errors
    /// `WouldBlock` when its maker lives; `InvalidData` or `PermissionDenied` when it is not proven.
    pub fn prove(parent: &Dir, name: &OsStr, kind: &str) -> io::Result<Private> {
        if !is_name(name, kind) {
            return Err(unproven("its name is another"));
        }
        let dir = parent.subdir_here(name)?;
        let data = dir.metadata()?;
        if data.uid() != caller() || data.mode() & 0o022 != 0 {
            return Err(unproven("another account can change it"));
        }
        let mut marker = dir.open_file(MARKER, Access::ReadWrite)?;
        let data = marker.metadata()?;
        if data.uid() != caller() || data.mode() & 0o022 != 0 || data.nlink() != 1 {
            return Err(unproven("another account can change its marker"));
        }
        lock(&marker)?;
        let mut found = Vec::new();
        (&mut marker).take(CONTENT.len() as u64 + 1).read_to_end(&mut found)?;
        if found != CONTENT {
            return Err(unproven("its marker says something else"));
        }
        Ok(Private { parent: parent.try_clone()?, dir, name: name.to_os_string(), lock: marker, kept: false })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Err(error) = remove(&self.parent, &self.dir, &self.name) {
            // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
            let line = format!("weir: could not remove {}: {error}\n", self.path().display());
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }
}

fn prefix(kind: &str) -> String {
    format!(".weir-{kind}-")
}

fn is_name(name: &OsStr, kind: &str) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(&prefix(kind)));
    let digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    digits.is_some_and(|digits| digits.len() == RANDOM_DIGITS && digits.chars().all(digit))
}

/// Locks the marker before it says anything, so that nobody takes the folder for an abandoned one. It is on the disk before
/// anything else is in the folder: after a failure of the power it still proves whose that is.
fn mark(dir: &Dir) -> io::Result<File> {
    let mut marker = dir.create_new(MARKER, 0o600)?;
    lock(&marker)?;
    marker.write_all(CONTENT)?;
    // A file system that syncs nothing, or fails to, is no reason to do without the folder.
    let _ = marker.sync_all().and_then(|()| dir.sync());
    Ok(marker)
}

/// Everything but the marker first: a removal that a kill interrupts is still proven to be ours.
fn remove(parent: &Dir, dir: &Dir, name: &OsStr) -> io::Result<()> {
    crate::remove::contents(dir, Kept { name: Some(OsStr::new(MARKER)), unless_of: None })?;
    dir.remove_file(MARKER)?;
    // An account that may rename in the parent can have put an empty folder there; no more than that can be lost.
    parent.remove_dir(name)
}

/// A kill between making a folder and marking it leaves it empty, or with an empty marker. Nothing else is removed.
fn remove_unmarked(parent: &Dir, name: &OsStr) -> io::Result<()> {
    let dir = parent.subdir_here(name)?;
    let data = dir.metadata()?;
    let settled = data.modified()?.elapsed().is_ok_and(|age| age > SETTLING);
    if data.uid() != caller() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if !settled {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    if data.mode() & 0o022 != 0 {
        return Err(unproven("another account can change it"));
    }
    if let Ok(marker) = dir.open_file(MARKER, Access::ReadWrite) {
        lock(&marker)?;
        let data = marker.metadata()?;
        let only = dir.names()?.flatten().all(|name| name == MARKER);
        if data.uid() != caller() || data.len() != 0 || !only {
            return Err(unproven("its marker says something else"));
        }
        dir.remove_file(MARKER)?;
    }
    parent.remove_dir(name)
}

fn unproven(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not proven to be a folder of weir's: {why}"))
}
