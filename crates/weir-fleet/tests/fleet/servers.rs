//! Servers of Spark Connect for tests, on loopback: Sail, and a Spark cluster; and what may stand in between.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::TempDir;

/// The Python that has duckdb and pysail.
pub fn python() -> PathBuf {
    std::env::var_os("WEIR_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from)
}

/// A server, which ends with this.
pub struct Server {
    child: Child,
    /// Its end is the cluster's.
    stdin: Option<ChildStdin>,
    /// Where it listens.
    pub port: u16,
    /// Processes of the cluster's workers.
    pub workers: Vec<String>,
    /// Its logs.
    pub logs: TempDir,
}

impl Server {
    /// Sail, where this Python has it.
    pub fn sail() -> Option<Server> {
        on_its_own_network();
        let port = free_port().to_string();
        let words = ["spark", "server", "--ip", "127.0.0.1", "--port", &port];
        Server::of(Command::new(python().with_file_name("sail")).args(words), &port)
    }

    /// moto, which speaks as S3 does, where a Python that has it is named.
    pub fn moto(test: &str) -> Option<Server> {
        let python = named("WEIR_MOTO_PYTHON", test)?;
        on_its_own_network();
        let port = free_port().to_string();
        let mut command = Command::new(python.with_file_name("moto_server"));
        Some(Server::of(command.args(["-H", "127.0.0.1", "-p", &port]), &port).expect("moto_server"))
    }

    fn of(command: &mut Command, port: &str) -> Option<Server> {
        let logs = tempfile::tempdir().unwrap();
        let log = File::create(logs.path().join("log")).unwrap();
        let child = command.stderr(log).stdout(Stdio::null()).spawn().ok()?;
        let port = port.parse().unwrap();
        let server = Server { child, stdin: None, port, workers: Vec::new(), logs };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "nobody listens: {}", server.log("log"));
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// A Spark cluster with two workers, which may want a token, where a Python that has Spark is named.
    pub fn spark(test: &str, token: Option<&str>) -> Option<Server> {
        named("WEIR_SPARK_PYTHON", test)?;
        on_its_own_network();
        let logs = tempfile::tempdir().unwrap();
        let mut child = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/spark-cluster"))
            .arg(logs.path())
            .env("WEIR_SPARK_TOKEN", token.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(String::from);
        let port = words.next().and_then(|port| port.parse().ok());
        let stdin = child.stdin.take();
        Some(Server { child, stdin, port: port.expect("a port"), workers: words.collect(), logs })
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("sc://127.0.0.1:{}", self.port)
    }

    /// A log of it.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.logs.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stdin.take().is_none() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// The Python that a variable names; without it a test says that it did not run.
fn named(variable: &str, test: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    if named.is_none() {
        _ = writeln!(std::io::stderr(), "not run: {test}: {variable} names no Python; make test-spark does");
    }
    named
}

/// These servers ask nobody for a password and read files as who started them: as root this thread, and the threads and
/// processes that it starts, get a network that no other account reaches.
pub fn on_its_own_network() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && echo up && exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n", "a network namespace (unshare, ip)");
    let network = File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Hands on what comes, and cuts the first connections when so many bytes have come from the server.
pub struct Cutter {
    /// Where it listens.
    pub port: u16,
    /// How many connections it cut.
    pub cuts: Arc<AtomicUsize>,
}

impl Cutter {
    /// Before a server: it cuts whichever connections carry so many bytes, until it made so many cuts.
    pub fn new(server: u16, cuts: usize, after: usize) -> Cutter {
        Cutter::late(server, cuts, after, Duration::ZERO)
    }

    /// One that first lets a server send what it has to send.
    pub fn late(server: u16, cuts: usize, after: usize, pause: Duration) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let count = Arc::clone(&count);
                let cut = move |made| (made < cuts).then_some(made + 1);
                std::thread::spawn(move || hand_on(from, to, |_| false));
                std::thread::spawn(move || {
                    hand_on(server, client, |bytes| {
                        let is_cut = bytes >= after
                            && count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, cut).is_ok();
                        if is_cut {
                            std::thread::sleep(pause);
                        }
                        is_cut
                    });
                });
            }
        });
        Cutter { port, cuts: made }
    }
}

/// Until one side ends, or it is to be cut after so many bytes.
fn hand_on(mut from: TcpStream, mut to: TcpStream, is_cut: impl Fn(usize) -> bool) {
    let (mut bytes, mut sum) = (vec![0; 16 << 10], 0);
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        sum += n;
        if is_cut(sum) || to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// An authority's certificate (ca.pem), a stranger's (other.pem), and TLS before a server.
pub struct Tls {
    child: Child,
    /// Where it listens.
    pub port: u16,
    folder: TempDir,
}

const CERTIFICATES: &str = r#"
set -e
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
openssl req -x509 $new -days 2 -subj /CN=stranger -keyout other.key -out other.pem
openssl req $new -subj /CN=localhost -keyout server.key -out request.csr
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >san
openssl x509 -req -in request.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem
"#;

/// TLS, which Spark and Sail leave to a proxy.
const PROXY: &str = r#"
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem", "server.key")
context.set_alpn_protocols(["h2"])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)

def hand_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

def serve(plain):
    try:
        client = context.wrap_socket(plain, server_side=True)
    except (ssl.SSLError, OSError):
        return
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=hand_on, args=(server, client), daemon=True).start()
    hand_on(client, server)

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

impl Tls {
    /// Before a server.
    pub fn before(server: u16) -> Tls {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("sh").args(["-c", CERTIFICATES]).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut child = Command::new(python())
            .args(["-c", PROXY, &server.to_string()])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Tls { child, port: line.trim().parse().unwrap(), folder }
    }

    /// A file of it.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
