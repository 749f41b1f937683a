//! Every question on DataFusion, DuckDB, Sail and Spark: the same rows.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};
use weir_archive::parquet::Writer;
use weir_archive::{Batch, Row};
use weir_store::layout::Place;
use weir_store::questions::{Parameters, Question};
use weir_store::tables::{Counter, Fact, Stage, Sync, Wait};
use weir_store::{SCHEMA, SCHEMA_KEY};

use crate::servers::{Server, python};
use crate::tables::Fleet;

const BEGIN_S: i64 = 1_775_001_600;
const HOURS: i64 = 72;

/// Reads the questions as JSON, and prints their rows.
const DUCKDB: &str = r#"
import json, sys, duckdb
store, questions = json.load(sys.stdin)
db = duckdb.connect()
for table in ["stages", "syncs", "waits", "counters", "facts"]:
    db.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{store}/kind={table}/*/*/*.parquet', hive_partitioning = false)")
answers = {}
for name, sql in questions.items():
    ran = db.execute(sql)
    columns = [column[0] for column in ran.description]
    answers[name] = [dict(zip(columns, (int(v) if type(v).__name__ == "Decimal" else v for v in row))) for row in ran.fetchall()]
print(json.dumps(answers))
"#;

/// A small generator of numbers, the same everywhere.
fn mixed(mut n: u64) -> i64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((n ^ (n >> 31)) >> 1) as i64
}

pub fn put<R: Row>(fleet: &Fleet, rows: &[R], of: impl Fn(&R) -> (String, i64)) {
    let mut places: BTreeMap<Place, Batch> = BTreeMap::new();
    for row in rows {
        let (host, ts) = of(row);
        row.put(places.entry(Place::of(R::TABLE, ts, &host)).or_insert_with(|| Batch::new(R::TABLE)));
    }
    for (place, batch) in places {
        let folder = fleet.path("results/store").join(place.folder());
        fs::create_dir_all(&folder).unwrap();
        let keys = vec![(SCHEMA_KEY.to_string(), SCHEMA.to_string())];
        let file = fs::File::create(folder.join("a.parquet")).unwrap();
        let mut writer = Writer::new(file, R::TABLE, keys).unwrap().without_compression();
        writer.group(&batch).unwrap();
        writer.finish().unwrap();
    }
}

/// Twelve hosts of two models; one device is slow, one is busy, one grows slower, and settings differ.
pub fn fill(fleet: &Fleet) {
    let (mut stages, mut syncs, mut waits, mut facts, mut counters) =
        (vec![], vec![], vec![], vec![], vec![]);
    for host_n in 0..12_i64 {
        let host = format!("0{host_n}");
        let fact = |device: &str, name: &str, value: &str| Fact {
            host: host.clone(),
            ts: BEGIN_S,
            device: device.into(),
            name: name.into(),
            value: value.into(),
        };
        let model = if host_n < 9 { "NV-A1" } else { "NV-\"B\"2 'x'" };
        facts.extend([
            fact("sda", "model", model),
            fact("sda", "scheduler", "none"),
            fact("", "kernel", "6.12"),
        ]);
        facts.push(fact("", "vm.dirty_ratio", if host_n == 4 { "40" } else { "20" }));
        for hour in 0..HOURS {
            let ts = BEGIN_S + 3_600 * hour;
            let load = if host_n == 2 { 512 } else { 64 << (hour % 2) };
            let slower = if host_n == 1 { 4 } else { 1 } * if host_n == 3 { 1 + hour / 24 } else { 1 };
            let at_load = if load == 512 { 32 } else { 1 };
            for (class, stage, base_ns) in ["read", "write"].into_iter().flat_map(|class| {
                [("g2d", 4_096), ("d2c", 65_536), ("g2c", 69_632)].map(|(s, n)| (class, s, n))
            }) {
                for bucket in 0..6_i64 {
                    let chance = mixed((host_n * 7_919 + hour * 104_729 + bucket * 31 + base_ns) as u64);
                    stages.push(Stage {
                        host: host.clone(),
                        ts,
                        device: "sda".into(),
                        class: class.into(),
                        stage: stage.into(),
                        load,
                        bucket_low_ns: (base_ns * slower * at_load) << bucket,
                        n: (40_000 >> (2 * bucket)) + chance % 97,
                    });
                }
            }
            for bucket in 0..5_i64 {
                let n = (9_000 >> (2 * bucket)) + mixed((host_n * 31 + hour) as u64) % 7;
                syncs.push(Sync {
                    host: host.clone(),
                    ts,
                    unit: String::new(),
                    load: 8,
                    bucket_low_ns: (80_000 * slower) << bucket,
                    n,
                });
            }
            for (cause, ns) in [("device", 1_000_000_000), ("others", 7_000_000 * (1 + host_n))] {
                waits.push(Wait { host: host.clone(), ts, part: "own_data".into(), cause: cause.into(), ns });
            }
            counters.push(Counter {
                host: host.clone(),
                ts,
                device: "sda".into(),
                name: "busy_ms".into(),
                value: 1_000 * load,
            });
        }
    }
    put(fleet, &stages, |row| (row.host.clone(), row.ts));
    put(fleet, &syncs, |row| (row.host.clone(), row.ts));
    put(fleet, &waits, |row| (row.host.clone(), row.ts));
    put(fleet, &facts, |row| (row.host.clone(), row.ts));
    put(fleet, &counters, |row| (row.host.clone(), row.ts));
}

