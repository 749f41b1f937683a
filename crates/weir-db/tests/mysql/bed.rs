//! A throw-away MySQL out of a tree, by its socket and by TCP.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use std::{env, fs};

use tempfile::TempDir;
use weir_db::{Connection, Place, Secret, Server, Tls};
use weir_oltp::Dialect;

/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(60);
pub const PASSWORD: &str = "geheim ' \" \\ ü";
/// Whom the server runs as: an account that no process of the machine has.
const NOBODY: u32 = 2_013_000_007;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tree() -> PathBuf {
    env::var_os("WEIR_MYSQL_TREE")
        .map_or_else(|| repository().join("target/servers/mysql-9.7"), PathBuf::from)
}

/// Whether a server can be started; else says what lacks.
pub fn root_or_say(test: &str) -> bool {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    let lacking = match (id.trim_ascii() == b"0", tree().join("usr/sbin/mysqld").exists()) {
        (false, _) => "root",
        (_, false) => "MySQL: scripts/server-tree mysql-9.7 makes its tree",
        _ => return true,
    };
    let _ = writeln!(io::stderr(), "not run: {test} lacks {lacking}");
    false
}

/// A running server and its folder, in one of root's: where anybody might have made it, its socket would be nobody's.
pub struct Bed {
    server: Mutex<Child>,
    port: u16,
    folder: PathBuf,
    /// What root writes is in it, beside the server's folder, in which the server may put a link in its place.
    around: TempDir,
}

impl Bed {
    /// The one that tests share; it goes when the last of those that run has ended.
    pub fn shared() -> Arc<Bed> {
        static SHARED: Mutex<Weak<Bed>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.upgrade().unwrap_or_else(|| {
            let bed = Arc::new(Bed::start());
            *shared = Arc::downgrade(&bed);
            bed
        })
    }

    /// One of the test's own.
    pub fn start() -> Bed {
        let around = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(around.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = around.path().join("m");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        let made = mysqld(&folder).arg("--initialize-insecure").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = |name: &str| folder.join(name).display().to_string();
        let log = fs::File::create(around.path().join("log")).unwrap();
        let server = mysqld(&folder)
            .args(["--bind-address=127.0.0.1", "--mysqlx=OFF", "--secure-file-priv=NULL", "--skip-log-bin"])
            .args([
                format!("--port={port}"),
                format!("--socket={}", path("s")),
                format!("--pid-file={}", path("pid")),
            ])
            .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"])
            .stderr(log)
            .spawn()
            .unwrap();
        let bed = Bed { server: Mutex::new(server), port, folder, around };
        bed.wait();
        bed.make_users();
        bed
    }

    fn wait(&self) {
        let patience = Instant::now() + LONG;
        while let Err(error) = Connection::open(&self.local()) {
            let ended = self.server().try_wait().unwrap();
            let log = || fs::read_to_string(self.around.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < patience, "{error}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn make_users(&self) {
        let mut admin = self.connect();
        let password = PASSWORD.replace('\\', "\\\\").replace('\'', "''");
        for (user, plugin) in [("caching", "caching_sha2_password"), ("sha256", "sha256_password")] {
            let make = format!("CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{password}'");
            admin.run(&make).unwrap();
        }
    }

    fn server(&self) -> MutexGuard<'_, Child> {
        self.server.lock().unwrap()
    }

    /// A file of its data directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join("data").join(name)
    }

    /// By the socket, as root, without a database.
    pub fn local(&self) -> Server {
        Server {
            dialect: Dialect::MySql,
            place: Place::Unix(self.folder.join("s")),
            user: "root".into(),
            password: Secret::default(),
            database: String::new(),
            tls: Tls::default(),
            connect_timeout: LONG,
            answer_timeout: Some(LONG),
        }
    }

    /// By TCP, with the password of all.
    pub fn remote(&self, user: &str) -> Server {
        Server {
            place: Place::Tcp { host: "127.0.0.1".into(), port: self.port },
            user: user.into(),
            password: Secret::new(PASSWORD),
            ..self.local()
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.local()).unwrap()
    }

    /// A database with nothing in it.
    pub fn empty_database(&self, name: &str) -> Server {
        let mut admin = self.connect();
        admin.run(&format!("DROP DATABASE IF EXISTS {name}")).unwrap();
        admin.run(&format!("CREATE DATABASE {name}")).unwrap();
        Server { database: name.into(), ..self.local() }
    }

    /// The proofs of passwords that the server keeps.
    pub fn forget_proofs(&self) {
        self.connect().run("FLUSH PRIVILEGES").unwrap();
    }

    /// As the kernel would for lack of memory.
    pub fn kill(&self) {
        let mut server = self.server();
        server.kill().unwrap();
        server.wait().unwrap();
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server's program as typed, with its data in a folder.
fn mysqld(folder: &Path) -> Command {
    let mut command = Command::new(repository().join("lab/in-tree"));
    // As the owner of the folder.
    command.arg(tree()).arg(folder).args(["--", "mysqld", "--no-defaults"]);
    command.arg(format!("--datadir={}", folder.join("data").display()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}
