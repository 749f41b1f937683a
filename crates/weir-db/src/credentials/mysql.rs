//! MySQL and MariaDB: command line over login path over option files over environment, as their clients have it.

use std::fs;
use std::path::PathBuf;

use weir_oltp::Dialect;

use super::around::{is_socket, read, read_if_any};
use super::option_file::Options;
use super::{Around, CredentialsError, Host, Layer, Login, Typed, login_path, tls_mode, url};
use crate::server::{Place, Secret, TlsMode};

/// The port.
pub(super) const PORT: u16 = 3306;
/// Where distributions put the socket.
const SOCKETS: [&str; 5] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/run/mysql/mysql.sock",
    "/tmp/mysql.sock",
];
/// Option files of the system, MySQL's and MariaDB's.
const FILES: [&str; 3] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/local/etc/my.cnf"];
/// Groups that are read.
const GROUPS: [&str; 4] = ["client", "client-server", "client-mariadb", "weir"];

/// The socket of a server on this machine.
pub(super) fn local_socket(around: &Around) -> Option<PathBuf> {
    let stated = around.variable("MYSQL_UNIX_PORT").map(PathBuf::from);
    stated.into_iter().chain(SOCKETS.map(|path| around.system(path))).find(|path| is_socket(path))
}

/// Completes what was typed.
pub(super) fn resolve(typed: &Typed, around: &Around, notes: Vec<String>) -> Result<Login, CredentialsError> {
    let mut login = Login { servers: Vec::new(), notes, looked_in: Vec::new() };
    let hidden = hidden(typed, around, &mut login)?;
    let files = option_files(typed, around, &mut login)?;
    let layer = typed.stated.clone().over(hidden).over(files).over(environment(around, &mut login)?);
    let layer = Layer { user: layer.user.clone().or_else(|| Some(around.user.clone())), ..layer };
    let places = places(&layer, around);
    let password = layer.password.clone().unwrap_or_default();
    login.servers = super::servers(Dialect::MySql, &layer, places, typed, |_| password.clone())?;
    Ok(login)
}

/// The login path.
fn hidden(typed: &Typed, around: &Around, login: &mut Login) -> Result<Layer, CredentialsError> {
    let stated = around.variable("MYSQL_TEST_LOGIN_FILE").map(PathBuf::from);
    let named = stated.is_some();
    let Some(path) = stated.or_else(|| around.at_home(".mylogin.cnf")) else { return Ok(Layer::default()) };
    let found = if typed.login_path.is_some() {
        read(&path, named).map(Some).map_err(|error| {
            let what = format!("no login path can be read from {}: {error}", path.display());
            CredentialsError::new(what).hint("`mysql_config_editor set --login-path=NAME …` makes one")
        })?
    } else {
        read_if_any(&path, named, &mut login.notes)
    };
    let Some(found) = found else { return Ok(Layer::default()) };
    if found.readable {
        login.notes.push(format!("{} is left out: others may read it (chmod 600)", path.display()));
        return Ok(Layer::default());
    }
    login.looked_in.push(path.display().to_string());
    let Some(text) = login_path::reveal(&found.bytes) else {
        login.notes.push(format!("{} is left out: it is damaged", path.display()));
        return Ok(Layer::default());
    };
    let mut options = Options::default();
    let name = typed.login_path.as_deref().unwrap_or("client");
    options.take(&text, &[name]);
    if typed.login_path.is_some() && options.values.is_empty() {
        let what = format!("{} has no login path `{name}`", path.display());
        return Err(
            CredentialsError::new(what).hint("`mysql_config_editor print --all` shows those there are")
        );
    }
    layer_of(&options)
}

