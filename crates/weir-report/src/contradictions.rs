//! Sentences of one report never contradict each other, whatever was seen: records of made-up runs, rendered as text, page
//! and JSON, and read as a reader would.

use std::sync::LazyLock;

use proptest::prelude::*;
use weir_core::result::Record;
use weir_core::stats::random::Random;
use weir_oltp::limits::waits::Wait;
use weir_oltp::limits::{Counters, CpuTimes, DeviceUse, Sessions, SyncUse, TaskTimes, Watched};
use weir_oltp::{Kind, OltpRecord, derive, samples};
use weir_verdict::doctor::PhaseKind;
use weir_verdict::from_record;
use weir_verdict::notes::{StepKind, SyncPath};
use weir_verdict::synthetic::{Behaviour, Lab};

use crate::{html, json, text};

const SECONDS: u64 = 2;
const ELAPSED_NS: u64 = SECONDS * 1_000_000_000;
const SESSIONS: u32 = 4;

/// What every run measured.
static MEASURED: LazyLock<OltpRecord> = LazyLock::new(|| samples::raw(&mut Random::new(1), SECONDS, 1.0));

/// What a made-up run saw; shares are of all processors, counts of transactions.
#[derive(Debug, Clone)]
struct Seen {
    processors: u32,
    server: Option<f64>,
    client: f64,
    others: f64,
    niced: Option<f64>,
    /// The part of all this that the kernel's ticks missed.
    missed: f64,
    /// Syncs a transaction: the kernel's, with the share of the time watched; the server's; the device's flushes, writes.
    kernel: Option<(f64, f64)>,
    counted: Option<f64>,
    device: Option<(f64, f64)>,
    waits: [u64; 4],
    tasks: bool,
    reads_only: bool,
    promise: &'static str,
    file_system: &'static str,
}

/// Counts that make a difference: none, few, some, one for each.
fn count() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..0.01, 0.1..0.5, 0.9..1.2]
}

fn seen() -> impl Strategy<Value = Seen> {
    let share = || prop_oneof![Just(0.0), 0.0..0.4];
    let processors = (
        1..9u32,
        prop::option::weighted(0.8, share()),
        share(),
        share(),
        prop::option::weighted(0.8, share()),
    );
    let syncs = (
        prop::option::of((count(), prop_oneof![Just(1.0), 0.1..1.0])),
        prop::option::of(count()),
        prop::option::of((count(), count())),
    );
    let rest = (
        prop_oneof![Just(0.0), 0.0..0.3],
        prop::array::uniform4(0..100u64),
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop_oneof![3 => Just("1"), 1 => Just("2"), 1 => Just("")],
        prop_oneof![4 => Just("xfs"), 1 => Just("tmpfs"), 1 => Just("overlay")],
    );
    (processors, syncs, rest).prop_map(|(cpu, syncs, rest)| Seen {
        processors: cpu.0,
        server: cpu.1,
        client: cpu.2,
        others: cpu.3,
        niced: cpu.4,
        missed: rest.0,
        kernel: syncs.0,
        counted: syncs.1,
        device: syncs.2,
        waits: rest.1,
        tasks: rest.2,
        reads_only: rest.3,
        promise: rest.4,
        file_system: rest.5,
    })
}

impl Seen {
    fn ns(&self, share: f64) -> u64 {
        (share * f64::from(self.processors) * ELAPSED_NS as f64) as u64
    }

    fn busy(&self) -> f64 {
        let named = self.server.unwrap_or(0.0) + self.client;
        let ticks = (named + self.others) * (1.0 - self.missed) + self.niced.unwrap_or(0.0);
        ticks.max(named).min(1.0)
    }

