//! Servers that are old, full, hostile or broken, played by a thread.

mod fake;
mod hostile;
mod random;
mod trust;

use std::time::Duration;

use super::protocol::{COLUMNS_MAX, capability as can, kind};
use super::*;
use crate::rows::{Done, Row};
use crate::server::{Place, Secret, Server};
use crate::value::Value;
use fake::{CAPABILITIES, Peer, play, play_tcp};

const PASSWORD: &str = "tell-nobody";

/// What a text statement comes to at a server that logs in anybody and then does `act`.
fn answered(act: impl FnOnce(&mut Peer) + Send + 'static) -> Result<Vec<Row>, DbError> {
    let (server, peer) = play(|peer| {
        peer.let_in();
        peer.read();
        act(peer);
    });
    let result = Connection::open(&server).unwrap().query("SELECT");
    peer.join().unwrap();
    result
}

fn check_error<T: std::fmt::Debug>(result: Result<T, DbError>, matches: fn(&DbError) -> bool, part: &str) {
    let error = result.unwrap_err();
    assert!(matches(&error), "{error:?}");
    let words = error.to_string();
    assert!(words.contains(part), "{words:?} lacks {part:?}");
    assert!(!words.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{words}");
}

fn is_lost(error: &DbError) -> bool {
    matches!(error, DbError::Lost { .. })
}

fn is_odd(error: &DbError) -> bool {
    matches!(error, DbError::Protocol { .. })
}

fn is_login(error: &DbError) -> bool {
    matches!(error, DbError::Login { .. })
}

fn is_server(error: &DbError) -> bool {
    matches!(error, DbError::Server(_))
}

fn is_unsupported(error: &DbError) -> bool {
    matches!(error, DbError::Unsupported(_))
}

#[test]
fn log_ins_that_fail_say_why() {
    let check = |act: fn(&mut Peer), matches: fn(&DbError) -> bool, part: &str| {
        let (server, peer) = play(act);
        check_error(Connection::open(&server).map(drop), matches, part);
        peer.join().unwrap();
    };
    check(|_| (), is_lost, "closed the connection");
    check(|peer| peer.write(&[10, 0, 0]), is_lost, "closed the connection");
    check(|peer| peer.send(b"HTTP/1.1 400 Bad Request\r\n"), is_odd, "greeting is not MySQL's");
    check(|peer| peer.send(&[9, b'3', 0]), is_odd, "greeting is not MySQL's");
    check(|peer| peer.send(&[]), is_odd, "greeting is not MySQL's");
    check(
        |peer| {
            peer.sequence = 3;
            peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
        },
        is_odd,
        "packet 3 came where 0 was due",
    );
    // A full server, before and after both sides know of SQLSTATEs.
    check(|peer| peer.send(b"\xff\x10\x04Too many connections"), is_server, "Too many connections (1040)");
    check(|peer| peer.send(b"\xff\x10\x04#08004Too many"), is_server, "Too many (1040)");
    check(|peer| peer.send(b"\xff\x10"), is_odd, "an error is truncated");
    check(|peer| peer.greet("5.6.51", CAPABILITIES, ""), is_unsupported, "MySQL 5.6 is too old");
    check(
        |peer| peer.greet("8.0.1", can::PROTOCOL_41, ""),
        is_odd,
        "lacks a capability that every supported \
        version",
    );
    check(
        |peer| {
            peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
            peer.read();
            peer.send_error(1045, "28000", "Access denied");
        },
        is_server,
        "Access denied (1045)",
    );
    check(
        |peer| {
            peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
            peer.read();
            peer.send(b"\xfe");
        },
        is_login,
        "of MySQL 4.0",
    );
}

/// The plugin that the account turns out to have, and what becomes of it.
#[test]
fn ways_to_log_in_are_gone_or_named() {
    let switch = |plugin: &'static str, part: &str| {
        let (server, peer) = play(move |peer| {
            peer.greet("10.11.1-MariaDB", CAPABILITIES, "mysql_native_password");
            peer.read();
            peer.switch_to(plugin);
        });
        check_error(Connection::open(&server).map(drop), is_login, part);
        peer.join().unwrap();
    };
    switch("client_ed25519", "\"client_ed25519\", which weir does not know");
    switch("auth_gssapi_client", "auth_gssapi_client");
    switch("dialog", "dialog");
}

