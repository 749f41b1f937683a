//! A file or device that a job runs on, held open from the moment it was found or made.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::IoError;
use crate::error::Fault;

/// A file or block device. It stays the same one whatever its name comes to mean: everything that a job opens later is
/// opened from here.
#[derive(Debug, Clone)]
pub struct Place {
    path: PathBuf,
    held: Arc<File>,
}

impl Place {
    /// What the user named: a regular file or a block device.
    ///
    /// # Errors
    /// When it is not there, or something else.
    pub fn named(path: &Path) -> Result<Place, IoError> {
        let held = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path);
        let held = held.map_err(|error| {
            IoError { fault: Fault::Environment, ..IoError::io("cannot open", path, error) }
                .hint("check the path; files that weir makes itself need --dir, not --file")
        })?;
        let kind = held.metadata().map_err(|error| IoError::io("cannot examine", path, error))?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(IoError::usage(format!("{} is neither a file nor a block device", path.display())));
        }
        Ok(Place::of(held, path))
    }

    /// A file that is open already.
    pub fn of(file: File, path: &Path) -> Place {
        Place { path: path.to_path_buf(), held: Arc::new(file) }
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor it is held by.
    pub fn held(&self) -> &File {
        &self.held
    }

    /// Opens it once more.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self, options: &OpenOptions) -> io::Result<File> {
        weir_fs::reopen(&*self.held, options)
    }
}

/// Sees to it that so many files can be open: each is held once, and opened once more by its job.
pub fn make_room_for(files: usize) {
    const OTHERS: u64 = 256;
    let wanted = 2 * files as u64 + OTHERS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit fills the struct it is given, setrlimit reads it; both change nothing else of this process.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
