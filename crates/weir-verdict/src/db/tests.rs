//! Findings on servers that were made up.

use std::collections::BTreeMap;

use super::synthetic::*;
use super::*;
use weir_core::target::{CpuLoad, FileSystem, TargetFacts};
use weir_oltp::limits::{OffCpu, Wait};

const POSTGRES: [(&str, &str); 9] = [
    ("checkpoint_completion_target", "0.9"),
    ("checkpoint_timeout", "5min"),
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("max_wal_size", "1GB"),
    ("shared_buffers", "128MB"),
    ("synchronous_commit", "on"),
    ("wal_buffers", "4MB"),
    ("wal_level", "replica"),
];
const CALM_POSTGRES: [(&str, f64); 5] = [
    ("database.xact_commit", 60_000.0),
    ("database.blks_hit", 1e7),
    ("database.blks_read", 10.0),
    ("wal.wal_sync", 30_000.0),
    ("wal.insert_lsn", 6e5),
];

fn set<'a>(base: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    let mut all: BTreeMap<&str, &str> = base.iter().copied().collect();
    all.insert(more.0, more.1);
    all.into_iter().collect()
}

/// Grade of a topic, words of its first sentence, variables advised.
fn check(exam: Examination, topic: &str, grade: Option<Grade>, words: &str, advised: &[&str]) {
    let report = report(exam);
    let finding = report.findings.iter().find(|finding| finding.topic == topic);
    let finding = finding.unwrap_or_else(|| panic!("no {topic} among {:?}", report.findings));
    assert_eq!(finding.grade, grade, "{finding:?}");
    assert!(finding.statements[0].text.contains(words), "{words:?} in {finding:?}");
    let found: Vec<&str> = report.advice.iter().map(|advice| advice.variable.as_str()).collect();
    assert_eq!(found, advised, "{topic}");
}

#[test]
fn a_calm_server_is_in_order() {
    for exam in
        [server(Dialect::MySql, &MARIADB, &CALM), server(Dialect::Postgres, &POSTGRES, &CALM_POSTGRES)]
    {
        let report = report(exam);
        assert_eq!(report.headline.grade, Grade::Good, "{:?}", report.findings);
        assert!(
            report.advice.is_empty() && report.caveats.is_empty(),
            "{:?} {:?}",
            report.advice,
            report.caveats
        );
        assert!(report.headline.text.contains("nothing to change"), "{}", report.headline.text);
        assert_eq!(report.next[0].command, "weir doctor /srv/db");
    }
}

#[test]
fn an_idle_server_is_judged_by_its_settings_alone() {
    let report = report(server(
        Dialect::MySql,
        &MARIADB,
        &[("Questions", 9.0), ("Com_commit", 3.0), ("Innodb_buffer_pool_pages_flushed", 0.0)],
    ));
    assert_eq!(report.headline.grade, Grade::Good);
    assert!(report.caveats[0].contains("asked for 9 statements in 60"), "{:?}", report.caveats);
    assert!(report.findings.iter().all(|finding| finding.topic != "Buffer pool"));
}

#[test]
fn looking_at_a_server_is_not_its_load() {
    for (dialect, variables, counts) in
        [(Dialect::MySql, &MARIADB[..], &CALM[..]), (Dialect::Postgres, &POSTGRES, &CALM_POSTGRES)]
    {
        let mut exam = server(dialect, variables, counts);
        exam.vitals.own_statements = exam.vitals.requests().unwrap() - 7;
        let report = report(exam);
        assert!(report.caveats[0].contains("asked for 7"), "{:?}", report.caveats);
        assert!(report.headline.text.contains("settings are in order"), "{}", report.headline.text);
    }
}

