//! PostgreSQL: command line over service file over environment, passwords from the password file, as libpq has it.

use std::path::{Path, PathBuf};

use weir_oltp::Dialect;

use super::around::{is_socket, read_if_any};
use super::{Around, CredentialsError, Host, Layer, Login, Typed, passfile, service, tls_mode, url};
use crate::server::{Authorities, Place, Secret, TlsMode};

/// The port.
pub(super) const PORT: u16 = 5432;
/// How names of sockets begin; the port follows.
pub(super) const SOCKET: &str = ".s.PGSQL.";
/// Folders in which distributions put it.
const FOLDERS: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];

/// The socket of a server on this machine.
pub(super) fn local_socket(around: &Around, port: u16) -> Option<PathBuf> {
    let paths = FOLDERS.map(|folder| around.system(folder).join(format!("{SOCKET}{port}")));
    paths.into_iter().find(|path| is_socket(path))
}

/// Completes what was typed.
pub(super) fn resolve(typed: &Typed, around: &Around, notes: Vec<String>) -> Result<Login, CredentialsError> {
    let mut login = Login { servers: Vec::new(), notes, looked_in: vec!["PGPASSWORD".to_string()] };
    let of_service = of_service(typed, around, &mut login.notes)?;
    let layer = typed.stated.clone().over(of_service).over(environment(around)?);
    let user = layer.user.clone().unwrap_or_else(|| around.user.clone());
    let layer = Layer { user: Some(user.clone()), ..trusting(layer, around, &mut login.notes) };
    let places = places(&layer, around);
    let file = password_file(around, &mut login);
    let database = layer.database.clone().unwrap_or_else(|| user.clone());
    let password = |place: &Place| {
        let is_usual = matches!(place, Place::Unix(path) if is_usual(path, around));
        let from_file = || passfile::find(file.as_deref()?, place, is_usual, &database, &user);
        layer.password.clone().or_else(from_file).unwrap_or_default()
    };
    login.servers = super::servers(Dialect::Postgres, &layer, places, typed, password)?;
    Ok(login)
}

/// Which authorities count: `system` means those of the system, for this very host (libpq takes nothing less); where
/// none was named, and a certificate is to be looked at or encryption at least is a must, those of the file in the home.
fn trusting(layer: Layer, around: &Around, notes: &mut Vec<String>) -> Layer {
    if layer.tls_ca.as_deref() == Some(Path::new("system")) {
        return Layer { tls: Some(TlsMode::VerifyIdentity), tls_ca: None, ..layer };
    }
    let is_a_must =
        matches!(layer.tls, Some(TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity));
    if layer.tls_ca.is_some() || !is_a_must {
        return layer;
    }
    let path = around.at_home(".postgresql/root.crt");
    let found = path.and_then(|path| {
        let pem = read_if_any(&path, false, notes)?.bytes.into();
        Some(Authorities { path, pem })
    });
    Layer { found_ca: found, ..layer }
}

fn is_usual(socket: &Path, around: &Around) -> bool {
    FOLDERS.iter().any(|folder| socket.parent() == Some(&around.system(folder)))
}

fn environment(around: &Around) -> Result<Layer, CredentialsError> {
    let get = |name: &str| around.variable(name).map(String::from);
    let path = |name: &str| get(name).map(PathBuf::from);
    Ok(Layer {
        hosts: hosts(&get("PGHOST").or_else(|| get("PGHOSTADDR")).unwrap_or_default())?,
        port: get("PGPORT").map(|text| port(&text)).transpose()?,
        socket: None,
        user: get("PGUSER"),
        password: get("PGPASSWORD").map(Secret::new),
        database: get("PGDATABASE"),
        tls: get("PGSSLMODE").map(|text| tls_mode(&text)).transpose()?,
        tls_ca: path("PGSSLROOTCERT"),
        tls_cert: path("PGSSLCERT"),
        tls_key: path("PGSSLKEY"),
        ..Layer::default()
    })
}

