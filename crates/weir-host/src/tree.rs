//! The root under which everything is read: `/` or a captured tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{BadLine, HostError};

/// A root path. Paths given to its methods are absolute, as on the machine itself.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub fn new(root: &Path) -> Self {
        Tree { root: root.to_path_buf() }
    }

    /// Where `path` really lies.
    pub fn real(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The content of a file.
    pub fn text(&self, path: &str) -> Result<String, HostError> {
        let real = self.real(path);
        let bytes = fs::read(&real).map_err(|error| HostError::io(&real, error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's content through a parser.
    pub fn parsed<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, BadLine>,
    ) -> Result<T, HostError> {
        parse(&self.text(path)?).map_err(|bad| bad.at(&self.real(path)))
    }

    /// The single value in a file.
    pub fn value<T: FromStr>(&self, path: &str) -> Result<T, HostError> {
        self.parsed(path, |text| {
            let text = text.trim();
            text.parse().map_err(|_| BadLine::new(1, std::any::type_name::<T>(), text))
        })
    }

    /// The single value in a file that not every machine has. A file that is there but cannot be understood
    /// is noted.
    pub fn optional<T: FromStr>(&self, path: &str, notes: &mut Vec<String>) -> Option<T> {
        noted(self.value(path), notes)
    }

    /// The single line in a file that not every machine has, without surrounding space; `None` when empty.
    pub fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path).ok()?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_string())
    }

    /// Names in a folder, sorted; none where there is no such folder.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The target of a symbolic link.
    pub fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.real(path)).ok()
    }

    /// The last component of a symbolic link's target.
    pub fn link_name(&self, path: &str) -> Option<String> {
        Some(self.link(path)?.file_name()?.to_string_lossy().into_owned())
    }

    pub fn exists(&self, path: &str) -> bool {
        self.real(path).exists()
    }
}

/// A value that may be absent: absence is silent, everything else is noted. The kernel answers EINVAL, EOPNOTSUPP
/// or ENODEV where an attribute has no meaning for a device, which is absence too.
pub(crate) fn noted<T>(result: Result<T, HostError>, notes: &mut Vec<String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if is_without_meaning(&error) => None,
        Err(error) => {
            notes.push(error.to_string());
            None
        }
    }
}

fn is_without_meaning(error: &HostError) -> bool {
    let HostError::Io { error: cause, .. } = error else { return false };
    error.is_absent()
        || matches!(
            cause.raw_os_error(),
            Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENODEV | libc::ENOTDIR)
        )
}