#[test]
fn a_server_without_transactions_of_its_clients_own_is_at_work_all_the_same() {
    let durability = |grew: &[(&str, f64)]| {
        let report = report(server(Dialect::MySql, &MARIADB, &with(&CALM, grew)));
        assert!(report.findings.iter().any(|finding| finding.topic == "Buffer pool"), "{grew:?}");
        let of = report.findings.into_iter().find(|finding| finding.topic == "Durability").unwrap();
        let load = report.facts.into_iter().find(|fact| fact.label == "its load").unwrap().value;
        (of.statements.last().unwrap().text.clone(), load)
    };
    // Who commits explicitly beside many that do not says little of how many transactions there are.
    let (syncs, load) = durability(&[("Com_commit", 300.0), ("Com_update", 29_700.0)]);
    assert!(
        syncs.starts_with("1.00 to 100.00 syncs a transaction") && syncs.contains("does not count"),
        "{syncs}"
    );
    assert!(load.starts_with("5.00 to 500 transactions/s, 4,000 statements/s"), "{load}");
    let (syncs, load) = durability(&[("Com_commit", 0.0), ("Com_insert", 30_000.0)]);
    assert!(syncs.starts_with("1.00 syncs a transaction") && !syncs.contains("does not count"), "{syncs}");
    assert!(load.starts_with("500 transactions/s, "), "{load}");
    // Reads alone.
    let (syncs, _) = durability(&[("Com_commit", 0.0)]);
    assert!(syncs.starts_with("By its settings"), "{syncs}");
}

#[test]
fn a_promise_is_held_against_what_was_counted() {
    let silent = with(&CALM, &[("Innodb_data_fsyncs", 0.0)]);
    let exam = || server(Dialect::MySql, &MARIADB, &silent);
    check(exam(), "Durability", Some(Grade::Poor), "made no sync of it", &[]);
    // Its log's writes are durable by themselves, and no sync is counted for them.
    let durable = set(&MARIADB, ("innodb_flush_method", "O_DSYNC"));
    let exam = server(Dialect::MySql, &durable, &silent);
    check(exam, "Durability", Some(Grade::Good), "By its settings", &[]);
    // Nothing that is not good stands beside a word that all is.
    let lossy = set(&MARIADB, ("innodb_flush_log_at_trx_commit", "2"));
    let report = report(server(Dialect::MySql, &lossy, &CALM));
    assert!(report.headline.text.contains("no variable to advise"), "{}", report.headline.text);
}

#[test]
fn settings_that_lose_commits_are_named_and_never_advised() {
    for (variable, value, grade, words) in [
        ("innodb_flush_log_at_trx_commit", "2", Grade::Fair, "loses up to a second"),
        ("innodb_doublewrite", "OFF", Grade::Poor, "half written"),
        ("innodb_flush_method", "nosync", Grade::Poor, "may destroy"),
    ] {
        let exam = server(Dialect::MySql, &set(&MARIADB, (variable, value)), &CALM);
        check(exam, "Durability", Some(grade), words, &[]);
    }
    let exam = server(Dialect::Postgres, &set(&POSTGRES, ("fsync", "off")), &CALM_POSTGRES);
    check(exam, "Durability", Some(Grade::Poor), "destroy", &[]);
}

#[test]
fn a_log_that_is_too_small_is_found() {
    let busy = with(&CALM, &[("Innodb_os_log_written", 60.0 * 1e6)]);
    let full = small_log();
    let advice = report(full.clone()).advice;
    // 3.6 GB an hour.
    assert_eq!((advice[0].proposed.as_str(), advice[0].restart), ("4294967296", false));
    assert_eq!(advice[0].undo, "SET GLOBAL innodb_log_file_size = 100663296;");
    check(full, "Log", Some(Grade::Poor), "too small", &["innodb_log_file_size"]);
    check(
        server(Dialect::MySql, &MARIADB, &busy),
        "Log",
        Some(Grade::Fair),
        "2 minutes",
        &["innodb_log_file_size"],
    );

    // A log of several files: the variable is the size of one.
    let two = set(&MARIADB, ("innodb_log_files_in_group", "2"));
    let report_of = report(server(Dialect::MySql, &two, &busy));
    assert_eq!(report_of.advice[0].proposed, (2u64 << 30).to_string());
    let of = report_of.findings.iter().find(|finding| finding.topic == "Log").unwrap();
    assert_eq!(of.statements[0].evidence[0].figure, "96 MiB × 2 files", "{of:?}");

    let waits = with(&CALM, &[("Innodb_log_waits", 5.0)]);
    check(
        server(Dialect::MySql, &MARIADB, &waits),
        "Log",
        Some(Grade::Good),
        "large enough",
        &["innodb_log_buffer_size"],
    );
}

