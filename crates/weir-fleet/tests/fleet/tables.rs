//! The tables of the fleet: import, compaction, questions, damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_archive::parquet::Writer;
use weir_archive::segment::Name;
use weir_archive::tables::{Event, Stage, Sync, Wait};
use weir_archive::{Row, Table};

use crate::Ran;

/// 2026-11-25T03:00:00Z.
pub const BEGIN_S: i64 = 1_795_575_600;
const DAY_S: i64 = 86_400;

/// A folder of results, and archives of recorders beside it.
pub struct Fleet(TempDir);

impl Fleet {
    pub fn new() -> Fleet {
        Fleet(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-fleet"));
        command.env("WEIR_FLEET", self.path("results")).current_dir(self.0.path());
        Ran::of(command.args(arguments).output().unwrap())
    }

    /// The rows of a question.
    pub fn ask(&self, sql: &str) -> Vec<Value> {
        let ran = self.run(&["sql", "--json", sql]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }

    pub fn segment<R: Row>(&self, host: &str, hour: i64, rows: &[R]) -> PathBuf {
        let begin_s = BEGIN_S + 3_600 * hour;
        let name = Name::Table { table: R::TABLE, begin_s, end_s: begin_s + 3_600 };
        let path = self.path(host).join(name.to_string());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, R::TABLE, rows);
        path
    }

    /// Hours of a recorder: a write and a read every ten seconds that take so long, and a sync.
    fn recorder(&self, host: &str, hours: i64, takes_ns: i64, machine: &str) {
        for hour in 0..hours {
            let times = (0..360).map(|n| 1000 * (BEGIN_S + 3_600 * hour) + 10_000 * n);
            let stage = |ts_ms, class: &str, stage: &str, bucket_low_ns| Stage {
                ts_ms,
                span_ms: 10_000,
                device: "sda".into(),
                class: class.into(),
                stage: stage.into(),
                bucket_low_ns,
                count: 100,
            };
            let stages = times.clone().flat_map(|ts_ms| {
                ["read", "write"].into_iter().flat_map(move |class| {
                    [("g2d", 4_096), ("d2c", takes_ns), ("g2c", takes_ns + 4_096)]
                        .map(|(name, ns)| stage(ts_ms, class, name, ns))
                })
            });
            self.segment(host, hour, &stages.collect::<Vec<_>>());
            let sync = |ts_ms| Sync {
                ts_ms,
                span_ms: 10_000,
                bucket_low_ns: takes_ns,
                count: 50,
                ..Sync::default()
            };
            self.segment(host, hour, &times.clone().map(sync).collect::<Vec<_>>());
            let wait = |ts_ms| Wait {
                ts_ms,
                span_ms: 10_000,
                cause: "device".into(),
                ns: 50 * takes_ns,
                ..Wait::default()
            };
            self.segment(host, hour, &times.map(wait).collect::<Vec<_>>());
        }
        let detail = json!({"machine": machine, "kernel": "6.12", "knobs": {"sda/scheduler": "none"},
            "devices": {"sda": {"model": "NV-A1", "firmware": "1.0"}}});
        let start = Event {
            ts_ms: 1000 * BEGIN_S,
            kind: "start".into(),
            detail: detail.to_string(),
            ..Event::default()
        };
        self.segment(host, 0, &[start]);
    }

    pub fn import(&self, host: &str) -> Ran {
        self.run(&["import", "--host", host, self.path(host).to_str().unwrap()])
    }

    fn files(&self) -> usize {
        let mut open = vec![self.path("results/store")];
        let mut count = 0;
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => {
                        count += usize::from(entry.path().extension().is_some_and(|end| end == "parquet"))
                    }
                }
            }
        }
        count
    }
}

