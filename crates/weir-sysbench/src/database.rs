//! The options of sysbench's database drivers, and what weir makes of them.

use std::collections::BTreeSet;

use super::log::{Log, Quit};
use super::values::Values;
use weir_oltp::Dialect;

/// What the options say about servers. Holds no password: it stays among the [`Values`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// `--db-driver`, as typed.
    pub driver: String,
    /// `--db-ps-mode`, as typed.
    pub ps_mode: String,
    /// `--mysql-host`, each with its `--mysql-port`s, in the order in which connections take them.
    pub mysql_places: Vec<(String, u16)>,
    /// `--mysql-socket`; where there are any, hosts and ports do not count.
    pub mysql_sockets: Vec<String>,
    /// `--mysql-user`.
    pub mysql_user: String,
    /// `--mysql-db`.
    pub mysql_db: String,
    /// `--mysql-ssl`.
    pub mysql_ssl: bool,
    /// `--mysql-dry-run`.
    pub mysql_dry_run: bool,
    /// `--mysql-ignore-errors`.
    pub ignored: Ignored,
    /// `--pgsql-host`: a name, or the folder of a socket.
    pub pgsql_host: String,
    /// `--pgsql-port`.
    pub pgsql_port: u16,
    /// `--pgsql-user`.
    pub pgsql_user: String,
    /// `--pgsql-db`.
    pub pgsql_db: String,
    /// `--db-debug`.
    pub debug: bool,
    /// Options that were given and do nothing in weir.
    pub without_effect: Vec<&'static str>,
}

/// Errors of MySQL after which an event runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// Every one.
    All,
    /// Those of these numbers.
    Numbers(BTreeSet<u16>),
}

impl Ignored {
    /// Whether this error lets an event run again.
    pub fn holds(&self, number: u16) -> bool {
        match self {
            Ignored::All => true,
            Ignored::Numbers(numbers) => numbers.contains(&number),
        }
    }
}

/// MySQL's numbers for a connection that is gone; where they are ignored, sysbench connects again.
pub const LOST: [u16; 4] = [2006, 2011, 2013, 2055];

/// The drivers by sysbench's names.
pub const DRIVERS: [(&str, Dialect); 2] = [("mysql", Dialect::MySql), ("pgsql", Dialect::Postgres)];

impl Database {
    /// Reads the options.
    pub fn from_values(values: &Values, log: &mut Log<'_>) -> Result<Database, Quit> {
        let text = |name: &str| values.text(name).unwrap_or("").to_string();
        let pgsql_port = values.int("pgsql-port", log)?;
        let Ok(pgsql_port) = u16::try_from(pgsql_port) else {
            return Err(log.fatal(format!("Invalid value for --pgsql-port: {pgsql_port}.")));
        };
        let unread = ["mysql-ssl-cipher", "mysql-compression", "mysql-debug"];
        Ok(Database {
            driver: text("db-driver"),
            ps_mode: text("db-ps-mode"),
            mysql_places: places(values, log)?,
            mysql_sockets: values.list("mysql-socket").to_vec(),
            mysql_user: text("mysql-user"),
            mysql_db: text("mysql-db"),
            mysql_ssl: values.flag("mysql-ssl"),
            mysql_dry_run: values.flag("mysql-dry-run"),
            ignored: ignored(values.list("mysql-ignore-errors"), log)?,
            pgsql_host: text("pgsql-host"),
            pgsql_port,
            pgsql_user: text("pgsql-user"),
            pgsql_db: text("pgsql-db"),
            debug: values.flag("db-debug"),
            without_effect: unread.into_iter().filter(|name| values.text(name).is_some()).collect(),
        })
    }

    /// The server's family; `None` where sysbench has no driver of that name.
    pub fn dialect(&self) -> Option<Dialect> {
        DRIVERS.iter().find(|(name, _)| *name == self.driver).map(|(_, dialect)| *dialect)
    }
}

/// A command line without its passwords, for records.
pub fn without_passwords(words: &[String]) -> Vec<String> {
    let hidden = |word: &String| match word.split_once('=') {
        Some((name, _)) if name.ends_with("password") => format!("{name}=(hidden)"),
        _ => word.clone(),
    };
    words.iter().map(hidden).collect()
}

