//! The protocol and the workloads against MySQL itself, out of a tree (`scripts/server-tree mysql-9.7`, or
//! `WEIR_MYSQL_TREE`). As root, who alone may run what is in a tree.

#![allow(clippy::unwrap_used, reason = "test code throughout")]

mod bed;

use std::time::Duration;

use bed::{Bed, PASSWORD, root_or_say};
use weir_db::load::{self, LoadOptions, Way};
use weir_db::runner::{self, RunOptions, Silent, Stop};
use weir_db::{Connection, DbError, Secret, Server, Tls, TlsMode, Value};
use weir_oltp::{Kind, OltpSpec, Script};

/// Who comes in, and how; the server has just forgotten the proofs of all passwords, or not.
#[test]
fn root_every_way_to_log_in_is_gone_where_the_server_is_believed() {
    if !root_or_say("root_every_way_to_log_in_is_gone_where_the_server_is_believed") {
        return;
    }
    let bed = Bed::shared();
    let ca = |name: &str| Tls { ca: Some(bed.file(name)), ..Tls::default() };
    let plain = Tls { mode: TlsMode::Disabled, ..Tls::default() };
    let required = Tls { mode: TlsMode::Required, ..Tls::default() };
    let identity = Tls { mode: TlsMode::VerifyIdentity, ..ca("ca.pem") };
    let key = Tls { server_key: Some(bed.file("public_key.pem")), ..plain.clone() };
    let asking = Tls { ask_server_key: true, ..plain.clone() };
    let giving = |tls: &Tls| Tls { allow_cleartext: true, ..tls.clone() };
    let (distrust, tls) = (Some("has not proven its identity"), Some("no encrypted connection"));
    for user in ["caching", "sha256"] {
        check(&Server { user: user.into(), password: Secret::new(PASSWORD), ..bed.local() }, true, None);
        for (how, encrypted, refused) in [
            (ca("ca.pem"), true, None),
            (Tls { mode: TlsMode::Required, ..ca("ca.pem") }, true, None),
            (ca("client-cert.pem"), true, tls),
            // The name in the certificate that MySQL makes for itself is none.
            (identity.clone(), true, tls),
            (Tls::default(), true, distrust),
            (required.clone(), true, distrust),
            (plain.clone(), false, distrust),
            (key.clone(), false, None),
            (asking.clone(), false, None),
            (giving(&Tls::default()), true, None),
            (giving(&plain), false, None),
        ] {
            bed.forget_proofs();
            let server = Server { tls: how, ..bed.remote(user) };
            check(&server, encrypted, refused);
            let wrong = Server { password: Secret::new("wrong"), ..server };
            assert!(Connection::open(&wrong).is_err());
        }
    }
    // While the server remembers the proof it asks for nothing else.
    check(&Server { tls: ca("ca.pem"), ..bed.remote("caching") }, true, None);
    check(&Server { tls: plain.clone(), ..bed.remote("caching") }, false, None);
    check(&Server { tls: required, ..bed.remote("caching") }, true, None);
}

fn check(server: &Server, encrypted: bool, refused: Option<&str>) {
    let what = format!("{} by {:?}", server.user, server.tls);
    match (Connection::open(server), refused) {
        (Ok(mut connection), None) => {
            let by_tcp = matches!(server.place, weir_db::Place::Tcp { .. });
            assert_eq!(connection.is_encrypted(), encrypted && by_tcp, "{what}");
            assert_eq!(connection.query("SELECT 1").unwrap(), [[Some("1".to_string())]], "{what}");
        }
        (Err(error), Some(part)) => {
            assert!(error.to_string().contains(part), "{what}: {error}");
            assert!(!error.to_string().contains(PASSWORD), "{error}");
        }
        (Ok(_), Some(part)) => panic!("{what}: is in, and was to be refused: {part}"),
        (Err(error), None) => panic!("{what}: {error}"),
    }
}

