//! A server that says what a test wants it to say.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use weir_oltp::Dialect;

use super::PASSWORD;
use crate::mysql::login::WANTED;
use crate::server::{Place, Secret, Server, Tls};

/// Everything that weir makes use of.
pub const CAPABILITIES: u32 = WANTED;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// The server's end.
pub struct Peer {
    stream: Option<Box<dyn Stream>>,
    pub sequence: u8,
    /// MariaDB's capabilities in the greeting.
    pub extended: u32,
}

/// A server on a socket that does `act` for one client and hangs up.
pub fn play(act: impl FnOnce(&mut Peer) + Send + 'static) -> (Server, JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let peer = std::thread::spawn(move || {
        // Whose the folder is says whether the server is believed: it stays until the client has been served.
        let _folder = folder;
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        act(&mut Peer { stream: Some(Box::new(stream)), sequence: 0, extended: 0 });
    });
    (server(Place::Unix(path)), peer)
}

/// The same by TCP.
pub fn play_tcp(act: impl FnOnce(&mut Peer) + Send + 'static) -> (Server, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        act(&mut Peer { stream: Some(Box::new(stream)), sequence: 0, extended: 0 });
    });
    (server(Place::Tcp { host: "127.0.0.1".into(), port }), peer)
}

pub fn server(place: Place) -> Server {
    Server {
        dialect: Dialect::MySql,
        place,
        user: "u".into(),
        password: Secret::new(PASSWORD),
        database: String::new(),
        tls: Tls::default(),
        connect_timeout: Duration::from_secs(20),
        answer_timeout: Some(Duration::from_secs(20)),
    }
}

impl Peer {
    /// Bytes as they are; the client may be gone.
    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes);
    }

    /// Whether the client is still there.
    pub fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.stream.as_mut().unwrap().write_all(bytes).is_ok()
    }

    /// A packet.
    pub fn send(&mut self, payload: &[u8]) {
        let [a, b, c, ..] = payload.len().to_le_bytes();
        let packet = [&[a, b, c, self.sequence], payload].concat();
        self.sequence = self.sequence.wrapping_add(1);
        self.write(&packet);
    }

    /// The client's next packet.
    pub fn read(&mut self) -> Vec<u8> {
        self.try_read().unwrap()
    }

    /// The same; `None`: the client is gone.
    pub fn try_read(&mut self) -> Option<Vec<u8>> {
        let stream = self.stream.as_mut().unwrap();
        let mut header = [0; 4];
        stream.read_exact(&mut header).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        stream.read_exact(&mut payload).ok()?;
        self.sequence = header[3].wrapping_add(1);
        Some(payload)
    }

    /// Everything until the client hangs up.
    pub fn read_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        rest
    }

    pub fn hang_up(&mut self) {
        self.stream = None;
    }

    pub fn greet(&mut self, version: &str, capabilities: u32, plugin: &str) {
        let payload = greeting(version, capabilities, self.extended, plugin);
        self.send(&payload);
    }

    /// The rest is encrypted, by the server's certificate in `folder`. Whether the client takes it.
    pub fn encrypt(&mut self, folder: &Path) -> bool {
        let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = self.stream.take().unwrap();
        while tls.is_handshaking() {
            if tls.complete_io(&mut stream).is_err() {
                return false;
            }
        }
        self.stream = Some(Box::new(StreamOwned::new(tls, stream)));
        true
    }

    /// Lets anybody in.
    pub fn let_in(&mut self) {
        self.greet("10.3.1-MariaDB", CAPABILITIES, "mysql_native_password");
        self.read();
        self.send_ok();
    }

    pub fn switch_to(&mut self, plugin: &str) {
        self.send(&[b"\xfe", plugin.as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat());
    }

    pub fn send_ok(&mut self) {
        self.send(&[0, 0, 0, 2, 0, 0, 0]);
    }

    pub fn send_eof(&mut self) {
        self.send(&[0xfe, 0, 0, 2, 0]);
    }

    pub fn send_error(&mut self, number: u16, sqlstate: &str, words: &str) {
        self.send(
            &[&[0xff][..], &number.to_le_bytes(), b"#", sqlstate.as_bytes(), words.as_bytes()].concat(),
        );
    }

    /// How many columns there are, and each.
    pub fn send_columns(&mut self, kinds: &[u8]) {
        self.send(&[kinds.len() as u8]);
        kinds.iter().for_each(|&kind| self.send_column(kind));
    }

    pub fn send_column(&mut self, kind: u8) {
        self.send(&column(kind));
    }
}

pub fn greeting(version: &str, capabilities: u32, extended: u32, plugin: &str) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let mut payload = vec![10];
    payload.extend_from_slice(version.as_bytes());
    payload.extend_from_slice(b"\0\x07\0\0\0abcdefgh\0");
    payload.extend_from_slice(&[a, b, 45, 2, 0, c, d, 21, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&extended.to_le_bytes());
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    payload
}

pub fn column(kind: u8) -> Vec<u8> {
    let mut payload = b"\x03def\0\0\0\x01c\0\x0c".to_vec();
    payload.extend_from_slice(&[45, 0, 255, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
    payload
}
