//! What is concluded of made-up runs.

use super::*;
use crate::limits::{Counters, CpuTimes, DeviceUse, NOT_COUNTED, SyncUse};
use crate::{Kind, Script, samples};
use weir_core::stats::random::Random;

/// A run of two seconds and four connections, and how many transactions it made.
fn run() -> (OltpRecord, u64) {
    let mut raw = samples::raw(&mut Random::new(1), 2, 1.0);
    raw.watched = Some(Watched {
        elapsed_ns: raw.elapsed_ns,
        processors: 2,
        cpu: CpuTimes { server_ns: Some(1), ..CpuTimes::default() },
        ..Watched::default()
    });
    let transactions = raw.kinds[&Kind::Transaction].latency.count();
    (raw, transactions)
}

fn conclude_of(raw: &OltpRecord, file_system: &str) -> Durability {
    let mut record = samples::record(raw);
    record.conditions = serde_json::json!({ "target": { "file_system": { "kind": file_system } } });
    Durability::of(&record, raw)
}

#[track_caller]
fn check(change: impl Fn(&mut OltpRecord, &mut Watched, f64), state: State, words: &str) -> Durability {
    let (mut raw, transactions) = run();
    let mut watched = raw.watched.take().unwrap();
    change(&mut raw, &mut watched, transactions as f64);
    raw.watched = Some(watched);
    let found = conclude_of(&raw, "xfs");
    assert_eq!(found.state, state, "{found:?}");
    assert!(found.sentence.contains(words), "{words}: {found:?}");
    assert_eq!(found.check.is_empty(), state != State::NotSeen, "{found:?}");
    found
}

fn kernel(count: f64) -> Option<SyncUse> {
    Some(SyncUse { count: count as u64, mean_ns: 1e6, ..SyncUse::default() })
}

fn server(count: f64) -> Option<Counters> {
    Some(Counters { syncs: Some(count as u64), ..Counters::default() })
}

fn device(flushes: f64, writes: f64) -> Option<DeviceUse> {
    let name = "vda".to_string();
    Some(DeviceUse {
        name,
        flushes_per_second: flushes / 2.0,
        writes_per_second: writes / 2.0,
        ..DeviceUse::default()
    })
}

#[test]
fn the_kernels_count_settles_it() {
    check(|_, w, n| w.syncs = kernel(n), State::Seen, "commits are durable: 1.00 syncs a transaction");
    // Four connections share a sync; a quarter each is as few as there can be, and what the edges take is allowed for.
    check(|_, w, n| w.syncs = kernel(0.25 * n), State::Seen, "0.25 syncs");
    check(|_, w, n| w.syncs = kernel(0.13 * n), State::Seen, "0.13 syncs");
    check(
        |_, w, n| w.syncs = kernel(0.1 * n),
        State::NotSeen,
        "takes 0.25 syncs at least, and the kernel saw 0.10",
    );
    check(|_, w, _| w.syncs = kernel(0.0), State::NotSeen, "the kernel saw 0 syncs");
    // Watched for a tenth of the time.
    let tenth = |share: f64| {
        move |_: &mut OltpRecord, w: &mut Watched, n: f64| {
            let syncs = kernel(share * n / 10.0).unwrap();
            w.syncs = Some(SyncUse { watched_ns: w.elapsed_ns / 10, ..syncs });
        }
    };
    check(tenth(1.0), State::Seen, "1.00 syncs");
    check(tenth(0.0), State::NotSeen, "saw 0 syncs");
    // Lost to the programs is not missing.
    check(|_, w, n| w.syncs = Some(SyncUse { lost: n as u64, ..SyncUse::default() }), State::Seen, "durable");
}

#[test]
fn a_library_that_drops_syncs_is_found_by_two_counts() {
    let found = check(
        |_, w, n| (w.syncs, w.counters, w.device) = (kernel(0.0), server(n), device(n, n)),
        State::NotSeen,
        "though the server counts 1.00",
    );
    assert!(
        found.check.starts_with("whether something between the server and the kernel drops its syncs"),
        "{found:?}"
    );
}

#[test]
fn a_log_that_nobody_syncs_is_looked_for_first() {
    let found = check(
        |_, w, n| (w.syncs, w.counters) = (kernel(0.001 * n), server(0.001 * n)),
        State::NotSeen,
        "saw under 0.01 syncs of the server for each",
    );
    assert!(
        found.check.starts_with("where its log lies") && found.sentence.ends_with("for each"),
        "{found:?}"
    );
}

#[test]
fn without_the_kernels_count_nothing_is_proven_by_the_server_alone() {
    check(
        |_, w, n| w.counters = server(n),
        State::BySettings,
        "not watched (no program in the kernel counted them)",
    );
    check(
        |_, w, n| (w.counters, w.device) = (server(n), device(n, n)),
        State::Seen,
        "and as many flushes of vda",
    );
    // A device that needs no flush, or one that others write to.
    check(|_, w, n| (w.counters, w.device) = (server(n), device(0.0, n)), State::BySettings, "alone");
    check(|_, w, n| w.device = device(n, n), State::BySettings, "alone");
    // What the server itself does not ask for it does not get, unless its writes are durable by themselves.
    check(|_, w, _| w.counters = server(0.0), State::NotSeen, "the server itself counts 0 syncs");
    check(
        |raw, w, _| {
            raw.server.variables.insert("innodb_flush_method".into(), "O_DSYNC".into());
            w.counters = server(0.0);
        },
        State::BySettings,
        "alone",
    );
    check(|_, w, _| w.device = device(0.0, 0.0), State::NotSeen, "the device of the data took 0 writes");
    check(|_, w, n| (w.counters, w.device) = (server(n), device(0.0, 0.0)), State::BySettings, "alone");
    let why = "not allowed: CAP_BPF";
    check(|_, w, _| w.unseen.push(format!("{NOT_COUNTED}{why}")), State::BySettings, why);
    check(|_, w, _| w.cpu.server_ns = None, State::BySettings, "not found on this machine");
}