#[test]
fn root_what_it_does_not_prepare_is_told_and_runs_as_text() {
    if !root_or_say("root_what_it_does_not_prepare_is_told_and_runs_as_text") {
        return;
    }
    let bed = Bed::shared();
    let mut connection = bed.connect();
    let error = connection.prepare("BEGIN").unwrap_err();
    assert!(error.is_unpreparable(), "{error}");
    assert_eq!(connection.run("BEGIN").unwrap().affected, 0);
    let statement = connection.prepare("SELECT ?, ?, ?, NULL, 1.50, DATE '2024-02-29'").unwrap();
    let values = [Value::Int(-7), Value::Text("ü€😀"), Value::Float(0.5)];
    let (done, rows) = connection.execute_rows(statement, &values).unwrap();
    let row = ["-7", "ü€😀", "0.5", "", "1.50", "2024-02-29"];
    let row: Vec<_> = row.iter().map(|text| (!text.is_empty()).then(|| text.to_string())).collect();
    assert_eq!((done.rows, rows), (1, vec![row]));
    connection.run("ROLLBACK").unwrap();
}

#[test]
fn root_every_workload_runs_prepared_and_not() {
    if !root_or_say("root_every_workload_runs_prepared_and_not") {
        return;
    }
    let bed = Bed::shared();
    let fill = |spec: &OltpSpec, way: Way| {
        let server = bed.empty_database("weir");
        let options = LoadOptions { threads: 2, ..LoadOptions::default() };
        let loaded = load::prepare(spec, &server, &options, &|_| (), &Stop::default()).unwrap();
        assert!(loaded.rows == 0 || loaded.way == Some(way), "{:?}: {loaded:?}", spec.script);
        server
    };
    let small = OltpSpec { tables: 2, table_size: 300, threads: 2, ..OltpSpec::default() };
    for (_, script) in Script::ALL {
        let spec = OltpSpec { script, ..small.clone() };
        // As it comes it takes no files.
        let server = fill(&spec, Way::Insert);
        for prepared in [true, false] {
            run(&OltpSpec { prepared, transactions: 20, ..spec.clone() }, &server);
        }
    }
    bed.connect().run("SET GLOBAL local_infile = 1").unwrap();
    fill(&small, Way::LoadData);
}

fn run(spec: &OltpSpec, server: &Server) {
    let ran = runner::run(
        spec,
        std::slice::from_ref(server),
        &RunOptions::default(),
        &mut Silent,
        &Stop::default(),
    );
    let ran = ran.unwrap();
    assert_eq!(ran.error, None, "{:?}", spec.script);
    assert_eq!(ran.kinds[&Kind::Transaction].latency.count(), spec.transactions, "{:?}", spec.script);
}

#[test]
fn root_a_statement_can_be_ended_from_outside() {
    if !root_or_say("root_a_statement_can_be_ended_from_outside") {
        return;
    }
    let bed = Bed::shared();
    let mut connection = bed.connect();
    let canceller = connection.canceller();
    let waiting = std::thread::spawn(move || (connection.query("SELECT SLEEP(100)"), connection));
    while !waiting.is_finished() {
        canceller.cancel().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let (slept, mut connection) = waiting.join().unwrap();
    // A sleep that was interrupted is 1; one that had not begun is an error.
    match slept {
        Ok(rows) => assert_eq!(rows, [[Some("1".to_string())]]),
        Err(error) => assert!(matches!(&error, DbError::Server(error) if error.number == 1317), "{error}"),
    }
    assert_eq!(connection.query("SELECT 2").unwrap(), [[Some("2".to_string())]]);
}

#[test]
fn root_a_killed_server_is_a_lost_connection() {
    if !root_or_say("root_a_killed_server_is_a_lost_connection") {
        return;
    }
    let bed = Bed::start();
    let mut connection = bed.connect();
    bed.kill();
    let error = loop {
        if let Err(error) = connection.run("SELECT 1") {
            break error;
        }
    };
    assert!(error.is_lost(), "{error}");
    assert!(matches!(Connection::open(&bed.local()), Err(DbError::Connect { .. })));
}
