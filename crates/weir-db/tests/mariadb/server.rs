//! Throw-away MariaDB servers for tests. Sandboxes go away with the process, however it ends.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use weir_db::sandbox::{Binaries, Flavour, Sandbox, SandboxSpec, Variables, set_remover};
use weir_db::{Connection, Place, Secret, Server, Tls, TlsMode};

pub const LONG: Duration = Duration::from_secs(60);
pub const PASSWORD: &str = "geheim ' \" \\ ü";

/// Whether a server can be started; else says what lacks.
pub fn mariadb_or_say(test: &str) -> bool {
    let found = Binaries::find(Flavour::Mariadb, None);
    if let Err(lacking) = &found {
        let _ = writeln!(io::stderr(), "not run: {test} lacks a server: {lacking}");
    }
    found.is_ok()
}

/// A folder that is not there yet, in memory where it can be.
fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    parent.join(format!("weir-mariadb-{}-{count}", std::process::id()))
}

/// Data made once, of which every server gets a copy.
fn template() -> &'static Sandbox {
    static TEMPLATE: OnceLock<Sandbox> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        set_remover(Path::new(env!("CARGO_BIN_EXE_weir-remover")));
        let spec = SandboxSpec::new(Flavour::Mariadb, new_folder());
        Sandbox::create(&spec.set("innodb_log_file_size", "32M"), &|| false).unwrap()
    })
}

/// A running server.
pub struct MariaDb {
    sandbox: Mutex<Sandbox>,
    data: PathBuf,
    pub port: u16,
}

impl MariaDb {
    /// One that all tests share, with `local_infile` and 1 GB packets.
    pub fn shared() -> &'static MariaDb {
        static SHARED: OnceLock<MariaDb> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = MariaDb::start(&[("max_allowed_packet", "1G"), ("local_infile", "1")]);
            server.connect().run("CREATE DATABASE weir CHARACTER SET utf8mb4").unwrap();
            server
        })
    }

    /// One of the test's own: by its socket, and by TCP with TLS at 127.0.0.1 and 127.0.0.2.
    pub fn start(options: &[(&str, &str)]) -> MariaDb {
        let mut sandbox = template().clone_to(&new_folder(), &|| false).unwrap();
        let data = sandbox.data_dir();
        certificates(&data);
        let port = free_port();
        let pem = |name: &str| data.join(name).display().to_string();
        let own = [
            ("skip_networking", "0"),
            ("port", &port.to_string()),
            ("bind_address", "127.0.0.1,127.0.0.2"),
            ("skip_name_resolve", "1"),
            ("innodb_flush_log_at_trx_commit", "0"),
            ("ssl_ca", &pem("ca.pem")),
            ("ssl_cert", &pem("cert.pem")),
            ("ssl_key", &pem("key.pem")),
        ];
        // Any file of a certificate turns encryption on again.
        let plain = options.contains(&("ssl", "0"));
        let own = own.iter().filter(|(name, _)| !plain || !name.starts_with("ssl_"));
        let variables: Variables =
            own.chain(options).map(|(name, value)| (name.to_string(), value.to_string())).collect();
        sandbox.restart(&variables, &|| false).unwrap();
        let server = MariaDb { sandbox: Mutex::new(sandbox), data, port };
        let mut admin = server.connect();
        admin.run(&format!("CREATE USER u@'127.0.0.1' IDENTIFIED BY {}", quoted(PASSWORD))).unwrap();
        admin.run("GRANT ALL ON *.* TO u@'127.0.0.1'").unwrap();
        server
    }

    fn sandbox(&self) -> MutexGuard<'_, Sandbox> {
        self.sandbox.lock().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// By the socket, as root, without a database.
    pub fn local(&self) -> Server {
        Server { connect_timeout: LONG, answer_timeout: Some(LONG), ..self.sandbox().server() }
    }

    /// By TCP, with a password.
    pub fn remote(&self, mode: TlsMode) -> Server {
        Server {
            place: Place::Tcp { host: "127.0.0.1".into(), port: self.port },
            user: "u".into(),
            password: Secret::new(PASSWORD),
            tls: Tls { mode, ..Tls::default() },
            ..self.local()
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.local()).unwrap()
    }

    /// A connection to the shared tests' database.
    pub fn weir(&self) -> Connection {
        Connection::open(&Server { database: "weir".into(), ..self.local() }).unwrap()
    }

    /// As the kernel would for lack of memory.
    pub fn kill(&self) {
        self.sandbox().kill().unwrap();
    }
}

pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An authority (`ca.pem`), what it signed for the server (`cert.pem`, for `localhost` and 127.0.0.1) and for a client
/// (`client.pem`), and a stranger (`other.pem`).
fn certificates(folder: &Path) {
    let script = r#"set -e
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=stranger -keyout o.key -out other.pem
        sign() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$3" -out r.csr
                 printf '%s' "$4" >e.cnf
                 openssl x509 -req -in r.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile e.cnf -out "$2"; }
        sign server cert.pem key.pem 'subjectAltName=DNS:localhost,IP:127.0.0.1'
        sign client client.pem client.key 'keyUsage=digitalSignature'
        chmod a+r *.pem"#;
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