#[test]
fn endless_switching_ends() {
    let (server, peer) = play(|peer| {
        peer.greet("8.0.1", CAPABILITIES, "mysql_native_password");
        for _ in 0..super::login::ROUNDS_MAX {
            peer.read();
            peer.switch_to("mysql_native_password");
        }
        peer.read_rest();
    });
    check_error(Connection::open(&server).map(drop), is_odd, "the log-in does not end");
    peer.join().unwrap();
}

#[test]
fn caching_sha2_goes_both_paths() {
    let check = |full: bool| {
        let (server, peer) = play(move |peer| {
            peer.greet("8.0.1", CAPABILITIES, "caching_sha2_password");
            let response = peer.read();
            assert!(!holds(&response, PASSWORD));
            if full {
                peer.send(&[1, 4]);
                assert_eq!(peer.read(), [PASSWORD.as_bytes(), b"\0"].concat());
            } else {
                peer.send(&[1, 3]);
            }
            peer.send_ok();
        });
        Connection::open(&server).unwrap();
        peer.join().unwrap();
    };
    check(false);
    check(true);
}

#[test]
fn passwords_do_not_travel_readable_by_tcp() {
    let check = |act: fn(&mut Peer), part: &str| {
        let (server, peer) = play_tcp(move |peer| {
            peer.greet("8.0.1", CAPABILITIES & !can::SSL, "caching_sha2_password");
            assert!(!holds(&peer.read(), PASSWORD));
            act(peer);
            // Nothing but the goodbye of the socket follows.
            assert_eq!(peer.read_rest(), b"");
        });
        check_error(Connection::open(&server).map(drop), is_login, part);
        peer.join().unwrap();
    };
    check(|peer| peer.send(&[1, 4]), "--server-public-key");
    check(|peer| peer.switch_to("sha256_password"), "--server-public-key");
    check(|peer| peer.switch_to("mysql_clear_password"), "--tls-ca");
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn only_what_both_sides_can_is_used() {
    let check = |version: &'static str, offered: u32, extended: u32, expected: fn(u32, u32) -> bool| {
        let (server, peer) = play(move |peer| {
            peer.extended = extended;
            peer.greet(version, offered, "mysql_native_password");
            let response = peer.read();
            let number = |at: usize| u32::from_le_bytes(response[at..at + 4].try_into().unwrap());
            assert!(expected(number(0), number(28)), "{version}: {:#x} {:#x}", number(0), number(28));
            peer.send_ok();
        });
        Connection::open(&server).unwrap();
        peer.join().unwrap();
    };
    check("8.0.1", CAPABILITIES | 1, 0, |common, extended| common & 1 == 1 && extended == 0);
    check("8.0.1", CAPABILITIES | 1, u32::MAX, |_, extended| extended == 0);
    check("10.11.1-MariaDB", CAPABILITIES & !1, u32::MAX, |common, extended| {
        common & 1 == 0 && extended == 1 << 4 | 1 << 2
    });
    check("10.3.1-MariaDB", CAPABILITIES & !1, 0, |_, extended| extended == 0);
    check("8.0.1", CAPABILITIES & !can::DEPRECATE_EOF, 0, |common, _| common & can::DEPRECATE_EOF == 0);
}

