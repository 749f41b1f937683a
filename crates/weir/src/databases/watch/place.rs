//! Where the server is: its processes and the folder of its data, where these are on this machine.

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use weir_db::connection::Connection;
use weir_db::error::DbError;
use weir_db::server::Server;
use weir_host::Host;
use weir_oltp::Dialect;
use weir_oltp::record::is_local;
use weir_oltp::vitals::is_mariadb;

/// A server on this machine.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// Its first process.
    pub process: Option<u32>,
    /// The folder of its data.
    pub data: Option<PathBuf>,
    /// Whether that folder is the server's beyond its word: then something may be written there because of it.
    pub is_its_own: bool,
    /// Sentences: what could not be found.
    pub unseen: Vec<String>,
}

/// Names of servers' processes.
const SERVERS: [&str; 4] = ["mariadbd", "mysqld", "postgres", "postmaster"];

/// Looks for it.
pub fn find(host: &Host, server: &Server, connection: &mut Connection) -> Home {
    if !is_local(&server.place.to_string()) {
        let unseen = format!("{} is not on this machine: its processors and its device", server.place);
        return Home { unseen: vec![unseen], ..Home::default() };
    }
    let mut home = Home::default();
    let reported = data_folder(connection);
    let folder = reported.as_ref().ok().and_then(Option::as_deref);
    match first_process(host, connection, folder) {
        Ok(process) => home.process = Some(process),
        Err(why) => home.unseen.push(format!("the server's threads: {why}")),
    }
    match reported {
        Ok(Some(folder)) => match reach(host, home.process, &folder) {
            Ok(folder) => home.data = Some(folder),
            Err(error) => home.unseen.push(format!("the device of the data: {error}")),
        },
        Ok(None) => {
            home.unseen.push("the device of the data: the server does not say where they are".to_string())
        }
        Err(error) => home.unseen.push(format!("the device of the data: {error}")),
    }
    home.is_its_own = home.data.as_deref().is_some_and(|folder| is_its_own(connection, folder));
    home
}

/// A server may name any folder. Whoever is not root writes only where they may anyway; root, where the account that has the other
/// end of the connection owns the folder.
fn is_its_own(connection: &Connection, folder: &Path) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    !is_root || folder.metadata().is_ok_and(|facts| connection.serving_account() == Some(facts.uid()))
}

/// The folder that the server names, as this process reaches it: a server in a container or a chroot has a root of its own.
fn reach(host: &Host, process: Option<u32>, folder: &Path) -> Result<PathBuf, String> {
    // No server calls its folder so. A path that climbs may lead through another process's root without saying so.
    if !folder.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))) {
        return Err(format!("the server names {}", folder.display()));
    }
    let seen = process.map(|process| host.folder_of(process, folder));
    match seen {
        Some(Ok(reached)) => Ok(reached),
        // Of other users' processes only root is told; where there is such a folder here, it is taken for the server's.
        _ if folder.exists() => Ok(folder.to_path_buf()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(format!("{} is not there", folder.display())),
    }
}

