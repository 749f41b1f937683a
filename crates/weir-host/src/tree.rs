//! The root under which everything is read: `/` or a captured tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{BadLine, HostError};
use crate::servers::Servers;

/// A root path. Paths given to its methods are absolute, as on the machine itself.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: PathBuf,
    /// Files that stay open from one reading to the next.
    open: Option<Arc<Mutex<Open>>>,
    /// How database servers are reached, where they are.
    pub servers: Option<&'static dyn Servers>,
}

/// What a file of the kernel holds at most, as far as weir reads them; longer ones take more than one call.
const AT_ONCE: usize = 8 << 10;
/// Less than this comes whole: no file of the kernel gives less than half of the smallest page at a time while there is
/// more.
const SHORT: usize = 2048;

#[derive(Debug, Default)]
struct Open {
    files: BTreeMap<String, File>,
    buffer: Vec<u8>,
}

impl Tree {
    pub fn new(root: &Path) -> Self {
        Tree { root: root.to_path_buf(), open: None, servers: None }
    }

    /// The same tree, for one who reads the same few files many times a second: they stay open. Only the kernel's own
    /// files say at each reading what is so now, and that they are no longer there; in a captured tree a file may have
    /// been replaced by another one.
    pub fn keeping_open(&self) -> Tree {
        let open = (self.root == Path::new("/")).then(Arc::default);
        Tree { root: self.root.clone(), open, servers: self.servers }
    }

    /// Where `path` really lies.
    pub fn real(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The content of a file.
    pub fn text(&self, path: &str) -> Result<String, HostError> {
        let Some(open) = &self.open else {
            let real = self.real(path);
            let bytes = fs::read(&real).map_err(|error| HostError::io(&real, error))?;
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        };
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let text = open.text(path).map_err(|error| HostError::io(&self.real(path), error))?;
        Ok(text.to_string())
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
        let mut names: Vec<String> = self.some_names(path).collect();
        names.sort();
        names
    }

    /// The same as they come, for a folder that may hold more than are wanted.
    pub fn some_names(&self, path: &str) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(self.real(path)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    }

    /// Names of the folders in a folder, as they come.
    pub fn folders(&self, path: &str) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(self.real(path)).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned())
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

impl Open {
    /// The content of a file of the kernel. One that is gone, or whose device is, may be there again under its name.
    fn text(&mut self, path: &str) -> io::Result<std::borrow::Cow<'_, str>> {
        let known = self.files.get(path);
        let length = match known.map(|file| read(file, &mut self.buffer)) {
            Some(Ok(length)) => length,
            _ => {
                self.files.remove(path);
                let file = File::open(path)?;
                let length = read(&file, &mut self.buffer)?;
                self.files.insert(path.to_string(), file);
                length
            }
        };
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }
}

/// Reads a file from its start to its end; the buffer grows where it has to.
fn read(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if buffer.len() < length + AT_ONCE {
            buffer.resize(length + AT_ONCE, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            // Lists in /proc come a page at a time; a short value is all there is.
            Ok(0) => return Ok(length),
            Ok(read) if length == 0 && read < SHORT => return Ok(read),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_stay_open_tell_what_is_so_now() {
        let tree = Tree::new(Path::new("/")).keeping_open();
        // A list of several pages, and a value that changes.
        let names =
            |text: String| text.lines().map(|line| line.split(' ').next().unwrap().to_string()).collect();
        let (kept, fresh): (Vec<String>, Vec<String>) =
            (names(tree.text("/proc/vmstat").unwrap()), names(fs::read_to_string("/proc/vmstat").unwrap()));
        assert_eq!(kept, fresh);
        for name in ["one", "another"] {
            fs::write("/proc/thread-self/comm", name).unwrap();
            assert_eq!(tree.text("/proc/thread-self/comm").unwrap().trim(), name);
        }
        assert!(tree.text("/proc/self/nothing").unwrap_err().is_absent());
        assert_eq!(tree.open.as_ref().unwrap().lock().unwrap().files.len(), 2);
        // What was captured may have been replaced.
        assert!(Tree::new(Path::new("/tmp")).keeping_open().open.is_none());
    }
}
