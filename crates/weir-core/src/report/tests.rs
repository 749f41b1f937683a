//! Reports of made-up runs: what a reader finds in them, and that nothing is wider than a ticket.

use crate::report::{csv, text};
use crate::result::record::{Class, FinalSync, FloodRecord, Lateness, Note, Record};
use crate::result::samples::{Second, job, record, seconds};
use crate::result::{compare, derive};
use crate::stats::random::Random;

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
    made.lateness =
        Some(Lateness { intended: 6_000, late: 1_020, not_started: 2, start_delay_max_ns: 1_000_000_000 });
    made.notes
        .push(Note { key: "punting".into(), text: "requests were punted to kernel workers ".repeat(4) });
    let mut record = record(vec![made]);
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
        "storage  ext4 at /srv (rw,noatime), sda1 (100 GiB) > sda (Made-up SSD, scsi)",
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
        "flood    dd: 200 MB/s",
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

#[test]
fn a_comparison_puts_the_effect_first() {
    let a = full();
    let mut b = a.clone();
    b.conditions["kernel"] = "6.12.0".into();
    let report = text::comparison(&compare(&a, &b, 1));
    let expected =
        ["no difference that this data can show", "throughput", "kernel: 6.1.0-13-amd64 (A), 6.12.0 (B)"];
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