/// The process that listens at its socket, else the one whose thread serves this connection.
fn first_process(host: &Host, connection: &mut Connection, data: Option<&Path>) -> Result<u32, String> {
    if let Some(process) = connection.listener().filter(|process| is_server(host, *process)) {
        return Ok(process);
    }
    match own_thread(connection) {
        Ok(Some(thread)) => process(host, connection.dialect(), thread, data).ok_or_else(|| {
            format!(
                "it says that {thread} serves this connection, which is no thread of a server here, or of several (are \
                 there containers?)"
            )
        }),
        Ok(None) => Err("it does not say which serves a connection".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The number, where the server runs, of the thread that serves this connection: MariaDB's list of processes has it, and MySQL's
/// performance schema.
fn own_thread(connection: &mut Connection) -> Result<Option<u32>, DbError> {
    let statement = match connection.dialect() {
        Dialect::Postgres => "SELECT pg_backend_pid()",
        Dialect::MySql if is_mariadb(connection.version()) => {
            "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
        }
        Dialect::MySql => {
            "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()"
        }
    };
    Ok(one(connection, statement)?.and_then(|text| text.parse().ok()))
}

fn is_server(host: &Host, process: u32) -> bool {
    host.name_of(process).is_some_and(|name| SERVERS.contains(&name.as_str()))
}

fn data_folder(connection: &mut Connection) -> Result<Option<PathBuf>, DbError> {
    let statement = match connection.dialect() {
        Dialect::Postgres => "SHOW data_directory",
        Dialect::MySql => "SELECT @@datadir",
    };
    Ok(one(connection, statement)?.map(PathBuf::from))
}

/// Whether the server keeps its log, MySQL's binary log or PostgreSQL's WAL, on another file system than its data, as far as this
/// user may see.
pub fn logs_elsewhere(host: &Host, process: Option<u32>, connection: &mut Connection) -> bool {
    let data = data_folder(connection).ok().flatten();
    let log = match connection.dialect() {
        Dialect::Postgres => data.as_ref().map(|data| data.join("pg_wal")),
        Dialect::MySql => {
            let names = one(connection, "SELECT @@log_bin_basename").ok().flatten();
            names.as_deref().and_then(|names| Path::new(names).parent()).map(Path::to_path_buf)
        }
    };
    let device = |folder: Option<PathBuf>| Some(reach(host, process, &folder?).ok()?.metadata().ok()?.dev());
    device(data).zip(device(log)).is_some_and(|(data, log)| data != log)
}

/// The folder of InnoDB's redo log or PostgreSQL's WAL where that is on another file system than the data, as far as this user may
/// see.
pub fn log_elsewhere(host: &Host, home: &Home, connection: &mut Connection) -> Option<PathBuf> {
    let named = match connection.dialect() {
        Dialect::Postgres => PathBuf::from("pg_wal"),
        Dialect::MySql => one(connection, "SELECT @@innodb_log_group_home_dir").ok()??.into(),
    };
    elsewhere(host, home, &named)
}

fn elsewhere(host: &Host, home: &Home, named: &Path) -> Option<PathBuf> {
    let data = home.data.as_ref()?;
    let here = data.join(named.strip_prefix(".").unwrap_or(named));
    // A link leads where the server sees it lead.
    let folder = match std::fs::read_link(&here) {
        Ok(target) if target.is_absolute() => reach(host, home.process, &target).ok()?,
        _ if named.is_absolute() => reach(host, home.process, named).ok()?,
        _ => here,
    };
    // MySQL's from 8.0.30 on.
    let inner = folder.join("#innodb_redo");
    let folder = if inner.is_dir() { inner } else { folder };
    (folder.metadata().ok()?.dev() != data.metadata().ok()?.dev()).then_some(folder)
}

fn one(connection: &mut Connection, statement: &str) -> Result<Option<String>, DbError> {
    let rows = connection.query(statement)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
}

/// The server's first process by one of its threads. The number is the server's own: in several containers there may be
/// the same, and then the one counts that has such a folder of data.
fn process(host: &Host, dialect: Dialect, thread: u32, data: Option<&Path>) -> Option<u32> {
    let first = |process: u32| match dialect {
        Dialect::MySql => Some(process),
        Dialect::Postgres => host.parent_of(process).filter(|parent| is_server(host, *parent)),
    };
    let mut found: Vec<u32> = host.numbered(&SERVERS, thread).into_iter().filter_map(first).collect();
    if let ([_, _, ..], Some(data)) = (found.as_slice(), data) {
        found.retain(|process| host.folder_of(*process, data).is_ok());
    }
    match found.as_slice() {
        [process] => Some(*process),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_db::server::Place;

    #[test]
    fn a_folder_that_climbs_is_none_of_a_server() {
        let host = Host::live();
        let own = std::process::id();
        assert_eq!(reach(&host, None, Path::new("/tmp")), Ok(PathBuf::from("/tmp")));
        for folder in [format!("/tmp/../proc/{own}/root/tmp"), "/tmp/..".into(), "../tmp".into()] {
            assert!(reach(&host, None, Path::new(&folder)).is_err(), "{folder}");
        }
    }

    /// /dev/shm is a file system of its own wherever there are tests.
    #[test]
    fn a_log_elsewhere_is_found_through_names_and_links() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let home = Home { data: Some(data.path().to_path_buf()), ..Home::default() };
        let found = |named: &Path| elsewhere(&Host::live(), &home, named);
        assert_eq!(found(Path::new("pg_wal")), None);
        std::fs::create_dir(data.path().join("pg_wal")).unwrap();
        assert_eq!(
            [found(Path::new("pg_wal")), found(Path::new("./")), found(data.path())],
            [None, None, None]
        );
        std::fs::remove_dir(data.path().join("pg_wal")).unwrap();
        std::os::unix::fs::symlink(other.path(), data.path().join("pg_wal")).unwrap();
        let there = Some(other.path().to_path_buf());
        assert_eq!([found(Path::new("pg_wal")), found(other.path())], [there.clone(), there]);
        std::fs::create_dir(other.path().join("#innodb_redo")).unwrap();
        assert_eq!(found(other.path()), Some(other.path().join("#innodb_redo")));
    }

    #[test]
    fn only_sockets_and_the_loop_back_are_here() {
        for (place, expected) in [
            (Place::Unix(PathBuf::from("/run/s")), true),
            (Place::Tcp { host: "127.0.0.1".into(), port: 3306 }, true),
            (Place::Tcp { host: "::1".into(), port: 3306 }, true),
            (Place::Tcp { host: "localhost".into(), port: 3306 }, true),
            (Place::Tcp { host: "db.example".into(), port: 3306 }, false),
            (Place::Tcp { host: "10.0.0.1".into(), port: 3306 }, false),
        ] {
            assert_eq!(is_local(&place.to_string()), expected, "{place}");
        }
    }
}
