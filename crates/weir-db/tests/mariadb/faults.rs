//! A server that is full, slow, stopped in the middle, or gone.

use std::time::Duration;

use weir_db::{Connection, DbError, Server, TlsMode};

use crate::server::{MariaDb, mariadb_or_say};

#[test]
fn a_full_server_says_so() {
    if !mariadb_or_say("a_full_server_says_so") {
        return;
    }
    let server = MariaDb::start(&[("max_connections", "10"), ("extra_max_connections", "1")]);
    let target = server.remote(TlsMode::Preferred);
    let mut open = Vec::new();
    let error = loop {
        match Connection::open(&target) {
            Ok(connection) => open.push(connection),
            Err(error) => break error,
        }
        assert!(open.len() <= 12, "no limit was met");
    };
    assert!(matches!(&error, DbError::Server(error) if error.number == 1040), "{error}");
    assert!(open.len() >= 9);
    // Whoever leaves makes room, and is not counted as an aborted client.
    open.clear();
    let mut again = loop {
        if let Ok(connection) = Connection::open(&target) {
            break connection;
        }
    };
    let aborted = again.query("SHOW GLOBAL STATUS LIKE 'Aborted_clients'").unwrap();
    assert_eq!(aborted[0][1].as_deref(), Some("0"));
}

#[test]
fn a_statement_can_be_ended_from_outside() {
    if !mariadb_or_say("a_statement_can_be_ended_from_outside") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    // The server finds the table here: what ends it while it searches is another error.
    connection.run("SELECT 1 FROM seq_1_to_1000000 LIMIT 1").unwrap();
    let canceller = connection.canceller();
    let waiting = std::thread::spawn(move || {
        let error =
            connection.run("SELECT COUNT(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b").unwrap_err();
        (error, connection)
    });
    while !waiting.is_finished() {
        canceller.cancel().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let (error, mut connection) = waiting.join().unwrap();
    assert!(matches!(&error, DbError::Server(error) if error.number == 1317), "{error}");
    // And the connection goes on, once nobody ends its statements any more.
    assert_eq!(connection.query("SELECT 1").unwrap(), [[Some("1".to_string())]]);
    drop(connection);
    // Nobody is there any more.
    canceller.cancel().unwrap();
}

#[test]
fn answers_that_take_too_long_are_given_up() {
    if !mariadb_or_say("answers_that_take_too_long_are_given_up") {
        return;
    }
    let server = MariaDb::shared();
    let target = Server { answer_timeout: Some(Duration::from_millis(300)), ..server.local() };
    let mut connection = Connection::open(&target).unwrap();
    assert_eq!(connection.run("SELECT SLEEP(0.01)").unwrap().rows, 1);
    let error = connection.run("SELECT SLEEP(100)").unwrap_err();
    assert!(matches!(error, DbError::Timeout { after_ns: 300_000_000, .. }) && error.is_lost(), "{error}");
    // What comes now could be the old answer.
    let error = connection.run("SELECT 1").unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("earlier answer"), "{error}");
    connection.canceller().cancel().unwrap();
}

#[test]
fn a_killed_server_is_a_lost_connection() {
    if !mariadb_or_say("a_killed_server_is_a_lost_connection") {
        return;
    }
    for mode in [TlsMode::Disabled, TlsMode::Required] {
        let server = MariaDb::start(&[]);
        let mut asleep = Connection::open(&server.remote(mode)).unwrap();
        let mut idle = Connection::open(&server.remote(mode)).unwrap();
        let waiting = std::thread::spawn(move || asleep.run("SELECT SLEEP(100)").unwrap_err());
        let mut admin = server.connect();
        while admin.query("SELECT 1 FROM information_schema.processlist WHERE info LIKE '%SLEEP(100)%' AND id <> CONNECTION_ID()").unwrap().is_empty() {}
        server.kill();
        let error = waiting.join().unwrap();
        assert!(error.is_lost(), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{}", server.port)), "{error}");
        assert!(idle.run("SELECT 1").unwrap_err().is_lost());
        assert!(idle.run("SELECT 1").unwrap_err().is_lost());
        let error = Connection::open(&server.remote(mode)).err().unwrap();
        assert!(matches!(error, DbError::Connect { .. }), "{error}");
    }
}

#[test]
fn a_connection_that_the_server_ends_is_lost() {
    if !mariadb_or_say("a_connection_that_the_server_ends_is_lost") {
        return;
    }
    let server = MariaDb::shared();
    let mut victim = server.weir();
    let id = victim.query("SELECT CONNECTION_ID()").unwrap()[0][0].clone().unwrap();
    server.connect().run(&format!("KILL CONNECTION {id}")).unwrap();
    let error = victim.run("SELECT 1").unwrap_err();
    assert!(error.is_lost(), "{error}");
}

#[test]
fn a_thousand_connections_work() {
    if !mariadb_or_say("a_thousand_connections_work") {
        return;
    }
    let server = MariaDb::start(&[
        ("max_connections", "1010"),
        ("thread_handling", "pool-of-threads"),
        ("thread_pool_size", "2"),
    ]);
    let mut all: Vec<Connection> = (0..1000).map(|_| server.connect()).collect();
    for connection in &mut all {
        assert_eq!(connection.run("SELECT 1").unwrap().rows, 1);
    }
}
