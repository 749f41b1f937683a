//! Where servers are installed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_core::oltp::Dialect;

use super::{Flavour, SandboxError};

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
        if let Some(binary) = binary {
            let version = version(binary).map_err(|why| not_this(binary, flavour, why))?;
            if !is_flavour(&version, flavour) {
                return Err(not_this(binary, flavour, format!("it says `{version}`")));
            }
            return Binaries::beside(flavour, binary.to_path_buf(), version);
        }
        let folders = folders(flavour);
        let names: &[&str] = match flavour {
            Flavour::Mysql => &["mysqld"],
            Flavour::Mariadb => &["mariadbd", "mysqld"],
            Flavour::Postgres => &["postgres"],
        };
        let candidates = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        for server in candidates.filter(|path| is_program(path)) {
            // Behind mysqld there may be either of the two.
            if let Ok(version) = version(&server)
                && is_flavour(&version, flavour)
            {
                return Binaries::beside(flavour, server, version);
            }
        }
        Err(SandboxError::NotInstalled { flavour, names: names.join(" and "), looked: folders })
    }

    /// The server with its initialiser, which lies beside it or where the package's other programs are.
    fn beside(flavour: Flavour, server: PathBuf, version: String) -> Result<Binaries, SandboxError> {
        let names: &[&str] = match flavour {
            Flavour::Mysql => return Ok(Binaries { initialiser: server.clone(), server, version }),
            Flavour::Mariadb => &["mariadb-install-db", "mysql_install_db"],
            Flavour::Postgres => &["initdb"],
        };
        let own = server.parent().unwrap_or(Path::new("/"));
        // What PATH has by this name may be a link to where its fellows are.
        let linked = fs::canonicalize(&server).unwrap_or_else(|_| server.clone());
        let mut looked = vec![own.to_path_buf(), linked.parent().unwrap_or(own).to_path_buf()];
        looked.extend(["../bin", "../scripts"].map(|near| own.join(near)));
        looked.extend(folders(flavour));
        let find = |names: &[&str]| {
            let absent =
                || SandboxError::NotInstalled { flavour, names: names.join(" and "), looked: looked.clone() };
            first_of(names, &looked).ok_or_else(absent)
        };
        let initialiser = find(names)?;
        if flavour == Flavour::Mariadb {
            // A script, which Debian packs apart from one of its helpers.
            find(&["my_print_defaults"])?;
        }
        Ok(Binaries { server, initialiser, version })
    }
}

/// The first program by one of these names in the first folder that has one.
fn first_of(names: &[&str], folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    candidates.into_iter().find(|path| is_program(path))
}

/// The folders to look in, in order, each once.
fn folders(flavour: Flavour) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    if flavour.dialect() == Dialect::Postgres {
        folders.extend(versioned());
    }
    folders.extend(FOLDERS.map(PathBuf::from));
    let mut seen = BTreeSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

/// Folders of PostgreSQL's versions, the newest first.
fn versioned() -> Vec<PathBuf> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for (folder, prefix, inside) in VERSIONED {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(version) = name.strip_prefix(prefix).and_then(|version| version.parse().ok()) {
                found.push((version, entry.path().join(inside)));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// What `--version` says.
fn version(server: &Path) -> Result<String, String> {
    let output = Command::new(server).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.trim().to_string()),
        _ => Err(format!("`--version` says nothing and ends with {}", output.status)),
    }
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
        ] {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let error = Binaries::find(Flavour::Mysql, Some(&program)).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("is no MySQL server"), "{error}");
        }
    }
}
