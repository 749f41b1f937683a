//! Folders that weir makes for its own files beside the data of others, and removes again, whatever happens.
//!
//! What a folder of weir's is, and how it is told from one that somebody else called so, [`weir_fs::Private`] says.

use std::io;
use std::path::Path;

use weir_fs::{Abandoned, Dir, Private};

use crate::IoError;
use crate::error::Fault;

/// What folders are made for; part of their names.
pub const KINDS: [&str; 4] = ["bench", "canary", "doctor", "flood"];

/// Opens the folder that the user named.
///
/// # Errors
/// With what may help.
pub fn open(folder: &Path) -> Result<Dir, IoError> {
    Dir::open(folder).map_err(|error| refused("cannot open", folder, error))
}

/// Makes a folder of one of the [`KINDS`] in `parent`; dropping it removes it with everything in it.
///
/// # Errors
/// With what may help.
pub fn make(parent: &Dir, kind: &str) -> Result<Private, IoError> {
    Private::make(parent, kind).map_err(|error| refused("cannot create a folder in", parent.path(), error))
}

/// Removes the folders in `parent` whose makers were killed. Each prints as the sentence that says so, or why it stays.
pub fn remove_abandoned(parent: &Path) -> Vec<Abandoned> {
    let Ok(dir) = Dir::open(parent) else { return Vec::new() };
    KINDS.iter().flat_map(|kind| Private::remove_abandoned(&dir, kind)).collect()
}

fn refused(what: &str, path: &Path, error: io::Error) -> IoError {
    let hint = match error.raw_os_error() {
        Some(libc::EROFS) => "the file system is mounted read-only: choose a folder elsewhere",
        Some(libc::ENOSPC | libc::EDQUOT) => "the file system is full",
        Some(libc::ENOENT | libc::ENOTDIR) => "the folder does not exist",
        Some(libc::EACCES | libc::EPERM) => "this user may not write there: choose another folder or user",
        _ => "weir needs a folder it may write to",
    };
    IoError { fault: Fault::Environment, ..IoError::io(what, path, error) }.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_others_called_alike_stay() {
        let parent = tempfile::tempdir().unwrap();
        let dir = open(parent.path()).unwrap();
        let used = make(&dir, "bench").unwrap();
        for name in [".weir-notes", ".weir-bench-dead"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            std::fs::write(parent.path().join(name).join("lock"), "").unwrap();
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
            let times = std::fs::FileTimes::new().set_modified(old);
            std::fs::File::open(parent.path().join(name)).unwrap().set_times(times).unwrap();
        }
        assert_eq!(remove_abandoned(parent.path()), Vec::<Abandoned>::new());
        assert!(parent.path().join(".weir-notes/lock").exists() && used.path().exists());
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn errors_name_the_path_and_help() {
        let error = open(Path::new("/nonexistent/folder")).unwrap_err();
        assert_eq!(error.fault, Fault::Environment);
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("the folder does not exist"));
    }
}
