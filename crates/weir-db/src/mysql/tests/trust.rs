//! Servers that are not the one that is meant, and ask for the password.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::fake::{CAPABILITIES, Peer, play_tcp};
use super::*;
use crate::server::{Tls, TlsMode};

#[path = "../../../tests/support/certificates.rs"]
mod certificates;

static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();

/// A folder with certificates. `ca.pem` signed the fake server's, `other.pem` did not.
fn folder() -> PathBuf {
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        certificates::make(folder.path(), "DNS:localhost");
        // SAFETY: registers a function that lives as long as the process.
        unsafe { libc::atexit(remove_folder) };
        folder
    });
    folder.path().to_path_buf()
}

/// A static value is not dropped.
extern "C" fn remove_folder() {
    let _ = FOLDER.get().map(|folder| std::fs::remove_dir_all(folder.path()));
}

/// What a client does whose server greets with `offered`, encrypts where it is asked to, and then asks as `act` does.
/// With the bytes that the server was sent, from the answer to its greeting on.
fn asked(
    tls: Tls,
    offered: u32,
    act: impl FnOnce(&mut Peer) -> Vec<u8> + Send + 'static,
) -> (Result<(), DbError>, Vec<u8>) {
    let (heard, hears) = std::sync::mpsc::channel();
    let (server, peer) = play_tcp(move |peer| {
        peer.greet("8.0.1", offered, "caching_sha2_password");
        let mut bytes = Vec::new();
        if offered & can::SSL != 0 {
            // A client that wants no encryption answers at once; the request has 32 bytes.
            let Some(request) = peer.try_read() else { return };
            if request.len() > 32 {
                bytes = request;
            } else if !peer.encrypt(&folder()) {
                return;
            }
        }
        if bytes.is_empty() {
            let Some(response) = peer.try_read() else { return };
            bytes = response;
        }
        bytes.extend(act(peer));
        heard.send(bytes).unwrap();
    });
    let opened = Connection::open(&Server { tls, ..server }).map(drop);
    peer.join().unwrap();
    (opened, hears.try_recv().unwrap_or_default())
}

/// Asks for the password by mysql_clear_password, and lets the client in that gives it.
fn asks_for_the_password(peer: &mut Peer) -> Vec<u8> {
    peer.switch_to("mysql_clear_password");
    let Some(answer) = peer.try_read() else { return Vec::new() };
    peer.send_ok();
    answer
}

/// Says that the password's proof is unknown to it.
fn has_forgotten(peer: &mut Peer) -> Vec<u8> {
    peer.send(&[1, 4]);
    let Some(answer) = peer.try_read() else { return Vec::new() };
    peer.send_ok();
    answer
}

/// Lets anybody in.
fn trusts(peer: &mut Peer) -> Vec<u8> {
    peer.send_ok();
    Vec::new()
}

fn ca(mode: TlsMode, name: &str) -> Tls {
    Tls { mode, ca: Some(folder().join(name)), ..Tls::default() }
}

const ENCRYPTS: u32 = CAPABILITIES | can::SSL;

#[test]
fn a_given_authority_is_heeded_in_every_mode_that_encrypts() {
    for mode in [TlsMode::Preferred, TlsMode::Required, TlsMode::VerifyCa, TlsMode::VerifyIdentity] {
        for act in [trusts as fn(&mut Peer) -> Vec<u8>, asks_for_the_password, has_forgotten] {
            let (opened, heard) = asked(ca(mode, "other.pem"), ENCRYPTS, act);
            let error = opened.unwrap_err();
            assert!(matches!(error, DbError::Tls { .. }), "{mode:?}: {error}");
            assert!(heard.is_empty(), "{mode:?}: {heard:?}");
            // The server that the authority did sign is let to the same question, which it has a right to.
            if mode != TlsMode::VerifyIdentity {
                asked(ca(mode, "ca.pem"), ENCRYPTS, act).0.unwrap();
            }
        }
    }
}