    fn raw(&self) -> OltpRecord {
        let mut raw = MEASURED.clone();
        if self.reads_only {
            raw.kinds.remove(&Kind::IndexUpdate);
            raw.spec.script = weir_oltp::Script::ReadOnly;
        }
        match self.promise {
            "" => raw.server.variables.clear(),
            value => {
                raw.server.variables.insert("innodb_flush_log_at_trx_commit".into(), value.into());
            }
        }
        let machine_ns =
            self.ns((self.server.unwrap_or(0.0) + self.client + self.others) * (1.0 - self.missed));
        raw.cpu.processors = self.processors;
        raw.cpu.process_user_ns = self.ns(self.client) * 101 / 100;
        raw.cpu.process_system_ns = 0;
        raw.cpu.machine_busy_ns = (machine_ns + self.ns(self.niced.unwrap_or(0.0))) * 99 / 100;
        raw.watched = Some(self.watched(machine_ns, raw.kinds[&Kind::Transaction].latency.count()));
        raw
    }

    fn watched(&self, machine_ns: u64, transactions: u64) -> Watched {
        let of = |each: f64| (each * transactions as f64).round() as u64;
        let a_second = |each: f64| each * transactions as f64 / SECONDS as f64;
        let tasks = |share: f64| {
            let total_ns = ELAPSED_NS * u64::from(SESSIONS);
            let on_ns = self.ns(share).min(total_ns / 2);
            TaskTimes { threads: SESSIONS, on_ns, queued_ns: total_ns / 8, total_ns }
        };
        let waits =
            [Wait::Commit, Wait::Client, Wait::Read, Wait::Lock].into_iter().zip(self.waits).collect();
        Watched {
            elapsed_ns: ELAPSED_NS,
            processors: self.processors,
            client_processors: self.processors,
            server_processors: self.server.map_or(0, |_| self.processors),
            cpu: CpuTimes {
                client_ns: self.ns(self.client),
                server_ns: self.server.map(|share| self.ns(share)),
                machine_ns: Some(machine_ns),
                // Records of an older weir have it in the runner's reading alone.
                niced_ns: self.niced.filter(|_| self.tasks).map(|share| self.ns(share)),
                ..CpuTimes::default()
            },
            client_tasks: self.tasks.then(|| tasks(self.client)),
            session_tasks: self.server.filter(|_| self.tasks).map(tasks),
            sessions: Some(Sessions { looks: 16, waits, ..Sessions::default() }),
            syncs: self.kernel.map(|(each, share)| SyncUse {
                count: of(each * share),
                watched_ns: (share * ELAPSED_NS as f64) as u64,
                mean_ns: 1e6,
                p99_ns: 2_000_000,
                ..SyncUse::default()
            }),
            device: self.device.map(|(flushes, writes)| DeviceUse {
                name: "vda".to_string(),
                flushes_per_second: a_second(flushes),
                writes_per_second: a_second(writes),
                ..DeviceUse::default()
            }),
            counters: self.counted.map(|each| Counters { syncs: Some(of(each)), ..Counters::default() }),
            ..Watched::default()
        }
    }
}

/// A report as one line.
fn flat(report: &str) -> String {
    report.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A page without its tags.
fn words_of(page: &str) -> String {
    let body = page.split("<body").nth(1).unwrap_or_default();
    let words: String =
        body.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| format!("{text} ")).collect();
    flat(&words)
}

/// The word before each place of `mark`.
fn before<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let ends = text.match_indices(mark).map(|(at, _)| at);
    ends.filter_map(|at| text[..at].trim_end().rsplit(' ').next()).collect()
}

fn hundredths(figure: &str) -> i64 {
    (figure.trim_start_matches('(').parse::<f64>().unwrap_or(-1e6) * 100.0).round() as i64
}

/// What all figures of processors in a report come to: each the same, and its parts add up.
fn check_processors(report: &str, processors: u32) -> Result<(), TestCaseError> {
    let mark = format!("of {processors} processors busy");
    let all = before(report, &mark);
    prop_assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?} in {report}");
    for account in report.split(&mark).skip(1).filter_map(|rest| rest.strip_prefix(": ")) {
        let end = account.find(" the rest").unwrap_or(0) + " the rest".len();
        let part = |name: &str| before(&account[..end], name).first().map_or(0, |figure| hundredths(figure));
        let sum = part("the server") + part("the client") + part("the rest");
        prop_assert_eq!(sum, hundredths(all[0]), "{}", report);
        prop_assert!(part("the rest") >= 0, "{report}");
    }
    Ok(())
}

