//! Removal of a whole tree by descriptors.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::resolve::open_same_mount;

/// A tree is so many folders deep at most, unless somebody keeps adding to it.
const PASSES_MAX: u32 = 1 << 16;
/// Mode of a folder into which nobody but its owner and root can put anything while it is removed.
const CLOSED: u32 = 0o700;

/// What stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kept<'a> {
    /// One name in the top folder.
    pub name: Option<&'a OsStr>,
    /// Folders, with what is in them, that are none of these accounts'. An account that moved another's file here could have removed it,
    /// but not what lies in another's folder.
    pub unless_of: Option<&'a [u32]>,
}

impl Dir {
    /// Removes everything in it: without following a link, leaving the folder or crossing a mount. The caller has
    /// proven that all of it may go.
    ///
    /// # Errors
    /// `EXDEV` and `EBUSY` where something is mounted in it; those of unlinkat(2). The files removed until then are gone.
    pub fn remove_contents(&self) -> io::Result<()> {
        contents(self, Kept::default())
    }

    /// The same in a folder that one of these accounts, or root, owns, but for folders of other accounts. It is closed to others first,
    /// and so is each folder in it: where they may write, they may have moved there what is not theirs to remove.
    ///
    /// # Errors
    /// Also where a folder of another account is left.
    pub fn remove_contents_of(&self, owners: &[u32]) -> io::Result<()> {
        contents(self, Kept { name: None, unless_of: Some(owners) })
    }
}

/// Removes everything in `top` but what is kept. Folders in its folders are moved up into it instead of being descended into,
/// so that neither the stack nor the count of descriptors depends on the depth, which somebody else may have chosen.
pub fn contents(top: &Dir, kept: Kept<'_>) -> io::Result<()> {
    if kept.unless_of.is_some() {
        top.chmod(CLOSED)?;
    }
    let mut left: BTreeSet<OsString> = kept.name.map(OsStr::to_os_string).into_iter().collect();
    let named_ones = left.len();
    for _ in 0..PASSES_MAX {
        let mut found = false;
        for name in top.names()? {
            let name = name?;
            if left.contains(&name) {
                continue;
            }
            found = true;
            // An emptied one goes with the next pass.
            if is_kept(top, &name, kept)? || (!gone(top, &name)? && !raise_folders_of(top, &name, kept)?) {
                left.insert(name);
            }
        }
        match (found, left.len() > named_ones) {
            (true, _) => {}
            (false, false) => return Ok(()),
            (false, true) => {
                let why = format!("{} holds folders of another account; they are left", top.path().display());
                return Err(io::Error::other(why));
            }
        }
    }
    Err(io::Error::other(format!("{} is being filled while it is removed", top.path().display())))
}

/// Whether a name is not to be removed for whose it is. Nobody can change it meanwhile: the folder is closed.
fn is_kept(folder: &Dir, name: &OsStr, kept: Kept<'_>) -> io::Result<bool> {
    let Some(owners) = kept.unless_of else { return Ok(false) };
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => {
            let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            Ok(is_folder && !owners.contains(&found.st_uid))
        }
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(named(folder, name, error.into())),
    }
}

/// Removes a file, link or empty folder; false for a folder with something in it.
fn gone(folder: &Dir, name: &OsStr) -> io::Result<bool> {
    let removed = match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(folder, name, AtFlags::REMOVEDIR),
        result => result,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(named(folder, name, error.into())),
    }
}

/// Empties a folder in `top`, moving the folders in it up; false where something in it is kept.
fn raise_folders_of(top: &Dir, name: &OsStr, kept: Kept<'_>) -> io::Result<bool> {
    let opened = open_same_mount(top.file(), name, OFlags::RDONLY | OFlags::DIRECTORY);
    let opened = opened.map_err(|error| named(top, name, error))?;
    let folder = Dir::from_parts(opened, top.path().join(name));
    if let Some(owners) = kept.unless_of {
        if !owners.contains(&folder.metadata()?.uid()) {
            return Ok(false);
        }
        folder.chmod(CLOSED)?;
    }
    let mut is_empty = true;
    for inner in folder.names()? {
        let inner = inner?;
        if is_kept(&folder, &inner, kept)? {
            is_empty = false;
        } else if !gone(&folder, &inner)? {
            let raised = format!("removed-{}", crate::unguessable()?);
            rustix::fs::renameat(&folder, &inner, top, raised)
                .map_err(|error| named(&folder, &inner, error.into()))?;
        }
    }
    Ok(is_empty)
}

fn named(folder: &Dir, name: &OsStr, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.path().join(name).display()))
}