/// It is what was read that counts, whatever lies at the path by now.
#[test]
fn a_found_authority_is_heeded_as_it_was_read() {
    let lies = tempfile::tempdir().unwrap();
    let path = lies.path().join("root.crt");
    for (read, lies_there, is_heard) in [("ca.pem", "other.pem", true), ("other.pem", "ca.pem", false)] {
        std::fs::copy(folder().join(read), &path).unwrap();
        let found_ca = crate::credentials::found_authorities(&path).unwrap();
        std::fs::copy(folder().join(lies_there), &path).unwrap();
        let tls = Tls { mode: TlsMode::Required, found_ca, ..Tls::default() };
        let (opened, heard) = asked(tls, ENCRYPTS, asks_for_the_password);
        assert_eq!((opened.is_ok(), holds(&heard, PASSWORD)), (is_heard, is_heard), "{read}");
    }
}

/// An attacker in between may leave the server's offer out.
#[test]
fn with_an_authority_no_encryption_is_an_error() {
    for mode in [TlsMode::Preferred, TlsMode::Required, TlsMode::VerifyCa] {
        let (opened, heard) = asked(ca(mode, "ca.pem"), CAPABILITIES, trusts);
        let error = opened.unwrap_err();
        assert!(matches!(error, DbError::Tls { .. }), "{mode:?}: {error}");
        assert!(error.to_string().contains("offers none"), "{error}");
        assert!(heard.is_empty());
    }
}

#[test]
fn whoever_has_not_proven_who_it_is_gets_no_password() {
    for mode in [TlsMode::Disabled, TlsMode::Preferred, TlsMode::Required] {
        for act in [asks_for_the_password as fn(&mut Peer) -> Vec<u8>, has_forgotten] {
            let (opened, heard) = asked(Tls { mode, ..Tls::default() }, ENCRYPTS, act);
            assert!(!holds(&heard, PASSWORD), "{mode:?}");
            check_error(opened, is_login, "has not proven");
        }
    }
}

#[test]
fn a_server_of_the_named_authority_gets_the_password_it_asks_for() {
    for act in [asks_for_the_password as fn(&mut Peer) -> Vec<u8>, has_forgotten] {
        let (opened, heard) = asked(ca(TlsMode::Preferred, "ca.pem"), ENCRYPTS, act);
        opened.unwrap();
        assert!(heard.ends_with(&[PASSWORD.as_bytes(), b"\0"].concat()));
    }
}

#[test]
fn whoever_says_so_gives_the_password_away() {
    for (mode, offered) in [(TlsMode::Required, ENCRYPTS), (TlsMode::Disabled, CAPABILITIES)] {
        let tls = Tls { mode, allow_cleartext: true, ..Tls::default() };
        let (opened, heard) = asked(tls, offered, asks_for_the_password);
        opened.unwrap();
        assert!(heard.ends_with(&[PASSWORD.as_bytes(), b"\0"].concat()));
    }
}

/// Makes a key pair, gives the public half away where it is asked for, and keeps the password that comes, encrypted.
fn gives_its_key(request: u8, switches: bool) -> impl FnOnce(&mut Peer) -> Vec<u8> + Send + 'static {
    move |peer| {
        if switches {
            peer.switch_to("sha256_password");
        } else {
            peer.send(&[1, 4]);
        }
        let Some(asked) = peer.try_read() else { return Vec::new() };
        if asked == [request] {
            let key = std::fs::read(folder().join("public.pem")).unwrap();
            peer.send(&[&[1][..], &key].concat());
            let Some(sealed) = peer.try_read() else { return Vec::new() };
            peer.send_ok();
            return sealed;
        }
        peer.send_ok();
        asked
    }
}

/// What the server makes of an encrypted password.
fn unsealed(sealed: &[u8]) -> Vec<u8> {
    let folder = folder();
    std::fs::write(folder.join("sealed"), sealed).unwrap();
    let script = "openssl pkeyutl -decrypt -inkey rsa.pem -in sealed -pkeyopt rsa_padding_mode:oaep";
    let read = std::process::Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    read.stdout
}

