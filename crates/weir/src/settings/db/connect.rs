//! The servers that a command shall talk to.

use std::time::Duration;

use weir_core::units::Nanos;
use weir_db::credentials::{CredentialsError, Layer, Typed, parse_hosts, parse_url};
use weir_oltp::Dialect;

use crate::cli::db::connect::ConnectArgs;

/// Servers and log-in as typed, before files and environment complete them.
///
/// # Errors
/// Where a name of a server cannot be read.
pub fn typed(args: &ConnectArgs) -> Result<Typed, CredentialsError> {
    let named = match (&args.server, &args.mysql, &args.postgres) {
        (Some(text), _, _) => parse_url(text, None)?,
        (_, Some(text), _) => parse_url(text, Some(Dialect::MySql))?,
        (_, _, Some(text)) => parse_url(text, Some(Dialect::Postgres))?,
        _ => Typed::default(),
    };
    let flags = Layer {
        hosts: parse_hosts(args.host.as_deref().unwrap_or_default())?,
        port: args.port,
        socket: args.socket.clone(),
        user: args.user.clone(),
        password: None,
        database: args.database.clone(),
        tls: args.tls,
        tls_ca: args.tls_ca.clone(),
        found_ca: None,
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
        allow_cleartext: args.allow_cleartext_password.then_some(true),
        server_key: args.server_public_key.clone(),
        ask_server_key: args.get_server_public_key.then_some(true),
    };
    Ok(Typed {
        stated: flags.over(named.stated),
        defaults_file: args.defaults_file.clone(),
        login_path: args.login_path.clone(),
        service: args.service.clone(),
        connect_timeout: args.connect_timeout.map(|Nanos(ns)| Duration::from_nanos(ns)),
        ..named
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: ConnectArgs) -> Result<Typed, String> {
        typed(&args).map_err(|error| error.what)
    }

    #[test]
    fn flags_lie_over_the_name() {
        let args = ConnectArgs {
            mysql: Some("ann@db1:3310/shop".to_string()),
            user: Some("bob".to_string()),
            ..ConnectArgs::default()
        };
        let typed = check(args).unwrap();
        assert_eq!((typed.dialect, typed.stated.user.as_deref()), (Some(Dialect::MySql), Some("bob")));
        assert_eq!(
            (typed.stated.hosts[0].port, typed.stated.database.as_deref()),
            (Some(3310), Some("shop"))
        );
        let contradiction =
            ConnectArgs { mysql: Some("postgres://db1".to_string()), ..ConnectArgs::default() };
        assert!(check(contradiction).unwrap_err().contains("different families"));
        let port = ConnectArgs { host: Some("db1:http".to_string()), ..ConnectArgs::default() };
        assert!(check(port).unwrap_err().contains("a port"));
    }
}
