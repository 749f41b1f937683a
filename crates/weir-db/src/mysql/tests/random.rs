//! Bytes that no server would send: nothing panics, nothing hangs, nothing takes memory for what did not come.

use proptest::collection::vec;
use proptest::prelude::*;

use super::fake::{CAPABILITIES, column, greeting, play, play_tcp};
use super::*;
use crate::mysql::answer::{Column, parse_column, parse_error, parse_ok};
use crate::mysql::binary::binary_row;
use crate::mysql::greeting::Greeting;
use crate::mysql::login::parse_switch;
use crate::mysql::text::text_row;

/// What a server may say to who logs in: nonsense, any way to log in, anything more.
fn asks() -> impl Strategy<Value = Vec<u8>> {
    let ways =
        ["mysql_native_password", "caching_sha2_password", "sha256_password", "mysql_clear_password", "x"];
    let way = (0..ways.len())
        .prop_map(move |at| [b"\xfe", ways[at].as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat());
    let more = prop_oneof![
        Just(vec![1, 3]),
        Just(vec![1, 4]),
        Just(vec![1]),
        Just(b"\x01-----BEGIN PUBLIC KEY-----\n".to_vec())
    ];
    prop_oneof![3 => way, 3 => more, 1 => vec(any::<u8>(), 0..40)]
}

fn any_columns() -> impl Strategy<Value = Vec<Column>> {
    let any_column = (any::<u8>(), any::<bool>(), any::<u8>());
    vec(any_column.prop_map(|(kind, unsigned, decimals)| Column { kind, unsigned, decimals }), 0..20)
}

/// Kinds that take the ways through the reading of binary values, more often than chance would.
fn known_columns() -> impl Strategy<Value = Vec<Column>> {
    let known = (0u8..17, any::<bool>(), 0u8..8);
    vec(known.prop_map(|(kind, unsigned, decimals)| Column { kind, unsigned, decimals }), 1..12)
}

proptest! {
    #[test]
    fn readers_take_anything(bytes in vec(any::<u8>(), 0..300), columns in any_columns()) {
        for first in [None, Some(0), Some(10), Some(0xfe), Some(0xff)] {
            let payload: Vec<u8> = first.into_iter().chain(bytes.iter().copied()).collect();
            let _ = (Greeting::parse(&payload), parse_ok(&payload), parse_column(&payload), parse_switch(&payload));
            if let Some(error) = parse_error(&payload) {
                prop_assert!(!error.to_string().chars().any(char::is_control));
            }
            for row in [text_row(&payload, &columns), binary_row(&payload, &columns)].into_iter().flatten() {
                prop_assert_eq!(row.len(), columns.len());
            }
            let _ = Version::parse(&String::from_utf8_lossy(&payload));
        }
    }

    #[test]
    fn binary_rows_take_anything(bytes in vec(0u8..13, 0..200), columns in known_columns()) {
        let nulls = vec![0; (columns.len() + 2).div_ceil(8)];
        if let Some(row) = binary_row(&[&[0][..], &nulls, &bytes].concat(), &columns) {
            prop_assert!(row.iter().all(Option::is_some));
        }
    }

    #[test]
    fn what_is_cut_short_is_not_read(cut in 0usize..200) {
        let whole = greeting("8.0.1", u32::MAX, 0, "plugin");
        prop_assert!(Greeting::parse(&whole).is_some());
        // The NUL at the very end may be missing, and the name with it.
        let least = whole.len() - "plugin\0".len();
        prop_assert_eq!(Greeting::parse(&whole[..cut.min(whole.len())]).is_some(), cut >= least);
        let whole = column(3);
        // Two bytes at the end mean nothing.
        prop_assert_eq!(parse_column(&whole[..cut.min(whole.len())]).is_some(), cut >= whole.len() - 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A server that lets one in and then talks nonsense, in packets that are well numbered or not.
    #[test]
    fn conversations_come_to_an_end(
        payloads in vec(vec(prop_oneof![any::<u8>(), Just(0u8), Just(1), Just(0xfe), Just(0xff)], 0..60), 0..20),
        tail in vec(any::<u8>(), 0..10),
        how in 0usize..4,
    ) {
        let (server, peer) = play(move |peer| {
            peer.let_in();
            peer.read();
            payloads.iter().for_each(|payload| peer.send(payload));
            peer.write(&tail);
            peer.hang_up();
        });
        let mut connection = Connection::open(&server).unwrap();
        let _ = match how {
            0 => connection.run("x").map(drop),
            1 => connection.query("x").map(drop),
            2 => connection.prepare("x").map(drop),
            _ => connection.load("t", "", &mut |_| false).map(drop),
        };
        // Whatever it was: the server is gone now, and what it left unread is taken for no answer.
        prop_assert!(connection.run("x").is_err());
        drop(connection);
        peer.join().unwrap();
    }

    /// Whatever a server says that has not proven its identity, the password does not come out.
    #[test]
    fn no_conversation_gets_the_password(says in vec(asks(), 0..8), way in 0usize..4, by_key in any::<bool>()) {
        let (heard, hears) = std::sync::mpsc::channel();
        let ways = ["mysql_native_password", "caching_sha2_password", "sha256_password", "mysql_clear_password"];
        let (server, peer) = play_tcp(move |peer| {
            peer.greet("8.0.1", CAPABILITIES, ways[way]);
            let mut bytes = peer.try_read().unwrap_or_default();
            for say in says {
                peer.send(&say);
                let Some(answer) = peer.try_read() else { break };
                bytes.extend(answer);
            }
            heard.send(bytes).unwrap();
        });
        let tls = crate::server::Tls { ask_server_key: by_key, ..Default::default() };
        // The client waits for no more than the server says.
        let server = Server { tls, connect_timeout: Duration::from_millis(200), ..server };
        let _ = Connection::open(&server);
        peer.join().unwrap();
        prop_assert!(!holds(&hears.recv().unwrap(), PASSWORD));
    }
}
