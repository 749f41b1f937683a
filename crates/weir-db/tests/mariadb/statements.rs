//! Statements as text and prepared, rows of every type, bulk loads.

use weir_db::{Connection, DbError, Done, Server, Value};

use crate::server::{MariaDb, mariadb_or_say};

/// A type, a usual value, an extreme one.
type OfType = (&'static str, &'static str, &'static str);

/// One column of every type.
const TYPES: &[OfType] = &[
    ("TINYINT", "-7", "-128"),
    ("TINYINT UNSIGNED", "7", "255"),
    ("SMALLINT", "-700", "-32768"),
    ("SMALLINT UNSIGNED", "700", "65535"),
    ("MEDIUMINT", "-70000", "-8388608"),
    ("MEDIUMINT UNSIGNED", "70000", "16777215"),
    ("INT", "-7", "-2147483648"),
    ("INT UNSIGNED", "7", "4294967295"),
    ("BIGINT", "-7", "-9223372036854775808"),
    ("BIGINT UNSIGNED", "7", "18446744073709551615"),
    ("DECIMAL(30,10)", "3.14", "-99999999999999999999.9999999999"),
    ("FLOAT", "1.5", "-0.25"),
    ("DOUBLE", "2.5", "-1e300"),
    ("BIT(1)", "b'1'", "b'0'"),
    ("YEAR", "2024", "0"),
    ("DATE", "'2024-02-29'", "'0001-01-01'"),
    ("TIME", "'12:34:56'", "'-838:59:59'"),
    ("TIME(3)", "'-00:00:01.5'", "'838:59:58.999'"),
    ("DATETIME", "'2024-02-29 01:02:03'", "'9999-12-31 23:59:59'"),
    ("DATETIME(6)", "'2024-02-29 01:02:03.000004'", "'2024-01-01'"),
    ("TIMESTAMP(2)", "'2024-02-29 01:02:03.45'", "'1980-01-01 00:00:00'"),
    ("CHAR(10)", "'abc'", "''"),
    ("VARCHAR(300)", "'ä€😀'", "REPEAT('x', 300)"),
    ("MEDIUMTEXT", "'text'", "REPEAT('y', 70000)"),
    ("BLOB", "'blob'", "''"),
    ("BINARY(3)", "'abc'", "'xyz'"),
    ("ENUM('a','b')", "'a'", "'b'"),
    ("SET('a','b')", "'a,b'", "''"),
    ("JSON", "'{\"a\": 1}'", "'[]'"),
    ("INET6", "'::1'", "'fe80::1'"),
    ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"),
    ("POINT", "NULL", "NULL"),
];

#[test]
fn prepared_rows_read_like_the_servers_text() {
    if !mariadb_or_say("prepared_rows_read_like_the_servers_text") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    let join = |part: &dyn Fn(usize, &OfType) -> String| {
        TYPES.iter().enumerate().map(|(n, row)| part(n, row)).collect::<Vec<_>>().join(", ")
    };
    let columns = join(&|n, (kind, _, _)| format!("c{n} {kind} NULL"));
    connection.run(&format!("CREATE TABLE types (id INT PRIMARY KEY AUTO_INCREMENT, {columns})")).unwrap();
    for values in [
        join(&|_, (_, usual, _)| usual.to_string()),
        join(&|_, (_, _, extreme)| extreme.to_string()),
        join(&|_, _| "NULL".into()),
    ] {
        connection.run(&format!("INSERT INTO types VALUES (NULL, {values})")).unwrap();
    }
    let sql = "SELECT * FROM types ORDER BY id";
    let text = connection.query(sql).unwrap();
    let statement = connection.prepare(sql).unwrap();
    // Twice: the second time the server need not describe the columns again.
    for _ in 0..2 {
        let (done, rows) = connection.execute_rows(statement, &[]).unwrap();
        assert_eq!(done.rows, 3);
        for (row, expected) in rows.iter().zip(&text) {
            for (at, (got, expected)) in row.iter().zip(expected).enumerate() {
                assert_eq!(got, expected, "{:?}", at.checked_sub(1).map(|at| TYPES[at]));
            }
        }
        assert_eq!(rows, text);
    }
    assert_eq!(text[2][1..], vec![None; TYPES.len()]);
    assert_eq!(text[0][11].as_deref(), Some("3.1400000000"));
    assert_eq!(connection.execute(statement, &[]).unwrap().rows, 3);
    connection.run("DROP TABLE types").unwrap();
}

#[test]
fn columns_that_change_under_a_statement_are_seen() {
    if !mariadb_or_say("columns_that_change_under_a_statement_are_seen") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    connection.run("CREATE TABLE changing (a INT)").unwrap();
    connection.run("INSERT INTO changing VALUES (5)").unwrap();
    let statement = connection.prepare("SELECT * FROM changing").unwrap();
    let check = |connection: &mut Connection, expected: &[&str]| {
        let (_, rows) = connection.execute_rows(statement, &[]).unwrap();
        assert_eq!(rows, [expected.iter().map(|text| Some(text.to_string())).collect::<Vec<_>>()]);
    };
    check(&mut connection, &["5"]);
    connection.run("ALTER TABLE changing MODIFY a VARCHAR(10), ADD b BIGINT DEFAULT -1").unwrap();
    check(&mut connection, &["5", "-1"]);
    connection.execute(statement, &[]).unwrap();
    check(&mut connection, &["5", "-1"]);
    connection.run("ALTER TABLE changing MODIFY a DOUBLE").unwrap();
    // Rows thrown away, but their new description not.
    connection.execute(statement, &[]).unwrap();
    check(&mut connection, &["5", "-1"]);
    connection.run("DROP TABLE changing").unwrap();
}

#[test]
fn parameters_arrive() {
    if !mariadb_or_say("parameters_arrive") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    let statement = connection.prepare("SELECT ?, ?, ?").unwrap();
    let long = "x".repeat(70_000);
    let cases: [([Value<'_>; 3], [Option<&str>; 3]); 6] = [
        ([Value::Null, Value::Null, Value::Null], [None, None, None]),
        ([Value::Int(1), Value::Null, Value::Text("a")], [Some("1"), None, Some("a")]),
        ([Value::Null, Value::Int(-1), Value::Text("")], [None, Some("-1"), Some("")]),
        (
            [Value::Int(i64::MIN), Value::Int(i64::MAX), Value::Text("ä€😀'\\")],
            [Some("-9223372036854775808"), Some("9223372036854775807"), Some("ä€😀'\\")],
        ),
        (
            [Value::Text("now text"), Value::Float(1.5), Value::Text(&long)],
            [Some("now text"), Some("1.5"), Some(&long)],
        ),
        (
            [Value::Text("same types"), Value::Float(-2.0), Value::Text("b")],
            [Some("same types"), Some("-2"), Some("b")],
        ),
    ];
    for (values, expected) in cases {
        let (done, rows) = connection.execute_rows(statement, &values).unwrap();
        assert_eq!(done, Done { rows: 1, ..Done::default() });
        let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(Option::as_deref).collect()).collect();
        assert_eq!(rows, [expected]);
    }
    let many = format!("SELECT COUNT(*) FROM seq_1_to_2000 WHERE seq IN (0{})", ", ?".repeat(1000));
    let statement = connection.prepare(&many).unwrap();
    let values: Vec<Value<'_>> = (1..=1000).map(Value::Int).collect();
    assert_eq!(connection.execute_rows(statement, &values).unwrap().1, [[Some("1000".to_string())]]);
}

#[test]
fn statements_say_what_they_did() {
    if !mariadb_or_say("statements_say_what_they_did") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    connection.run("CREATE TABLE did (id INT PRIMARY KEY AUTO_INCREMENT, a INT)").unwrap();
    let did = |rows, affected, last_insert_id| Done { rows, affected, last_insert_id };
    assert_eq!(connection.run("INSERT INTO did (a) VALUES (1), (2), (3)").unwrap(), did(0, 3, 1));
    let insert = connection.prepare("INSERT INTO did (a) VALUES (?)").unwrap();
    assert_eq!(connection.execute(insert, &[Value::Int(4)]).unwrap(), did(0, 1, 4));
    assert_eq!(connection.run("UPDATE did SET a = 9 WHERE a < 3").unwrap(), did(0, 2, 0));
    assert_eq!(connection.run("SELECT * FROM did").unwrap(), did(4, 0, 0));
    // Several statements and results at once; the rows of the first are returned.
    assert_eq!(
        connection.run("SELECT 1; DELETE FROM did WHERE a = 9; SELECT 1 UNION SELECT 2").unwrap(),
        did(3, 2, 0)
    );
    assert_eq!(connection.query("SELECT 7; SELECT 8").unwrap(), [[Some("7".to_string())]]);
    connection.run("CREATE PROCEDURE several() BEGIN SELECT 1; SELECT 2, 3; END").unwrap();
    assert_eq!(connection.run("CALL several()").unwrap(), did(2, 0, 0));
    let call = connection.prepare("CALL several()").unwrap();
    for _ in 0..3 {
        assert_eq!(connection.execute(call, &[]).unwrap(), did(2, 0, 0));
        assert_eq!(connection.execute_rows(call, &[]).unwrap().1, [[Some("1".to_string())]]);
    }
    connection.run("DROP TABLE did").unwrap();
}

#[test]
fn errors_leave_the_connection_in_order() {
    if !mariadb_or_say("errors_leave_the_connection_in_order") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    let check = |result: Result<Done, DbError>, number: u16, sqlstate: &str| match result {
        Err(DbError::Server(error)) => {
            assert_eq!((error.number, error.sqlstate.as_str()), (number, sqlstate), "{error}");
        }
        other => panic!("{other:?} instead of {number}"),
    };
    check(connection.run("SELEKT"), 1064, "42000");
    check(connection.run("SELECT * FROM nowhere"), 1146, "42S02");
    check(connection.prepare("SELECT * FROM nowhere").map(|_| Done::default()), 1146, "42S02");
    // After some rows.
    check(
        connection.run("SELECT seq, IF(seq = 900, (SELECT 1 UNION SELECT 2), 1) FROM seq_1_to_1000"),
        1242,
        "21000",
    );
    // The first of two went well.
    check(connection.run("SELECT 1; SELEKT"), 1064, "42000");
    let statement = connection.prepare("SELECT ?").unwrap();
    let error = connection.execute(statement, &[]).unwrap_err();
    assert!(error.to_string().contains("has 1 parameters, and 0 values"), "{error}");
    connection.close(statement).unwrap();
    let error = connection.execute(statement, &[Value::Null]).unwrap_err();
    assert!(error.to_string().contains("no prepared statement"), "{error}");
    assert!(connection.close(statement).is_err());
    assert_eq!(connection.query("SELECT 1").unwrap(), [[Some("1".to_string())]]);
}

#[test]
fn closed_statements_are_gone_from_the_server() {
    if !mariadb_or_say("closed_statements_are_gone_from_the_server") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    for n in 0..1000 {
        let statement = connection.prepare(&format!("SELECT {n} + ?")).unwrap();
        let (_, rows) = connection.execute_rows(statement, &[Value::Int(1)]).unwrap();
        assert_eq!(rows, [[Some((n + 1).to_string())]]);
        connection.close(statement).unwrap();
    }
    let closed = connection.query("SHOW SESSION STATUS LIKE 'Com_stmt_close'").unwrap();
    assert_eq!(closed[0][1].as_deref(), Some("1000"));
}

#[test]
fn sixteen_megabytes_and_more_go_both_ways() {
    if !mariadb_or_say("sixteen_megabytes_and_more_go_both_ways") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    // Around one and two full packets: the header, the length and the command are part of them.
    for bytes in
        [0xff_fff0usize, 0xff_fffa, 0xff_fffb, 0xff_ffff, 0x100_0000, 2 * 0xff_ffff - 8, 2 * 0xff_ffff]
    {
        let sql = format!("SELECT REPEAT('x', {bytes}), 'end'");
        let expected = Done { rows: 1, ..Done::default() };
        assert_eq!(connection.run(&sql).unwrap(), expected, "{bytes}");
        let rows = connection.query(&sql).unwrap();
        assert_eq!(rows[0][0].as_ref().map(String::len), Some(bytes));
        assert_eq!(rows[0][1].as_deref(), Some("end"));
        let statement = connection.prepare("SELECT LENGTH(?), 'end'").unwrap();
        let long = "y".repeat(bytes);
        let (_, rows) = connection.execute_rows(statement, &[Value::Text(&long)]).unwrap();
        assert_eq!(rows, [[Some(bytes.to_string()), Some("end".to_string())]]);
        connection.close(statement).unwrap();
    }
    // A command that fills its packets exactly is followed by an empty one.
    let sql = format!("SELECT LENGTH('{}')", "z".repeat(0xff_ffff - 1 - 17));
    assert_eq!(sql.len() + 1, 0xff_ffff);
    assert_eq!(connection.query(&sql).unwrap(), [[Some((0xff_ffff - 18).to_string())]]);
}

/// `rows` rows of a number and a text, and the number again.
fn filler(rows: u64) -> impl FnMut(&mut Vec<u8>) -> bool {
    let mut n = 0;
    move |out| {
        if n < rows {
            out.extend_from_slice(format!("{n}\tpadding {n:0100}\\ttab\n").as_bytes());
            n += 1;
        }
        n < rows
    }
}

#[test]
fn bulk_loads_arrive_whole() {
    if !mariadb_or_say("bulk_loads_arrive_whole") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    connection.run("CREATE TABLE loaded (a INT PRIMARY KEY, b VARCHAR(200))").unwrap();
    for rows in [0u64, 1, 100, 20_000] {
        let done = connection.load("loaded", "a, b", &mut filler(rows)).unwrap();
        assert_eq!(done.affected, rows);
        let counted =
            connection.query("SELECT COUNT(*), COUNT(DISTINCT b), MIN(b LIKE '%0\\ttab') FROM loaded");
        assert_eq!(counted.unwrap()[0][..2], [Some(rows.to_string()), Some(rows.to_string())]);
        if rows < 20_000 {
            connection.run("TRUNCATE loaded").unwrap();
        }
    }
    // The server would skip doubles with a warning: they are errors, and the connection goes on.
    let error = connection.load("loaded", "a, b", &mut filler(3)).unwrap_err();
    assert!(matches!(&error, DbError::Server(error) if error.number == 1062), "{error}");
    let error = connection.load("nowhere", "a", &mut filler(3)).unwrap_err();
    assert!(matches!(&error, DbError::Server(error) if error.number == 1146), "{error}");
    assert_eq!(connection.run("DROP TABLE loaded").unwrap(), Done::default());
}

#[test]
fn rows_in_arrays_arrive_whole() {
    if !mariadb_or_say("rows_in_arrays_arrive_whole") {
        return;
    }
    let mut connection = MariaDb::shared().weir();
    assert!(connection.takes_arrays());
    connection.run("CREATE TABLE arrays (a INT PRIMARY KEY, b VARCHAR(300))").unwrap();
    // As many rows in a packet as `fill` appends at once: one, then a thousand, the last packet without any.
    for (rows, at_once) in [(0u64, 1), (1, 1), (300, 1), (20_000, 1000)] {
        let mut n = 0;
        let done = connection.load_arrays("arrays", "a, b", &mut |out| {
            for _ in 0..at_once.min(rows - n) {
                out.extend_from_slice(format!("{n}\tpadding {n:0260}\n").as_bytes());
                n += 1;
            }
            n < rows
        });
        assert_eq!(done.unwrap().affected, rows);
        let question =
            "SELECT COUNT(*), COUNT(DISTINCT b), SUM(b = CONCAT('padding ', LPAD(a, 260, '0'))) FROM arrays";
        let counted = connection.query(question).unwrap();
        let expected = Some(rows.to_string());
        assert_eq!(counted[0][..2], [expected.clone(), expected.clone()]);
        assert!(rows == 0 || counted[0][2] == expected, "{counted:?}");
        if rows < 20_000 {
            connection.run("TRUNCATE arrays").unwrap();
        }
    }
    // Doubles fail, and so does what the server would take with a warning; the connection goes on.
    let mut one = |sql_mode: &str, row: &str| {
        connection.run(&format!("SET SESSION sql_mode = '{sql_mode}'")).unwrap();
        connection.load_arrays("arrays", "a, b", &mut |out| {
            out.extend_from_slice(row.as_bytes());
            false
        })
    };
    let long = format!("30000\t{}\n", "x".repeat(301));
    for (sql_mode, row, number) in
        [("", "5\tdouble\n", 1062), ("STRICT_ALL_TABLES", long.as_str(), 1406), ("", long.as_str(), 1265)]
    {
        let error = one(sql_mode, row).unwrap_err();
        assert!(matches!(&error, DbError::Server(error) if error.number == number), "{number}: {error}");
    }
    assert_eq!(one("", "40000\tlast\n").unwrap().affected, 1);
    assert_eq!(connection.run("DROP TABLE arrays").unwrap(), Done::default());
}

#[test]
fn files_of_this_machine_stay_here() {
    if !mariadb_or_say("files_of_this_machine_stay_here") {
        return;
    }
    let server = MariaDb::shared();
    let mut connection = server.weir();
    connection.run("CREATE TABLE files (a VARCHAR(100))").unwrap();
    let error = connection.run("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE files").unwrap_err();
    assert!(matches!(error, DbError::Unsupported(_)), "{error}");
    let error = connection.query("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE files").unwrap_err();
    assert!(matches!(error, DbError::Unsupported(_)), "{error}");
    assert_eq!(connection.run("SELECT * FROM files").unwrap().rows, 0);
    connection.run("DROP TABLE files").unwrap();
}

#[test]
fn a_server_without_local_infile_is_told_before_any_row_is_made() {
    if !mariadb_or_say("a_server_without_local_infile_is_told_before_any_row_is_made") {
        return;
    }
    let server = MariaDb::start(&[("local_infile", "0")]);
    let mut connection = server.connect();
    connection.run("CREATE DATABASE weir").unwrap();
    let mut connection = Connection::open(&Server { database: "weir".into(), ..server.local() }).unwrap();
    connection.run("CREATE TABLE t (a INT)").unwrap();
    let mut asked = 0;
    let error = connection.load("t", "a", &mut |_| {
        asked += 1;
        false
    });
    assert!(matches!(&error, Err(DbError::Unsupported(why)) if why.contains("local_infile")), "{error:?}");
    assert_eq!(asked, 0);
    assert_eq!(connection.run("INSERT INTO t VALUES (1)").unwrap().affected, 1);
}
