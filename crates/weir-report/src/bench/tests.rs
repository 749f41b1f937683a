//! Reports of made-up runs: what a reader finds in them, and that nothing is wider than a ticket.

use crate::{csv, html, json, text};
use weir_core::result::record::{Class, FinalSync, FloodRecord, Lateness, Note, Record};
use weir_core::result::samples::{Second, job, record, seconds};
use weir_core::result::{compare, derive};
use weir_core::stats::random::Random;

/// A mixed run with everything that a report can show.
pub(crate) fn full() -> Record {
    let mut random = Random::new(4);
    let classes = [
        (Class::Read, seconds(&mut random, 12, 1_500.0, 300_000.0, 0.03)),
        (Class::Write, seconds(&mut random, 12, 600.0, 80_000.0, 0.03)),
        (Class::Sync, vec![Second { count: 20, latency_ns: 4_000_000.0 }; 12]),
    ];
    let mut made = job(&mut random, &classes);
    made.job.name = "oltp".to_string();
    made.engine.granted = ["fixed-buffers", "DEFER_TASKRUN"].map(String::from).to_vec();
    made.engine.refused = vec!["IOPOLL (EOPNOTSUPP)".to_string()];
    made.job.read_percent = 70.0;
    made.final_sync = Some(FinalSync { files: 3, total_ns: 23_000_000, error: None });
    made.lateness = Some(Lateness {
        intended: 6_000,
        late: 1_020,
        not_started: 2,
        start_delay_max_ns: 1_000_000_000,
        ..Lateness::default()
    });
    made.notes
        .push(Note { key: "punting".into(), text: "requests were punted to kernel workers ".repeat(4) });
    let mut record = record(vec![made]);
    record.started_at = "2026-11-21T08:13:59.123456Z".to_string();
    let rates = vec![200e6; 12];
    let flood = FloodRecord {
        spec: "dd".into(),
        bytes: 2_400_000_000,
        elapsed_ns: 12_000_000_000,
        bytes_per_second: rates,
        ended: "stopped".into(),
    };
    record.floods.push(flood);
    record
}

