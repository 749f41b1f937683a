//! Removal of a whole tree by descriptors.

use std::ffi::OsStr;
use std::io;

use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::resolve::open_same_mount;

/// A tree is so many folders deep at most, unless somebody keeps adding to it.
const PASSES_MAX: u32 = 1 << 16;

/// Removes everything in `top`. Folders in its folders are moved up into it instead of being descended into, so that
/// neither the stack nor the count of descriptors depends on the depth, which somebody else may have chosen.
pub fn contents(top: &Dir) -> io::Result<()> {
    contents_but(top, OsStr::new(""))
}

/// The same but for one name in `top`.
pub fn contents_but(top: &Dir, kept: &OsStr) -> io::Result<()> {
    for _ in 0..PASSES_MAX {
        let mut found = false;
        for name in top.names()? {
            let name = name?;
            if name == kept {
                continue;
            }
            found = true;
            if !gone(top, &name)? {
                raise_folders_of(top, &name)?;
            }
        }
        if !found {
            return Ok(());
        }
    }
    Err(io::Error::other(format!("{} is being filled while it is removed", top.path().display())))
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

/// Empties a folder in `top`, moving the folders in it up.
fn raise_folders_of(top: &Dir, name: &OsStr) -> io::Result<()> {
    let opened = open_same_mount(top.file(), name, OFlags::RDONLY | OFlags::DIRECTORY);
    let opened = opened.map_err(|error| named(top, name, error))?;
    let folder = Dir::from_parts(opened, top.path().join(name));
    for inner in folder.names()? {
        let inner = inner?;
        if !gone(&folder, &inner)? {
            let raised = format!("removed-{}", crate::unguessable()?);
            rustix::fs::renameat(&folder, &inner, top, raised)
                .map_err(|error| named(&folder, &inner, error.into()))?;
        }
    }
    Ok(())
}

fn named(folder: &Dir, name: &OsStr, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.path().join(name).display()))
}
