//! From a systemd unit to the processes it holds.

use std::fs;
use std::path::{Path, PathBuf};

use super::Whose;

/// How deep units lie at most.
const LEVELS: u32 = 16;

/// Where a unit's processes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// In a group of cgroup v2, which the programs know by itself.
    Group(PathBuf),
    /// In a group of systemd's own hierarchy of cgroup v1: its processes have to be listed again and again.
    Folder(PathBuf),
}

/// Looks for a running unit, `mariadb.service`, in the hierarchies where systemd keeps its units. `None` where none of
/// that name runs.
pub fn unit(name: &str) -> Option<Unit> {
    let mounts = weir_fs::read_lossily("/proc/self/mounts").ok()?;
    let (groups, folders) = hierarchies(&mounts);
    let found = |roots: Vec<PathBuf>| roots.into_iter().find_map(|root| find(&root, name, LEVELS));
    found(groups).map(Unit::Group).or_else(|| found(folders).map(Unit::Folder))
}

impl Unit {
    /// Whose syncs those are.
    pub fn whose(&self) -> Whose {
        match self {
            Unit::Group(path) => Whose::Cgroup(path.clone()),
            Unit::Folder(path) => Whose::Listed(processes_of(path)),
        }
    }

    /// The processes it holds at this moment.
    pub fn processes(&self) -> Vec<u32> {
        let (Unit::Group(path) | Unit::Folder(path)) = self;
        processes_of(path)
    }
}

/// Where cgroup v2 and systemd's hierarchy of v1 are mounted.
fn hierarchies(mounts: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut groups, mut folders) = (Vec::new(), Vec::new());
    for line in mounts.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [_, place, "cgroup2", ..] => groups.push(PathBuf::from(place)),
            [_, place, "cgroup", options, ..]
                if options.split(',').any(|option| option == "name=systemd") =>
            {
                folders.push(PathBuf::from(place));
            }
            _ => {}
        }
    }
    (groups, folders)
}

/// The folder of this name that holds processes, itself or below. systemd keeps its units in slices and nowhere else
/// (systemd.slice(5)): the groups below a service or a scope are named by whoever runs in it, a user or a container.
fn find(folder: &Path, name: &str, levels: u32) -> Option<PathBuf> {
    let mut below: Vec<PathBuf> = folders_in(folder);
    below.sort();
    let named = below.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    if let Some(path) = named.filter(|path| !processes_of(path).is_empty()) {
        return Some(path.clone());
    }
    let slices = below.iter().filter(|path| path.extension().is_some_and(|kind| kind == "slice"));
    slices.filter(|_| levels > 0).find_map(|path| find(path, name, levels - 1))
}

/// Processes in a cgroup, of either version, and those below it.
pub fn processes_of(folder: &Path) -> Vec<u32> {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<u32> = listed.lines().filter_map(|line| line.parse().ok()).collect();
    found.extend(folders_in(folder).iter().flat_map(|path| processes_of(path)));
    found
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group with a process in it.
    fn put(root: &Path, group: &str) {
        fs::create_dir_all(root.join(group)).unwrap();
        fs::write(root.join(group).join("cgroup.procs"), "7\n").unwrap();
    }

    #[test]
    fn a_unit_is_not_what_a_user_or_a_container_calls_one_of_its_groups() {
        let root = tempfile::tempdir().unwrap();
        for others in [
            "machine.slice/libpod-1.scope/system.slice/db.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/db.service",
            "user.slice/user-1000.slice/session-1.scope/db.service",
            "a/db.service",
        ] {
            put(root.path(), others);
        }
        assert_eq!(find(root.path(), "db.service", LEVELS), None, "it does not run");
        for own in ["system.slice/system-db.slice/db.service", "system.slice/db.service", "db.service"] {
            put(root.path(), own);
            assert_eq!(find(root.path(), "db.service", LEVELS), Some(root.path().join(own)));
        }
    }
}