fn of_service(typed: &Typed, around: &Around, notes: &mut Vec<String>) -> Result<Layer, CredentialsError> {
    let Some(name) = typed.service.as_deref().or_else(|| around.variable("PGSERVICE")) else {
        return Ok(Layer::default());
    };
    let named = around.variable("PGSERVICEFILE").map(|path| (PathBuf::from(path), true));
    let own = named.or_else(|| around.at_home(".pg_service.conf").map(|path| (path, false)));
    let folder = around.variable("PGSYSCONFDIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| around.system("/etc/postgresql-common"));
    let files: Vec<(PathBuf, bool)> =
        own.into_iter().chain([(folder.join("pg_service.conf"), false)]).collect();
    let mut entries = |(path, named): &(PathBuf, bool)| {
        service::entries(&read_if_any(path, *named, notes)?.text().ok()?, name)
    };
    let found = files.iter().find_map(&mut entries).ok_or_else(|| {
        let files: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        CredentialsError::new(format!("no service `{name}` in {}{notes}", files.join(" or ")))
    })?;
    let get = |name: &str| found.get(name).filter(|value| !value.is_empty()).cloned();
    let path = |name: &str| get(name).map(PathBuf::from);
    Ok(Layer {
        hosts: hosts(&get("host").or_else(|| get("hostaddr")).unwrap_or_default())?,
        port: get("port").map(|text| port(&text)).transpose()?,
        socket: None,
        user: get("user"),
        password: get("password").map(Secret::new),
        database: get("dbname"),
        tls: get("sslmode").map(|text| tls_mode(&text)).transpose()?,
        tls_ca: path("sslrootcert"),
        tls_cert: path("sslcert"),
        tls_key: path("sslkey"),
        ..Layer::default()
    })
}

/// Hosts; the folder of a socket is one, too.
fn hosts(text: &str) -> Result<Vec<Host>, CredentialsError> {
    let all = text.split(',').filter(|host| !host.is_empty());
    all.map(|host| match host.starts_with('/') {
        true => Ok(vec![Host { name: host.to_string(), port: None }]),
        false => url::hosts(host),
    })
    .collect::<Result<Vec<_>, _>>()
    .map(|hosts| hosts.concat())
}

fn port(text: &str) -> Result<u16, CredentialsError> {
    let port = text.split(',').next().unwrap_or_default().trim().parse();
    port.map_err(|_| CredentialsError::new(format!("expected a port from 1 to 65535, got `{text}`")))
}

/// The password file, unless others may read it: libpq leaves it out then.
fn password_file(around: &Around, login: &mut Login) -> Option<String> {
    let stated = around.variable("PGPASSFILE").map(PathBuf::from);
    let named = stated.is_some();
    let path = stated.or_else(|| around.at_home(".pgpass"))?;
    login.looked_in.push(path.display().to_string());
    let found = read_if_any(&path, named, &mut login.notes)?;
    if found.readable {
        let path = path.display();
        login.notes.push(format!("{path} is left out: group or others may read it; `chmod 600 {path}`"));
        return None;
    }
    found.text().ok()
}

fn places(layer: &Layer, around: &Around) -> Vec<Place> {
    let port = layer.port.unwrap_or(PORT);
    if let Some(socket) = &layer.socket {
        // The folder of a socket is what libpq calls a host; both are understood.
        let inside = socket.join(format!("{SOCKET}{port}"));
        return vec![Place::Unix(if socket.is_dir() { inside } else { socket.clone() })];
    }
    if layer.hosts.is_empty() {
        let tcp = || Place::Tcp { host: "localhost".to_string(), port };
        return vec![local_socket(around, port).map_or_else(tcp, Place::Unix)];
    }
    let place = |host: &Host| {
        let port = host.port.unwrap_or(port);
        match host.name.starts_with('/') {
            true => Place::Unix(PathBuf::from(&host.name).join(format!("{SOCKET}{port}"))),
            false => Place::Tcp { host: host.name.clone(), port },
        }
    };
    layer.hosts.iter().map(place).collect()
}