#[test]
fn slow_servers_are_given_up() {
    let (server, peer) = play(|peer| {
        // A byte of the greeting now and then.
        peer.write(&[250, 0, 0, 0]);
        while peer.try_write(&[1]) {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let server = Server { connect_timeout: Duration::from_millis(100), ..server };
    check_error(
        Connection::open(&server).map(drop),
        |error| matches!(error, DbError::Timeout { after_ns: 100_000_000, .. }),
        "within 100 ms",
    );
    peer.join().unwrap();
}

#[test]
fn broken_answers_are_errors() {
    let check = |act: fn(&mut Peer), matches: fn(&DbError) -> bool, part: &str| {
        check_error(answered(act), matches, part);
    };
    check(|_| (), is_lost, "closed the connection");
    check(|peer| peer.send(&[]), is_odd, "of unknown type");
    check(|peer| peer.send(&[0]), is_odd, "of unknown type");
    check(|peer| peer.send(&[0xfe, 1]), is_odd, "of unknown type");
    check(|peer| peer.send(&[0xff, 1]), is_odd, "an error is truncated");
    check(|peer| peer.send_error(1064, "42000", "a\x1b[31mb"), is_server, "a [31mb (1064)");
    check(|peer| peer.send(&[0xfd, 0xff, 0xff, 0xff]), is_odd, "of unknown type");
    let too_many = || (COLUMNS_MAX as u16 + 1).to_le_bytes();
    check_error(
        answered(move |peer| peer.send(&[&[0xfc][..], &too_many()].concat())),
        is_odd,
        "of unknown type",
    );
    check(|peer| peer.send(&[2]), is_lost, "closed the connection");
    check(
        |peer| {
            peer.send(&[1]);
            peer.send(&[3, b'd', b'e']);
        },
        is_odd,
        "description of a column",
    );
    check(
        |peer| {
            peer.send_columns(&[kind::VAR_STRING]);
            peer.send(&[200, b'x']);
        },
        is_odd,
        "does not fit its columns",
    );
    check(
        |peer| {
            peer.send_columns(&[kind::VAR_STRING]);
            peer.write(&[50, 0, 0, 3, 49, b'x']);
        },
        is_lost,
        "closed the connection",
    );
    check(
        |peer| {
            peer.send_columns(&[kind::VAR_STRING]);
            peer.send(&[0xfe]);
        },
        is_odd,
        "end of the rows is truncated",
    );
    check(
        |peer| {
            peer.send_columns(&[kind::VAR_STRING]);
            peer.sequence += 1;
            peer.send(&[1, b'x']);
        },
        is_odd,
        "packet 4 came where 3 was due",
    );
    // Sixteen megabytes announced, a byte sent.
    check(|peer| peer.write(&[0xff, 0xff, 0xff, 1, 1]), is_odd, "longer than any except a row");
}

/// The same where rows are passed over instead of read, and afterwards.
#[test]
fn rows_that_no_server_can_have_changed_are_counted_up_to_the_most() {
    let (server, peer) = play(|peer| {
        peer.let_in();
        peer.read();
        // Two results, each of the largest number there is; the first says that another follows.
        for more_results in [8, 0] {
            peer.send(&[&[0, 0xfe][..], &[0xff; 8], &[0, more_results, 0, 0, 0]].concat());
        }
    });
    assert_eq!(Connection::open(&server).unwrap().run("x").unwrap().affected, u64::MAX);
    peer.join().unwrap();
}

#[test]
fn broken_rows_that_nobody_reads_are_errors_too() {
    let check = |act: fn(&mut Peer), matches: fn(&DbError) -> bool, part: &str| {
        let (server, peer) = play(move |peer| {
            peer.let_in();
            peer.read();
            peer.send_columns(&[kind::VAR_STRING]);
            act(peer);
            peer.hang_up();
        });
        let mut connection = Connection::open(&server).unwrap();
        check_error(connection.run("SELECT"), matches, part);
        // Nobody knows what would come next.
        check_error(connection.run("SELECT"), is_lost, "earlier answer");
        peer.join().unwrap();
    };
    check(|_| (), is_lost, "closed the connection");
    check(|peer| peer.write(&[50, 0, 0, 3, 49, b'x']), is_lost, "closed the connection");
    check(|peer| peer.write(&[0xff, 0xff, 0xff, 3, 49]), is_lost, "closed the connection");
    check(|peer| peer.send(&[0xfe, 0]), is_odd, "end of the rows is truncated");
    check(|peer| peer.send(&[0xff, 0]), is_odd, "an error is truncated");
    check(
        |peer| {
            peer.send(&[1, b'x']);
            peer.sequence = 9;
            peer.send(&[1, b'x']);
        },
        is_odd,
        "packet 9 came where",
    );
}

#[test]
fn a_server_gets_no_file() {
    let (server, peer) = play(|peer| {
        peer.let_in();
        for _ in 0..2 {
            peer.read();
            peer.send(b"\xfb/etc/passwd");
            assert_eq!(peer.read(), b"");
            peer.send_ok();
        }
        peer.read();
        peer.send_ok();
    });
    let mut connection = Connection::open(&server).unwrap();
    check_error(connection.run("SELECT"), is_unsupported, "weir gives none");
    check_error(connection.query("SELECT"), is_unsupported, "weir gives none");
    assert_eq!(connection.run("SELECT").unwrap(), Done::default());
    drop(connection);
    peer.join().unwrap();
}

#[test]
fn loads_are_refused_before_rows_are_made() {
    let check = |capabilities: u32, number: Option<u16>, matches: fn(&DbError) -> bool, part: &str| {
        let (server, peer) = play(move |peer| {
            peer.greet("8.0.1", capabilities, "mysql_native_password");
            peer.read();
            peer.send_ok();
            if let Some(number) = number {
                peer.read();
                peer.send_error(number, "42000", "no");
            }
        });
        let result = Connection::open(&server).unwrap().load("t", "a", &mut |_| panic!("asked for rows"));
        check_error(result, matches, part);
        peer.join().unwrap();
    };
    check(CAPABILITIES & !can::LOCAL_FILES, None, is_unsupported, "local_infile");
    for number in [1148, 3948, 4166] {
        check(CAPABILITIES, Some(number), is_unsupported, "local_infile");
    }
    check(CAPABILITIES, Some(1146), is_server, "no (1146)");
}

/// Servers and proxies that still put an EOF behind columns and rows.
#[test]
fn rows_may_end_the_old_way() {
    let (server, peer) = play(|peer| {
        peer.greet("8.0.1", CAPABILITIES & !can::DEPRECATE_EOF, "mysql_native_password");
        peer.read();
        peer.send_ok();
        for _ in 0..2 {
            peer.read();
            peer.send_columns(&[kind::VAR_STRING, kind::VAR_STRING]);
            peer.send_eof();
            peer.send(&[1, b'x', 0xfb]);
            peer.send_eof();
        }
        // A prepare: one parameter, one column; then an execution.
        peer.read();
        peer.send(&[0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
        for _ in 0..2 {
            peer.send_column(kind::LONG);
            peer.send_eof();
        }
        peer.read();
        peer.send_columns(&[kind::LONG]);
        peer.send_eof();
        peer.send(&[0, 0, 42, 0, 0, 0]);
        peer.send_eof();
    });
    let mut connection = Connection::open(&server).unwrap();
    assert_eq!(connection.query("SELECT").unwrap(), [[Some("x".to_string()), None]]);
    assert_eq!(connection.run("SELECT").unwrap().rows, 1);
    let statement = connection.prepare("SELECT ?").unwrap();
    let (_, rows) = connection.execute_rows(statement, &[Value::Int(1)]).unwrap();
    assert_eq!(rows, [[Some("42".to_string())]]);
    peer.join().unwrap();
}

/// The bytes of an execution: types are named the first time and where they change.
#[test]
fn types_are_named_only_where_they_change() {
    let (server, peer) = play(|peer| {
        peer.let_in();
        peer.read();
        peer.send(&[0, 7, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
        peer.send_column(kind::LONG);
        peer.send_column(kind::LONG);
        let head = [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];
        let one = 1i64.to_le_bytes();
        let expected: [Vec<u8>; 4] = [
            [&head[..], &[0, 1, 8, 0, 253, 0], &one, &[1, b'x']].concat(),
            [&head[..], &[0, 0], &one, &[1, b'x']].concat(),
            [&head[..], &[1, 0], &[1, b'x']].concat(),
            [&head[..], &[0, 1, 5, 0, 253, 0], &1f64.to_le_bytes(), &[0]].concat(),
        ];
        for expected in expected {
            assert_eq!(peer.read(), expected);
            peer.send_ok();
        }
    });
    let mut connection = Connection::open(&server).unwrap();
    let statement = connection.prepare("INSERT").unwrap();
    for values in [
        [Value::Int(1), Value::Text("x")],
        [Value::Int(1), Value::Text("x")],
        [Value::Null, Value::Text("x")],
        [Value::Float(1.0), Value::Text("")],
    ] {
        connection.execute(statement, &values).unwrap();
    }
    drop(connection);
    peer.join().unwrap();
}

#[test]
fn secrets_stay_out_of_sight() {
    let server = fake::server(Place::Unix("/nowhere".into()));
    assert_eq!(server.password, Secret::new(PASSWORD));
    assert!(!format!("{server:?}").contains(PASSWORD));
}
