//! `weir db prepare`, `run`, `warmup` and `cleanup` on real servers: every script, what is kept, and that nothing stays.

use std::fs;

use serde_json::Value;
use weir_db::sandbox::Flavour;

use crate::db_server::{FLAVOURS, TestServer, folder, server_or_say, words};
use crate::weir::{Ended, Weir};

const SCRIPTS: [&str; 11] = [
    "read_write",
    "read_only",
    "write_only",
    "point_select",
    "update_index",
    "update_non_index",
    "insert",
    "delete",
    "select_random_points",
    "select_random_ranges",
    "commit",
];

/// Runs `weir db …` on a server and expects an exit code and words on stderr; a password of a test never shows.
fn check(weir: &Weir, server: &TestServer, line: &[&str], code: i32, stderr: &[&str]) -> Ended {
    let folder = folder();
    let ended = weir.run(folder.path(), &words(&server.line(line)));
    assert_eq!(ended.code, code, "{line:?}: {ended:?}");
    stderr.iter().for_each(|word| assert!(ended.stderr.contains(word), "{line:?}: no `{word}` in {ended:?}"));
    assert!(![2, 3].contains(&code) || ended.stdout.is_empty(), "{line:?}: {ended:?}");
    ended
}

fn transactions(record: &Value) -> u64 {
    record["extra"]["kinds"]["transaction"]["latency"]["count"].as_u64().unwrap_or(0)
}

fn every_script(test: &str, flavour: Flavour) {
    let Some(server) = server_or_say(test, flavour) else { return };
    let weir = Weir::new();
    let run = |line: &[&str], code, stderr: &[&str]| check(&weir, &server, line, code, stderr);
    let size = ["--tables", "2", "--table-size", "1000"];
    let with = |line: &[&'static str]| [line, &size[..]].concat();
    let first = ["the tables take about", "made the database `weir`", "loaded 2,000 rows"];
    run(&with(&["prepare", "--threads", "2"]), 0, &first);
    let again = run(&with(&["prepare"]), 0, &["nothing to do; 2 tables were there already"]);
    assert!(!again.stderr.contains("the tables take"), "space for what is there: {again:?}");
    run(&with(&["warmup"]), 0, &["read 2,000 rows of 2 tables"]);
    for (place, script) in SCRIPTS.into_iter().enumerate() {
        let line = with(&[
            "run",
            script,
            "--threads",
            "2",
            "--transactions",
            "30",
            "--no-trace",
            "--format",
            "json",
        ]);
        let result: Value = serde_json::from_str(&run(&line, 0, &[]).stdout).unwrap();
        assert_eq!(result["schema"], "weir.oltp-result/1", "{script}");
        assert_eq!(result["spec"]["script"], script);
        let record = &weir.records()[place];
        assert_eq!((record["kind"].as_str(), transactions(record)), (Some("db"), 30), "{script}");
        assert_eq!(result["transactions"]["count"], 30);
        assert_eq!(result["server"]["dialect"], record["extra"]["server"]["dialect"]);
        assert!(record["conditions"]["target"]["path"].is_string(), "the data directory is known: {record}");
    }
    let reads_a_transaction = 14 * 30;
    let first: Value = serde_json::from_value(weir.records()[0]["extra"]["kinds"].clone()).unwrap();
    let count = |kind: &str| first[kind]["latency"]["count"].as_u64().unwrap_or(0);
    let ranges =
        ["simple_range", "sum_range", "order_range", "distinct_range"].map(count).iter().sum::<u64>();
    assert!(count("point_select") + ranges >= reads_a_transaction, "{first}");
    run(
        &[
            "run",
            "read_only",
            "--no-prepared",
            "--keys",
            "zipf:0.99",
            "--no-trace",
            "--transactions",
            "5",
            "--table-size",
            "1000",
        ],
        0,
        &[],
    );
    let open = [
        "run",
        "point_select",
        "--rate",
        "200",
        "--arrival",
        "poisson",
        "--time",
        "1",
        "--table-size",
        "1000",
    ];
    assert!(run(&open, 0, &[]).stdout.contains("open loop at 200/s (Poisson)"));
    run(&["prepare", "bulk_insert", "--threads", "2", "--database", "bulk"], 0, &["made 2 tables"]);
    run(
        &[
            "run",
            "bulk_insert",
            "--threads",
            "2",
            "--database",
            "bulk",
            "--transactions",
            "200",
            "--no-trace",
        ],
        0,
        &[],
    );
    run(&["cleanup", "--database", "bulk"], 0, &["removed the database `bulk`"]);
    looked_at_again(&weir);
    run(&["cleanup"], 0, &["removed 2 tables", "removed the database `weir`, which weir had made"]);
    assert_eq!(server.databases(), Vec::<String>::new());
    run(&["cleanup"], 0, &["nothing to remove"]);
}

/// What other commands make of the stored runs.
fn looked_at_again(weir: &Weir) {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let ended = weir.run(folder.path(), arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.stdout
    };
    assert!(run(&["results", "list"]).contains("db read_write"));
    let text = run(&["results", "show", "last"]);
    assert!(text.contains("bulk insert") && text.lines().all(|l| l.chars().count() <= 100), "{text}");
    assert!(run(&["results", "show", "last", "--format", "csv"]).contains(",transaction,"));
    assert!(run(&["compare", "last~1", "last"]).contains("transaction  throughput"));
    run(&["report", "last", "-o", "page.html"]);
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("Where a transaction") && page.contains("bulk insert"));
    let fio = weir.run(folder.path(), &["results", "show", "last", "--format", "fio-json"]);
    assert_eq!((fio.code, fio.stdout.as_str()), (2, ""), "{fio:?}");
}

