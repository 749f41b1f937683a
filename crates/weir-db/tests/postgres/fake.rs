//! Servers that do not keep to the protocol: every one ends in an error that says so, soon and in little memory.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use crate::certificates;
use weir_db::{Connection, DbError, Place, Secret, Server, Tls, TlsMode};
use weir_oltp::Dialect;

/// What a fake server does, in order; then it closes.
#[derive(Debug, Clone)]
enum Act {
    /// Waits for a request.
    Hear,
    /// Sends bytes.
    Say(Vec<u8>),
    /// Sends these without end, and with pauses.
    Drip(Vec<u8>),
    /// Says nothing until the client goes.
    Hang,
    /// Says nothing for a twentieth of a second.
    Nap,
}
use Act::{Drip, Hang, Hear, Nap, Say};

fn act(mut stream: impl Read + Write, acts: Vec<Act>) {
    for act in acts {
        let went_well = match &act {
            Hear => stream.read(&mut [0; 65_536]).is_ok_and(|bytes| bytes > 0),
            Say(bytes) => stream.write_all(bytes).is_ok(),
            Nap => {
                thread::sleep(Duration::from_millis(50));
                true
            }
            Drip(bytes) => {
                while stream.write_all(bytes).is_ok() {
                    thread::sleep(Duration::from_millis(5));
                }
                false
            }
            Hang => {
                while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
                false
            }
        };
        if !went_well {
            return;
        }
    }
}

fn server(place: Place, mode: TlsMode) -> Server {
    Server {
        dialect: Dialect::Postgres,
        place,
        user: "u".to_string(),
        password: Secret::new("geheim"),
        database: String::new(),
        tls: Tls { mode, ..Tls::default() },
        connect_timeout: Duration::from_millis(700),
        answer_timeout: Some(Duration::from_millis(700)),
    }
}

/// Runs `client` against a server that does these things on its one connection.
fn against<T>(acts: &[Act], client: impl FnOnce(&Server) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let acts = acts.to_vec();
    thread::spawn(move || act(listener.accept().unwrap().0, acts));
    client(&server(Place::Unix(path), TlsMode::Disabled))
}

