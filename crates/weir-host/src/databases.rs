//! Database servers that run here, known by their processes: a server works in its data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_oltp::Dialect;

use crate::host::Host;

/// Names of servers' processes.
const NAMES: [(&str, Dialect); 3] =
    [("mysqld", Dialect::MySql), ("mariadbd", Dialect::MySql), ("postgres", Dialect::Postgres)];

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseServer {
    /// Whose protocol it speaks.
    pub family: Dialect,
    /// Where its data lie, as that can be named here: beneath `/proc/PID/root` of a server in a container.
    pub data_dir: PathBuf,
}

impl Host {
    /// The servers that work on the file system of a path, as far as their processes may be looked at; one for each data directory.
    pub fn database_servers_beside(&self, path: &Path) -> Vec<DatabaseServer> {
        let Some(here) = self.file_system_device_of(path) else { return Vec::new() };
        self.database_servers(|pid| self.device_worked_on(pid) == Some(here))
    }

    fn database_servers(&self, counts: impl Fn(u32) -> bool) -> Vec<DatabaseServer> {
        let mut found = BTreeMap::new();
        for pid in self.tree.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            let comm = self.tree.line(&format!("/proc/{pid}/comm")).unwrap_or_default();
            let Some((_, family)) = NAMES.iter().find(|(name, _)| *name == comm) else { continue };
            if !counts(pid) {
                continue;
            }
            if let Some(data_dir) = self.working_folder(pid) {
                found.insert(data_dir, *family);
            }
        }
        found.into_iter().map(|(data_dir, family)| DatabaseServer { family, data_dir }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_server_is_found_by_its_process_and_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, comm, cwd) in [
            (7, "mariadbd", "/srv/db"),
            (8, "postgres", "/srv/pg"),
            (9, "postgres", "/srv/pg"),
            (10, "bash", "/srv/db"),
            (11, "mysqld", "/var/lib/mysql"),
            (12, "mysqld", "/elsewhere"),
        ] {
            let process = folder.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("comm"), format!("{comm}\n")).unwrap();
            symlink(cwd, process.join("cwd")).unwrap();
            symlink("/", process.join("root")).unwrap();
            fs::create_dir(process.join("ns")).unwrap();
            // The last one has mounts of its own.
            symlink(format!("mnt:[{}]", u32::from(pid == 11)), process.join("ns/mnt")).unwrap();
        }
        fs::create_dir_all(folder.path().join("proc/self/ns")).unwrap();
        symlink("mnt:[0]", folder.path().join("proc/self/ns/mnt")).unwrap();
        let found = Host::at(folder.path()).database_servers(|pid| pid != 12);
        let server = |family, dir: &str| DatabaseServer { family, data_dir: PathBuf::from(dir) };
        let expected = [
            server(Dialect::MySql, "/proc/11/root/var/lib/mysql"),
            server(Dialect::MySql, "/srv/db"),
            server(Dialect::Postgres, "/srv/pg"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_process_that_works_on_this_file_system_does_so_by_its_mount() {
        let host = Host::live();
        let here = std::env::current_dir().unwrap();
        let own = host.device_worked_on(std::process::id());
        assert!(own.is_some());
        assert_eq!(own, host.file_system_device_of(&here));
        assert_ne!(own, host.file_system_device_of(Path::new("/proc")));
    }
}