/// Every host with every port.
fn places(values: &Values, log: &mut Log<'_>) -> Result<Vec<(String, u16)>, Quit> {
    let mut ports = Vec::new();
    for text in values.list("mysql-port") {
        match text.trim().parse::<u16>() {
            Ok(port) => ports.push(port),
            Err(_) => return Err(log.fatal(format!("Invalid value for --mysql-port: '{text}'"))),
        }
    }
    let hosts = values.list("mysql-host");
    Ok(hosts.iter().flat_map(|host| ports.iter().map(|port| (host.clone(), *port))).collect())
}

fn ignored(list: &[String], log: &mut Log<'_>) -> Result<Ignored, Quit> {
    if list.iter().any(|text| text == "all") {
        return Ok(Ignored::All);
    }
    let mut numbers = BTreeSet::new();
    for text in list {
        match text.trim().parse::<u16>() {
            Ok(number) => numbers.insert(number),
            Err(_) => {
                return Err(log.fatal(format!("Invalid value for --mysql-ignore-errors: '{text}'")));
            }
        };
    }
    Ok(Ignored::Numbers(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Kept;
    use crate::options;

    fn read(set: &[(&str, &str)]) -> (Result<Database, Quit>, String) {
        let mut values = Values::default();
        for (name, value) in set {
            let kind = options::general_kind(name).unwrap();
            assert!(values.set(name, Some(value), kind), "{name}");
        }
        values.defaults(options::database());
        let mut kept = Kept::default();
        let read = Database::from_values(&values, &mut Log::new(&mut kept));
        (read, kept.out)
    }

    #[test]
    fn options_name_servers() {
        let (plain, _) = read(&[]);
        let plain = plain.unwrap();
        assert_eq!(plain.dialect(), Some(Dialect::MySql));
        assert_eq!(plain.mysql_places, [("localhost".to_string(), 3306)]);
        assert!(plain.ignored.holds(1213) && plain.ignored.holds(1205) && !plain.ignored.holds(2013));
        assert!(plain.without_effect.is_empty() && !plain.mysql_ssl);
        let (many, _) = read(&[
            ("mysql-host", "a,b"),
            ("mysql-port", "1,2"),
            ("mysql-ignore-errors", "all"),
            ("db-driver", "pgsql"),
            ("mysql-compression", "on"),
        ]);
        let many = many.unwrap();
        let places: Vec<(&str, u16)> = many.mysql_places.iter().map(|(h, p)| (h.as_str(), *p)).collect();
        assert_eq!(places, [("a", 1), ("a", 2), ("b", 1), ("b", 2)]);
        assert!(many.ignored.holds(9));
        assert_eq!(many.dialect(), Some(Dialect::Postgres));
        assert_eq!(many.without_effect, ["mysql-compression"]);
        assert_eq!(read(&[("db-driver", "oracle")]).0.unwrap().dialect(), None);
    }

    #[test]
    fn passwords_leave_no_trace() {
        let words = ["sysbench", "--mysql-password=secret", "--pgsql_password=secret", "--mysql-db=d"];
        let shown = without_passwords(&words.map(str::to_string));
        assert_eq!(shown[1..], ["--mysql-password=(hidden)", "--pgsql_password=(hidden)", "--mysql-db=d"]);
        let mut values = Values::default();
        assert!(values.set("mysql-password", Some("secret"), options::Kind::Text));
        assert!(!format!("{values:?}").contains("secret"));
    }

    #[test]
    fn values_that_are_none_are_named() {
        for (name, value, said) in [
            ("mysql-port", "x", "FATAL: Invalid value for --mysql-port: 'x'\n"),
            ("mysql-ignore-errors", "1213,y", "FATAL: Invalid value for --mysql-ignore-errors: 'y'\n"),
            ("pgsql-port", "70000", "FATAL: Invalid value for --pgsql-port: 70000.\n"),
        ] {
            let (read, out) = read(&[(name, value)]);
            assert_eq!((read, out.as_str()), (Err(Quit(1)), said), "{name}");
        }
    }
}
