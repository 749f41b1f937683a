//! Database servers behind knobs: how a variable is read and set in a server that runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_db::credentials::{self, Around, Layer, Typed};
use weir_db::{Connection, DbError, Place, Server, TlsMode};
use weir_host::knob::{Servers, Unreached};
use weir_knobs::{ServerName, Value};
use weir_oltp::Dialect;

/// A server's log-in, and each of its answers, may take so long: the journal of all changes waits for it.
const ANSWER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// One that took longer is not asked again for so long.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// How long PostgreSQL may take to read its configuration again.
const RELOAD: Duration = Duration::from_secs(2);

/// Reaches servers as their own clients do.
#[derive(Debug)]
pub struct Reached;

/// The name under which knobs and journals know a server.
pub fn name_of(server: &Server) -> ServerName {
    let place = match &server.place {
        Place::Unix(path) => path.display().to_string(),
        tcp => tcp.to_string(),
    };
    let user = if server.user.is_empty() { String::new() } else { format!("{}@", server.user) };
    ServerName { family: server.dialect, place: format!("{user}{place}") }
}

/// Where such a server is, and how to log in to it.
fn server_of(name: &ServerName) -> Result<Server, Unreached> {
    let (user, place) = parted(&name.place);
    let mut stated = Layer { user: user.map(str::to_string), ..Layer::default() };
    if place.starts_with('/') {
        stated.socket = Some(place.into());
    } else {
        stated.hosts = credentials::parse_hosts(place).map_err(|error| refused(error.to_string()))?;
    }
    let typed = Typed { dialect: Some(name.family), stated, ..Typed::default() };
    let login = credentials::resolve(&typed, &Around::live()).map_err(|error| refused(error.to_string()))?;
    login.servers.into_iter().next().ok_or_else(|| refused("it names no server".to_string()))
}

/// Who asks, and where. The path of a socket may hold `@`, and what follows it there is no host.
fn parted(name: &str) -> (Option<&str>, &str) {
    let at = if name.starts_with('/') { None } else { name.find("@/").or_else(|| name.rfind('@')) };
    at.map_or((None, name), |at| (Some(&name[..at]), &name[at + 1..]))
}

/// A server in one word, as [`named`] and `--server` take it; without its password.
pub fn name(servers: &[Server]) -> String {
    let Some(first) = servers.first() else { return String::new() };
    let scheme = match first.dialect {
        Dialect::MySql => "mysql",
        Dialect::Postgres => "postgres",
    };
    let (mut hosts, mut parameters) = (Vec::new(), Vec::new());
    for server in servers {
        match &server.place {
            Place::Unix(path) => parameters.push(format!("socket={}", encoded(&path.display().to_string()))),
            tcp => hosts.push(tcp.to_string()),
        }
    }
    let path = |name: &str, path: &Option<std::path::PathBuf>| {
        path.as_ref().map(|path| format!("{name}={}", encoded(&path.display().to_string())))
    };
    let tls = &first.tls;
    parameters.extend((tls.mode != TlsMode::default()).then(|| format!("tls={}", word_of(tls.mode))));
    parameters.extend(path("tls-ca", &tls.ca));
    parameters.extend(path("tls-cert", &tls.cert));
    parameters.extend(path("tls-key", &tls.key));
    parameters.extend(path("server-public-key", &tls.server_key));
    let on = |name: &str, is_on: bool| is_on.then(|| format!("{name}=on"));
    parameters.extend(on("get-server-public-key", tls.ask_server_key));
    parameters.extend(on("allow-cleartext-password", tls.allow_cleartext));
    let user = if first.user.is_empty() { String::new() } else { format!("{}@", encoded(&first.user)) };
    let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
    format!("{scheme}://{user}{}/{}{query}", hosts.join(","), encoded(&first.database))
}

fn word_of(mode: TlsMode) -> &'static str {
    match mode {
        TlsMode::Disabled => "disabled",
        TlsMode::Preferred => "preferred",
        TlsMode::Required => "required",
        TlsMode::VerifyCa => "verify-ca",
        TlsMode::VerifyIdentity => "verify-identity",
    }
}