/// A larger log leaves space for the old one beside it, and for data.
#[test]
fn a_log_is_advised_that_the_free_space_holds() {
    let free = |mut exam: Examination, free_bytes: u64| {
        let file_system = Some(FileSystem { free_bytes: Some(free_bytes), ..FileSystem::default() });
        exam.conditions.as_mut().unwrap().target =
            Some(TargetFacts { file_system, ..TargetFacts::default() });
        exam
    };
    // 3.6 GB an hour on a file system with 5.62 GiB free.
    let advice = report(free(small_log(), 6_034_400_000)).advice;
    assert_eq!(advice[0].proposed, (2816u64 << 20).to_string());
    assert!(advice[0].why.contains("holds 82 % of it"), "{advice:?}");
    assert!(advice[0].cost.contains("5.62 GiB are free"), "{advice:?}");
    assert_eq!(report(free(small_log(), 1 << 40)).advice[0].proposed, (4u64 << 30).to_string());
    let full = report(free(small_log(), 500 << 20));
    let log = full.findings.iter().find(|finding| finding.topic == "Log").unwrap();
    assert!(
        full.advice.is_empty() && log.statements[1].text.starts_with("No larger log is advised: 500 MiB")
    );
    // On a file system of its own, that of the data does not count.
    let apart = |data: u64, free_bytes: u64| {
        let log = Some(LogPlace { dir: "/wal".to_string(), free_bytes });
        report(Examination { log, ..free(small_log(), data) })
    };
    let advice = apart(500 << 20, 6_034_400_000).advice;
    assert_eq!(advice[0].proposed, (2816u64 << 20).to_string());
    assert!(advice[0].cost.contains("5.62 GiB are free in /wal"), "{advice:?}");
    let full = apart(1 << 40, 500 << 20);
    let log = full.findings.iter().find(|finding| finding.topic == "Log").unwrap();
    assert!(full.advice.is_empty() && log.statements[1].text.contains("500 MiB of free space in /wal would"));
    let grew = [("wal.insert_lsn", 4.0 * 60e6)];
    let postgres = server(Dialect::Postgres, &POSTGRES, &with(&CALM_POSTGRES, &grew));
    assert_eq!(report(free(postgres, 5 << 29)).advice[0].proposed, "1280MB");
}

/// Where no pages are written nobody pays for it.
#[test]
fn a_log_without_page_writes_is_not_said_to_cost_any() {
    let mut exam = small_log();
    exam.vitals.last.0.insert("Innodb_buffer_pool_pages_flushed".to_string(), 3.0);
    check(exam, "Log", Some(Grade::Fair), "The log holds 2 minutes", &["innodb_log_file_size"]);
    let grew = [
        ("wal.insert_lsn", 4.0 * 60e6),
        ("bgwriter.checkpoints_req", 1.0),
        ("bgwriter.buffers_checkpoint", 0.0),
    ];
    let exam = server(Dialect::Postgres, &POSTGRES, &with(&CALM_POSTGRES, &grew));
    check(exam, "Log", Some(Grade::Fair), "after 47 % of checkpoint_timeout", &["max_wal_size"]);
}

/// PostgreSQL's log is too small where it requests checkpoints before their time, whatever their age.
#[test]
fn checkpoints_by_time_are_no_sign_of_a_small_log() {
    for (mb_a_second, requested, grade, words, advised) in [
        // 855 MB in 1.9 times checkpoint_timeout.
        (1.5, 0.0, Grade::Good, "The log of 1 GiB is large enough", &[][..]),
        (1.5, 4.0, Grade::Fair, "4 checkpoints were requested, by the log or by a command; at", &[]),
        (4.0, 0.0, Grade::Fair, "after 47 % of checkpoint_timeout", &["max_wal_size"]),
        (4.0, 1.0, Grade::Poor, "too small for this load: 1 checkpoint was requested", &["max_wal_size"]),
    ] {
        let grew = [("wal.insert_lsn", mb_a_second * 60e6), ("bgwriter.checkpoints_req", requested)];
        let mut exam = server(Dialect::Postgres, &POSTGRES, &with(&CALM_POSTGRES, &grew));
        exam.vitals.checkpoint_age = Some(0.8);
        let apply = report(exam.clone()).advice.first().map(|advice| advice.apply.clone());
        let larger = "ALTER SYSTEM SET max_wal_size = '3GB'; SELECT pg_reload_conf();";
        assert_eq!(apply.is_some_and(|apply| apply == larger), !advised.is_empty());
        check(exam, "Log", Some(grade), words, advised);
    }
}

