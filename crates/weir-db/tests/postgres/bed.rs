//! A throw-away PostgreSQL with a user for every way to log in.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tempfile::TempDir;
use weir_db::sandbox::{Binaries, Flavour, Sandbox, SandboxSpec};
use weir_db::{Connection, Place, Secret, Server, Tls, TlsMode};

use crate::certificates;

/// Longer than anything takes that works.
pub const LONG: Duration = Duration::from_secs(60);
pub const PASSWORD: &str = "geheim ' \" \\ ü";

/// By socket, then by TCP; the first line that fits counts.
const HBA: &str = "
local   all clear_user      password
local   all md5_user        md5
local   all scram_user      scram-sha-256
local   all OS_USER         peer
local   all other_user      peer
local   all all             trust
hostssl   all client     all cert
hostnossl all plain_user all trust
host      all clear_user all password
host      all md5_user   all md5
host      all scram_user all scram-sha-256
";

/// A server and the folder with its certificates.
pub struct Bed {
    pub sandbox: Mutex<Sandbox>,
    /// The address that its certificate names, and another one.
    addresses: [String; 2],
    folder: TempDir,
}

/// The server that tests share; it goes when the last of those that run has ended. `None` where none is installed,
/// which is said.
pub fn shared(test: &str) -> Option<Arc<Bed>> {
    static SHARED: Mutex<Weak<Bed>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(bed) = shared.upgrade() {
        return Some(bed);
    }
    let bed = Arc::new(Bed::start(test)?);
    *shared = Arc::downgrade(&bed);
    Some(bed)
}

impl Bed {
    /// A server of the test's own.
    pub fn start(test: &str) -> Option<Bed> {
        if let Err(error) = Binaries::find(Flavour::Postgres, None) {
            _ = writeln!(std::io::stderr(), "not run: {test}: {error}");
            return None;
        }
        let folder = tempfile::tempdir_in(memory()).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let addresses = addresses();
        certificates::make(folder.path(), &format!("IP:{}", addresses[0]));
        // A server of root's sees of the shared memory's folder only what is its own.
        let path = |name: &str| folder.path().join("server/data").join(name).display().to_string();
        fs::write(folder.path().join("hba"), HBA.replace("OS_USER", &os_user())).unwrap();
        let spec = SandboxSpec::new(Flavour::Postgres, folder.path().join("server"))
            .set("listen_addresses", &addresses.join(","))
            .set("shared_buffers", "16MB")
            .set("fsync", "off")
            .set("hba_file", &path("hba"))
            .set("ssl", "on")
            .set("ssl_cert_file", &path("cert.pem"))
            .set("ssl_key_file", &path("key.pem"))
            .set("ssl_ca_file", &path("ca.pem"));
        let go_on = || false;
        let mut sandbox = Sandbox::create(&spec, &go_on).unwrap();
        for name in ["hba", "cert.pem", "key.pem", "ca.pem"] {
            let given = sandbox.data_dir().join(name);
            fs::copy(folder.path().join(name), &given).unwrap();
            give_to_owner_of(&sandbox.data_dir(), &given);
        }
        sandbox.run(&go_on).unwrap();
        let bed = Bed { sandbox: Mutex::new(sandbox), addresses, folder };
        bed.make_users();
        Some(bed)
    }

    fn make_users(&self) {
        let password = PASSWORD.replace('\'', "''");
        let os_user = os_user();
        let mut connection = self.connect();
        connection
            .run(&format!(
                "CREATE ROLE clear_user LOGIN PASSWORD '{password}';
                 CREATE ROLE scram_user LOGIN PASSWORD '{password}';
                 SET password_encryption = 'md5';
                 CREATE ROLE md5_user LOGIN PASSWORD '{password}';
                 CREATE ROLE \"{os_user}\" LOGIN; CREATE ROLE other_user LOGIN; CREATE ROLE client LOGIN;
                 CREATE ROLE plain_user LOGIN; CREATE ROLE single_user LOGIN CONNECTION LIMIT 1"
            ))
            .unwrap();
    }

    /// By the socket, as the superuser.
    pub fn local(&self) -> Server {
        Server { connect_timeout: LONG, answer_timeout: Some(LONG), ..self.sandbox.lock().unwrap().server() }
    }

    /// By TCP, as `user` with the password of all; where the certificate is looked at, by its authority.
    pub fn remote(&self, user: &str, mode: TlsMode) -> Server {
        let verifies = matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyIdentity);
        Server {
            place: Place::Tcp { host: self.addresses[0].clone(), port: 5432 },
            user: user.to_string(),
            password: Secret::new(PASSWORD),
            tls: Tls { mode, ca: verifies.then(|| self.file("ca.pem")), ..Tls::default() },
            ..self.local()
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.local()).unwrap()
    }

    /// Where it is too, and what its certificate does not name.
    pub fn unnamed_address(&self) -> Place {
        Place::Tcp { host: self.addresses[1].clone(), port: 5432 }
    }

    /// A certificate or a key.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// One text of one row.
pub fn ask(connection: &mut Connection, sql: &str) -> String {
    connection.query(sql).unwrap()[0][0].clone().unwrap()
}

/// The SQLSTATE of an error of the server.
pub fn code<T: std::fmt::Debug>(result: Result<T, weir_db::DbError>) -> String {
    match result.unwrap_err() {
        weir_db::DbError::Server(error) => error.sqlstate,
        other => panic!("no error of the server: {other}"),
    }
}

/// Two addresses of this machine that nobody else listens on: a server's port is always the same.
fn addresses() -> [String; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id().to_be_bytes();
    let bed = 64 + COUNT.fetch_add(1, Ordering::Relaxed);
    [1, 2].map(|last| format!("127.{bed}.{}.{}", process[2], u32::from(process[3] / 4) * 4 + last))
}

fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() }
}

/// PostgreSQL takes a key only from a file that is its own, or root's, and that nobody else reads.
fn give_to_owner_of(data: &Path, key: &Path) {
    let owner = fs::metadata(data).unwrap();
    chown(key, Some(owner.uid()), Some(owner.gid())).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Who runs the test, as `peer` sees it.
pub fn os_user() -> String {
    let uid = fs::metadata("/proc/self").unwrap().uid().to_string();
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd.lines().find(|line| line.split(':').nth(2) == Some(&uid)).unwrap();
    line.split(':').next().unwrap().to_string()
}