/// Floats to twelve digits: the order of a sum is the engine's.
fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.11e}", number.as_f64().unwrap()),
        Value::Number(number) => format!("{:.11e}", number.as_i64().unwrap() as f64),
        other => other.to_string(),
    }
}

fn rows(answer: &[Value]) -> Vec<BTreeMap<String, String>> {
    answer
        .iter()
        .map(|row| row.as_object().unwrap().iter().map(|(name, cell)| (name.clone(), plain(cell))).collect())
        .collect()
}

/// Every question, with its numbers filled in, and one of a table that none of them asks.
fn questions() -> BTreeMap<String, String> {
    let until_s = BEGIN_S + 3_600 * HOURS;
    let with = Parameters { from_s: BEGIN_S, until_s, at_s: BEGIN_S + 36 * 3_600, peers: 6 };
    let mut questions: BTreeMap<String, String> = Question::ALL
        .into_iter()
        .map(|question| (question.name().to_string(), question.sql(&with)))
        .collect();
    questions.insert(
        "counters".into(),
        "SELECT host, SUM(value) AS v FROM counters GROUP BY host ORDER BY host".into(),
    );
    questions
}

/// What DataFusion answers.
fn own(fleet: &Fleet) -> BTreeMap<String, Vec<Value>> {
    let own: BTreeMap<String, Vec<Value>> =
        questions().into_iter().map(|(name, sql)| (name, fleet.ask(&sql))).collect();
    for (name, answer) in &own {
        assert!(!answer.is_empty(), "{name} has no row to compare");
    }
    own
}

#[test]
fn the_fleet_of_the_questions_has_what_they_look_for() {
    let fleet = Fleet::new();
    fill(&fleet);
    own(&fleet);
    let slow = fleet.run(&["show", "slow"]);
    slow.says(1, &["1 device is slow", "01 ", "device"]);
    fleet.run(&["show", "drift"]).says(1, &["vm.dirty_ratio", "04", "40"]);
}

#[test]
fn tables_beyond_the_memory_are_asked_of_some_hosts_after_others_with_the_same_answer() {
    let fleet = Fleet::new();
    fill(&fleet);
    // The engine needs a dozen MB for each sort; three times the eighth of that in files makes three groups of hosts.
    let value = |n: i64| mixed(n as u64);
    let counter =
        |n| Counter { host: "00".into(), ts: BEGIN_S, device: "x".into(), name: "x".into(), value: value(n) };
    put(&fleet, &(0..1_000_000).map(counter).collect::<Vec<_>>(), |row| (row.host.clone(), row.ts));
    let page = fleet.path("page.html").display().to_string();
    for question in [
        // Its page asks two more.
        vec!["slow", "--html", &page],
        vec!["latency"],
        vec!["change", "--at", "2026-04-02T12:00:00Z"],
        vec!["capacity"],
        vec!["tails", "--last", "3d"],
    ] {
        let ask = |more: &[&str]| {
            let ran = fleet.run(&[&["show"], &question[..], &["--json"], more].concat());
            assert!(
                matches!(ran.code, Some(0 | 1)) && ran.out.len() > 200,
                "{question:?} {more:?}: {}",
                ran.err
            );
            (ran.code, ran.out, fs::read(&page).unwrap())
        };
        // The folder of results may be named from where one is.
        assert_eq!(
            ask(&["--memory", "24M", "--into", "results"]),
            ask(&["--into", "results"]),
            "{question:?}"
        );
    }
}

#[test]
fn every_question_has_the_same_rows_on_duckdb() {
    let found =
        Command::new(python()).args(["-c", "import duckdb"]).output().is_ok_and(|ran| ran.status.success());
    if !found {
        _ = writeln!(
            std::io::stderr(),
            "not run: every_question_has_the_same_rows_on_duckdb: no duckdb for {}",
            python().display()
        );
        return;
    }
    let fleet = Fleet::new();
    fill(&fleet);
    let asked = json!([fleet.path("results/store"), questions()]).to_string();
    let input = fleet.path("questions.json");
    fs::write(&input, asked).unwrap();
    let ran =
        Command::new(python()).args(["-c", DUCKDB]).stdin(fs::File::open(&input).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let theirs: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&ran.stdout).unwrap();
    for (name, answer) in own(&fleet) {
        assert_eq!(rows(&answer), rows(&theirs[&name]), "{name}");
    }
}

fn the_same_on(server: &Server) {
    let fleet = Fleet::new();
    fill(&fleet);
    for (name, sql) in questions() {
        let (own, theirs) =
            (fleet.ask(&sql), fleet.run(&["sql", "--json", "--spark", &server.address(), &sql]));
        assert_eq!(theirs.code, Some(0), "{name}: {}", theirs.err);
        let theirs: Vec<Value> = serde_json::from_str(&theirs.out).unwrap();
        assert_eq!(rows(&own), rows(&theirs), "{name}");
    }
    // The verdict is drawn from the rows, whoever found them.
    let slow = fleet.run(&["show", "slow", "--spark", &server.address()]);
    assert_eq!(slow.out, fleet.run(&["show", "slow"]).out);
    slow.says(1, &["1 device is slow"]);
}

#[test]
fn every_question_has_the_same_rows_on_sail() {
    match Server::sail() {
        Some(server) => the_same_on(&server),
        None => {
            _ = writeln!(
                std::io::stderr(),
                "not run: every_question_has_the_same_rows_on_sail: no pysail beside {}",
                python().display()
            )
        }
    }
}

#[test]
fn every_question_has_the_same_rows_on_spark() {
    let Some(server) = Server::spark("every_question_has_the_same_rows_on_spark", None) else { return };
    the_same_on(&server);
}
