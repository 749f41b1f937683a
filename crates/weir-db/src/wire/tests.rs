//! The wire against peers that are slow, silent, chatty or gone. A peer is a thread of the test on a socket of its own.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use super::*;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// A wire to a peer that does `act`, then hangs up.
fn wire_to(timeout: Duration, act: impl FnOnce(UnixStream) + Send + 'static) -> (Wire, JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let peer = std::thread::spawn(move || act(listener.accept().unwrap().0));
    let wire = Wire::connect(&Place::Unix(path), timeout).unwrap();
    (wire, peer)
}

#[test]
fn bytes_arrive_however_they_are_cut() {
    let sent: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    for chunk in [1usize, 7, 4096, 100_000] {
        let bytes = sent[..if chunk == 1 { 2000 } else { sent.len() }].to_vec();
        let total = bytes.len();
        let expected = bytes.clone();
        let (mut wire, peer) = wire_to(LONG, move |mut stream| {
            bytes.chunks(chunk).for_each(|part| stream.write_all(part).unwrap());
        });
        let mut seen = Vec::new();
        for want in [1usize, 3, 500, 1].into_iter().chain((0..).map(|i| 1 + i * 37 % 900)) {
            let want = want.min(total - seen.len());
            if want == 0 {
                break;
            }
            seen.extend_from_slice(&wire.need(want).unwrap()[..want]);
            wire.consume(want);
        }
        assert!(seen == expected, "chunks of {chunk}");
        let error = wire.need(1).unwrap_err();
        assert!(error.is_lost() && error.to_string().contains("closed the connection"), "{error}");
        peer.join().unwrap();
    }
}

#[test]
fn the_buffer_grows_for_one_long_need_and_shrinks_again() {
    let (mut wire, peer) = wire_to(LONG, |mut stream| stream.write_all(&vec![7; 5 << 20]).unwrap());
    assert_eq!(wire.need(4 << 20).unwrap()[..4 << 20], vec![7; 4 << 20]);
    wire.consume(4 << 20);
    wire.skip((1 << 20) - 1).unwrap();
    assert_eq!(wire.need(1).unwrap(), [7]);
    wire.consume(1);
    assert!(wire.need(1).is_err());
    assert_eq!(wire.input.len(), INPUT_BYTES);
    peer.join().unwrap();
}

#[test]
fn what_was_only_announced_takes_no_memory() {
    let (mut wire, peer) = wire_to(LONG, |mut stream| stream.write_all(&[1; 10]).unwrap());
    assert!(wire.need(1 << 30).unwrap_err().is_lost());
    assert!(wire.input.len() <= 2 * INPUT_BYTES);
    peer.join().unwrap();
}

#[test]
fn a_silent_peer_ends_in_a_timeout() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (mut wire, peer) = wire_to(SHORT, move |_stream| wait.recv().unwrap_or_default());
    let error = wire.need(1).unwrap_err();
    assert!(matches!(error, DbError::Timeout { after_ns: 50_000_000, .. }), "{error}");
    assert!(error.to_string().contains("within 50.0 ms"), "{error}");
    drop(go);
    peer.join().unwrap();
}

/// A peer that sends a byte now and then never lets the socket's own time-out run out.
#[test]
fn a_dripping_peer_ends_in_a_timeout() {
    let drip = |mut stream: UnixStream| {
        while stream.write_all(&[0]).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let (mut wire, peer) = wire_to(SHORT, drip);
    assert!(matches!(wire.need(1 << 20), Err(DbError::Timeout { .. })));
    drop(wire);
    peer.join().unwrap();

    let (mut wire, peer) = wire_to(LONG, drip);
    wire.set_answer_timeout(Some(SHORT)).unwrap();
    wire.output().push(1);
    wire.flush().unwrap();
    assert!(matches!(wire.need(1 << 20), Err(DbError::Timeout { .. })));
    drop(wire);
    peer.join().unwrap();
}

#[test]
fn each_answer_has_its_own_time() {
    let (mut wire, peer) = wire_to(LONG, |mut stream| {
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            std::thread::sleep(Duration::from_millis(30));
            stream.write_all(&byte).unwrap();
        }
    });
    wire.set_answer_timeout(Some(Duration::from_secs(5))).unwrap();
    for n in 0..5 {
        wire.output().push(n);
        wire.flush().unwrap();
        assert_eq!(wire.need(1).unwrap(), [n]);
        wire.consume(1);
    }
    drop(wire);
    peer.join().unwrap();
}

#[test]
fn a_peer_that_reads_nothing_ends_in_a_timeout() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (mut wire, peer) = wire_to(SHORT, move |_stream| wait.recv().unwrap_or_default());
    wire.output().resize(16 << 20, 1);
    assert!(matches!(wire.flush(), Err(DbError::Timeout { .. })));
    assert!(wire.output().is_empty());
    drop(go);
    peer.join().unwrap();
}

#[test]
fn places_that_are_not_there_are_named() {
    let cases = [
        (Place::Unix("/nowhere/at/all.sock".into()), "unix:/nowhere/at/all.sock"),
        (Place::Unix(format!("/{}", "x".repeat(200)).into()), "unix:/xxx"),
        (Place::Tcp { host: "127.0.0.1".into(), port: 1 }, "127.0.0.1:1"),
        (Place::Tcp { host: "[::1]".into(), port: 1 }, "1"),
    ];
    for (place, expected) in cases {
        let error = Wire::connect(&place, LONG).err().unwrap();
        assert!(matches!(error, DbError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn bytes_before_the_handshake_stop_it() {
    let (mut wire, peer) = wire_to(LONG, |mut stream| stream.write_all(b"SX").unwrap());
    assert_eq!(wire.need(2).unwrap(), b"SX");
    wire.consume(1);
    let error = wire.start_tls(&Tls::default(), "localhost").unwrap_err();
    assert!(matches!(&error, DbError::Tls { why, .. } if why.contains("unencrypted bytes")), "{error}");
    peer.join().unwrap();
}

#[test]
fn a_peer_without_tls_is_told_from_a_lost_one() {
    for answer in [&b""[..], b"N", b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let (mut wire, peer) = wire_to(LONG, move |mut stream| {
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello).unwrap();
            stream.write_all(answer).unwrap();
        });
        let error = wire.start_tls(&Tls::default(), "localhost").unwrap_err();
        assert!(matches!(error, DbError::Tls { .. }), "{answer:?}: {error}");
        peer.join().unwrap();
    }
}