#[test]
fn without_encryption_a_password_travels_by_the_servers_key() {
    let script = "openssl genrsa -out rsa.pem 2048 && openssl rsa -in rsa.pem -pubout -out public.pem";
    let made = std::process::Command::new("sh").args(["-c", script]).current_dir(folder()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let plain = || Tls { mode: TlsMode::Disabled, ..Tls::default() };
    let asking = || Tls { ask_server_key: true, ..plain() };
    let knowing = || Tls { server_key: Some(folder().join("public.pem")), ..plain() };
    for (tls, request, switches) in
        [(asking(), 2, false), (asking(), 1, true), (knowing(), 2, false), (knowing(), 1, true)]
    {
        let (opened, heard) = asked(tls, CAPABILITIES, gives_its_key(request, switches));
        opened.unwrap();
        assert!(!holds(&heard, PASSWORD));
        let scramble = b"abcdefghijklmnopqrst";
        let expected = [PASSWORD.as_bytes(), b"\0"].concat();
        let masked: Vec<u8> = expected.iter().zip(scramble).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(unsealed(&heard[heard.len() - 256..]), masked);
    }
    // By nobody's leave, and for a way that has no keys.
    let (opened, heard) = asked(plain(), CAPABILITIES, gives_its_key(2, false));
    assert!(is_login(&opened.unwrap_err()) && !holds(&heard, PASSWORD));
    let (opened, heard) = asked(asking(), CAPABILITIES, asks_for_the_password);
    assert!(is_login(&opened.unwrap_err()) && !holds(&heard, PASSWORD));
}

#[test]
fn keys_that_are_none_get_no_password() {
    for key in [&b""[..], b"nonsense", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
        let tls = Tls { mode: TlsMode::Disabled, ask_server_key: true, ..Tls::default() };
        let (opened, heard) = asked(tls, CAPABILITIES, move |peer| {
            peer.send(&[1, 4]);
            assert_eq!(peer.try_read().unwrap(), [2]);
            peer.send(&[&[1][..], key].concat());
            peer.try_read().unwrap_or_default()
        });
        assert!(is_odd(&opened.unwrap_err()) && !holds(&heard, PASSWORD));
    }
}

/// MySQL's sha256_password takes no Unix socket for secure: it wants its key to be used, and gives it to who asks.
#[test]
fn sha256_wants_its_key_on_sockets_too() {
    let (server, peer) = play(|peer| {
        peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
        peer.read();
        peer.switch_to("sha256_password");
        assert_eq!(peer.read(), [1]);
    });
    check_error(Connection::open(&server).map(drop), is_lost, "closed the connection");
    peer.join().unwrap();
}

/// In a place of which it is known that somebody else may listen: the key is the stranger's.
#[test]
fn a_stranger_s_socket_gets_no_password_by_its_own_key() {
    let (server, peer) = play(|peer| {
        peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
        peer.read();
        peer.switch_to("sha256_password");
        assert_eq!(peer.try_read(), None, "it is asked for its key");
    });
    let Place::Unix(path) = &server.place else { unreachable!() };
    let run = tempfile::tempdir().unwrap();
    let socket = run.path().join("s/mysqld.sock");
    std::fs::create_dir(run.path().join("s")).unwrap();
    std::fs::write(run.path().join("sandbox.json"), "{}").unwrap();
    std::fs::rename(path, &socket).unwrap();
    let tls = Tls { ask_server_key: true, ..Tls::default() };
    let server = Server { place: Place::Unix(socket), tls, ..server };
    let why = Connection::open(&server).map(drop).unwrap_err();
    assert!(is_login(&why), "{why}");
    peer.join().unwrap();
}

/// More of them at a time than fit into what TLS keeps decrypted.
#[test]
fn encrypted_rows_come_in_records_of_any_length() {
    const ROWS: u64 = 4000;
    for bytes in [200, 3000, 5462, 16_000] {
        let (server, peer) = play_tcp(move |peer| {
            peer.greet("8.0.1", ENCRYPTS, "caching_sha2_password");
            peer.read();
            assert!(peer.encrypt(&folder()));
            peer.read();
            peer.send_ok();
            peer.read();
            peer.send_columns(&[kind::VAR_STRING]);
            let row = vec![b'x'; bytes];
            (0..ROWS).for_each(|_| peer.send(&row));
            peer.send(&[0xfe, 0, 0, 2, 0, 0, 0]);
        });
        let tls = Tls { mode: TlsMode::Required, ..Tls::default() };
        let done = Connection::open(&Server { tls, ..server }).unwrap().run("SELECT");
        peer.join().unwrap();
        assert_eq!(done.unwrap().rows, ROWS, "records of {bytes} bytes");
    }
}