/// A character with a meaning in a name is written as `%2F` (RFC 3986, 2.1).
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Log-ins by the names of their servers: a name holds no password, and one that was typed is in no file.
#[derive(Debug, Clone, Default)]
pub struct Logins(BTreeMap<String, Vec<Server>>);

impl Logins {
    /// Those of one name.
    pub fn of(servers: &[Server]) -> Logins {
        Logins([(name(servers), servers.to_vec())].into())
    }

    /// The servers of a name: as they were logged in to, else as files and environment know them.
    ///
    /// # Errors
    /// Where it names none.
    pub fn named(&self, name: &str) -> Result<Vec<Server>, credentials::CredentialsError> {
        self.0.get(name).map_or_else(|| named(name), |known| Ok(known.clone()))
    }
}

/// The servers of such a name, with the passwords that files and environment know.
pub fn named(name: &str) -> Result<Vec<Server>, credentials::CredentialsError> {
    let typed = credentials::parse_url(name, None)?;
    Ok(credentials::resolve(&typed, &Around::live())?.servers)
}

fn refused(why: String) -> Unreached {
    Unreached { why, gone: false }
}

/// MySQL keeps what SET GLOBAL sets in memory: without the server there is nothing to restore. PostgreSQL keeps what
/// ALTER SYSTEM sets in a file.
fn unreached(name: &ServerName, error: &DbError) -> Unreached {
    if matches!(error, DbError::Timeout { .. }) {
        fell_silent(name);
    }
    let is_down = match error {
        DbError::Connect { source, .. } => match source.kind() {
            ErrorKind::ConnectionRefused => true,
            ErrorKind::NotFound => !has_own_mounts("/proc/self/ns/mnt", "/proc/1/ns/mnt"),
            _ => false,
        },
        _ => false,
    };
    Unreached { why: error.to_string(), gone: is_down && name.family == Dialect::MySql }
}

/// Whether this process may see other files than servers do: a unit's own /tmp has none of their sockets.
fn has_own_mounts(own: &str, first: &str) -> bool {
    matches!((fs::read_link(own), fs::read_link(first)), (Ok(own), Ok(first)) if own != first)
}

impl Servers for Reached {
    fn read(&self, server: &ServerName, variable: &str) -> Result<Value, Unreached> {
        within_time(server, || {
            let mut connection = open(server)?;
            current(&mut connection, variable).map_err(|error| unreached(server, &error))
        })
    }

    fn write(&self, server: &ServerName, variable: &str, value: &Value) -> Result<(), Unreached> {
        within_time(server, || {
            let mut connection = open(server)?;
            let written = match server.family {
                Dialect::MySql => literal(value)
                    .and_then(|value| connection.run(&format!("SET GLOBAL {variable} = {value}")).map(drop)),
                Dialect::Postgres => alter_system(&mut connection, variable, value),
            };
            written.map_err(|error| unreached(server, &error))
        })
    }
}

fn open(name: &ServerName) -> Result<Connection, Unreached> {
    if is_silent(name) {
        return Err(refused("it did not answer a moment ago".to_string()));
    }
    let server = server_of(name)?;
    let impatient = Server { connect_timeout: ANSWER, answer_timeout: Some(ANSWER), ..server };
    Connection::open(&impatient).map_err(|error| unreached(name, &error))
}

/// Servers that did not answer in time, until when.
static SILENT: Mutex<Vec<(ServerName, Instant)>> = Mutex::new(Vec::new());

/// One that gives many answers late is not asked again either.
fn within_time<T>(name: &ServerName, act: impl FnOnce() -> Result<T, Unreached>) -> Result<T, Unreached> {
    let begun = Instant::now();
    let done = act();
    if begun.elapsed() > ANSWER * 2 {
        fell_silent(name);
    }
    done
}

fn fell_silent(name: &ServerName) {
    silent().push((name.clone(), Instant::now() + SILENT_FOR));
}

/// Whether a server has not answered lately.
fn is_silent(name: &ServerName) -> bool {
    silent().iter().any(|(known, _)| known == name)
}

/// Those that are still not to be asked.
fn silent() -> MutexGuard<'static, Vec<(ServerName, Instant)>> {
    let (mut silent, now) = (SILENT.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
    silent.retain(|(_, until)| now < *until);
    silent
}

