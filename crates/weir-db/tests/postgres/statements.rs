//! Statements, values, rows and loads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_db::postgres::Transaction;
use weir_db::{Connection, DbError, Done, Row, Server, TlsMode, Value};

use crate::bed::{ask, code, shared};

fn row(fields: &[Option<&str>]) -> Row {
    fields.iter().map(|field| field.map(str::to_string)).collect()
}

fn transaction(connection: &Connection) -> Transaction {
    match connection {
        Connection::Postgres(connection) => connection.transaction(),
        Connection::MySql(_) => panic!("not PostgreSQL"),
    }
}

#[test]
fn values_reach_columns_of_every_type() {
    let Some(bed) = shared("values_reach_columns_of_every_type") else { return };
    let mut connection = bed.connect();
    let long = "ü".repeat(100_000);
    for (sql_type, value, expected) in [
        ("smallint", Value::Int(-32_768), "-32768"),
        ("integer", Value::Int(i64::from(i32::MIN)), "-2147483648"),
        ("bigint", Value::Int(i64::MIN), "-9223372036854775808"),
        ("bigint", Value::Text("12"), "12"),
        ("oid", Value::Int(4_000_000_000), "4000000000"),
        ("numeric", Value::Int(i64::MAX), "9223372036854775807"),
        ("numeric", Value::Float(0.25), "0.25"),
        ("double precision", Value::Float(0.1), "0.1"),
        ("double precision", Value::Float(f64::NEG_INFINITY), "-Infinity"),
        ("double precision", Value::Int(3), "3"),
        ("real", Value::Float(1.5), "1.5"),
        ("boolean", Value::Int(1), "true"),
        ("boolean", Value::Text("no"), "false"),
        ("text", Value::Int(-7), "-7"),
        ("text", Value::Float(f64::NAN), "NaN"),
        ("text", Value::Text(""), ""),
        ("text", Value::Text(&long), &long),
        ("varchar(9)", Value::Text("a\tb\n\\"), "a\tb\n\\"),
        ("bytea", Value::Text("\\x00ff"), "\\x00ff"),
        ("date", Value::Text("2024-02-29"), "2024-02-29"),
        ("json", Value::Text("{\"a\": 1}"), "{\"a\": 1}"),
        ("uuid", Value::Text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ] {
        let statement = connection.prepare(&format!("SELECT $1::{sql_type}::text, NULL")).unwrap();
        let (done, rows) = connection.execute_rows(statement, &[value]).unwrap();
        assert_eq!(rows, [row(&[Some(expected), None])], "{sql_type} {value:.60?}");
        assert_eq!(done, Done { rows: 1, ..Done::default() });
        let (_, rows) = connection.execute_rows(statement, &[Value::Null]).unwrap();
        assert_eq!(rows, [row(&[None, None])], "{sql_type} NULL");
        connection.close(statement).unwrap();
    }
}

#[test]
fn values_that_do_not_fit_are_the_servers_to_refuse() {
    let Some(bed) = shared("values_that_do_not_fit_are_the_servers_to_refuse") else { return };
    let mut connection = bed.connect();
    for (sql_type, value, expected) in [
        ("smallint", Value::Int(40_000), "22003"),
        ("integer", Value::Int(1 << 40), "22003"),
        ("integer", Value::Float(1.5), "22P02"),
        ("integer", Value::Text("x"), "22P02"),
        ("text", Value::Text("a\0b"), "22021"),
    ] {
        let statement = connection.prepare(&format!("SELECT $1::{sql_type}")).unwrap();
        assert_eq!(code(connection.execute(statement, &[value])), expected, "{sql_type} {value:?}");
        assert_eq!(connection.execute(statement, &[Value::Null]).unwrap().rows, 1);
    }
}

#[test]
fn what_was_done_is_counted() {
    let Some(bed) = shared("what_was_done_is_counted") else { return };
    let mut connection = bed.connect();
    let done = |rows, affected| Done { rows, affected, ..Done::default() };
    let wide = "SELECT repeat('x', 30000) FROM generate_series(1, 300)";
    for (sql, expected) in [
        ("CREATE TEMP TABLE counted (id int PRIMARY KEY, c text)", done(0, 0)),
        ("INSERT INTO counted SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i", done(0, 1000)),
        ("UPDATE counted SET c = '' WHERE id <= 10", done(0, 10)),
        ("DELETE FROM counted WHERE id = 1 RETURNING id", done(1, 1)),
        ("SELECT * FROM counted", done(999, 0)),
        (wide, done(300, 0)),
        ("SELECT repeat('x', 20000000)", done(1, 0)),
        ("SELECT 1; SELECT 2 WHERE false; UPDATE counted SET c = 'y' WHERE id < 5; SELECT 3", done(2, 3)),
        ("COPY counted TO STDOUT", done(0, 999)),
        ("DO $$ BEGIN RAISE NOTICE 'by the way'; END $$", done(0, 0)),
        ("SET client_min_messages = debug1; SET TimeZone = 'UTC'", done(0, 0)),
        ("LISTEN here; NOTIFY here, 'me'", done(0, 0)),
        ("", done(0, 0)),
    ] {
        assert_eq!(connection.run(sql).unwrap(), expected, "{sql}");
    }
    let wide = connection.prepare(wide).unwrap();
    assert_eq!(connection.execute(wide, &[]).unwrap(), done(300, 0));
    assert_eq!(connection.execute_rows(wide, &[]).unwrap().1.len(), 300);
    assert_eq!(connection.query("SELECT 1; SELECT 2, NULL").unwrap(), [row(&[Some("2"), None])]);
    assert_eq!(ask(&mut connection, "SELECT repeat('y', 20000000)").len(), 20_000_000);
}

#[test]
fn after_an_error_the_connection_goes_on() {
    let Some(bed) = shared("after_an_error_the_connection_goes_on") else { return };
    let mut connection = bed.connect();
    connection.run("CREATE TEMP TABLE once (id int PRIMARY KEY)").unwrap();
    let insert = connection.prepare("INSERT INTO once VALUES ($1)").unwrap();
    assert_eq!(connection.execute(insert, &[Value::Int(1)]).unwrap().affected, 1);
    assert_eq!(transaction(&connection), Transaction::Idle);
    connection.run("BEGIN").unwrap();
    assert_eq!(transaction(&connection), Transaction::Open);
    let twice = connection.execute(insert, &[Value::Int(1)]).unwrap_err();
    assert!(twice.is_retryable(), "{twice}");
    assert!(twice.to_string().contains("detail: Key (id)=(1) already exists."), "{twice}");
    assert_eq!(transaction(&connection), Transaction::Failed);
    assert_eq!(code(connection.execute(insert, &[Value::Int(2)])), "25P02");
    assert_eq!(code(connection.prepare("SELECT 1")), "25P02");
    connection.run("ROLLBACK").unwrap();
    assert_eq!(transaction(&connection), Transaction::Idle);
    assert_eq!(code(connection.prepare("SELEC 1")), "42601");
    assert_eq!(code(connection.run("SELECT 1/0; SELECT 2")), "22012");
    assert_eq!(connection.execute(insert, &[Value::Int(2)]).unwrap().affected, 1);
}

#[test]
fn statements_are_prepared_and_forgotten() {
    let Some(bed) = shared("statements_are_prepared_and_forgotten") else { return };
    let mut connection = bed.connect();
    let all: Vec<_> =
        (0..300).map(|i| connection.prepare(&format!("SELECT {i} WHERE $1::int > 0")).unwrap()).collect();
    let prepared = "SELECT count(*) FROM pg_prepared_statements";
    assert_eq!(ask(&mut connection, prepared), "300");
    for (i, statement) in all.iter().enumerate() {
        let (_, rows) = connection.execute_rows(*statement, &[Value::Int(1)]).unwrap();
        assert_eq!(rows, [row(&[Some(&i.to_string())])]);
    }
    for statement in &all[..299] {
        connection.close(*statement).unwrap();
    }
    assert_eq!(ask(&mut connection, prepared), "1");
    assert!(matches!(connection.close(all[0]), Err(DbError::Unsupported(_))));
    assert!(matches!(connection.execute(all[0], &[Value::Int(1)]), Err(DbError::Unsupported(_))));
    let error = connection.execute(all[299], &[]).unwrap_err().to_string();
    assert_eq!(error, "a prepared statement has 1 parameters, and 0 values were given");
    let again = connection.prepare("SELECT 'again'").unwrap();
    assert_eq!(connection.execute_rows(again, &[]).unwrap().1, [row(&[Some("again")])]);
}

#[test]
fn tables_are_filled() {
    let Some(bed) = shared("tables_are_filled") else { return };
    for server in
        [bed.local(), Server { database: "postgres".into(), ..bed.remote("scram_user", TlsMode::Required) }]
    {
        let mut connection = Connection::open(&server).unwrap();
        connection.run("CREATE TEMP TABLE filled (id int, c text, d text)").unwrap();
        let mut next = 0;
        let rows = &mut |out: &mut Vec<u8>| {
            next += 1;
            out.extend_from_slice(format!("{next}\t{}\n", "x".repeat(200)).as_bytes());
            next < 20_000
        };
        assert_eq!(connection.load("filled", "id,c", rows).unwrap().affected, 20_000);
        let one = &mut |out: &mut Vec<u8>| {
            out.extend_from_slice(b"20001\t\\N\ta\\tb\n");
            false
        };
        assert_eq!(connection.load("filled", "", one).unwrap().affected, 1);
        assert_eq!(connection.load("filled", "", &mut |_| false).unwrap().affected, 0);
        let sum = connection.query("SELECT count(*), sum(id), sum(length(c)), max(d) FROM filled").unwrap();
        assert_eq!(sum, [row(&[Some("20001"), Some("200030001"), Some("4000000"), Some("a\tb")])]);
    }
}

#[test]
fn a_load_that_fails_ends_soon_and_the_connection_goes_on() {
    let Some(bed) = shared("a_load_that_fails_ends_soon_and_the_connection_goes_on") else { return };
    let mut connection = bed.connect();
    connection.run("CREATE TEMP TABLE failing (id int)").unwrap();
    // Rows without end: only the server's word stops them.
    let endless = &mut |out: &mut Vec<u8>| {
        out.extend_from_slice(b"1\nno number\n");
        true
    };
    assert_eq!(code(connection.load("failing", "id", endless)), "22P02");
    assert_eq!(code(connection.load("failing", "nothing", endless)), "42703");
    assert_eq!(code(connection.load("nowhere", "", endless)), "42P01");
    // With encryption the end of the rows is waited for.
    let mut left = 100_000;
    let many = &mut |out: &mut Vec<u8>| {
        out.extend_from_slice(b"no number\n");
        left -= 1;
        left > 0
    };
    let mut encrypted = Connection::open(&bed.remote("scram_user", TlsMode::Required)).unwrap();
    encrypted.run("CREATE TEMP TABLE failing (id int)").unwrap();
    assert_eq!(code(encrypted.load("failing", "id", many)), "22P02");
    for connection in [&mut connection, &mut encrypted] {
        assert_eq!(ask(connection, "SELECT count(*) FROM failing"), "0");
    }
}

#[test]
fn a_copy_of_the_users_own_is_refused() {
    let Some(bed) = shared("a_copy_of_the_users_own_is_refused") else { return };
    let mut connection = bed.connect();
    connection.run("CREATE TEMP TABLE copied (id int)").unwrap();
    let sql = "COPY copied FROM STDIN";
    assert_eq!(code(connection.run(sql)), "57014");
    assert_eq!(ask(&mut connection, "SELECT 1"), "1");
    let prepared = connection.prepare(sql).unwrap();
    assert_eq!(code(connection.execute(prepared, &[])), "57014");
    assert_eq!(ask(&mut connection, "SELECT 2"), "2");
}

#[test]
fn a_hung_statement_is_cancelled() {
    let Some(bed) = shared("a_hung_statement_is_cancelled") else { return };
    for server in [bed.local(), bed.remote("scram_user", TlsMode::Required)] {
        let mut connection = Connection::open(&server).unwrap();
        let canceller = connection.canceller();
        let over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            // A request that comes before the statement is heard and forgotten: it is made until the statement ends.
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(50));
                    canceller.cancel().unwrap();
                }
            });
            let ended = connection.run("SELECT pg_sleep(50)");
            over.store(true, Ordering::Relaxed);
            assert_eq!(code(ended), "57014");
        });
    }
}

