//! Database servers that run here, known by their processes: a server works in its data directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use weir_core::oltp::Dialect;

use crate::host::Host;

/// Names of servers' processes.
const NAMES: [(&str, Dialect); 3] =
    [("mysqld", Dialect::MySql), ("mariadbd", Dialect::MySql), ("postgres", Dialect::Postgres)];

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseServer {
    /// Whose protocol it speaks.
    pub family: Dialect,
    /// Where its data lie.
    pub data_dir: PathBuf,
}

impl Host {
    /// The servers whose processes may be looked at, one for each data directory.
    pub fn database_servers(&self) -> Vec<DatabaseServer> {
        let mut found = BTreeMap::new();
        for pid in self.tree.names("/proc").iter().filter(|name| name.parse::<u32>().is_ok()) {
            let comm = self.tree.line(&format!("/proc/{pid}/comm")).unwrap_or_default();
            let Some((_, family)) = NAMES.iter().find(|(name, _)| *name == comm) else { continue };
            if let Ok(data_dir) = fs::read_link(self.tree.real(&format!("/proc/{pid}/cwd"))) {
                found.insert(data_dir, *family);
            }
        }
        found.into_iter().map(|(data_dir, family)| DatabaseServer { family, data_dir }).collect()
    }
}

#[cfg(test)]
mod tests {
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
        ] {
            let process = folder.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("comm"), format!("{comm}\n")).unwrap();
            symlink(cwd, process.join("cwd")).unwrap();
        }
        let found = Host::at(folder.path()).database_servers();
        let server = |family, dir: &str| DatabaseServer { family, data_dir: PathBuf::from(dir) };
        assert_eq!(found, [server(Dialect::MySql, "/srv/db"), server(Dialect::Postgres, "/srv/pg")]);
    }
}
