//! Where servers are installed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use weir_oltp::Dialect;

use super::quarters::Quarters;
use super::spawn::{self, Program};
use super::{Flavour, SandboxError};

/// How long `--version` may take, and how much of what it says is read.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
const VERSION_MOST: usize = 64 << 10;

/// Where packages and hands put servers that are not on everybody's PATH.
const FOLDERS: [&str; 8] = [
    "/usr/sbin",
    "/usr/bin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/mysql/bin",
    "/usr/local/mariadb/bin",
    "/usr/local/pgsql/bin",
];
/// Where several versions of PostgreSQL lie side by side: a folder, what a version's name begins with, and where in
/// it the programs are (Debian; Red Hat).
const VERSIONED: [(&str, &str, &str); 2] = [("/usr/lib/postgresql", "", "bin"), ("/usr", "pgsql-", "bin")];

/// The programs of an installed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The server itself.
    pub server: PathBuf,
    /// What makes a data directory: `initdb`, `mariadb-install-db`, or `mysqld` again.
    pub initialiser: PathBuf,
    /// What the server calls itself: `mariadbd  Ver 10.11.14-MariaDB …`.
    pub version: String,
}

impl Binaries {
    /// Finds an installed server: on PATH, then where packages put them; of several PostgreSQLs the newest.
    ///
    /// # Errors
    /// When there is none, with all the places looked at, or when `binary` is something else.
    pub fn find(flavour: Flavour, binary: Option<&Path>) -> Result<Binaries, SandboxError> {
        Binaries::find_in(&Quarters::find(flavour, None)?, flavour, binary)
    }

    /// The same on this machine or in a tree; all paths are paths in it.
    pub(super) fn find_in(
        quarters: &Quarters,
        flavour: Flavour,
        binary: Option<&Path>,
    ) -> Result<Binaries, SandboxError> {
        if let Some(binary) = binary {
            let version = version(quarters, flavour, binary).map_err(|why| not_this(binary, flavour, why))?;
            if !is_flavour(&version, flavour) {
                return Err(not_this(binary, flavour, format!("it says `{version}`")));
            }
            return Binaries::beside(quarters, flavour, binary.to_path_buf(), version);
        }
        let folders = folders(quarters, flavour);
        let names: &[&str] = match flavour {
            Flavour::Mysql => &["mysqld"],
            Flavour::Mariadb => &["mariadbd", "mysqld"],
            Flavour::Postgres => &["postgres"],
        };
        let candidates = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        let mut broken = None;
        for server in candidates.filter(|path| quarters.tree.is_program(path)) {
            match version(quarters, flavour, &server) {
                Ok(version) if is_flavour(&version, flavour) => {
                    return Binaries::beside(quarters, flavour, server, version);
                }
                // Behind mysqld there may be either of the two.
                Ok(_) => {}
                Err(why) => broken = broken.or(Some(not_this(&server, flavour, why))),
            }
        }
        Err(broken.unwrap_or_else(|| not_installed(quarters, flavour, names, &folders)))
    }

    /// The server with its initialiser, which lies beside it or where the package's other programs are.
    fn beside(
        quarters: &Quarters,
        flavour: Flavour,
        server: PathBuf,
        version: String,
    ) -> Result<Binaries, SandboxError> {
        let names: &[&str] = match flavour {
            Flavour::Mysql => return Ok(Binaries { initialiser: server.clone(), server, version }),
            Flavour::Mariadb => &["mariadb-install-db", "mysql_install_db"],
            Flavour::Postgres => &["initdb"],
        };
        let own = server.parent().unwrap_or(Path::new("/"));
        // The program of this name in PATH may be a link into the folder of the others.
        let linked = quarters.tree.real(&server).unwrap_or_else(|| server.clone());
        let mut looked = vec![own.to_path_buf(), linked.parent().unwrap_or(own).to_path_buf()];
        looked.extend(["../bin", "../scripts"].map(|near| own.join(near)));
        looked.extend(folders(quarters, flavour));
        let find = |names: &[&str]| {
            let candidates = looked.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
            let found = candidates.into_iter().find(|path| quarters.tree.is_program(path));
            found.ok_or_else(|| not_installed(quarters, flavour, names, &looked))
        };
        let initialiser = find(names)?;
        if flavour == Flavour::Mariadb {
            // A script, which Debian packs apart from one of its helpers.
            find(&["my_print_defaults"])?;
        }
        Ok(Binaries { server, initialiser, version })
    }
}

fn not_installed(quarters: &Quarters, flavour: Flavour, names: &[&str], looked: &[PathBuf]) -> SandboxError {
    let root = quarters.tree.path();
    let outside = |folder: &PathBuf| root.join(folder.strip_prefix("/").unwrap_or(folder));
    SandboxError::NotInstalled {
        flavour,
        names: names.join(" and "),
        looked: looked.iter().map(outside).collect(),
        in_tree: !quarters.tree.is_machine(),
    }
}