#[test]
fn locks_end_in_errors_that_let_a_transaction_run_again() {
    let Some(bed) = shared("locks_end_in_errors_that_let_a_transaction_run_again") else { return };
    let (mut first, mut second) = (bed.connect(), bed.connect());
    first
        .run("CREATE TABLE locked (id int PRIMARY KEY, v int); INSERT INTO locked VALUES (1, 0), (2, 0)")
        .unwrap();
    let update = "UPDATE locked SET v = v + 1 WHERE id = ";
    first.run("BEGIN").unwrap();
    first.run(&format!("{update}1")).unwrap();

    second.run("SET lock_timeout = 50").unwrap();
    let waited = second.run(&format!("{update}1")).unwrap_err();
    assert!(waited.is_retryable() && waited.to_string().contains("55P03"), "{waited}");

    second.run("SET lock_timeout = 0; SET deadlock_timeout = 50").unwrap();
    second.run("BEGIN").unwrap();
    second.run(&format!("{update}2")).unwrap();
    let crossed = std::thread::spawn(move || (first.run(&format!("{update}2")), first));
    let second_ended = second.run(&format!("{update}1"));
    if second_ended.is_err() {
        second.run("ROLLBACK").unwrap();
    }
    let (first_ended, mut first) = crossed.join().unwrap();
    let victim = first_ended.err().or(second_ended.err()).unwrap();
    assert!(victim.is_retryable() && victim.to_string().contains("40P01"), "{victim}");
    assert!(victim.to_string().contains("detail: Process "), "{victim}");
    first.run("ROLLBACK").unwrap();
    drop(second);
    first.run("DROP TABLE locked").unwrap();
}
