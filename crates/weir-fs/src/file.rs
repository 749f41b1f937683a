//! Regular files by their paths.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::dir::reopen;
use crate::owner::{served, trusted};

/// Opens a regular file for reading, whoever owns it. Links on the way are followed. What is no regular file is not opened: a FIFO
/// would be waited for, and a device may do something by that alone (a watchdog, a tape).
///
/// # Errors
/// Those of open(2); `InvalidInput` for what is no regular file; [`crate::Distrust`] for one that another account's program serves.
pub fn regular_file(path: &Path) -> io::Result<File> {
    let held = File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    served(&held)?;
    if !held.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    reopen(&held, OpenOptions::new().read(true))
}

/// The same for a file that only root or the caller can have written.
///
/// # Errors
/// Also [`crate::Distrust`] as `PermissionDenied`.
pub fn trusted_file(path: &Path) -> io::Result<File> {
    let file = regular_file(path)?;
    trusted(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_that_others_may_write_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings");
        fs::write(&path, "x").unwrap();
        assert!(trusted_file(&path).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(trusted_file(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert_eq!(trusted_file(&fifo).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        for odd in [dir.path(), Path::new("/dev/null")] {
            assert_eq!(regular_file(odd).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