/// Whether what was seen is enough to say that commits are durable: a sync makes one commit of a connection durable.
fn enough_syncs(seen: &Seen) -> bool {
    let enough = |each: f64| 2.0 * each * f64::from(SESSIONS) >= 1.0;
    let by_device =
        seen.counted.is_some_and(enough) && seen.device.is_some_and(|(flushes, _)| enough(flushes));
    match seen.kernel {
        Some((each, _)) => enough(each),
        None => by_device,
    }
}

fn check(seen: &Seen) -> Result<(), TestCaseError> {
    let raw = seen.raw();
    let mut record: Record = samples::record(&raw);
    record.conditions = serde_json::json!({ "target": { "file_system": { "kind": seen.file_system } } });
    let result = derive(&record, &raw);
    let reports = [flat(&text::oltp(&result, &record)), words_of(&html::oltp(&record, &raw))];
    for report in &reports {
        check_processors(report, seen.processors)?;
        if report.contains("commits are durable") {
            prop_assert!(enough_syncs(seen), "{report}");
            prop_assert!(seen.promise == "1" && seen.file_system != "tmpfs" && !seen.reads_only, "{report}");
            let figures = before(report, "syncs a transaction");
            prop_assert!(figures.iter().all(|figure| hundredths(figure) != 0), "{figures:?} in {report}");
            prop_assert!(figures.windows(2).all(|pair| pair[0] == pair[1]), "{figures:?} in {report}");
            prop_assert!(!report.contains("0 syncs and"), "{report}");
        }
        let both = report.contains("limited by read I/O") && report.contains("reads never reach the disk");
        prop_assert!(!both, "{report}");
        if report.contains("any disk will do") {
            let gain = result.verdict.as_ref().and_then(|verdict| verdict.bounds.faster_disk);
            prop_assert!(gain.is_none_or(|ratio| ratio < 1.1), "{gain:?}: {report}");
        }
        if report.contains("limited by the load generator") {
            let others = seen.busy() - seen.server.unwrap_or(0.0) - seen.client;
            prop_assert!(seen.busy() < 0.851 || others < 0.09, "others hold {others}: {report}");
        }
    }
    let json: serde_json::Value =
        serde_json::from_str(&json::oltp(&result).unwrap_or_default()).unwrap_or_default();
    let account = &json["processors"];
    let of = |name: &str| account[name].as_f64().unwrap_or(0.0);
    if reports[0].contains("limited by CPU (server)") {
        prop_assert!(of("rest") <= 0.501 * of("busy"), "{account}: {}", reports[0]);
    }
    prop_assert!((of("server") + of("client") + of("rest") - of("busy")).abs() < 1e-9, "{account}");
    prop_assert!(
        of("rest") >= 0.0 && (of("busy") - json["cpu"]["machine_busy"].as_f64().unwrap_or(-1.0)).abs() < 1e-9,
        "{account}"
    );
    prop_assert_eq!(json["durability"]["state"] == "seen", reports[0].contains("commits are durable"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_report_never_contradicts_itself(seen in seen()) {
        check(&seen)?;
    }
}

/// Whether a report says that nothing is to be done, and whether it names something to do.
fn says_nothing_and_something(report: &str) -> (bool, bool) {
    let any = |words: &[&str]| words.iter().any(|word| report.contains(word));
    let nothing = any(&["Nothing to change", "No setting was found that would help"]);
    (
        nothing,
        any(&["worth a trial", "remount with", "to find the best:", "To consider", "helped in a trial"]),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    /// An examination without root: nothing is tried, and what a faster way to write would bring is found all the same.
    #[test]
    fn an_examination_that_names_something_to_do_does_not_say_nothing(
        (direct, dsync) in (0.5..2.0f64, prop::option::of(0.5..2.0f64)),
        flooded in prop::option::of(0.01..3.0f64),
        many in prop::option::of(1.0..100.0f64),
        usual_us in prop_oneof![50..200u64, 3_000..30_000u64],
        barriers in any::<bool>(),
        (early, fails) in (prop::bool::weighted(0.2), prop::bool::weighted(0.2)),
    ) {
        let mut lab = Lab::new();
        lab.curve(StepKind::ReadDepth, &[(1, 11_000.0), (4, 44_000.0), (16, 160_000.0)]);
        let iops = 1e6 / usual_us as f64;
        let at = |factor: f64| Behaviour {
            iops: iops * factor,
            usual_ns: (usual_us as f64 * 1e3 / factor) as u64,
            slow_ns: (usual_us as f64 * 2e3 / factor) as u64,
        };
        lab.commits(SyncPath::Buffered, 1, &at(1.0));
        lab.commits(SyncPath::Direct, 1, &at(direct));
        if let Some(factor) = dsync {
            lab.commits(SyncPath::DirectDsync, 1, &at(factor));
        }
        if let Some(factor) = many {
            lab.commits(SyncPath::Buffered, 10, &at(factor));
        }
        if let Some(factor) = flooded {
            lab.phase(PhaseKind::Idle, 10, None, &at(1.0));
            lab.phase(PhaseKind::Flood, 10, None, &at(factor));
        }
        let mut record = lab.record(Vec::new());
        if !barriers {
            record.conditions["target"]["file_system"]["options"] = serde_json::json!(["nobarrier"]);
        }
        record.ended_early = early.then(|| "SIGINT".to_string());
        if fails {
            record.jobs[0].error = Some("write: input/output error".to_string());
        }
        let report = from_record(&record).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for text in [flat(&text::doctor(&report)), words_of(&html::doctor(&report))] {
            let (nothing, something) = says_nothing_and_something(&text);
            prop_assert!(!(nothing && (something || early || fails)), "{text}");
            // Ten threads cannot commit 15 times as often as one, nor any beside a flood more than before it.
            let more = many.is_some_and(|factor| factor > 15.5) && text.contains("more connections bring more");
            let remain = flooded.is_some_and(|factor| factor > 1.3) && text.contains("of the commits remain");
            prop_assert!(!more && !remain, "{text}");
        }
        let faster = [Some(direct), dsync].into_iter().flatten().fold(0.0, f64::max);
        if faster > 1.3 && !fails {
            prop_assert!(!report.advice.is_empty() && !report.headline.text.contains("Nothing to change"));
        }
    }
}

/// MariaDB in a chroot whose /dev/shm is a plain folder: it takes its log for persistent memory and never syncs it.
const UNSYNCED: Seen = Seen {
    processors: 2,
    server: Some(0.495),
    client: 0.09,
    others: 0.0,
    niced: Some(0.32),
    missed: 0.0,
    kernel: Some((0.0, 1.0)),
    counted: Some(0.0),
    device: Some((0.0, 0.0)),
    waits: [0, 90, 10, 0],
    tasks: true,
    reads_only: false,
    promise: "1",
    file_system: "xfs",
};

/// A run whose limit was found, for the test of its page.
pub fn limited() -> OltpRecord {
    UNSYNCED.raw()
}

#[test]
fn what_is_not_synced_is_not_durable() -> Result<(), TestCaseError> {
    let seen = UNSYNCED;
    check(&seen)?;
    let raw = seen.raw();
    let result = derive(&samples::record(&raw), &raw);
    let report = flat(&text::oltp(&result, &samples::record(&raw)));
    for part in [
        "durable promised by the server's settings, and not seen: a transaction takes 0.25 syncs at least",
        "warning durability promised by the server's settings, and not seen",
        "1.81 of 2 processors busy: 0.99 the server, 0.18 the client, 0.64 the rest (0.64 of it niced)",
        "limited by other programs: they use 0.64 of 2 processors",
    ] {
        prop_assert!(report.contains(part), "{part}: {report}");
    }
    let synced = Seen { kernel: Some((0.5, 1.0)), ..seen };
    check(&synced)?;
    let raw = synced.raw();
    let result = derive(&samples::record(&raw), &raw);
    prop_assert!(result.durability.sentence.starts_with("commits are durable: 0.50 syncs a transaction"));
    Ok(())
}
