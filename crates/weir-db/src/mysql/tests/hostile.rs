//! Servers that send more than anybody can use: it ends in an error, in little memory.

use super::fake::{column, play_tcp};
use super::*;
use crate::mysql::answer::parse_error;
use crate::mysql::greeting::Greeting;
use crate::mysql::login::parse_switch;

/// What becomes of a query whose server keeps saying `bytes` until the client goes, 64 MiB at most: then it ends the
/// rows as if nothing was.
fn flooded(
    head: Vec<Vec<u8>>,
    row: &[u8],
    rows: usize,
    ask: fn(&mut Connection) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let row = row.to_vec();
    let (server, peer) = play(move |peer| {
        peer.let_in();
        peer.read();
        head.iter().for_each(|payload| peer.send(payload));
        for _ in 0..rows {
            let [a, b, c, ..] = row.len().to_le_bytes();
            let sequence = peer.sequence;
            peer.sequence = sequence.wrapping_add(1);
            if !peer.try_write(&[&[a, b, c, sequence], row.as_slice()].concat()) {
                return;
            }
        }
        peer.send(&[0xfe, 0, 0, 2, 0, 0, 0]);
    });
    let result = ask(&mut Connection::open(&server).unwrap());
    peer.join().unwrap();
    result
}

fn query(connection: &mut Connection) -> Result<(), DbError> {
    connection.query("SELECT").map(drop)
}

/// A NULL takes a byte on the way and 24 in memory.
#[test]
fn rows_count_by_the_memory_they_take() {
    const WIDE: u16 = COLUMNS_MAX as u16;
    let head = |width: u16| {
        let count = [&[0xfc][..], &width.to_le_bytes()].concat();
        [vec![count], vec![column(kind::VAR_STRING); width.into()]].concat()
    };
    let nulls = vec![0xfb; WIDE.into()];
    check_error(flooded(head(WIDE), &nulls, 4000, query), is_odd, "256 MiB of rows");
    // Thrown away they take none.
    flooded(head(WIDE), &nulls, 4000, |connection| connection.run("SELECT").map(drop)).unwrap();
    flooded(head(WIDE), &nulls, 400, query).unwrap();
}

/// Whatever is no row is short, and is refused by its length: before it has come.
#[test]
fn long_packets_are_rows_or_nothing() {
    let long = |sequence: u8| [0xff, 0xff, 0xff, sequence, 0];
    for first in [0_u8, 0xff, 0xfe, 1] {
        let result = answered(move |peer| {
            peer.write(&[0xff, 0xff, 0xff, 1, first]);
            peer.read_rest();
        });
        check_error(result, is_odd, "longer than");
    }
    let in_columns = answered(move |peer| {
        peer.send(&[1]);
        peer.write(&long(2));
        peer.read_rest();
    });
    check_error(in_columns, is_odd, "longer than");
    let (server, peer) = play(move |peer| {
        peer.write(&long(0));
        peer.read_rest();
    });
    check_error(Connection::open(&server).map(drop), is_odd, "longer than");
    peer.join().unwrap();
    let (server, peer) = play_tcp(|peer| {
        peer.greet("8.0.1", CAPABILITIES, "caching_sha2_password");
        peer.read();
        peer.write(&[0xff, 0xff, 0xff, 2, 0xfe]);
        peer.read_rest();
    });
    check_error(Connection::open(&server).map(drop), is_odd, "longer than");
    peer.join().unwrap();
}

/// A row's parts, each of the longest a packet can be, come until it is refused.
#[test]
fn a_row_without_end_is_refused() {
    let (server, peer) = play(|peer| {
        peer.let_in();
        peer.read();
        peer.send_columns(&[kind::VAR_STRING]);
        let part = vec![b'x'; 0xff_ffff];
        for sequence in 3..40 {
            if !peer.try_write(&[0xff, 0xff, 0xff, sequence]) || !peer.try_write(&part) {
                return;
            }
        }
    });
    check_error(Connection::open(&server).unwrap().query("SELECT"), is_odd, "longer than");
    peer.join().unwrap();
}

/// Each time the client says something; the answer's time goes on all the same.
#[test]
fn a_server_that_asks_for_files_without_end_runs_out_of_time() {
    let (server, peer) = play(|peer| {
        peer.let_in();
        peer.read();
        for _ in 0..60 {
            std::thread::sleep(Duration::from_millis(50));
            peer.send(b"\xfb/etc/shadow");
            if peer.try_read().is_none() {
                return;
            }
        }
        peer.send_ok();
    });
    let server = Server { answer_timeout: Some(Duration::from_millis(500)), ..server };
    let is_late = |error: &DbError| matches!(error, DbError::Timeout { .. });
    check_error(Connection::open(&server).unwrap().run("SELECT"), is_late, "no answer");
    peer.join().unwrap();
}

#[test]
fn words_of_a_server_are_short_and_plain() {
    let is_plain =
        |text: &str, most: usize| text.chars().count() <= most && !text.chars().any(char::is_control);
    let shouted = [b"\xff\x00\x00#\x1b[2Ja".to_vec(), b"\x1b]0;x\x07".repeat(100_000)].concat();
    let error = parse_error(&shouted).unwrap();
    assert!(is_plain(&error.to_string(), 2100), "{}", error.to_string().len());
    let name = "\x1b[31m".repeat(10_000);
    let greeting = fake::greeting(&name, CAPABILITIES, 0, &name);
    let greeting = Greeting::parse(&greeting).unwrap();
    assert!(is_plain(&greeting.version, 100) && is_plain(&greeting.plugin, 100));
    let (plugin, _) = parse_switch(&[b"\xfe", name.as_bytes(), b"\0abc\0"].concat()).unwrap();
    assert!(is_plain(&plugin, 100));
}
