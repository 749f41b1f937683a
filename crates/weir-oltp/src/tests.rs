//! Results and comparisons of made-up database runs.

use super::record::KIND;
use super::samples::{raw, record};
use super::*;
use weir_core::result::comparison::{Measure, Significance};
use weir_core::result::run_result::SteadyResult;
use weir_core::stats::random::Random;
use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Rate};

fn result(raw: &OltpRecord) -> OltpResult {
    derive(&record(raw), raw)
}

fn has(result: &OltpResult, key: &str) -> bool {
    result.notes.iter().any(|note| note.key == key)
}

#[test]
fn a_result_accounts_for_all_of_a_transactions_time() {
    let raw = raw(&mut Random::new(1), 20, 1.0);
    let result = result(&raw);
    let of = &result.transactions;
    assert_eq!(of.count, raw.kinds[&Kind::Transaction].latency.count());
    assert!((of.per_second * 20.0 - of.count as f64).abs() < 1.0);
    let shares: f64 = result.statements.values().map(|s| s.time_share).sum();
    let client = result.rest_time_share.unwrap();
    assert!((shares + client - 1.0).abs() < 1e-9, "{shares} {client}");
    // 0.1 ms of think time and 1.95 ms of statements.
    assert!((client - 0.1 / 2.05).abs() < 0.01, "{client}");
    let (queries, count) = (result.queries, of.count);
    assert_eq!([queries.read, queries.write, queries.other], [count * 10, count, count * 2]);
    // As sysbench: a write that changed no row is among the others.
    let mut empty = raw.clone();
    let written =
        empty.kinds.iter_mut().find(|(kind, _)| kind.tally() == Some(crate::kind::Tally::Write)).unwrap().1;
    written.empty = 7;
    let told = derive(&record(&empty), &empty).queries;
    assert_eq!([told.read, told.write, told.other], [count * 10, count - 7, count * 2 + 7]);
    assert!((result.client_cpu_share.unwrap() - 0.2 / 1.5).abs() < 1e-9);
    assert!(result.connections.busy_share.unwrap() > 0.95, "{:?}", result.connections);
    assert!(matches!(result.steady, SteadyResult::Judged { holds: true, .. }), "{:?}", result.steady);
    assert!(has(&result, "fits-in-memory") && !has(&result, "not-durable") && !has(&result, "no-disk"));
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<OltpResult>(&json).unwrap().transactions.count, of.count);
}