fn option_files(typed: &Typed, around: &Around, login: &mut Login) -> Result<Layer, CredentialsError> {
    let mut options = Options::default();
    if let Some(path) = &typed.defaults_file {
        fs::metadata(path).map_err(|error| {
            CredentialsError::new(format!("cannot read the option file {}: {error}", path.display()))
        })?;
        options.read(path, true, &GROUPS);
    } else {
        let system = FILES.map(|path| around.system(path));
        system
            .into_iter()
            .chain(around.at_home(".my.cnf"))
            .for_each(|path| options.read(&path, false, &GROUPS));
    }
    let own = around
        .at_home(".my.cnf")
        .filter(|path| typed.defaults_file.is_none() && !options.read.contains(path));
    login.looked_in.extend(options.read.iter().chain(&own).map(|path| path.display().to_string()));
    login.notes.append(&mut options.notes);
    layer_of(&options)
}

/// What options say.
fn layer_of(options: &Options) -> Result<Layer, CredentialsError> {
    let get = |name: &str| options.values.get(name).filter(|value| !value.is_empty()).cloned();
    let path = |name: &str| get(name).map(PathBuf::from);
    let port = get("port").map(|text| port(&text)).transpose()?;
    Ok(Layer {
        hosts: url::hosts(&get("host").unwrap_or_default())?,
        port,
        socket: path("socket"),
        user: get("user"),
        password: options.values.get("password").map(Secret::new),
        database: get("database"),
        tls: tls_of(options)?,
        tls_ca: path("ssl-ca"),
        found_ca: None,
        tls_cert: path("ssl-cert"),
        tls_key: path("ssl-key"),
        allow_cleartext: flag(options, "enable-cleartext-plugin"),
        server_key: path("server-public-key-path"),
        ask_server_key: flag(options, "get-server-public-key"),
    })
}

fn port(text: &str) -> Result<u16, CredentialsError> {
    text.trim().parse().map_err(|_| {
        CredentialsError::new(format!(
            "expected a port from 1 to 65535, got \
        `{text}`"
        ))
    })
}

fn flag(options: &Options, name: &str) -> Option<bool> {
    let value = options.values.get(name)?;
    Some(!matches!(value.to_ascii_lowercase().as_str(), "0" | "off" | "false"))
}

/// MySQL says `ssl-mode`, MariaDB `ssl`, `skip-ssl` and `ssl-verify-server-cert`.
fn tls_of(options: &Options) -> Result<Option<TlsMode>, CredentialsError> {
    let flag = |name: &str| flag(options, name);
    if let Some(mode) = options.values.get("ssl-mode") {
        return tls_mode(mode).map(Some);
    }
    if flag("skip-ssl") == Some(true) || flag("ssl") == Some(false) {
        return Ok(Some(TlsMode::Disabled));
    }
    if flag("ssl-verify-server-cert") == Some(true) {
        return Ok(Some(TlsMode::VerifyIdentity));
    }
    Ok(flag("ssl").map(|_| TlsMode::Required))
}

fn environment(around: &Around, login: &mut Login) -> Result<Layer, CredentialsError> {
    login.looked_in.push("MYSQL_PWD".to_string());
    Ok(Layer {
        hosts: url::hosts(around.variable("MYSQL_HOST").unwrap_or_default())?,
        port: around.variable("MYSQL_TCP_PORT").map(port).transpose()?,
        socket: around.variable("MYSQL_UNIX_PORT").map(PathBuf::from),
        password: around.variable("MYSQL_PWD").map(Secret::new),
        ..Layer::default()
    })
}

/// A socket where one is named or the host is this machine and one is there, else TCP.
fn places(layer: &Layer, around: &Around) -> Vec<Place> {
    let tcp =
        |host: &Host| Place::Tcp { host: host.name.clone(), port: host.port.or(layer.port).unwrap_or(PORT) };
    if let Some(socket) = &layer.socket
        && layer.hosts.iter().all(|host| host.name == "localhost" && host.port.is_none())
    {
        return vec![Place::Unix(socket.clone())];
    }
    let local = Host { name: "localhost".to_string(), port: None };
    let hosts = if layer.hosts.is_empty() { vec![local] } else { layer.hosts.clone() };
    let place = |host: &Host| {
        let by_socket = host.name == "localhost" && host.port.or(layer.port).is_none();
        let socket = if by_socket { local_socket(around) } else { None };
        socket.map_or_else(|| tcp(host), Place::Unix)
    };
    hosts.iter().map(place).collect()
}
