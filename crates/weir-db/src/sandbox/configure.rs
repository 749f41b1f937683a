//! The configuration file of a throw-away server: what makes it one, then what was asked for.

use std::fmt::Write;
use std::path::Path;

use weir_oltp::Dialect;

use super::{Flavour, SandboxError, SandboxSpec};

/// Where a server finds its things.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// Its data directory.
    pub data: &'a Path,
    /// For its temporary files.
    pub temporary: &'a Path,
    /// Its socket.
    pub socket: &'a Path,
    /// Statements that MariaDB runs before it takes connections.
    pub first: &'a Path,
}

/// MariaDB makes superusers without a password for TCP, which every account of the machine reaches.
pub(super) const FIRST: &str = "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host IN ('127.0.0.1', '::1') \
AND COALESCE(JSON_VALUE(Priv, '$.authentication_string'), '') = '';\nFLUSH PRIVILEGES;\n";

/// The text of `my.cnf` or `postgresql.conf`: no network, a small buffer pool, everything else as the server ships. One
/// that is not `apart` shares /dev/shm with everybody.
///
/// # Errors
/// When a variable cannot be written in such a file.
pub(super) fn text(spec: &SandboxSpec, places: Places<'_>, apart: bool) -> Result<String, SandboxError> {
    check(spec)?;
    let folder = places.socket.parent().unwrap_or(Path::new("/"));
    let path = |path: &Path| path.display().to_string();
    let memory = spec.memory.0.to_string();
    let postgres = spec.flavour.dialect() == Dialect::Postgres;
    let mut own: Vec<(&str, String)> = if postgres {
        vec![
            ("listen_addresses", String::new()),
            ("unix_socket_directories", path(folder)),
            ("port", spec.port().to_string()),
            // 8 KiB each, as in every package.
            ("shared_buffers", (spec.memory.0 / 8192).max(16).to_string()),
        ]
    } else {
        vec![
            ("datadir", path(places.data)),
            ("tmpdir", path(places.temporary)),
            ("socket", path(places.socket)),
            ("pid-file", path(&folder.join("mysqld.pid"))),
            ("skip-networking", "1".to_string()),
            // Where TCP is asked for: the superuser of `localhost` is that of the socket alone.
            ("skip_name_resolve", "1".to_string()),
            // MySQL's second protocol listens by itself.
            ("loose-mysqlx", "0".to_string()),
            ("innodb_buffer_pool_size", memory),
        ]
    };
    if postgres && !apart {
        // Its memory files lie among its data, and go with them however it ends.
        own.push(("dynamic_shared_memory_type", "mmap".to_string()));
    }
    if spec.flavour == Flavour::Mariadb {
        own.push(("init_file", path(places.first)));
    }
    if spec.flavour == Flavour::Mysql {
        // Its packages name a folder that only an installed server has.
        own.push(("secure_file_priv", "NULL".to_string()));
    }
    let mut text = if postgres { String::new() } else { "[mysqld]\n".to_string() };
    // Of two lines for one variable both servers take the last.
    let asked = spec.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
    for (name, value) in own.into_iter().chain(asked) {
        let value = if postgres { value.replace('\'', "''") } else { value.replace('\\', "\\\\") };
        let quote = if postgres { '\'' } else { '"' };
        let _ = writeln!(text, "{name} = {quote}{value}{quote}");
    }
    Ok(text)
}

/// Where a server listens and where its data lie is weir's own to say: with another place it would be waited for in
/// vain, or left behind.
const OWN: [&str; 7] = [
    "config_file",
    "data_directory",
    "datadir",
    "external_pid_file",
    "pid_file",
    "socket",
    "unix_socket_directories",
];