#[test]
fn every_note_has_its_reason() {
    let plain = raw(&mut Random::new(2), 6, 1.0);
    let changed = |change: &dyn Fn(&mut OltpRecord)| {
        let mut raw = plain.clone();
        change(&mut raw);
        raw
    };
    let set = |name: &'static str, value: &'static str| {
        changed(&move |raw| {
            raw.server.variables.insert(name.to_string(), value.to_string());
        })
    };
    let rate = Some(Rate { iops: 500.0, arrival: Arrival::Poisson });
    let late = weir_core::result::record::Lateness { intended: 100, late: 50, ..Default::default() };
    for (key, raw) in [
        ("server-error", changed(&|raw| raw.error = Some("gone (2013)".to_string()))),
        ("retries", changed(&|raw| raw.retried = 1_000)),
        ("client-cpu", changed(&|raw| raw.cpu.machine_busy_ns = raw.elapsed_ns / 2)),
        ("many-connections", changed(&|raw| raw.threads = vec![Default::default(); 100])),
        (
            "many-connections",
            changed(&|raw| {
                raw.threads = vec![Default::default(); 100];
                (raw.cpu.processors, raw.cpu.allowed) = (64, Some(2));
            }),
        ),
        ("not-durable", set("innodb_flush_log_at_trx_commit", "2")),
        ("no-disk", set("innodb_flush_log_at_trx_commit", "0")),
        (
            "wake-ups",
            changed(&|raw| {
                raw.threads.truncate(1);
                raw.cpu.machine_busy_ns = raw.elapsed_ns;
            }),
        ),
        ("stall", changed(&|raw| raw.intervals[3].oldest_ns = 2_000_000_000)),
        (
            "late",
            changed(&|raw| {
                raw.spec.rate = rate;
                raw.lateness = Some(late.clone());
            }),
        ),
        ("no-transactions", changed(&|raw| raw.kinds.clear())),
    ] {
        assert!(!has(&result(&plain), key), "{key} without a reason");
        assert!(has(&result(&raw), key), "{key}: {:?}", result(&raw).notes);
    }
    // Of 64 processors, a client on two of them leaves most idle, whatever happens on its own.
    for (allowed, expected) in [(None, true), (Some(64), true), (Some(2), false)] {
        let confined = changed(&|raw| {
            raw.threads.truncate(1);
            (raw.cpu.processors, raw.cpu.allowed, raw.cpu.machine_busy_ns) = (64, allowed, raw.elapsed_ns);
        });
        assert_eq!(has(&result(&confined), "wake-ups"), expected, "{allowed:?}");
    }
    // A server elsewhere lacks nothing that the client takes.
    for (place, expected) in [("127.0.0.1:3306", true), ("[::1]:3306", true), ("db2.example:3306", false)] {
        let busy = changed(&|raw| {
            raw.cpu.machine_busy_ns = raw.elapsed_ns / 2;
            raw.server.places = vec![place.to_string()];
        });
        assert_eq!(has(&result(&busy), "client-cpu"), expected, "{place}");
    }
    assert!(has(&result(&self::raw(&mut Random::new(2), 1, 1.0)), "insufficient-samples"));
    assert!(!has(&result(&plain), "insufficient-samples"));
    let large = changed(&|raw| raw.spec.table_size = 100_000_000);
    assert!(!has(&result(&large), "fits-in-memory"));
    let open = changed(&|raw| raw.spec.rate = rate);
    assert_eq!(result(&open).rest_time_share, None);
}

#[test]
fn records_survive_the_store() {
    let raw = raw(&mut Random::new(3), 2, 1.0);
    let stored = record(&raw);
    let read: OltpRecord = weir_core::json::typed(&stored.extra).unwrap();
    assert_eq!(derive(&stored, &read), derive(&stored, &raw));
    assert_eq!(stored.kind, KIND);
}

#[test]
fn a_slower_server_is_seen_and_the_same_one_is_not() {
    let a = raw(&mut Random::new(4), 20, 1.0);
    let verdicts = |b: &OltpRecord| {
        let comparison = compare((&record(&a), &a), (&record(b), b), 1);
        let effects = &comparison.jobs[0].effects;
        assert_eq!(effects.len(), 6, "three measures of transactions and of commits");
        let effects = effects.iter().map(|e| (e.class.clone(), e.measure, e.verdict)).collect::<Vec<_>>();
        (effects, comparison)
    };
    let (effects, comparison) = verdicts(&raw(&mut Random::new(5), 20, 1.5));
    assert!(
        effects.contains(&("transaction".to_string(), Measure::Throughput, Significance::Worse)),
        "{effects:?}"
    );
    assert!(effects.contains(&("commit".to_string(), Measure::P50, Significance::Worse)), "{effects:?}");
    assert_eq!(comparison.workload_differences, []);
    let (effects, _) = verdicts(&raw(&mut Random::new(6), 20, 1.0));
    assert!(effects.iter().all(|(_, _, verdict)| *verdict == Significance::NoDifference), "{effects:?}");

    let mut other = raw(&mut Random::new(7), 20, 1.0);
    other.server.variables.insert("innodb_flush_log_at_trx_commit".to_string(), "2".to_string());
    other.spec.warmup = Nanos::from_secs(5);
    let (_, comparison) = verdicts(&other);
    assert_eq!(comparison.workload_differences[0].what, "workload.warmup");
    let changed = "server.variables.innodb_flush_log_at_trx_commit";
    assert!(comparison.condition_differences.iter().any(|d| d.what == changed));
}
