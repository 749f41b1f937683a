//! Files that the user names for results.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::dir::{Dir, reopen};
use crate::owner::caller;
use crate::replace::Fresh;

/// Links followed on the way to an output, as many as the kernel follows.
const LINKS_MAX: usize = 40;
/// f_type of procfs, from linux/magic.h.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// What the user named for results: a file that is replaced when the new one is whole, or a pipe, terminal or the like
/// that is written to.
///
/// In a folder that another account controls, a link there, a file of another account, or one that has other names, is
/// refused: it would choose what root writes over.
#[derive(Debug)]
pub struct Output {
    into: Into,
}

#[derive(Debug)]
enum Into {
    Place(Fresh),
    Stream(File),
}

impl Output {
    /// Opens an output. A file that is there keeps its owner and permission bits; a new one gets `mode` less the umask's
    /// bits.
    ///
    /// # Errors
    /// `PermissionDenied` for a link or file of another account in a folder that another account controls, `TooManyLinks` for a
    /// file with other names there, `IsADirectory`, `InvalidInput` for a block device or a path without a file's name; those of open(2).
    pub fn create(path: &Path, mode: u32) -> io::Result<Output> {
        let into = match Found::at(path)? {
            Found::Nothing(dir, name) => Into::Place(dir.beside(name, mode)?),
            Found::File(dir, name, there) => {
                let data = there.metadata()?;
                let fresh = dir.beside(name, 0o600)?;
                if data.uid() != caller() {
                    fresh.chown(data.uid(), data.gid())?;
                }
                fresh.chmod(data.mode() & 0o777)?;
                Into::Place(fresh)
            }
            Found::Stream(file) => Into::Stream(file),
        };
        Ok(Output { into })
    }

    /// Opens an output under a name that nothing has yet, nor when it is committed.
    ///
    /// # Errors
    /// `AlreadyExists` for whatever has the name, a link too; `InvalidInput` for a path without a file's name; those of open(2).
    pub fn create_new(path: &Path, mode: u32) -> io::Result<Output> {
        let (dir, name) = folder_and_name(path)?;
        match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(Output { into: Into::Place(dir.beside(name, mode)?.as_new()) }),
            Err(error) => Err(error.into()),
            Ok(_) => Err(Errno::EXIST.into()),
        }
    }

    /// The open file, to write to.
    pub fn file(&self) -> &File {
        match &self.into {
            Into::Place(fresh) => fresh.file(),
            Into::Stream(file) => file,
        }
    }

    /// Makes what was written durable and puts it in its place.
    ///
    /// # Errors
    /// Those of fsync(2) and renameat(2). A file of that name is as it was then.
    pub fn commit(self) -> io::Result<()> {
        match self.into {
            Into::Place(fresh) => fresh.commit(),
            Into::Stream(mut file) => file.flush(),
        }
    }

    /// Puts the file in its place now, to be written there: for what is worth having though it be cut off, such as a
    /// recording.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn in_place(self) -> io::Result<File> {
        match self.into {
            Into::Place(fresh) => {
                let file = fresh.file().try_clone()?;
                fresh.commit_unsynced()?;
                Ok(file)
            }
            Into::Stream(file) => Ok(file),
        }
    }

    /// Opens a file to write at its end, such as a log; makes it where it is missing.
    ///
    /// # Errors
    /// As [`Output::create`].
    pub fn append(path: &Path, mode: u32) -> io::Result<File> {
        match Found::at(path)? {
            Found::Nothing(dir, name) => {
                let made = dir.create_new(name, mode)?;
                reopen(&made, OpenOptions::new().append(true))
            }
            Found::File(_, _, there) => reopen(&there, OpenOptions::new().append(true)),
            Found::Stream(file) => Ok(file),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// What there is under the path of an output.
enum Found {
    Nothing(Dir, OsString),
    /// A regular file, opened as a place only.
    File(Dir, OsString, File),
    /// Something that is written to as it is, open.
    Stream(File),
}

enum Step {
    Done(Found),
    Link(PathBuf),
}

impl Found {
    fn at(path: &Path) -> io::Result<Found> {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            match Found::step(&path)? {
                Step::Done(found) => return Ok(found),
                Step::Link(target) => path = target,
            }
        }
        Err(Errno::LOOP.into())
    }

    fn step(path: &Path) -> io::Result<Step> {
        let (dir, name) = folder_and_name(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let there = match rustix::fs::openat(&dir, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Step::Done(Found::Nothing(dir, name.to_os_string()))),
            result => File::from(result?),
        };
        let data = there.metadata()?;
        let kind = data.file_type();
        if let Err(why) = dir.check_trusted()
            && (kind.is_symlink() || data.uid() != caller())
        {
            let what = if kind.is_symlink() { "a link" } else { "a file of another account" };
            let why = format!("it is {what} in the folder {}: {why}", dir.path().display());
            return Err(refused(io::ErrorKind::PermissionDenied, path, &why));
        }
        if kind.is_symlink() {
            return follow(&dir, name);
        }
        if kind.is_file() {
            if dir.check_trusted().is_err() {
                dir.check_sole(name, &there)?;
            }
            return Ok(Step::Done(Found::File(dir, name.to_os_string(), there)));
        }
        if kind.is_dir() {
            return Err(Errno::ISDIR.into());
        }
        if kind.is_block_device() {
            return Err(refused(io::ErrorKind::InvalidInput, path, "it is a block device"));
        }
        Ok(Step::Done(Found::Stream(reopen(&there, OpenOptions::new().write(true))?)))
    }
}

/// The folder of an output, and its name there.
fn folder_and_name(path: &Path) -> io::Result<(Dir, &OsStr)> {
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    let name = name.ok_or_else(|| refused(io::ErrorKind::InvalidInput, path, "it names no file"))?;
    Ok((Dir::open(path.parent().unwrap_or(Path::new("")))?, name))
}

/// Where a link in a folder of root's or the caller's leads. What procfs shows of open files has no name that leads
/// there: it is opened itself, as `/dev/stdout` is meant.
fn follow(dir: &Dir, name: &OsStr) -> io::Result<Step> {
    if rustix::fs::fstatfs(dir)?.f_type as u64 == PROC_SUPER_MAGIC {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
        return Ok(Step::Done(Found::Stream(opened)));
    }
    let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
    Ok(Step::Link(dir.path().join(OsStr::from_bytes(target.to_bytes()))))
}

fn refused(kind: io::ErrorKind, path: &Path, why: &str) -> io::Error {
    io::Error::new(kind, format!("{} is not written to: {why}", path.display()))
}