fn against_tcp<T>(mode: TlsMode, acts: &[Act], client: impl FnOnce(&Server) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    let acts = acts.to_vec();
    thread::spawn(move || {
        // The second connection is the one that `preferred` tries without encryption.
        for stream in listener.incoming().take(2) {
            act(stream.unwrap(), acts.clone());
        }
    });
    client(&server(place, mode))
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn say(tag: u8, body: &[u8]) -> Act {
    Say(message(tag, body))
}

fn ask_for(number: u8, rest: &[u8]) -> Act {
    say(b'R', &[&[0, 0, 0, number][..], rest].concat())
}

fn check_login(what: &str, connection: Result<Connection, DbError>, expected: &str) {
    let error = match connection {
        Ok(_) => panic!("{what}: is in, and was to end in: {expected}"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(expected), "{what}: {error}");
    assert!(!error.contains("geheim"), "{what}: {error}");
}

/// How a server lets somebody in.
fn let_in() -> Vec<Act> {
    let parts = [
        message(b'R', &[0; 4]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0"),
        message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]),
        message(b'Z', b"I"),
    ];
    vec![Hear, Say(parts.concat())]
}

#[test]
fn logins_that_go_wrong() {
    let scram = |mechanisms: &[u8]| vec![Hear, ask_for(10, mechanisms)];
    let begun = || [scram(b"SCRAM-SHA-256\0\0"), vec![Hear]].concat();
    let old =
        [message(b'R', &[0; 4]), message(b'S', b"server_version\09.6.24\0"), message(b'Z', b"I")].concat();
    let full = b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";
    for (what, acts, expected) in [
        ("closes at once", vec![], "was lost: "),
        ("says nothing", vec![Hang], "no answer from"),
        ("another protocol", vec![Hear, Say(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())], "type 'H'"),
        ("too many clients", vec![Hear, say(b'E', full)], "sorry, too many clients already (53300)"),
        ("GSSAPI", vec![Hear, ask_for(7, b"")], "asks for GSSAPI (Kerberos), which weir lacks"),
        ("SSPI", vec![Hear, ask_for(9, b"")], "asks for SSPI"),
        ("unknown way", vec![Hear, ask_for(99, b"")], "does not know (number 99)"),
        ("request cut short", vec![Hear, say(b'R', &[0, 0])], "ends too early"),
        ("md5 without salt", vec![Hear, ask_for(5, &[1, 2])], "ends too early"),
        ("SASL without a way of ours", scram(b"OAUTHBEARER\0\0"), "offers only methods of SASL"),
        ("SCRAM goes on before it began", vec![Hear, ask_for(11, b"r=x")], "before it began"),
        ("SCRAM ends before it began", vec![Hear, ask_for(12, b"v=x")], "before it began"),
        ("no proof of the server's", [begun(), vec![ask_for(0, b"")]].concat(), "without proving itself"),
        ("another's nonce", [begun(), vec![ask_for(11, b"r=x,s=AAAA,i=1")]].concat(), "does not continue"),
        ("bytes for words", [begun(), vec![ask_for(11, b"\xff\xfe")]].concat(), "malformed"),
        ("ready unasked", vec![Hear, say(b'Z', b"I")], "ready before the log-in"),
        ("rows unasked", vec![Hear, say(b'D', b"\0\0")], "a message of type 'D' while logging in"),
        ("an endless error", vec![Hear, Say(b"E\x7f\xff\xff\xffS".to_vec())], "of 2147483643 bytes"),
        ("an error cut short", vec![Hear, say(b'E', b"SFATAL\0C123")], "unexpected answer of"),
        ("a parameter without an end", vec![Hear, say(b'S', b"server_version")], "a string without an end"),
        ("notices without end", vec![Hear, Drip(message(b'N', b"\0"))], "no answer from"),
        ("an old server", vec![Hear, Say(old)], "is PostgreSQL 9.6.24; weir speaks with 11 and later"),
    ] {
        check_login(what, against(&acts, Connection::open), expected);
    }
}

#[test]
fn encryption_that_goes_wrong() {
    use TlsMode::{Preferred, Required};
    let none = vec![Hear, Say(b"N".to_vec())];
    let clear = [none.clone(), vec![Hear, ask_for(3, b"")]].concat();
    for (what, mode, acts, expected) in [
        ("none offered", Required, none, "no encrypted connection to 127.0.0.1"),
        ("a password in clear text", Preferred, clear, "has not proven its identity"),
        (
            "no TLS",
            Required,
            vec![Hear, Say(b"S".to_vec()), Hear, Say(b"nonsense".repeat(9))],
            "no encrypted",
        ),
        (
            "bytes in between",
            Required,
            vec![Hear, Say(b"SR\0\0\0\x08\0\0\0\0".to_vec())],
            "unencrypted bytes",
        ),
        (
            "closes",
            Required,
            vec![Hear, Say(b"S".to_vec()), Hear],
            "closed the connection in the TLS handshake",
        ),
        ("neither yes nor no", Required, vec![Hear, Say(b"Q".to_vec())], "with something else"),
        (
            "cannot start a process",
            Required,
            vec![Hear, say(b'E', b"SFATAL\0C53200\0Mout of memory\0\0")],
            "out of memory (53200)",
        ),
    ] {
        check_login(what, against_tcp(mode, &acts, Connection::open), expected);
    }
}

/// With an authority named, neither a server that encrypts nothing nor a handshake that fails leads around it.
#[test]
fn encryption_that_is_a_must_by_its_authority() {
    let folder = tempfile::tempdir().unwrap();
    certificates::make(folder.path(), "DNS:localhost");
    let tls = |mode| Tls { mode, ca: Some(folder.path().join("ca.pem")), ..Tls::default() };
    let none = [vec![Hear, Say(b"N".to_vec())], let_in()].concat();
    let nonsense = vec![Hear, Say(b"S".to_vec()), Hear, Say(b"nonsense".repeat(9))];
    for mode in [TlsMode::Preferred, TlsMode::Required] {
        for (what, acts) in [("none offered", none.clone()), ("no TLS", nonsense.clone())] {
            let opened = against_tcp(mode, &acts, |server| {
                Connection::open(&Server { tls: tls(mode), ..server.clone() })
            });
            check_login(what, opened, "no encrypted connection");
        }
    }
    // The same server, and nobody named.
    against_tcp(TlsMode::Preferred, &none, Connection::open).map(drop).unwrap();
}

#[test]
fn answers_that_go_wrong() {
    let row = message(b'D', b"\0\x01\0\0\0\x01x");
    let farewell = [
        message(b'N', b"SWARNING\0VWARNING\0C57P02\0Mterminating because of a crash\0\0"),
        row[..row.len() - 1].to_vec(),
    ];
    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0");
    let asks = vec![vec![Nap, say(b'G', b"\0\0\0"), Hear]; 60].concat();
    let asks = [asks, vec![say(b'C', b"COPY 0\0"), say(b'Z', b"I")]].concat();
    for (what, answer, expected) in [
        ("closes in a row", vec![Say(row[..row.len() - 1].to_vec())], "was lost: the server closed"),
        ("closes after a warning", vec![Say(farewell.concat())], "terminating because of a crash (57P02)"),
        ("ends with a reason", vec![Say(fatal)], "terminating connection (57P01)"),
        ("hangs in a row", vec![Say(row[..row.len() - 1].to_vec()), Hang], "no answer from"),
        ("a row of two gigabytes", vec![Say(b"D\x7f\xff\xff\xff\0\x01xxxx".to_vec())], "was lost"),
        ("asks for rows again and again", asks, "no answer from"),
        ("an unknown message", vec![Say(message(b'#', b""))], "a message of type '#'"),
        ("a length of none", vec![Say(b"C\0\0\0\0".to_vec())], "impossible length"),
        ("ready for what", vec![Say(message(b'Z', b"X"))], "does not say whether in a transaction"),
        ("an endless tag", vec![Say(b"C\x7f\xff\xff\xffSELECT".to_vec())], "a message 'C' of"),
        ("an empty error", vec![Say(message(b'E', b""))], "ends too early"),
    ] {
        let acts = [let_in(), vec![Hear], answer].concat();
        let (error, next) = against(&acts, |server| {
            let mut connection = Connection::open(server).unwrap();
            (connection.run("SELECT 1").unwrap_err(), connection.run("SELECT 1"))
        });
        assert!(error.to_string().contains(expected), "{what}: {error}");
        assert!(next.is_err_and(|error| error.is_lost()), "{what}: it is asked again");
    }
}

#[test]
fn rows_and_types_that_go_wrong() {
    let done = [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
    for (what, body) in [
        ("a field too long", &b"\0\x01\0\0\0\x09x"[..]),
        ("a field of negative length", b"\0\x01\xff\xff\xff\xf0x"),
        ("fewer fields than said", b"\xff\xff\0\0\0\0"),
        ("no count", b"\0"),
    ] {
        let acts = [let_in(), vec![Hear, say(b'D', body), Say(done.clone())]].concat();
        let rows = against(&acts, |server| Connection::open(server).unwrap().query("SELECT 1"));
        assert!(matches!(rows, Err(DbError::Protocol { .. })), "{what}: {rows:?}");
    }
    let types = [message(b'1', b""), message(b't', b"\x7f\xff\0\0\0\x17"), message(b'n', b"")].concat();
    let acts = [let_in(), vec![Hear, Say(types), say(b'Z', b"I")]].concat();
    let prepared = against(&acts, |server| Connection::open(server).unwrap().prepare("SELECT $1"));
    assert!(matches!(prepared, Err(DbError::Protocol { .. })), "{prepared:?}");
}

#[test]
fn a_load_that_nobody_takes_sends_nothing() {
    let acts = [let_in(), vec![Hear, say(b'C', b"COPY 0\0"), say(b'Z', b"I")]].concat();
    let mut calls = 0;
    let loaded = against(&acts, |server| {
        Connection::open(server).unwrap().load("t", "a", &mut |_| {
            calls += 1;
            false
        })
    });
    assert_eq!((loaded.unwrap().affected, calls), (0, 0));
}
