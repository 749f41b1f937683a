//! How a server is named and how to log in: options that every command has that talks to one.

use std::path::PathBuf;

use weir_core::units::Nanos;
use weir_db::TlsMode;
use weir_db::credentials::tls_mode;

/// What help says about naming servers.
pub const SERVERS: &str = "\
Servers: mysql://USER@HOST:PORT/DATABASE, mariadb://…, postgres://…, unix:/run/mysqld/mysqld.sock, \
or HOST alone; several with commas. Without a name, the only server that has its socket here.
Passwords are never arguments: they come from ~/.my.cnf ([client], [weir]), ~/.mylogin.cnf, \
MYSQL_PWD, PGPASSWORD, ~/.pgpass, a service file, or a prompt (--ask-password).";

/// Which server, and who asks.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ConnectArgs {
    /// The server, as a name of its own: mysql://USER@HOST:PORT/DATABASE, postgres://…, unix:/path/of/socket
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["mysql", "postgres"])]
    pub server: Option<String>,
    /// A MySQL or MariaDB server [default: the one whose socket is here]
    #[arg(long, visible_alias = "mariadb", num_args = 0..=1, require_equals = true, default_missing_value = "", value_name = "SERVER", conflicts_with = "postgres")]
    pub mysql: Option<String>,
    /// A PostgreSQL server [default: the one whose socket is here]
    #[arg(long, visible_alias = "pgsql", num_args = 0..=1, require_equals = true, default_missing_value = "", value_name = "SERVER")]
    pub postgres: Option<String>,
    /// Host, or several with commas: connections are spread over them
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub host: Option<String>,
    /// Port [default: 3306, 5432]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Unix socket
    #[arg(long, value_name = "PATH", conflicts_with = "host")]
    pub socket: Option<PathBuf>,
    /// Account [default: as the server's own client: its files, else your name here]
    #[arg(long, short = 'u', value_name = "NAME")]
    pub user: Option<String>,
    /// Ask for the password on the terminal
    #[arg(long)]
    pub ask_password: bool,
    /// Database (schema) of the workload's tables [default: weir]
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Encryption: disabled, preferred, required, verify-ca or verify-identity [default: preferred, with --tls-ca verify-ca; never on sockets]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub tls: Option<TlsMode>,
    /// Certificates of the authorities that may sign the server's (PEM): weir connects to no other server
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Your own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Send the password itself to a server that has not proven its identity; listeners can read it
    #[arg(long)]
    pub allow_cleartext_password: bool,
    /// MySQL: the server's public key (PEM): passwords are encrypted by it where the connection is not
    #[arg(long, visible_alias = "server-public-key-path", value_name = "FILE")]
    pub server_public_key: Option<PathBuf>,
    /// MySQL: ask the server for that key: this stops listeners, not an attacker in between
    #[arg(long)]
    pub get_server_public_key: bool,
    /// MySQL: read this option file and no other
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// MySQL: a login path of mysql_config_editor [default: client]
    #[arg(long, value_name = "NAME")]
    pub login_path: Option<String>,
    /// PostgreSQL: an entry of the service file
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Longest time to connect and log in [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub connect_timeout: Option<Nanos>,
}

fn mode(text: &str) -> Result<TlsMode, String> {
    tls_mode(text).map_err(|error| match &error.hint {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    })
}
