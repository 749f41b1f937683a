//! A tree: a folder that holds what a small system has under `/`, out of which a server is started without installing it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use super::SandboxError;

/// A tree, or this machine's `/`. Links in it are followed as if it were `/`.
#[derive(Debug)]
pub(super) struct Tree {
    path: PathBuf,
    fd: OwnedFd,
}

impl Tree {
    /// Opens one.
    ///
    /// # Errors
    /// Where there is none.
    pub fn open(path: &Path) -> Result<Tree, SandboxError> {
        let tree = Tree::at(path).map_err(SandboxError::io("open the tree", path))?;
        let lacking = ["usr", "etc"].into_iter().find(|name| !tree.is_folder(Path::new(name)));
        match lacking {
            Some(name) => Err(SandboxError::NoTree { path: path.to_path_buf(), lacking: name }),
            None => Ok(tree),
        }
    }

    /// This machine's.
    pub fn of_machine() -> Result<Tree, SandboxError> {
        let root = Path::new("/");
        Tree::at(root).map_err(SandboxError::io("open", root))
    }

    fn at(path: &Path) -> io::Result<Tree> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        // Its path without links.
        let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        Ok(Tree { path, fd })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is the machine itself.
    pub fn is_machine(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Opens what lies at a path in it, for looking only.
    fn look(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve)?)
    }

    fn mode(&self, path: &Path) -> Option<(FileType, u32)> {
        let found = rustix::fs::fstat(self.look(path).ok()?).ok()?;
        Some((FileType::from_raw_mode(found.st_mode), found.st_mode))
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.mode(path).is_some_and(|(kind, _)| kind == FileType::Directory)
    }

    /// Whether a file lies there.
    pub fn is_file(&self, path: &Path) -> bool {
        self.mode(path).is_some_and(|(kind, _)| kind == FileType::RegularFile)
    }

    /// Whether a program lies there.
    pub fn is_program(&self, path: &Path) -> bool {
        self.mode(path).is_some_and(|(kind, mode)| kind == FileType::RegularFile && mode & 0o111 != 0)
    }

    /// A path in it with its links followed.
    pub fn real(&self, path: &Path) -> Option<PathBuf> {
        let fd = self.look(path).ok()?;
        let outside = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
        Some(Path::new("/").join(outside.strip_prefix(&self.path).ok()?))
    }

    /// Names in a folder of it; none where there is no such folder.
    pub fn names(&self, folder: &Path) -> Vec<OsString> {
        let read = || -> io::Result<Vec<OsString>> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let fd = rustix::fs::openat2(&self.fd, folder, flags, Mode::empty(), resolve)?;
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&fd)? {
                let name = entry?.file_name().to_bytes().to_vec();
                if name != b"." && name != b".." {
                    names.push(OsString::from_vec(name));
                }
            }
            Ok(names)
        };
        read().unwrap_or_default()
    }

    /// Names in it.
    pub fn entries(&self) -> io::Result<Vec<OsString>> {
        let mut names = self.names(Path::new("/"));
        names.sort();
        if names.is_empty() { Err(io::Error::other("it is empty")) } else { Ok(names) }
    }

    /// What one of its entries is, and itself.
    pub fn entry(&self, name: &OsString) -> io::Result<(FileType, OwnedFd)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&fd)?;
        Ok((FileType::from_raw_mode(found.st_mode), fd))
    }
}
