//! A folder taken for `/`, such as an image of a system.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::dir::Dir;

/// Folders and their names below a folder that is taken for `/`: links in it, absolute ones and `..` too, lead where they
/// lead with it as root, so never out of it.
#[derive(Debug)]
pub struct Root {
    top: File,
    path: PathBuf,
}

impl Root {
    /// Opens the folder that the user named, or this machine's root.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(folder: Option<&Path>) -> io::Result<Root> {
        let path = folder.unwrap_or(Path::new("/")).to_path_buf();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        Ok(Root { top, path })
    }

    /// A path below it as it is named here, for messages.
    pub fn under(&self, path: &Path) -> PathBuf {
        self.path.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a folder below it.
    ///
    /// # Errors
    /// Those of openat2(2): `Unsupported` too where the kernel, or a filter of system calls, has no such call.
    pub fn folder(&self, path: &Path) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..16 {
            match rustix::fs::openat2(&self.top, path, flags, Mode::empty(), resolve) {
                // Something was renamed meanwhile, and `..` may have led out.
                Err(Errno::AGAIN) => {}
                // Nothing leads out of the machine's own root.
                Err(Errno::NOSYS | Errno::PERM) if self.path == Path::new("/") => return Dir::open(path),
                opened => return Ok(Dir::from_parts(File::from(opened?), self.under(path))),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The same, and makes it and the folders above it where they are missing (0777 less the umask's bits). `made` is told
    /// of each, from above.
    ///
    /// # Errors
    /// Also those of mkdirat(2).
    pub fn folder_or_make(&self, path: &Path, made: &mut dyn FnMut(&Path)) -> io::Result<Dir> {
        match (self.folder(path), path.parent(), path.file_name()) {
            (Err(error), Some(above), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let above = self.folder_or_make(above, made)?;
                let new = above.make_dir_as_umask_says(name, 0o777)?;
                made(path);
                Ok(new)
            }
            (opened, _, _) => opened,
        }
    }
}
