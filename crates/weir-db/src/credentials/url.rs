//! A server in one word: `mysql://user@host:port/database?tls=required`, `unix:/run/mysqld/mysqld.sock`.

use std::path::PathBuf;

use weir_oltp::Dialect;

use super::{CredentialsError, Host, Layer, Typed, tls_mode};

/// Reads a server's name. `family` is what an option has said of it (`--mysql=…`).
///
/// # Errors
/// Where it is none, contradicts `family`, or holds a password, which everybody on the machine could read.
pub fn parse(text: &str, family: Option<Dialect>) -> Result<Typed, CredentialsError> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme_of(scheme)?, rest),
        None => (None, text),
    };
    if let (Some(family), Some(scheme)) = (family, scheme)
        && family != scheme
    {
        let what = "the server's name and the option give different families";
        return Err(CredentialsError::new(what).hint("use --server with a full name"));
    }
    let mut typed = Typed { dialect: family.or(scheme), ..Typed::default() };
    let plain = rest.strip_prefix("unix:").unwrap_or(rest);
    if plain.starts_with('/') && !text.contains("://") {
        typed.stated.socket = Some(PathBuf::from(plain));
        return Ok(typed);
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    if user.contains(':') {
        let what =
            "a password in a server's name shows in the list of processes and in the record of the run";
        let hint = "keep it in ~/.my.cnf, ~/.pgpass, MYSQL_PWD or PGPASSWORD, or type it: --ask-password";
        return Err(CredentialsError::new(what).hint(hint));
    }
    let stated = &mut typed.stated;
    stated.user = word(user)?;
    stated.database = word(database)?;
    stated.hosts = self::hosts(hosts)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        parameter(stated, pair)?;
    }
    Ok(typed)
}

/// Hosts separated by commas, each with its port or without.
///
/// # Errors
/// Where a port is none.
pub fn hosts(text: &str) -> Result<Vec<Host>, CredentialsError> {
    text.split(',').filter(|host| !host.is_empty()).map(host).collect()
}

fn host(text: &str) -> Result<Host, CredentialsError> {
    let bad_port = |port: &str| {
        CredentialsError::new(format!("`{text}`: expected a port, got `{port}`"))
            .hint("a port is a number from 1 to 65535")
    };
    let port = |port: &str| port.parse::<u16>().ok().filter(|p| *p > 0).ok_or_else(|| bad_port(port));
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = rest.strip_prefix(':').map(port).transpose()?;
        return Ok(Host { name: address.to_string(), port });
    }
    match text.rsplit_once(':') {
        // Several colons without brackets are an address of IPv6.
        Some((name, digits)) if !name.contains(':') => {
            Ok(Host { name: decoded(name)?, port: Some(port(digits)?) })
        }
        _ => Ok(Host { name: decoded(text)?, port: None }),
    }
}

fn scheme_of(scheme: &str) -> Result<Option<Dialect>, CredentialsError> {
    match scheme {
        "mysql" | "mariadb" => Ok(Some(Dialect::MySql)),
        "postgres" | "postgresql" => Ok(Some(Dialect::Postgres)),
        other => Err(CredentialsError::new(format!("expected a family of servers, got `{other}`"))
            .hint("mysql://…, mariadb://…, postgres://… or unix:/path/of/socket")),
    }
}

fn parameter(stated: &mut Layer, pair: &str) -> Result<(), CredentialsError> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let value = decoded(value)?;
    match name.replace('_', "-").as_str() {
        "socket" | "unix-socket" => stated.socket = Some(PathBuf::from(value)),
        // PostgreSQL's own way to name the folder of a socket.
        "host" => stated.hosts = hosts(&value)?,
        "user" => stated.user = Some(value),
        "tls" | "sslmode" | "ssl-mode" => stated.tls = Some(tls_mode(&value)?),
        "tls-ca" | "sslrootcert" | "ssl-ca" => stated.tls_ca = Some(PathBuf::from(value)),
        "tls-cert" | "sslcert" | "ssl-cert" => stated.tls_cert = Some(PathBuf::from(value)),
        "tls-key" | "sslkey" | "ssl-key" => stated.tls_key = Some(PathBuf::from(value)),
        "allow-cleartext-password" => stated.allow_cleartext = Some(switch(&value)?),
        "server-public-key" => stated.server_key = Some(PathBuf::from(value)),
        "get-server-public-key" => stated.ask_server_key = Some(switch(&value)?),
        other => {
            return Err(CredentialsError::new(format!("a server's name has no parameter `{other}`")).hint(
                "socket, host, user, tls, tls-ca, tls-cert, tls-key, allow-cleartext-password, \
                 server-public-key, get-server-public-key",
            ));
        }
    }
    Ok(())
}

fn switch(text: &str) -> Result<bool, CredentialsError> {
    match text {
        "on" | "1" | "true" => Ok(true),
        "off" | "0" | "false" => Ok(false),
        other => Err(CredentialsError::new(format!("expected on or off, got `{other}`"))),
    }
}

fn word(text: &str) -> Result<Option<String>, CredentialsError> {
    Ok(Some(decoded(text)?).filter(|word| !word.is_empty()))
}

/// `%2F` is a slash (RFC 3986, 2.1).
fn decoded(text: &str) -> Result<String, CredentialsError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, code.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'%', None) => {
                return Err(CredentialsError::new(format!("`{text}`: a % is written %25")));
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| CredentialsError::new(format!("expected UTF-8, got `{text}`")))
}