fn check(spec: &SandboxSpec) -> Result<(), SandboxError> {
    let postgres = spec.flavour.dialect() == Dialect::Postgres;
    for (name, value) in &spec.variables {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let why = if name.is_empty() || !name.chars().all(plain) {
            "a variable's name has letters, digits, `_`, `-` and `.`"
        } else if value.contains(['\n', '\0', '"']) {
            "its value does not fit a line of a configuration file"
        } else if OWN.contains(&plain_name(name).as_str()) {
            "weir sets the address and the data directory of a throw-away server itself"
        } else if postgres && plain_name(name) == "port" && !is_port(value) {
            "a port is a number from 1 to 65535"
        } else {
            continue;
        };
        return Err(SandboxError::Variable { name: name.clone(), value: value.clone(), why });
    }
    Ok(())
}

/// A variable's name however it is written: `pid-file` and `loose_pid_file` are `pid_file` to MySQL.
fn plain_name(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("loose_").unwrap_or(&name).to_string()
}

/// Written as the socket's name has it.
fn is_port(value: &str) -> bool {
    value.parse::<u16>().is_ok_and(|port| port > 0 && port.to_string() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &SandboxSpec) -> Result<String, SandboxError> {
        let places = Places {
            data: Path::new("/d/data"),
            temporary: Path::new("/d/tmp"),
            socket: Path::new("/r/s"),
            first: Path::new("/r/first.sql"),
        };
        text(spec, places, true)
    }

    #[test]
    fn what_was_asked_for_comes_last_and_is_quoted() {
        let mysql = SandboxSpec::new(Flavour::Mariadb, "/d")
            .set("innodb_io_capacity", "200")
            .set("init_connect", "a\\b");
        let postgres = SandboxSpec::new(Flavour::Postgres, "/d")
            .set("shared_buffers", "16MB")
            .set("log_line_prefix", "it's");
        for (spec, parts) in [
            (
                &mysql,
                &[
                    "[mysqld]\n",
                    "skip-networking = \"1\"",
                    "= \"134217728\"\n",
                    "init_connect = \"a\\\\b\"\n",
                ][..],
            ),
            (
                &postgres,
                &[
                    "listen_addresses = ''\n",
                    "= '16384'\n",
                    "log_line_prefix = 'it''s'\nshared_buffers = '16MB'\n",
                ],
            ),
        ] {
            let text = of(spec).unwrap();
            for part in parts {
                assert!(text.contains(part), "{part:?} in {text}");
            }
        }
    }

    #[test]
    fn where_a_server_listens_is_not_to_be_set() {
        for (flavour, name, value) in [
            (Flavour::Mariadb, "socket", "/tmp/s"),
            (Flavour::Mysql, "loose-pid-file", "/tmp/p"),
            (Flavour::Postgres, "unix_socket_directories", "/tmp"),
            (Flavour::Postgres, "Data_Directory", "/tmp"),
            (Flavour::Postgres, "port", "0"),
            (Flavour::Postgres, "PORT", "0x1770"),
            (Flavour::Postgres, "port", "70000"),
        ] {
            let error = of(&SandboxSpec::new(flavour, "/d").set(name, value)).unwrap_err();
            assert!(matches!(error, SandboxError::Variable { .. }), "{name}: {error}");
        }
        let spec = SandboxSpec::new(Flavour::Postgres, "/d").set("Port", "6000");
        assert!(of(&spec).unwrap().contains("port = '6000'"));
        assert_eq!(spec.socket_name(), ".s.PGSQL.6000");
        // Of a MySQL without a network the port says nothing.
        assert!(of(&SandboxSpec::new(Flavour::Mariadb, "/d").set("port", "0")).is_ok());
    }

    #[test]
    fn a_variable_cannot_break_out_of_its_line() {
        for (name, value) in [("a", "1\n[client]"), ("a b", "1"), ("", "1"), ("a", "\"x"), ("a]\n", "1")] {
            let error = of(&SandboxSpec::new(Flavour::Mysql, "/d").set(name, value)).unwrap_err();
            assert!(
                matches!(error, SandboxError::Variable { .. }) && error.is_usage(),
                "{name:?}={value:?}: {error}"
            );
        }
    }
}