#[test]
fn every_script_runs_on_mariadb_and_nothing_stays() {
    every_script("every_script_runs_on_mariadb_and_nothing_stays", Flavour::Mariadb);
}

#[test]
fn every_script_runs_on_postgres_and_nothing_stays() {
    every_script("every_script_runs_on_postgres_and_nothing_stays", Flavour::Postgres);
}

#[test]
fn what_is_somebody_elses_is_not_touched() {
    for flavour in FLAVOURS {
        let Some(server) = server_or_say("what_is_somebody_elses_is_not_touched", flavour) else { continue };
        let weir = Weir::new();
        let run = |line: &[&str], code, stderr: &[&str]| check(&weir, &server, line, code, stderr);
        let lobby = server.sandbox.server().database;
        server.run(&lobby, &["CREATE DATABASE shop", "CREATE DATABASE mine"]);
        server.run("shop", &["CREATE TABLE orders (id INTEGER)", "CREATE TABLE sbtest1 (id INTEGER)"]);
        for line in [&["prepare"][..], &["run"], &["run", "insert"]] {
            let line = [line, &["--database", "shop"]].concat();
            run(&line, 2, &["holds other tables: orders", "--database"]);
        }
        // weir did not make it, and leaves it alone.
        run(&["cleanup", "--database", "shop"], 0, &["removed 0 tables", "left alone"]);
        assert_eq!(server.ask("shop", "SELECT count(*) FROM sbtest1"), ["0"]);

        run(&["run", "--time", "1"], 3, &["no database `weir`", "weir db prepare"]);
        run(&["run", "--time", "1", "--database", "mine"], 3, &["sbtest1 is not there"]);
        run(&["prepare", "--database", "mine", "--table-size", "100"], 0, &["loaded 100 rows"]);
        run(&["run", "--time", "1", "--database", "mine", "--table-size", "200"], 3, &["sbtest1", "200"]);
        run(&["prepare", "--database", "mine", "--table-size", "200"], 3, &["sbtest1"]);
        run(&["cleanup", "--database", "mine"], 0, &["removed 1 table from `mine`"]);
        let mut left = server.databases();
        left.sort();
        assert_eq!(left, ["mine", "shop"], "a database that weir did not make stays");
        assert_eq!(weir.records().len(), 0, "nothing was measured");
    }
}

#[test]
fn privileges_that_are_missing_are_named() {
    for flavour in FLAVOURS {
        let Some(server) = server_or_say("privileges_that_are_missing_are_named", flavour) else { continue };
        let weir = Weir::new();
        check(&weir, &server, &["prepare", "--table-size", "100"], 0, &[]);
        let lobby = server.sandbox.server().database;
        let poor = match flavour {
            Flavour::Postgres => vec!["CREATE ROLE poor LOGIN"],
            _ => vec!["CREATE USER poor@localhost", "GRANT SELECT ON weir.* TO poor@localhost"],
        };
        server.run(&lobby, &poor);
        let run = |line: &[&str], code, stderr: &[&str]| {
            let folder = folder();
            let line = [&server.line(line)[..], &["--user".to_string(), "poor".to_string()]].concat();
            // The superuser stands first in the line; the one typed last counts.
            let mut typed: Vec<&str> = words(&line);
            let first = typed.iter().position(|word| *word == "--user").unwrap();
            typed.drain(first..first + 2);
            let ended = weir.run(folder.path(), &typed);
            assert_eq!(ended.code, code, "{line:?}: {ended:?}");
            stderr.iter().for_each(|word| assert!(ended.stderr.contains(word), "no `{word}` in {ended:?}"));
        };
        let table = ["--table-size", "100", "--transactions", "1"];
        run(
            &[&["run", "update_index"], &table[..]].concat(),
            3,
            &["`poor` lacks", "UPDATE", "GRANT UPDATE ON"],
        );
        run(
            &["prepare", "--database", "other"],
            3,
            &["`poor`", if flavour == Flavour::Postgres { "CREATEDB" } else { "GRANT" }],
        );
        if flavour == Flavour::Mariadb {
            run(&[&["run", "point_select"], &table[..]].concat(), 0, &[]);
        }
    }
}

#[test]
fn a_server_that_only_reads_takes_reading_scripts() {
    for flavour in FLAVOURS {
        let test = "a_server_that_only_reads_takes_reading_scripts";
        let Some(server) = server_or_say(test, flavour) else { continue };
        let weir = Weir::new();
        let run = |line: &[&str], code, stderr: &[&str]| check(&weir, &server, line, code, stderr);
        run(&["prepare", "--table-size", "100"], 0, &[]);
        let lobby = server.sandbox.server().database;
        let (closed, word) = match flavour {
            Flavour::Postgres => ("ALTER SYSTEM SET default_transaction_read_only = on", "read_only is on"),
            _ => ("SET GLOBAL read_only = 1", "read_only is on"),
        };
        server.run(&lobby, &[closed]);
        if flavour == Flavour::Postgres {
            server.run(&lobby, &["SELECT pg_reload_conf()"]);
            server.wait_until(&lobby, "SHOW default_transaction_read_only", |rows| rows == ["on"]);
        }
        let size = ["--table-size", "100", "--transactions", "3"];
        run(&[&["run"], &size[..]].concat(), 3, &["is not written to", word, "reading scripts"]);
        run(&["prepare", "--database", "more"], 3, &["is not written to"]);
        run(&[&["run", "read_only"], &size[..]].concat(), 0, &[]);
    }
}