/// The folders to look in, in order, each once.
fn folders(quarters: &Quarters, flavour: Flavour) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").filter(|_| quarters.tree.is_machine()).unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    if flavour.dialect() == Dialect::Postgres {
        folders.extend(versioned(quarters));
    }
    folders.extend(FOLDERS.map(PathBuf::from));
    let mut seen = BTreeSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

/// Folders of PostgreSQL's versions, the newest first.
fn versioned(quarters: &Quarters) -> Vec<PathBuf> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for (folder, prefix, inside) in VERSIONED {
        for name in quarters.tree.names(Path::new(folder)) {
            let text = name.to_string_lossy();
            if let Some(version) = text.strip_prefix(prefix).and_then(|version| version.parse().ok()) {
                found.push((version, Path::new(folder).join(&name).join(inside)));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// What `--version` says. It is asked as the account that the server will have: who puts a program where root looks for a
/// server does not thereby become root.
fn version(quarters: &Quarters, flavour: Flavour, server: &Path) -> Result<String, String> {
    let command = quarters.command(server, &[]);
    let mut command = command.map_err(|error| error.to_string())?;
    if flavour.dialect() == Dialect::MySql {
        command.arg("--no-defaults");
    }
    command.arg("--version");
    let (said, status) = said_by(&mut command).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if !quarters.tree.is_machine() => {
            format!(
                "it cannot be started: {error}; a tree needs mounts of its own, which a container may \
                forbid to root, and a kernel to plain users"
            )
        }
        _ => error.to_string(),
    })?;
    let text = String::from_utf8_lossy(&said);
    match (text.lines().next(), status) {
        (Some(line), Some(status)) if status.success() => Ok(line.trim().to_string()),
        (_, Some(status)) => Err(format!("`--version` says nothing and ends with {status}")),
        (_, None) => {
            let limit = VERSION_LIMIT.as_secs();
            Err(format!("`--version` does not end within {limit} s, or says more than a version"))
        }
    }
}

/// The beginning of what a program says, and how it ended, if it did.
fn said_by(program: &mut Program) -> io::Result<(Vec<u8>, Option<ExitStatus>)> {
    let until = Instant::now() + VERSION_LIMIT;
    let left = || until.saturating_duration_since(Instant::now());
    let (mut pipe, output) = io::pipe()?;
    let output = File::from(OwnedFd::from(output));
    let errors = File::options().write(true).open("/dev/null")?;
    let mut running = program.spawn((&output, &errors), |_| Ok(()))?;
    drop(output);
    let mut said = Vec::new();
    let mut part = [0; 4096];
    while said.len() < VERSION_MOST && spawn::is_ready(pipe.as_fd(), left()) {
        match pipe.read(&mut part)? {
            0 => break,
            read => said.extend_from_slice(&part[..read]),
        }
    }
    // A program that does not end by itself is killed here.
    let patience = if said.len() < VERSION_MOST { left() } else { Duration::ZERO };
    Ok((said, running.wait_for(patience)?))
}

fn is_flavour(version: &str, flavour: Flavour) -> bool {
    match flavour {
        Flavour::Mysql => !version.contains("MariaDB") && version.contains("Ver "),
        Flavour::Mariadb => version.contains("MariaDB"),
        Flavour::Postgres => version.contains("PostgreSQL"),
    }
}

fn not_this(binary: &Path, flavour: Flavour, why: String) -> SandboxError {
    SandboxError::NotThisServer { binary: binary.to_path_buf(), flavour, why }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn flavours_are_told_by_what_a_server_says() {
        for (version, flavour) in [
            (
                "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)",
                Flavour::Mariadb,
            ),
            (
                "/usr/sbin/mysqld  Ver 8.0.44 for Linux on x86_64 (MySQL Community Server - GPL)",
                Flavour::Mysql,
            ),
            ("postgres (PostgreSQL) 15.10 (Debian 15.10-0+deb12u1)", Flavour::Postgres),
        ] {
            let said: Vec<Flavour> = Flavour::ALL.into_iter().filter(|f| is_flavour(version, *f)).collect();
            assert_eq!(said, [flavour], "{version}");
        }
    }

    #[test]
    fn what_is_no_server_is_refused_with_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("mysqld");
        for (script, part) in [
            ("#!/bin/sh\necho sysbench 1.0.20\n", "it says `sysbench 1.0.20`"),
            ("#!/bin/sh\nexit 3\n", "ends with exit status: 3"),
            ("#!/bin/sh\nexec yes\n", "says more than a version"),
        ] {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let error = Binaries::find(Flavour::Mysql, Some(&program)).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("is not a MySQL server"), "{error}");
        }
    }
}