fn current(connection: &mut Connection, variable: &str) -> Result<Value, DbError> {
    let sql = match connection.dialect() {
        Dialect::MySql => format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{variable}'"),
        Dialect::Postgres => format!("SELECT name, setting FROM pg_settings WHERE name = '{variable}'"),
    };
    let rows = connection.query(&sql)?;
    let text = rows.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten());
    let text = text.ok_or_else(|| DbError::Unsupported(format!("this server has no variable {variable}")))?;
    // It goes into a journal, and from there into a statement, which another server than this one may be told.
    if !text.chars().all(is_plain) {
        let why = format!("expected a word or a number for {variable} from the server, got {text:?}");
        return Err(DbError::Unsupported(why));
    }
    Ok(value_of(&text))
}

/// Whether no server ends a literal or a statement at this character.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.,:+-/ ".contains(c)
}

/// A value as the server prints it; `90.000000` is the number 90.
fn value_of(text: &str) -> Value {
    let whole = text.parse::<i64>().ok();
    let rounded =
        || text.parse::<f64>().ok().filter(|v| v.fract() == 0.0 && v.abs() < 1e15).map(|v| v as i64);
    match whole.or_else(rounded) {
        Some(number) => Value::Number(number),
        None => Value::Word(text.to_string()),
    }
}

/// A value in a statement.
///
/// # Errors
/// Where it is none of a variable: in a literal a backslash means different things to different servers.
fn literal(value: &Value) -> Result<String, DbError> {
    match value {
        Value::Number(number) => Ok(number.to_string()),
        // MySQL refuses a string for a variable that holds a fraction.
        Value::Word(word) if is_fraction(word) => Ok(word.clone()),
        other if other.to_string().chars().all(is_plain) => Ok(format!("'{other}'")),
        other => {
            Err(DbError::Unsupported(format!("expected a word or a number, got {:?}", other.to_string())))
        }
    }
}

/// Whether a word is a number as servers print one that is not whole.
fn is_fraction(word: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.strip_prefix('-').unwrap_or(word).split_once('.').is_some_and(|(a, b)| digits(a) && digits(b))
}

/// Sets a variable for good, without a line in the server's file where the server has the value without one.
fn alter_system(connection: &mut Connection, variable: &str, value: &Value) -> Result<(), DbError> {
    let literal = literal(value)?;
    connection.run(&format!("ALTER SYSTEM RESET {variable}"))?;
    if reloaded_to(connection, variable, value)? {
        return Ok(());
    }
    connection.run(&format!("ALTER SYSTEM SET {variable} = {literal}"))?;
    reloaded_to(connection, variable, value).map(drop)
}