fn write<R: Row>(path: &Path, table: &'static Table, rows: &[R]) {
    let mut writer = Writer::new(fs::File::create(path).unwrap(), table, Vec::new()).unwrap();
    writer.group(&R::batch(rows)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn names_of_a_host_that_are_too_long_or_too_many_take_no_memory() {
    let fleet = Fleet::new();
    let row = |device: &str, n: i64| Stage {
        ts_ms: 1000 * BEGIN_S + n,
        span_ms: 10_000,
        device: device.into(),
        class: "read".into(),
        stage: "g2c".into(),
        bucket_low_ns: 4_096,
        count: 1,
    };
    // A dictionary of one name makes a small file.
    let long = "x".repeat(10_000);
    let rows = |rows: i64| (0..rows).map(|n| row(&long, n)).collect::<Vec<_>>();
    for (host, count) in [("db1", 50), ("db2", 60_000)] {
        fs::create_dir_all(fleet.path(host)).unwrap();
        write(&fleet.path(host).join("stages.parquet"), Stage::TABLE, &rows(count));
        assert!(fs::metadata(fleet.path(host).join("stages.parquet")).unwrap().len() < 4 << 20);
    }
    let import = |host: &str| fleet.run(&["import", "--host", host, fleet.path(host).to_str().unwrap()]);
    let ran = import("db1");
    assert!(ran.err.contains("50 rows left out"), "{}", ran.err);
    let ran = import("db2");
    assert!(ran.code == Some(3) && ran.err.contains("512 MiB of names"), "{:?} {}", ran.code, ran.err);
    assert!(!fleet.path("results/store/kind=stages").exists());
}

const SUMS: &str = "SELECT host, class, stage, load, SUM(n) AS n, MIN(ts) AS ts FROM stages
    GROUP BY host, class, stage, load ORDER BY host, class, stage, load";

#[test]
fn hours_are_imported_once_and_compaction_changes_no_answer() {
    let fleet = Fleet::new();
    fleet.recorder("db1", 3, 100_000, "aaaaaa01");
    fleet.recorder("db2", 3, 200_000, "aaaaaa02");
    fleet.import("db1").says(0, &["of 1 host"]);
    fleet.import("db2").says(0, &["of 1 host"]);
    let rows = fleet.ask(SUMS);
    assert_eq!(rows.len(), 2 * 2 * 3);
    assert_eq!(
        rows[0],
        json!({"host": "db1", "class": "read", "stage": "d2c", "load": 16, "n": 3 * 360 * 100, "ts": BEGIN_S})
    );
    fleet.import("db1").says(0, &["nothing new in"]);
    assert_eq!(fleet.ask(SUMS), rows, "the second import counts nothing twice");

    // An hour later, the same archive has one segment more.
    fleet.recorder("db1", 4, 100_000, "aaaaaa01");
    fleet.import("db1").says(0, &[]);
    let rows = fleet.ask(SUMS);
    assert_eq!(rows[0]["n"], json!(4 * 360 * 100));
    let before = fleet.files();
    fleet.run(&["compact"]).says(0, &["files became 4"]);
    assert!(fleet.files() == 4 && before > 4, "{before} became {}", fleet.files());
    assert_eq!(fleet.ask(SUMS), rows);
    fleet.import("db1").says(0, &["nothing new in"]);
    assert_eq!(fleet.ask(SUMS), rows);

    let out = fleet.path("out.parquet");
    fleet
        .run(&["export", "stages", "--out", out.to_str().unwrap(), "--until", "2026-11-25T04:00:00Z"])
        .says(0, &["12 rows"]);
    fleet.run(&["prune", "--keep", "1d"]).says(0, &["files removed"]);
}

#[test]
fn a_damaged_file_costs_a_line_and_the_rest_goes_on() {
    let fleet = Fleet::new();
    fleet.recorder("db1", 3, 100_000, "aaaaaa01");
    let torn =
        fleet.segment("db1", 1, &[Sync { ts_ms: 1000 * (BEGIN_S + 3_600), count: 1, ..Sync::default() }]);
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    let ran = fleet.import("db1");
    ran.says(3, &["1 file could not be read"]);
    assert_eq!(ran.err.lines().filter(|line| line.contains("syncs-")).count(), 1, "{}", ran.err);
    assert_eq!(fleet.ask("SELECT SUM(n) AS n FROM syncs"), [json!({"n": 2 * 360 * 50})]);

    // A file of weir's own that lost its end, or a byte in the middle.
    let stages = fleet.ask("SELECT SUM(n) AS n FROM stages");
    let own = fs::read_dir(fleet.path("results/store/kind=syncs/date=2026-11-25/host=db1")).unwrap();
    let own = own.flatten().next().unwrap().path();
    let bytes = fs::read(&own).unwrap();
    fs::write(&own, &bytes[..bytes.len() - 20]).unwrap();
    let ran = fleet.run(&["sql", "SELECT SUM(n) AS n FROM stages"]);
    ran.says(0, &[&stages[0]["n"].to_string()]);
    assert!(ran.err.contains("left out"), "{}", ran.err);
    let mut bad = bytes;
    bad[4..40].fill(0xff);
    fs::write(&own, &bad).unwrap();
    let ran = fleet.run(&["sql", "SELECT host, SUM(n) AS n FROM syncs GROUP BY host"]);
    assert!(ran.code == Some(0) && ran.err.contains("left out"), "{:?} {} {}", ran.code, ran.out, ran.err);
    fleet.run(&["import", "--host", "../x", "/tmp"]).says(2, &[]);
    fleet.run(&["import", "--host", "db1", "/nowhere/at/all"]).says(2, &[]);
}

#[test]
fn a_host_whose_files_are_a_flood_costs_a_line_and_the_next_host_goes_on() {
    let fleet = Fleet::new();
    let pulled = |host: &str| format!("results/kind=recorder/date=2026-11-25/host={host}");
    let row = |ts_ms| Stage { ts_ms, span_ms: 1, stage: "d2c".into(), count: 1, ..Stage::default() };
    let days: Vec<Stage> = (0..900).map(|day| row(1000 * (BEGIN_S - 86_400 * day))).collect();
    fleet.segment(&pulled("days"), 0, &days);
    let beyond = [i64::MIN, 0, 1000 * (BEGIN_S + 86_400 * 3_650), i64::MAX].map(row);
    fleet.segment(&pulled("times"), 0, &[&beyond[..], &[row(1000 * BEGIN_S)]].concat());
    fs::create_dir_all(fleet.path(&pulled("records"))).unwrap();
    let record = |name: &str, started: &str, length: usize| {
        let text = json!({"started_at": started, "x": "x".repeat(length)}).to_string();
        fs::write(fleet.path(&pulled("records")).join(name), text).unwrap();
    };
    record("record-1.json", "2026-11-25T03:00:00Z", 9 << 20);
    record("record-2.json", "1926-11-25T03:00:00Z", 1);
    fleet.recorder(&pulled("zz"), 1, 100_000, "aaaaaa01");
    let ran = fleet.run(&["import"]);
    ran.says(3, &["of 2 hosts"]);
    for word in ["host=days: ", "days", "4 rows", "record-1.json", "record-2.json"] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    let hosts = fleet.ask("SELECT host, SUM(n) AS n FROM stages GROUP BY host ORDER BY host");
    assert_eq!(hosts, [json!({"host": "times", "n": 1}), json!({"host": "zz", "n": 360 * 6 * 100})]);
}

/// A segment that its recorder still writes, or has just begun to close, is left out whole, and taken when it is closed.
#[test]
fn a_segment_that_is_still_open_is_left_out_and_said() {
    let fleet = Fleet::new();
    fleet.recorder("db1", 1, 100_000, "aaaaaa01");
    let whole =
        fleet.segment("db1", 1, &[Sync { ts_ms: 1000 * (BEGIN_S + 3_600), count: 7, ..Sync::default() }]);
    let journal = fleet.path("db1").join(Name::Journal { begin_s: BEGIN_S + 3_600 }.to_string());
    fs::write(&journal, "WEIRJNL1").unwrap();
    let ran = fleet.import("db1");
    ran.says(0, &["from 4 files of 1 host"]);
    for words in ["left out: the segment that is open since 2026-11-25 04:00 UTC", "hint: import again"] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    let syncs = || fleet.ask("SELECT SUM(n) AS n FROM syncs");
    assert_eq!(syncs(), [json!({"n": 360 * 50})]);
    fs::remove_file(&journal).unwrap();
    let ran = fleet.import("db1");
    assert!(ran.code == Some(0) && !ran.err.contains("left out"), "{}", ran.err);
    assert_eq!(syncs(), [json!({"n": 360 * 50 + 7})]);

    // A recorder that has just begun.
    let begun = Fleet::new();
    fs::create_dir_all(begun.path("db1")).unwrap();
    fs::rename(whole, begun.path("db1").join("lock")).unwrap();
    fs::write(begun.path("db1").join(journal.file_name().unwrap()), "WEIRJNL1").unwrap();
    let file = begun.path("db1").join(journal.file_name().unwrap());
    for ran in [begun.import("db1"), begun.run(&["import", "--host", "db1", file.to_str().unwrap()])] {
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        for words in ["holds only a segment that is open since 2026-11-25 04:00 UTC", "recorder export"] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
}

#[test]
fn two_machines_of_one_name_stay_apart() {
    let fleet = Fleet::new();
    fleet.recorder("db1", 1, 100_000, "aaaaaa01");
    fleet.import("db1").says(0, &[]);
    fleet.recorder("db1", 1, 100_000, "bbbbbb02");
    fleet.import("db1").says(0, &[]);
    fleet.import("db1").says(0, &["nothing new in"]);
    let hosts = fleet.ask("SELECT host, SUM(n) AS n FROM syncs GROUP BY host ORDER BY host");
    assert_eq!(hosts, [json!({"host": "db1", "n": 18_000}), json!({"host": "db1~bbbbbb", "n": 18_000})]);
}

#[test]
fn a_killed_compaction_counts_nothing_twice() {
    let fleet = Fleet::new();
    for host in ["db1", "db2"] {
        fleet.recorder(host, 2, 100_000, host);
        fleet.import(host).says(0, &[]);
    }
    let rows = fleet.ask(SUMS);
    let store = fleet.path("results/store");
    let old = "kind=stages/date=2026-11-25/host=db1";
    let name =
        fs::read_dir(store.join(old)).unwrap().flatten().next().unwrap().file_name().into_string().unwrap();
    // What it made is there, and what that replaces is, too: as if it was killed between.
    let made = "kind=stages/date=2026-11-23/host=.many";
    fs::create_dir_all(store.join(made)).unwrap();
    fs::copy(store.join(old).join(&name), store.join(made).join("made.parquet")).unwrap();
    let journal = json!({"made": [format!("{made}/made.parquet")], "replaced": [format!("{old}/{name}")]});
    fs::write(store.join("compaction.json"), journal.to_string()).unwrap();
    assert_eq!(fleet.ask(SUMS), rows);
    // Killed before all of it was made: the old ones count.
    let journal = json!({"made": [format!("{made}/made.parquet"), format!("{made}/second.parquet")], "replaced": [format!("{old}/{name}")]});
    fs::write(store.join("compaction.json"), journal.to_string()).unwrap();
    assert_eq!(fleet.ask(SUMS), rows);
    fleet.run(&["compact"]).says(0, &[]);
    assert_eq!(fleet.ask(SUMS), rows);
    assert!(!store.join("compaction.json").exists() && !store.join(made).join("made.parquet").exists());
}

#[test]
fn an_import_that_fails_midway_counts_nothing_twice() {
    let fleet = Fleet::new();
    fleet.recorder("db1", 1, 100_000, "aaaaaa01");
    // Nothing can be written there.
    let waits = fleet.path("results/store/kind=waits");
    fs::create_dir_all(waits.parent().unwrap()).unwrap();
    fs::write(&waits, "").unwrap();
    fleet.import("db1").says(3, &[]);
    fs::remove_file(&waits).unwrap();
    fleet.recorder("db1", 2, 100_000, "aaaaaa01");
    fleet.import("db1").says(0, &[]);
    let sums = fleet.ask(SUMS);
    let whole = Fleet::new();
    whole.recorder("db1", 2, 100_000, "aaaaaa01");
    whole.import("db1").says(0, &[]);
    assert_eq!(sums, whole.ask(SUMS));
}

#[test]
fn facts_outlive_what_is_pruned() {
    let fleet = Fleet::new();
    let now_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let today_s = now_s - now_s % DAY_S;
    let row = |days: i64| weir_store::tables::Stage {
        host: "db1".into(),
        ts: today_s - DAY_S * days,
        device: "sda".into(),
        class: "read".into(),
        stage: "g2c".into(),
        load: 1,
        bucket_low_ns: 1,
        n: 1,
    };
    crate::engines::put(&fleet, &[row(40), row(2)], |row| (row.host.clone(), row.ts));
    let [device, name, value] = ["sda", "model", "NV-A1"].map(String::from);
    let fact = weir_store::tables::Fact { host: "db1".into(), ts: row(40).ts, device, name, value };
    crate::engines::put(&fleet, &[fact], |row| (row.host.clone(), row.ts));
    fleet.run(&["prune", "--keep", "30d"]).says(0, &["1 files removed"]);
    assert_eq!(fleet.ask("SELECT value FROM facts"), [json!({"value": "NV-A1"})]);
    assert_eq!(fleet.ask("SELECT COUNT(*) AS n FROM stages"), [json!({"n": 1})]);
}

#[test]
fn slow_devices_are_named_with_their_cause() {
    let fleet = Fleet::new();
    for n in 0..8 {
        let host = format!("db{n}");
        fleet.recorder(&host, 24, if n == 5 { 400_000 } else { 100_000 }, &format!("aaaaaa0{n}"));
        fleet.import(&host).says(0, &[]);
    }
    let ran = fleet.run(&["show", "slow"]);
    ran.says(1, &["1 device is slow", "db5", "sda", "device"]);
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("db")).count(), 1, "{}", ran.out);
    fleet.run(&["show", "slow", "--json"]).says(1, &["\"cause\": \"device\""]);
    fleet
        .run(&["show", "slow", "--until", "2026-11-01"])
        .says(0, &["no device and no host could be compared"]);
    fleet.run(&["show", "latency"]).says(0, &["db5 sda", "sync"]);
    fleet.run(&["show", "drift"]).says(0, &["0 facts"]);
    fleet
        .run(&["show", "change", "--at", "2026-11-25T12:00:00Z"])
        .says(0, &["no change that could not be chance"]);
    fleet.run(&["show", "change", "--at", "2026-11-25T02:00:00Z"]).says(0, &["no device has a thousand"]);
    for (at, since, hint) in [
        ("2026-11-27", "2026-11-25", "give a time before 2026-11-26 03:00"),
        ("2026-11-01", "2026-11-25", "earlier --since"),
    ] {
        let ran = fleet.run(&["show", "change", "--at", at, "--since", since]);
        assert!(ran.code == Some(2) && ran.err.contains(hint), "{at}: {} {}", ran.out, ran.err);
    }
    let ran = fleet.run(&["show", "change", "--at", "2026-11-27"]);
    assert!(ran.code == Some(2) && ran.err.contains("is not within"), "{} {}", ran.out, ran.err);
    fleet.run(&["show", "tails"]).says(0, &["no device has a thousand requests at the same load in each"]);
    fleet.run(&["show", "tails", "--last", "1d"]).says(0, &["0 tails of 16 have grown"]);
    fleet
        .run(&["show", "capacity"])
        .says(0, &["0 devices", "not near: 8 devices whose model slows down at no load"]);
    // The SQL itself, for other engines.
    let sql = fleet.run(&["show", "slow", "--sql"]);
    sql.says(0, &["SELECT peers, host"]);
    assert_eq!(fleet.ask(&sql.out)[0]["host"], "db5");
    fleet.run(&["sql", "SELEC 1"]).says(2, &[]);
    fleet.run(&["sql", "SELECT nothing FROM stages"]).says(2, &[]);
    fleet.run(&["sql", "CREATE TABLE x AS SELECT 1"]).says(2, &[]);
    fleet.run(&["sql", "COPY (SELECT 1) TO '/tmp/weir-should-not-be.csv'"]).says(2, &[]);
}

#[test]
fn without_tables_it_says_how_to_get_some() {
    let fleet = Fleet::new();
    let ran = fleet.run(&["show", "latency"]);
    assert!(ran.code == Some(2) && ran.err.contains("weir fleet import"), "{}", ran.err);
    let ran = fleet.run(&["import"]);
    assert!(ran.code == Some(2) && ran.err.contains("--host NAME PATH"), "{}", ran.err);
}

/// The folder of results may lie in one of another account's, which then decides what lies in it, but for where.
#[test]
fn an_import_of_what_was_pulled_follows_no_link() {
    let fleet = Fleet::new();
    fleet.recorder("elsewhere", 1, 100_000, "m1");
    let day = fleet.path("results/kind=recorder/date=2026-11-25");
    fs::create_dir_all(&day).unwrap();
    std::os::unix::fs::symlink(fleet.path("elsewhere"), day.join("host=db1")).unwrap();
    fleet.run(&["import"]);
    assert!(!fleet.path("results/store/kind=stages").exists());
    fs::remove_file(day.join("host=db1")).unwrap();
    fs::rename(fleet.path("elsewhere"), day.join("host=db1")).unwrap();
    fleet.run(&["import"]).says(0, &["1 host"]);
    assert!(fleet.files() > 0);
}

/// A host with a fact for each number, so many days away.
fn facts(fleet: &Fleet, days: &[i64]) {
    let fact = |(n, days): (usize, &i64)| weir_store::tables::Fact {
        host: format!("db{n}"),
        ts: BEGIN_S + DAY_S * days,
        device: String::new(),
        name: "kernel".into(),
        value: "6.12".into(),
    };
    let facts: Vec<_> = days.iter().enumerate().map(fact).collect();
    crate::engines::put(fleet, &facts, |row| (row.host.clone(), row.ts));
}

#[test]
fn more_hosts_than_a_process_may_open_files_are_all_asked() {
    let fleet = Fleet::new();
    facts(&fleet, &[0; 400]);
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -Sn 128; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_weir-fleet")]);
    few.args(["sql", "--json", "SELECT COUNT(DISTINCT host) AS n FROM facts"]);
    let ran = Ran::of(few.env("WEIR_FLEET", fleet.path("results")).output().unwrap());
    assert_eq!((ran.code, ran.out.contains("400")), (Some(0), true), "{} {}", ran.out, ran.err);
}

/// Hosts whose clocks are months ahead, or that were not imported for months, do not decide what is now.
#[test]
fn now_is_the_newest_hour_that_half_of_the_hosts_have() {
    for (days, now) in [([300, 0, 0, 0, -40, -40], 0), ([300, 0, -40, -40, -40, -80], -40), ([0; 6], 0)] {
        let (fleet, without_facts) = (Fleet::new(), Fleet::new());
        let sync = |n: usize| weir_store::tables::Sync {
            host: format!("db{n}"),
            ts: BEGIN_S + DAY_S * days[n],
            unit: String::new(),
            load: 1,
            bucket_low_ns: 1,
            n: 1,
        };
        crate::engines::put(&without_facts, &(0..6).map(sync).collect::<Vec<_>>(), |row| {
            (row.host.clone(), row.ts)
        });
        facts(&fleet, &days);
        for fleet in [fleet, without_facts] {
            let said: Value = serde_json::from_str(&fleet.run(&["show", "latency", "--json"]).out).unwrap();
            assert_eq!(said["until_s"], BEGIN_S + DAY_S * now + 3_600, "{days:?}");
        }
    }
}

/// A compacted week ends after its last rows, and after files of single days with later ones.
#[test]
fn now_lies_in_days_that_are_newer_than_a_compacted_week() {
    let fleet = Fleet::new();
    facts(&fleet, &[0; 10]);
    fleet.run(&["compact"]).says(0, &[]);
    for day in 1..4 {
        facts(&fleet, &[day; 10]);
    }
    facts(&fleet, &[5]);
    let said: Value = serde_json::from_str(&fleet.run(&["show", "latency", "--json"]).out).unwrap();
    assert_eq!(said["until_s"], BEGIN_S + DAY_S * 3 + 3_600);
}
