//! Where a cgroup stands.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// How deep below the root programs can look for a cgroup, and so does this.
const LEVELS: u32 = 16;

/// How deep the cgroup (v2) of this id lies below the root, which is 0. A cgroup's id is its directory's inode.
///
/// # Errors
/// There is no such cgroup.
pub fn level_of(id: u64) -> Result<u32, Error> {
    let lacking = || Error::Unsupported { lacking: format!("a cgroup (v2) of the id {id}") };
    let root = root().ok_or_else(lacking)?;
    let mut folders = vec![(root, 0)];
    while let Some((folder, level)) = folders.pop() {
        if fs::metadata(&folder).is_ok_and(|metadata| metadata.ino() == id) {
            return Ok(level);
        }
        if level < LEVELS {
            folders.extend(below(&folder).map(|folder| (folder, level + 1)));
        }
    }
    Err(lacking())
}

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// Where cgroup v2 is mounted, alone or beside v1.
fn root() -> Option<PathBuf> {
    let mounts = weir_fs::read_lossily("/proc/self/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.into_iter().find(|fields| fields.get(2) == Some(&"cgroup2")).map(|fields| PathBuf::from(fields[1]))
}