/// Has the configuration read again and says whether the variable comes to have the value.
fn reloaded_to(connection: &mut Connection, variable: &str, value: &Value) -> Result<bool, DbError> {
    let loaded = |connection: &mut Connection| connection.query("SELECT pg_conf_load_time()::text");
    let before = loaded(connection)?;
    connection.run("SELECT pg_reload_conf()")?;
    let until = Instant::now() + RELOAD;
    // A session takes over new values between two statements.
    while loaded(connection)? == before && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    Ok(current(connection, variable)? == *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_db::Secret;

    #[test]
    fn values_read_back_as_they_are_written() {
        for (text, value) in [
            ("200", Value::Number(200)),
            ("90.000000", Value::Number(90)),
            ("0.9", Value::Word("0.9".to_string())),
            ("ON", Value::Word("ON".to_string())),
            ("-1", Value::Number(-1)),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
        let word = |text: &str| literal(&Value::Word(text.to_string())).ok();
        assert_eq!(word("O_DIRECT"), Some("'O_DIRECT'".to_string()));
        assert_eq!(literal(&Value::Number(7)).unwrap(), "7");
        for (fraction, written) in [
            ("75.500000", "75.500000"),
            ("-0.5", "-0.5"),
            ("8.0.34", "'8.0.34'"),
            (".5", "'.5'"),
            ("1.", "'1.'"),
        ] {
            assert_eq!(word(fraction), Some(written.to_string()));
        }
        // What a server said of itself is told to whichever server is there when it is restored.
        for hostile in
            ["\\", "\\', GLOBAL event_scheduler = ON; -- ", "x'y", "a;b", "a\nb", "a\u{1b}[2J", "é"]
        {
            assert_eq!(word(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn a_name_leads_to_the_same_servers() {
        for text in [
            "mysql://root@/weir?socket=/run/a%20b/db.sock",
            "mysql://ann@db1:3307,db2:3306/shop?tls=required",
            "postgres://bench@db1:5432/weir?tls=verify-ca&tls-ca=/etc/ca.pem",
            "mysql://b@db1:3306/weir?server-public-key=/etc/key.pem&get-server-public-key=on",
            "postgres://b@db1:5432/weir?allow-cleartext-password=on",
        ] {
            assert_eq!(name(&named(text).unwrap()), text);
        }
    }

    #[test]
    fn a_password_that_was_typed_is_kept_beside_the_name() {
        let mut servers = named("mysql://ann@127.0.0.1:1/shop").unwrap();
        servers[0].password = Secret::new("typed");
        let (name, logins) = (name(&servers), Logins::of(&servers));
        assert_eq!(logins.named(&name).unwrap()[0].password, servers[0].password);
        assert_ne!(Logins::default().named(&name).unwrap()[0].password, servers[0].password);
    }

    #[test]
    fn the_path_of_a_socket_names_no_host() {
        for (place, path) in [
            ("root@/srv/a@127.0.0.1:13999", "/srv/a@127.0.0.1:13999"),
            ("ann@corp@/srv/a@b/db.sock", "/srv/a@b/db.sock"),
            ("/srv/a@127.0.0.1:13999", "/srv/a@127.0.0.1:13999"),
        ] {
            let server = server_of(&ServerName { family: Dialect::MySql, place: place.to_string() }).unwrap();
            assert_eq!(server.place, Place::Unix(path.into()), "{place}");
        }
        assert_eq!(parted("ann@corp@/srv/a@b/db.sock").0, Some("ann@corp"));
        assert_eq!(parted("ann@corp@db1:3306"), (Some("ann@corp"), "db1:3306"));
        assert_eq!(parted("db1:3306"), (None, "db1:3306"));
    }

    #[test]
    fn a_server_is_found_again_by_its_name() {
        for text in ["mysql:root@/run/db.sock/innodb_io_capacity", "postgres:dba@db1:5433/max_wal_size"] {
            let knob: weir_knobs::KnobName = text.parse().unwrap();
            let weir_knobs::Scope::Server(name) = &knob.scope else { panic!("{text} is no server's") };
            let server = server_of(name).unwrap();
            assert_eq!(name_of(&server), *name, "{text}");
        }
    }

    /// In a unit with its own /tmp the socket of a server that runs is not there.
    #[test]
    fn a_socket_that_is_not_seen_is_gone_only_where_servers_see_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &str| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(to, &path).unwrap();
            path.display().to_string()
        };
        let (own, same, other) =
            (link("own", "mnt:[41]"), link("same", "mnt:[41]"), link("other", "mnt:[42]"));
        assert!(has_own_mounts(&own, &other) && !has_own_mounts(&own, &same));
        // Only root may look at the first process.
        assert!(!has_own_mounts(&own, "/nonexistent"));
        let name = ServerName { family: Dialect::MySql, place: "root@/nonexistent/db.sock".to_string() };
        assert!(Reached.read(&name, "innodb_io_capacity").unwrap_err().gone);
    }

    /// The journal's lock is held while a server is asked, and all other changes wait.
    #[test]
    fn a_server_that_does_not_answer_is_not_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("root@{}", listener.local_addr().unwrap());
        let name = ServerName { family: Dialect::MySql, place };
        let why = Reached.read(&name, "innodb_io_capacity").unwrap_err();
        assert!(!why.gone && !why.why.contains("a moment ago"), "{}", why.why);
        let begun = Instant::now();
        let value = Value::Number(200);
        let why = Reached.write(&name, "innodb_io_capacity", &value).unwrap_err();
        assert!(begun.elapsed() < ANSWER && why.why.contains("a moment ago"), "{}", why.why);
    }
}