#[test]
fn some_runs_have_sentences_of_their_own() {
    check(|raw, _, _| drop(raw.kinds.remove(&Kind::IndexUpdate)), State::NoCommits, "committed no changes");
    check(|raw, _, _| raw.server.variables.clear(), State::Unknown, "not known");
    let off = |raw: &mut OltpRecord, w: &mut Watched, n: f64| {
        raw.server.variables.insert("innodb_flush_log_at_trx_commit".into(), "2".into());
        w.syncs = kernel(n);
    };
    check(off, State::NotPromised, "= 2 loses");
    let (raw, _) = run();
    assert_eq!(conclude_of(&raw, "tmpfs").state, State::InMemory);
    // Few commits tell nothing.
    let few = |raw: &mut OltpRecord, w: &mut Watched, _: f64| {
        for kind in raw.kinds.values_mut() {
            kind.latency = weir_core::stats::Histogram::new();
            (0..20).for_each(|_| kind.latency.record(1000));
        }
        w.syncs = kernel(0.0);
    };
    check(few, State::BySettings, "too few commits to tell");
    // A script's transactions need not all write.
    let script = |syncs: f64| {
        move |raw: &mut OltpRecord, w: &mut Watched, n: f64| {
            raw.script_path = Some("mine.lua".to_string());
            w.syncs = kernel(syncs * n);
        }
    };
    check(script(0.01), State::BySettings, "do not settle it");
    check(script(0.0), State::NotSeen, "saw 0 syncs");
    let bulk = |raw: &mut OltpRecord, w: &mut Watched, n: f64| {
        raw.spec.script = Script::BulkInsert;
        w.syncs = kernel(0.01 * n);
    };
    check(bulk, State::BySettings, "do not settle it");
    // An overlay's files are synced by way of others, which nobody counts.
    let (mut raw, _) = run();
    raw.watched.as_mut().unwrap().syncs = kernel(0.0);
    assert_eq!(conclude_of(&raw, "overlay").state, State::BySettings);
}

/// Connections spread over two servers, of which the first was watched.
fn over_two(raw: &mut OltpRecord, watched: &mut Watched, transactions: f64, second: &[(&str, &str)]) {
    raw.server.places = ["db1:3306", "db2:3306"].map(String::from).to_vec();
    let second = second.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    raw.server.others = [("db2:3306".to_string(), second)].into();
    let half = transactions / 2.0;
    (watched.syncs, watched.counters, watched.device) = (kernel(half), server(half), device(half, half));
}

#[test]
fn of_several_servers_the_worst_promise_counts() {
    let relaxed = "db2:3306: innodb_flush_log_at_trx_commit = 2 loses";
    let first = "not watched (of several servers only the first was watched, db1:3306)";
    for (second, state, words) in [
        (&[("innodb_flush_log_at_trx_commit", "1")][..], State::BySettings, first),
        (&[("innodb_flush_log_at_trx_commit", "2")], State::NotPromised, relaxed),
        (&[], State::Unknown, "not known"),
    ] {
        check(|raw, w, n| over_two(raw, w, n, second), state, words);
    }
}

#[test]
fn counts_of_one_server_are_not_set_against_the_transactions_of_all() {
    let (mut raw, transactions) = run();
    let mut watched = raw.watched.take().unwrap();
    over_two(&mut raw, &mut watched, transactions as f64, &[("innodb_flush_log_at_trx_commit", "2")]);
    raw.watched = Some(watched);
    let differences = raw.server.differences();
    assert_eq!(
        differences,
        ["db2:3306: innodb_buffer_pool_size absent, innodb_flush_log_at_trx_commit 2, log_bin absent"]
    );
    let verdict = crate::derive::derive(&samples::record(&raw), &raw).verdict.unwrap();
    let said = verdict.evidence.join("; ");
    assert!(!said.contains("syncs a transaction") && !said.contains("the server"), "{said}");
    assert!(verdict.unseen.iter().any(|unseen| unseen.contains("its sessions stand for all")), "{verdict:?}");
}

#[test]
fn syncs_faster_than_flash_are_questioned() {
    let (mut raw, transactions) = run();
    let syncs = SyncUse { count: transactions, mean_ns: 12_000.0, ..SyncUse::default() };
    raw.watched.as_mut().unwrap().syncs = Some(syncs);
    let found = conclude_of(&raw, "xfs");
    assert!(found.state == State::Seen && found.check.contains("hypervisor"), "{found:?}");
}

#[test]
fn memory_is_no_disk() {
    let on = |kind: &str| serde_json::json!({ "target": { "file_system": { "kind": kind } } });
    assert_eq!(memory_file_system(&on("tmpfs")), Some("tmpfs"));
    assert_eq!(memory_file_system(&on("xfs")), None);
    assert_eq!(memory_file_system(&Value::Null), None);
}