#[test]
fn a_pool_that_is_too_small_is_found() {
    let misses = with(&CALM, &[("Innodb_buffer_pool_reads", 2e6)]);
    let exam = server(Dialect::MySql, &MARIADB, &misses);
    assert_eq!(report(exam.clone()).advice[0].proposed, (256u64 << 20).to_string());
    check(exam, "Buffer pool", Some(Grade::Poor), "do not fit", &["innodb_buffer_pool_size"]);
    let room = set(&MARIADB, ("innodb_buffer_pool_size_max", "134217728"));
    for (variables, restart) in [(&MARIADB[..], false), (&room, true)] {
        assert_eq!(report(server(Dialect::MySql, variables, &misses)).advice[0].restart, restart);
    }
    let misses = with(&CALM_POSTGRES, &[("database.blks_read", 2e5)]);
    let exam = server(Dialect::Postgres, &POSTGRES, &misses);
    assert!(report(exam.clone()).advice[0].restart);
    check(exam, "Buffer pool", Some(Grade::Fair), "Some reads", &["shared_buffers"]);
}

#[test]
fn flushing_at_its_allowance_is_told_from_flushing_that_has_room() {
    let mut held =
        server(Dialect::MySql, &MARIADB, &with(&CALM, &[("Innodb_buffer_pool_pages_flushed", 60.0 * 199.0)]));
    held.vitals.dirty = Some(0.7);
    assert!(report(held.clone()).next.iter().any(|step| step.command == "weir db io-capacity"));
    check(held, "Flushing", Some(Grade::Fair), "at its allowance", &[]);
    check(
        server(Dialect::MySql, &MARIADB, &CALM),
        "Flushing",
        Some(Grade::Good),
        "would change nothing",
        &[],
    );
    let fsync = server(Dialect::MySql, &set(&MARIADB, ("innodb_flush_method", "fsync")), &CALM);
    check(fsync, "Flushing", Some(Grade::Good), "does not limit", &["innodb_flush_method"]);
    let bursts =
        server(Dialect::Postgres, &set(&POSTGRES, ("checkpoint_completion_target", "0.5")), &CALM_POSTGRES);
    check(bursts, "Flushing", Some(Grade::Fair), "bursts", &["checkpoint_completion_target"]);
}

#[test]
fn waits_have_shares_and_locks_a_grade() {
    for (waits, grade, words) in [
        (&[(Wait::Lock, 60), (Wait::Cpu, 40)][..], Some(Grade::Poor), "each other's rows (60 %"),
        (
            &[(Wait::Commit, 70), (Wait::Cpu, 30)],
            None,
            "commit 70 %, processor, reads or latches, not distinguished 30 %",
        ),
    ] {
        let mut exam = server(Dialect::MySql, &MARIADB, &CALM);
        exam.vitals.sessions.waits = waits.iter().copied().collect();
        check(exam, "Waits", grade, words, &[]);
    }
}

/// Where processors are used up, sessions that were woken wait for one.
#[test]
fn waits_beside_busy_processors_do_not_blame_the_storage() {
    for (busy_percent, threads, says, silent) in [
        (20.0, &[][..], "the cost of a sync on the storage decides", "Processors were"),
        (97.0, &[], "Processors were 97 % busy: a session that was woken", "decides"),
        (
            97.0,
            &[(OffCpu::Futex, 70), (OffCpu::Runs, 30)],
            "as well as for the storage",
            "a session that was woken",
        ),
    ] {
        let mut exam = server(Dialect::MySql, &MARIADB, &CALM);
        exam.vitals.sessions.waits = [(Wait::Commit, 70), (Wait::Cpu, 30)].into();
        exam.vitals.sessions.off_cpu = threads.iter().copied().collect();
        exam.load = Some(Load { cpu: CpuLoad { busy_percent, ..CpuLoad::default() }, ..Load::default() });
        let waits = report(exam).findings.into_iter().find(|finding| finding.topic == "Waits").unwrap();
        let said: Vec<&str> = waits.statements.iter().map(|statement| statement.text.as_str()).collect();
        let said = said.join(" ");
        assert!(said.contains(says) && !said.contains(silent), "{busy_percent}: {said}");
    }
}
