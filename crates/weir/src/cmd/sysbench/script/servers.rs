//! From sysbench's options to servers and how to log in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use weir_db::credentials;
use weir_db::script::Servers;
use weir_db::server::{Place, Secret, Server, Tls, TlsMode};
use weir_oltp::Dialect;
use weir_sysbench::Database;
use weir_sysbench::values::Values;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Where MySQL's and MariaDB's packages put their sockets.
const MYSQL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
    "/var/run/mysqld/mysqld.sock",
];

/// The servers that the options name. The passwords are taken from the options, and where those are silent from the
/// variables that the servers' own clients read.
pub fn servers(database: &Database, values: &Values) -> Servers {
    let complaint = match database.ps_mode.as_str() {
        "auto" | "disable" => None,
        other => Some(format!("Invalid value for db-ps-mode: {other}")),
    };
    let password = |option: &str, variable: &str| {
        let typed = values.text(option).map(str::to_string);
        Secret::new(typed.or_else(|| std::env::var(variable).ok()).unwrap_or_default())
    };
    let mut servers = mysql(database, &password("mysql-password", "MYSQL_PWD"));
    servers.push(postgres(database, password("pgsql-password", "PGPASSWORD")));
    Servers {
        default_driver: database.driver.clone(),
        complaint,
        servers,
        dry: database.mysql_dry_run,
        made: AtomicUsize::new(0),
    }
}

fn mysql(database: &Database, password: &Secret) -> Vec<Server> {
    let sockets = database.mysql_sockets.iter().map(|path| Place::Unix(PathBuf::from(path)));
    let places: Vec<Place> = match database.mysql_sockets.is_empty() {
        false => sockets.collect(),
        true => database.mysql_places.iter().map(|(host, port)| mysql_place(host, *port)).collect(),
    };
    let server = |place| Server {
        dialect: Dialect::MySql,
        place,
        user: database.mysql_user.clone(),
        password: password.clone(),
        database: database.mysql_db.clone(),
        tls: mysql_tls(database.mysql_ssl),
        connect_timeout: CONNECT_TIMEOUT,
        answer_timeout: None,
    };
    places.into_iter().map(server).collect()
}

/// `localhost` is the local socket, as for every client of MySQL; where none is found, TCP.
fn mysql_place(host: &str, port: u16) -> Place {
    let named = std::env::var_os("MYSQL_UNIX_PORT").map(PathBuf::from);
    let known = MYSQL_SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
    match named.or(known) {
        Some(socket) if host == "localhost" => Place::Unix(socket),
        _ => Place::Tcp { host: host.to_string(), port },
    }
}

/// sysbench reads its certificates from the current folder; those that are there are used. Nobody named them: in a folder of
/// another account they would make that account's server the one that is meant.
fn mysql_tls(asked: bool) -> Tls {
    if !asked {
        // sysbench's client library asks whoever answers for the key by which the password is encrypted.
        return Tls { mode: TlsMode::Disabled, ask_server_key: true, ..Tls::default() };
    }
    in_folder(Path::new(""))
}

fn in_folder(folder: &Path) -> Tls {
    let left_out = |name: &str, error: io::Error| say!("note: {name} is left out: {error}");
    let believed = |name: &str| {
        let path = folder.join(name);
        match credentials::believed(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                left_out(name, error);
                None
            }
            Ok(_) => Some(path),
        }
    };
    let found = credentials::found_authorities(&folder.join("cacert.pem"));
    let found_ca = found.unwrap_or_else(|error| {
        left_out("cacert.pem", error);
        None
    });
    let (cert, key) = (believed("client-cert.pem"), believed("client-key.pem"));
    let mode = if found_ca.is_some() { TlsMode::VerifyCa } else { TlsMode::Required };
    let (cert, key) = cert.zip(key).unzip();
    Tls { mode, found_ca, cert, key, ..Tls::default() }
}

fn postgres(database: &Database, password: Secret) -> Server {
    let (host, port) = (&database.pgsql_host, database.pgsql_port);
    let place = match host.starts_with('/') {
        true => Place::Unix(Path::new(host).join(format!(".s.PGSQL.{port}"))),
        false => Place::Tcp { host: host.clone(), port },
    };
    Server {
        dialect: Dialect::Postgres,
        place,
        user: database.pgsql_user.clone(),
        password,
        database: database.pgsql_db.clone(),
        // As the server's own client library does it where nothing is said.
        tls: Tls { mode: TlsMode::Preferred, ..Tls::default() },
        connect_timeout: CONNECT_TIMEOUT,
        answer_timeout: None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificates_that_lie_here_count_only_where_nobody_else_can_have_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["cacert.pem", "client-cert.pem", "client-key.pem"];
        let asked = || {
            let tls = in_folder(folder.path());
            (tls.effective(), tls.has_ca(), tls.cert.is_some(), tls.key.is_some())
        };
        assert_eq!(asked(), (TlsMode::Required, false, false, false));
        names.iter().for_each(|name| fs::write(folder.path().join(name), "text").unwrap());
        assert_eq!(asked(), (TlsMode::VerifyCa, true, true, true));
        for name in names {
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o666)).unwrap();
        }
        assert_eq!(asked(), (TlsMode::Required, false, false, false));
    }
}