#[test]
fn text_of_a_run_fits_a_ticket_and_names_everything() {
    let record = full();
    let mut result = derive(&record);
    result.record_path = Some("/home/dba/.local/state/weir/runs/20261121-081359-506-0f1e.json".to_string());
    let report = text::run(&result, &record);
    for expected in [
        "started 2026-11-21T08:13:59Z\nstorage  /srv/my db on ext4 at /srv (rw,noatime), sda1 (100 GiB) > sda (Made-up SSD, scsi)",
        "queue    scheduler mq-deadline, nr_requests 256, cache write back, wbt 2000 µs",
        "machine  Linux 6.1.0-13-amd64, 2 x Made-up CPU, 8 GiB memory",
        "dirty 20 %, dirty_background 10 %, swappiness 60, no swap",
        "oltp: random 70 % reads, 30 % writes of 4 KiB, psync, 1 thread, buffered",
        "with fixed-buffers, DEFER_TASKRUN; refused: IOPOLL (EOPNOTSUPP)",
        "class   count   IOPS  MB/s     mean      p50      p95      p99    p99.9      max",
        "too few",
        "late     17.0 % of 6,000 operations finished more than 10.0 ms",
        "at end   3 files synced at the end in 23.0 ms",
        "Little's law holds (+0.0 %",
        "flood    dd: 200 MB/s handed to the page cache beside the jobs (stopped)",
        "show     weir results show 20261121-081359-506-0f1e",
        "again    weir bench --dir '/srv/my db'",
    ] {
        assert!(report.contains(expected), "no `{expected}` in\n{report}");
    }
    let wide: Vec<&str> = report.lines().filter(|l| l.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(report.lines().all(|l| l.trim_end() == l) && report.ends_with('\n'));
}

#[test]
fn text_needs_no_conditions() {
    let mut record = full();
    for conditions in [serde_json::Value::Null, serde_json::json!({"target": {"stack": [1, {}]}, "cpu": "?"})]
    {
        record.conditions = conditions;
        assert!(text::run(&derive(&record), &record).contains("IOPS"));
    }
}

/// A record may be another's, and its lines are made to be pasted into a shell.
#[test]
fn no_name_of_a_run_is_a_command() {
    let record = Record { id: "1; id".to_string(), ..full() };
    let mut result = derive(&record);
    result.record_path = Some("/r.json".to_string());
    let report = text::run(&result, &record);
    assert!(report.contains("show     weir results show '1; id'\n"), "{report}");
}

#[test]
fn a_comparison_puts_the_effect_first() {
    let a = full();
    let mut b = a.clone();
    b.conditions["kernel"] = "6.12.0".into();
    b.conditions["cgroup_limits"] = "8:0 200000000\n7:0 100000000\n".into();
    let report = text::comparison(&compare(&a, &b, 1));
    let expected = [
        "the data show no difference",
        "throughput",
        "cgroup_limits: - (A), 8:0 200000000, 7:0 100000000 (B)",
        "kernel: 6.1.0-13-amd64 (A), 6.12.0 (B)",
    ];
    let places: Vec<Option<usize>> = expected.iter().map(|text| report.find(text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{report}");
    assert!(report.lines().all(|l| l.chars().count() <= 100), "{report}");
}

#[test]
fn csv_has_a_line_for_each_interval_and_class() {
    let mut record = full();
    record.jobs[0].job.name = "a,\"b\"".to_string();
    record.jobs[0].intervals[1].classes.remove(&Class::Sync);
    let csv = csv::intervals(&record);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (1 + 12 * 3, csv::HEADER));
    assert!(lines[1].starts_with("\"a,\"\"b\"\"\",0.000,1.000,read,"), "{}", lines[1]);
    assert_eq!(
        lines[6],
        "\"a,\"\"b\"\"\",1.000,1.000,sync,0,0.00,0,0.000,0.000,0.000,0.000,0.000,2000.000,1"
    );
    let counted: u64 = lines
        .iter()
        .filter(|l| l.contains(",read,"))
        .map(|l| l.split(',').nth(5).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(counted, record.jobs[0].classes[&Class::Read].latency.count());
    let columns = csv::HEADER.split(',').count();
    assert!(lines[1..].iter().all(|l| l.split(',').count() == columns + 1), "the name holds one comma");
}

#[test]
fn fio_json_has_every_key_of_fio_and_its_figures() {
    let mut record = full();
    record.jobs[0].error = Some("write /srv/x: No space left on device (os error 28)".to_string());
    let text = json::fio(&record, 1_795_248_839_506, "Sat Nov 21 08:13:59 2026").unwrap();
    let fio: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Captured from fio 3.33: a job with reads, writes and syncs; `disk_util` and `job options` vary by machine.
    let missing: Vec<&str> =
        include_str!("fixtures/fio-3.33-keys.txt").lines().filter(|key| fio.pointer(key).is_none()).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let job = &fio["jobs"][0];
    let read = &record.jobs[0].classes[&Class::Read];
    assert_eq!(job["read"]["total_ios"], read.latency.count());
    assert_eq!(job["read"]["io_bytes"], read.bytes);
    assert_eq!(job["read"]["bw"], read.bytes / 12 / 1024);
    assert_eq!(job["read"]["iops"], read.latency.count() as f64 / 12.0);
    assert_eq!(job["read"]["lat_ns"]["percentile"]["99.000000"], read.latency.quantile(0.99).unwrap());
    // An exponential distribution: its deviation is its mean, here less the constant 1 µs.
    let deviation = job["read"]["clat_ns"]["stddev"].as_f64().unwrap();
    assert!((deviation / 300_000.0 - 1.0).abs() < 0.03, "{deviation}");
    assert_eq!((&job["error"], &job["sync"]["total_ios"]), (&28.into(), &240.into()));
    assert_eq!(
        (&job["job options"]["rw"], &job["job options"]["rwmixread"]),
        (&"randrw".into(), &"70".into())
    );
    let shares = |key: &str| job[key].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum::<f64>();
    let all = shares("latency_ns") + shares("latency_us") + shares("latency_ms");
    assert!((all - 100.0).abs() < 1e-6 && (shares("iodepth_level") - 100.0).abs() < 1e-9, "{all}");
}

/// Every key of a JSON value, at any depth, but not below `skipped`.
fn keys(value: &serde_json::Value, skipped: &[&str], found: &mut std::collections::BTreeSet<String>) {
    let below: Vec<&serde_json::Value> = match value {
        serde_json::Value::Object(map) => {
            found.extend(map.keys().cloned());
            map.iter().filter(|(key, _)| !skipped.contains(&key.as_str())).map(|(_, v)| v).collect()
        }
        serde_json::Value::Array(items) => items.iter().collect(),
        _ => return,
    };
    below.into_iter().for_each(|value| keys(value, skipped, found));
}

#[test]
fn the_schema_document_names_every_field() {
    let document = include_str!("../../../../docs/reference/record.md");
    let mut record = full();
    record.jobs[0].verify = Some(Default::default());
    record.jobs[0].threads = vec![Default::default()];
    let comparison = compare(&record, &record, 1);
    let mut found = std::collections::BTreeSet::new();
    // A job is described where it is typed, the conditions where they are defined.
    keys(&serde_json::to_value(&record).unwrap(), &["job", "conditions"], &mut found);
    keys(&serde_json::to_value(derive(&record)).unwrap(), &[], &mut found);
    keys(&serde_json::to_value(&comparison).unwrap(), &[], &mut found);
    found.extend(csv::HEADER.split(',').map(String::from));
    let named =
        |key: &str| document.contains(&format!("`{key}`")) || document.contains(&format!("\"{key}\""));
    let missing: Vec<&String> = found.iter().filter(|key| !named(key)).collect();
    assert!(missing.is_empty() && found.len() > 80, "{missing:?}");
}

#[test]
fn a_run_of_transactions_is_readable() {
    let raw = weir_oltp::samples::raw(&mut Random::new(9), 10, 1.0);
    let record = weir_oltp::samples::record(&raw);
    let text = text::oltp(&weir_oltp::derive(&record, &raw), &record);
    for part in [
        "server   MariaDB 10.11.14 at unix:/run/mysqld/mysqld.sock, innodb_flush_log_at_trx_commit 1",
        "innodb_buffer_pool_size 128 MiB\ndurable  by the server's settings alone: its syncs were not watched",
        "read_write on 1 table of 10,000 rows, 4 connections, closed loop",
        "point select",
        "outside them",
        "3 × 1213; 3 transactions ran again",
        "client 13 % of it",
        "warning  the tables (about",
        "again    weir db run --mysql --threads 4",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let whole = weir_record::Record::decode(record.clone(), None).unwrap();
    let row = text::list(&[text::ListRow::of(&whole, "now".to_string())]);
    assert!(row.contains("db read_write") && row.contains(" tps, p99 "), "{row}");
    let csv = crate::csv::oltp(&raw);
    assert_eq!(csv.lines().count(), 1 + 10 * 5, "an interval has a line for each kind");
    // A page has a column of errors where there is one.
    let mut failing = raw.clone();
    failing.kinds.values_mut().for_each(|of| of.errors = 0);
    assert!(!html::oltp(&record, &failing).contains(">errors</th>"));
    failing.kinds.get_mut(&weir_oltp::Kind::Commit).unwrap().errors = 2;
    assert!(html::oltp(&record, &failing).contains(">errors</th>"));
}
