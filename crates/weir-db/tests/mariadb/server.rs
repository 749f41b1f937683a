//! Throw-away MariaDB servers for tests. A janitor process kills and removes them all when the test process ends,
//! however it ends.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use weir_core::oltp::Dialect;
use weir_db::{Connection, Place, Secret, Server, Tls, TlsMode};

pub const LONG: Duration = Duration::from_secs(60);
pub const PASSWORD: &str = "geheim ' \" \\ ü";

/// Where everything lies, and the pipe whose end tells the janitor to clean up.
struct Ground {
    root: PathBuf,
    _janitor: Child,
}

const JANITOR: &str = r#"trap "" INT TERM HUP; while read -r _; do :; done
for pid in "$0"/*/pid; do kill -9 "$(cat "$pid")" 2>/dev/null; done; sleep 0.3; rm -rf "$0""#;

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let root = parent.join(format!("weir-mariadb-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        let janitor =
            Command::new("sh").args(["-c", JANITOR]).arg(&root).stdin(Stdio::piped()).spawn().unwrap();
        install(&root.join("template"));
        Ground { root, _janitor: janitor }
    })
}

fn install(data: &Path) {
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .args(["--skip-name-resolve", "--innodb-log-file-size=8M"])
        .args(if root() { vec!["--user=root"] } else { vec![] })
        .arg(format!("--datadir={}", data.display()))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t")
}

/// Whether a server can be started; else says what lacks.
pub fn mariadb_or_say(test: &str) -> bool {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin"];
    let lacking = ["mariadbd", "mariadb-install-db"]
        .into_iter()
        .find(|command| !folders.iter().any(|folder| Path::new(folder).join(command).exists()));
    if let Some(command) = lacking {
        let _ = writeln!(io::stderr(), "not run: {test} lacks {command}");
    }
    lacking.is_none()
}

/// A running server.
pub struct MariaDb {
    child: Mutex<Child>,
    folder: PathBuf,
    pub port: u16,
}

impl MariaDb {
    /// One that all tests share, with `local_infile`, TLS and 1 GB packets.
    pub fn shared() -> &'static MariaDb {
        static SHARED: OnceLock<MariaDb> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = MariaDb::start(&["--max-allowed-packet=1G", "--local-infile=1"]);
            let mut admin = server.connect();
            admin.run("CREATE DATABASE weir CHARACTER SET utf8mb4").unwrap();
            server
        })
    }

    /// One of the test's own.
    pub fn start(options: &[&str]) -> MariaDb {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let ground = ground();
        let folder = ground.root.join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder).unwrap();
        let copied =
            Command::new("cp").arg("-r").arg(ground.root.join("template")).arg(folder.join("data")).status();
        assert!(copied.unwrap().success());
        certificates(&folder);
        let path = |name: &str| folder.join(name).display().to_string();
        let port = free_port();
        let child = Command::new("mariadbd")
            .arg("--no-defaults")
            .args(if root() { vec!["--user=root"] } else { vec![] })
            .args([format!("--datadir={}", path("data")), format!("--socket={}", path("s"))])
            .args([format!("--port={port}"), format!("--pid-file={}", path("pid"))])
            .args(["ca", "cert", "key"].map(|what| format!("--ssl-{what}={}", path(&format!("{what}.pem")))))
            .args([
                "--bind-address=127.0.0.1,127.0.0.2",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=32M",
            ])
            .args(["--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve", "--performance-schema=OFF"])
            .args(options)
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = MariaDb { child: Mutex::new(child), folder, port };
        server.wait_until_up();
        let mut admin = server.connect();
        admin.run(&format!("CREATE USER u@'127.0.0.1' IDENTIFIED BY {}", quoted(PASSWORD))).unwrap();
        admin.run("GRANT ALL ON *.* TO u@'127.0.0.1'").unwrap();
        server
    }

    fn wait_until_up(&self) {
        let until = Instant::now() + LONG;
        let socket = self.path("s");
        while !fs::metadata(&socket).is_ok_and(|found| found.file_type().is_socket()) {
            let over = self.child.lock().unwrap().try_wait().unwrap();
            assert!(
                over.is_none() && Instant::now() < until,
                "{}",
                fs::read_to_string(self.path("log")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// By the socket, as root, without a database.
    pub fn local(&self) -> Server {
        Server {
            dialect: Dialect::MySql,
            place: Place::Unix(self.path("s")),
            user: "root".into(),
            password: Secret::default(),
            database: String::new(),
            tls: Tls::default(),
            connect_timeout: LONG,
            answer_timeout: Some(LONG),
        }
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
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let _ = fs::remove_file(self.path("pid"));
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.kill();
        fs::remove_dir_all(&self.folder).unwrap();
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
        sign client client.pem client.key 'keyUsage=digitalSignature'"#;
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
