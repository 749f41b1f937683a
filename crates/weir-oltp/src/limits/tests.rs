//! The fingerprints of constructed bottlenecks, as they were measured, and what must be said of them.

use super::diagnosis::{Confidence, Diagnosis, Limit};
use super::synthetic::{ELAPSED_NS, Scene, disk, memory};
use super::waits::Wait;
use super::watched::{Counters, Watched};
use super::{Change, Evidence, Part, held, judge};
use weir_core::result::run_result::LATE_SHARE_MAX;
use weir_core::stats::bootstrap::RatioInterval;

#[track_caller]
fn check(name: &str, evidence: &Evidence, limit: Limit) -> Diagnosis {
    let verdict = judge(evidence);
    assert_eq!(verdict.limit, limit, "{name}: {verdict:#?}");
    let sum: f64 = verdict.profile.parts.iter().map(|(_, share)| share).sum();
    assert!(verdict.profile.parts.is_empty() || (sum - 1.0).abs() < 1e-9, "{name}: shares add up to {sum}");
    verdict
}

/// Two processors, MariaDB 10.11 and PostgreSQL 15, sysbench's read_write: threads on a processor, waiting for one, and
/// off; what the server said; idle processors.
#[test]
fn measured_bottlenecks_are_named() {
    let cases = [
        (
            "RAM disk, 4 threads",
            Scene {
                rate: 2900,
                server: (0.36, 0.57),
                client: (0.07, 0.0),
                waits: &[(Wait::Client, 0.07)],
                idle: 0.03,
                device: memory(),
                ..Scene::default()
            },
            Limit::ServerCpu,
        ),
        (
            "each fsync 5 ms longer, 4 threads",
            Scene {
                rate: 375,
                server: (0.08, 0.05),
                waits: &[(Wait::Commit, 0.82), (Wait::Client, 0.05)],
                idle: 1.56,
                syncs: 0.5,
                ..Scene::default()
            },
            Limit::CommitLatency,
        ),
        (
            "the same, flush at commit off",
            Scene {
                rate: 1817,
                server: (0.34, 0.57),
                client: (0.09, 0.0),
                waits: &[(Wait::Client, 0.09)],
                idle: 0.18,
                ..Scene::default()
            },
            Limit::ServerCpu,
        ),
        (
            "each fsync 5 ms longer, 16 threads: groups commit",
            Scene {
                sessions: 16,
                rate: 1221,
                server: (0.06, 0.30),
                client: (0.02, 0.02),
                waits: &[(Wait::Commit, 0.54), (Wait::Client, 0.05)],
                idle: 0.62,
                syncs: 0.14,
                ..Scene::default()
            },
            Limit::CommitLatency,
        ),
        (
            "one row, PostgreSQL",
            Scene {
                sessions: 8,
                rate: 190,
                server: (0.01, 0.01),
                client: (0.01, 0.0),
                waits: &[(Wait::Lock, 0.85), (Wait::Commit, 0.12)],
                roots: &[(Wait::Commit, 0.9), (Wait::Cpu, 0.1)],
                idle: 1.89,
                syncs: 1.0,
                ..Scene::default()
            },
            Limit::Locks,
        ),
        (
            "buffer pool of 16 MB on a throttled device",
            Scene {
                rate: 3000,
                server: (0.08, 0.05),
                waits: &[(Wait::Read, 0.8), (Wait::Client, 0.06)],
                idle: 1.2,
                device: disk(1500.0, 0.0, 0.99),
                ..Scene::default()
            },
            Limit::ReadIo,
        ),
        (
            // Most of the time goes for the processor work of reading, not for the device: pages from a larger pool
            // would save it, a faster device would not.
            "buffer pool of 16 MB on a fast device",
            Scene {
                rate: 30_000,
                server: (0.16, 0.65),
                waits: &[(Wait::Read, 0.16), (Wait::Client, 0.03)],
                idle: 0.09,
                device: disk(18_000.0, 0.0, 0.59),
                ..Scene::default()
            },
            Limit::ServerCpu,
        ),
        (
            "a client that shares one processor with a spinning program",
            Scene {
                rate: 900,
                server: (0.1, 0.02),
                client: (0.15, 0.68),
                waits: &[(Wait::Client, 0.88)],
                idle: 0.5,
                device: memory(),
                ..Scene::default()
            },
            Limit::LoadGenerator,
        ),
        (
            "a client whose own work is most of it",
            Scene {
                sessions: 2,
                rate: 400,
                server: (0.1, 0.03),
                client: (0.55, 0.1),
                waits: &[(Wait::Client, 0.87)],
                idle: 0.7,
                device: memory(),
                ..Scene::default()
            },
            Limit::ClientCpu,
        ),
        (
            "one connection on a RAM disk",
            Scene {
                sessions: 1,
                rate: 539,
                // An idle processor takes its time to wake up, which the scheduler counts as waiting for it.
                server: (0.3, 0.3),
                client: (0.2, 0.1),
                waits: &[(Wait::Client, 0.4)],
                idle: 1.3,
                device: memory(),
                ..Scene::default()
            },
            Limit::LoadGenerator,
        ),
    ];
    for (name, scene, limit) in cases {
        check(name, &scene.evidence(), limit);
    }
}

/// One connection uses one processor at most. Where others leave it that and some besides, more connections would help;
/// where they leave none, it is they that limit it, or it waits for its turn.
#[test]
fn processors_that_others_keep_busy_limit_only_who_could_use_more() {
    let scene =
        Scene { sessions: 1, server: (0.5, 0.2), client: (0.3, 0.0), device: memory(), ..Scene::default() };
    for (others, limit) in [
        (0.0, Limit::LoadGenerator),
        (0.7, Limit::LoadGenerator),
        (0.95, Limit::OtherPrograms),
        (1.2, Limit::OtherPrograms),
    ] {
        let mut evidence = scene.evidence();
        let ns = |processors: f64| (processors * ELAPSED_NS as f64) as u64;
        evidence.watched.cpu.server_ns = Some(ns(0.5));
        evidence.watched.cpu.machine_ns = Some(ns(0.8 + others));
        check(&format!("others on {others} processors"), &evidence, limit);
    }
}

/// What a session waits for a processor that others hold is theirs, and what it runs is its work.
#[test]
fn a_queue_belongs_to_those_who_hold_the_processors() {
    let commit: &[(Wait, f64)] = &[(Wait::Commit, 0.4), (Wait::Client, 0.3)];
    let scene =
        Scene { sessions: 1, server: (0.24, 0.2), client: (0.07, 0.1), waits: commit, ..Scene::default() };
    let ns = |processors: f64| (processors * ELAPSED_NS as f64) as u64;
    let with = |scene: &Scene, server: f64, machine: f64| {
        let mut evidence = scene.evidence();
        evidence.watched.cpu.server_ns = Some(ns(server));
        evidence.watched.cpu.machine_ns = Some(ns(machine));
        evidence
    };
    // MariaDB, one connection, beside programs on 1.69 of 2 processors.
    let verdict = check("commits beside others", &with(&scene, 0.24, 2.0), Limit::CommitLatency);
    assert!(verdict.confidence < Confidence::High, "{verdict:#?}");
    let share = |limit| verdict.candidates.iter().find(|c| c.limit == limit).map_or(0.0, |c| c.share);
    assert!(share(Limit::OtherPrograms) > 0.2 && share(Limit::ServerCpu) < 0.1, "{:?}", verdict.candidates);
    // Eight, which do little but wait for their turn.
    let queue =
        Scene { sessions: 8, server: (0.1, 0.7), client: (0.02, 0.03), waits: &[], ..Scene::default() };
    let verdict = check("others hold most", &with(&queue, 0.4, 2.0), Limit::OtherPrograms);
    let words = "they use 1.44 of 2 processors, and 73 % of the time waits for a processor";
    assert!(verdict.headline.contains(words), "{}", verdict.headline);
    let verdict = check("others hold some", &with(&queue, 1.6, 2.0), Limit::ServerCpu);
    assert_eq!(verdict.confidence, Confidence::High, "{verdict:#?}");
    assert!(verdict.headline.contains("a processor behind other sessions"), "{}", verdict.headline);
    // MariaDB, eight connections, beside compilers at `nice`.
    let niced = Scene {
        sessions: 8,
        server: (0.09, 0.41),
        client: (0.05, 0.25),
        waits: &[(Wait::Commit, 0.17), (Wait::Client, 0.33)],
        ..Scene::default()
    };
    let mut evidence = with(&niced, 0.8, 1.24);
    evidence.watched.cpu.niced_ns = Some(ns(0.76));
    check("others are niced", &evidence, Limit::OtherPrograms);
}

/// A verdict is no surer than its bounds and its tests allow.
#[test]
fn what_speaks_against_a_verdict_lowers_its_confidence() {
    let scene = Scene {
        sessions: 3,
        server: (0.55, 0.1),
        client: (0.08, 0.0),
        waits: &[(Wait::Commit, 0.05), (Wait::Client, 0.3)],
        idle: 0.11,
        syncs: 1.0,
        ..Scene::default()
    };
    let verdict = check("storage bounds more", &scene.evidence(), Limit::ServerCpu);
    let bounds = verdict.bounds;
    assert!(bounds.faster_disk.unwrap() > bounds.more_cpu.unwrap(), "{bounds:?}");
    assert_eq!(verdict.confidence, Confidence::Medium);
    let scene = Scene { waits: &[(Wait::Client, 0.35)], device: memory(), ..scene };
    let mut evidence = scene.evidence();
    let verdict = check("processors bound more", &evidence, Limit::ServerCpu);
    assert_eq!(verdict.confidence, Confidence::High);
    for (ratio, confidence) in [(0.5, Confidence::High), (1.0, Confidence::Low)] {
        let ratio = RatioInterval { ratio, low: 0.99 * ratio, high: 1.01 * ratio };
        evidence.watched.tested = vec![held(Change::HalfProcessors, 5, Some(ratio), &verdict)];
        let found = judge(&evidence);
        assert_eq!(found.confidence, confidence, "{found:#?}");
        assert_eq!(
            found.headline.contains("what was tried speaks against it"),
            confidence == Confidence::Low
        );
    }
    // A record of a version that named another limit.
    evidence.watched.tested[0].confirms = Some(true);
    assert_eq!(judge(&evidence).tested[0].confirms, Some(false));
}

/// PostgreSQL 18 with a client on one processor, behind two programs that spin there, while the server used up to all of the
/// other: whether the machine had a little time left or not changes nothing for the client.
#[test]
fn a_client_confined_among_others_is_the_load_generator() {
    for server in [0.12, 0.2, 0.24] {
        let scene = Scene {
            server: (server, 0.02),
            client: (0.03, 0.65),
            waits: &[(Wait::Client, 0.74)],
            device: memory(),
            ..Scene::default()
        };
        let mut evidence = scene.evidence();
        let ns = |processors: f64| (processors * ELAPSED_NS as f64) as u64;
        evidence.watched.cpu.server_ns = Some(ns(4.0 * server));
        evidence.watched.cpu.machine_ns = Some(ns(4.0 * server + 1.0));
        evidence.watched.client_processors = 1;
        let verdict = check("confined", &evidence, Limit::LoadGenerator);
        assert!(verdict.headline.contains("does not get to run"), "{}", verdict.headline);
        // Free to go anywhere, it is kept from running by those that leave no processor idle.
        evidence.watched.client_processors = 2;
        evidence.watched.cpu.machine_ns = Some(ns(2.0));
        check("free", &evidence, Limit::OtherPrograms);
    }
}

/// MariaDB with four connections on two processors, beside a compiler at `nice`: what gives way keeps processors busy all
/// the same.
#[test]
fn niced_programs_are_others_too() {
    let scene = Scene { server: (0.25, 0.1), client: (0.05, 0.0), idle: 0.8, ..Scene::default() };
    let mut evidence = scene.evidence();
    check("alone", &evidence, Limit::LoadGenerator);
    evidence.watched.cpu.niced_ns = Some(ELAPSED_NS / 10 * 7);
    let verdict = check("beside niced programs", &evidence, Limit::OtherPrograms);
    let account =
        "1.90 of 2 processors busy: 1.00 the server, 0.20 the client, 0.70 the rest (0.70 of it niced)";
    assert!(verdict.evidence[0].starts_with(account), "{:?}", verdict.evidence);
    assert!(verdict.headline.contains("they use 0.70 of 2 processors"), "{}", verdict.headline);
    // Two connections that keep both processors busy between them do not need more connections.
    let full = Scene { sessions: 2, server: (0.6, 0.0), client: (0.35, 0.0), idle: 0.1, ..Scene::default() };
    check("nothing left, and nobody else", &full.evidence(), Limit::ServerCpu);
}

#[test]
fn a_queue_for_a_row_says_what_it_is_rooted_in() {
    let scene = Scene {
        sessions: 8,
        rate: 190,
        server: (0.01, 0.01),
        waits: &[(Wait::Lock, 0.85), (Wait::Commit, 0.12)],
        roots: &[(Wait::Commit, 0.9), (Wait::Cpu, 0.1)],
        syncs: 1.0,
        ..Scene::default()
    };
    let verdict = check("one row", &scene.evidence(), Limit::Locks);
    let chain = verdict.chain.unwrap();
    assert!(chain.contains("rooted in slow commits"), "{chain}");
    // A session that waits for a row behind a commit waits for storage.
    assert!(verdict.bounds.storage_share.unwrap() > 0.8, "{:?}", verdict.bounds);
    let free = Scene { roots: &[(Wait::Client, 1.0)], ..scene };
    let verdict = check("a slow client holds it", &free.evidence(), Limit::Locks);
    assert!(verdict.chain.unwrap().contains("client's next statement"));
    assert!(verdict.bounds.storage_share.unwrap() < 0.2, "{:?}", verdict.bounds);
}

/// The RAM disk won by 21 % (MariaDB, 8 threads) and 45 % (PostgreSQL) at saturated processors, and by 390 % with each
/// fsync 5 ms longer: a bound holds these, and gives nothing where no disk takes part.
#[test]
fn bounds_hold_what_was_measured() {
    let cases = [
        (
            "MariaDB, disk, 8 threads",
            Scene {
                sessions: 8,
                rate: 1735,
                server: (0.17, 0.5),
                client: (0.07, 0.02),
                waits: &[(Wait::Commit, 0.2), (Wait::Client, 0.1)],
                idle: 0.08,
                syncs: 0.69,
                ..Scene::default()
            },
            1.21,
        ),
        (
            "PostgreSQL, disk, 8 threads",
            Scene {
                sessions: 8,
                rate: 1885,
                server: (0.17, 0.5),
                client: (0.05, 0.02),
                waits: &[(Wait::Commit, 0.2), (Wait::Client, 0.1)],
                idle: 0.04,
                syncs: 0.85,
                ..Scene::default()
            },
            1.45,
        ),
        (
            "each fsync 5 ms longer",
            Scene {
                rate: 375,
                server: (0.08, 0.05),
                client: (0.02, 0.0),
                waits: &[(Wait::Commit, 0.85)],
                idle: 1.56,
                syncs: 0.5,
                ..Scene::default()
            },
            1817.0 / 375.0,
        ),
    ];
    for (name, scene, measured) in cases {
        let bound = judge(&scene.evidence()).bounds.faster_disk.unwrap();
        assert!((measured..3.0 * measured).contains(&bound), "{name}: measured {measured}, bound {bound}");
    }
    let ram = Scene { server: (0.36, 0.57), waits: &[], idle: 0.03, device: memory(), ..Scene::default() };
    assert_eq!(judge(&ram.evidence()).bounds.faster_disk, Some(1.0));
    // MariaDB beside other programs: 29 % of the time slept for the log, but COMMIT took 54 % of a transaction, since who
    // has slept waits for a processor afterwards. Without the flush it did 2.49 times as much (2.05 to 3.0).
    let crowded = Scene {
        sessions: 8,
        rate: 360,
        server: (0.06, 0.27),
        client: (0.02, 0.32),
        waits: &[(Wait::Commit, 0.29), (Wait::Client, 0.36)],
        idle: 0.94,
        syncs: 0.58,
        ..Scene::default()
    };
    let mut evidence = crowded.evidence();
    evidence.load.statements = 20 * evidence.load.transactions;
    let asleep = judge(&evidence).bounds.faster_disk.unwrap();
    evidence.load.commit_ns = evidence.load.transaction_ns / 100 * 54;
    let by_clock = judge(&evidence).bounds.faster_disk.unwrap();
    assert!(asleep < by_clock && by_clock > 2.05, "{asleep} {by_clock}");
}

/// PostgreSQL with `synchronous_standby_names`: the disk is idle while commits wait.
#[test]
fn a_standby_is_not_blamed_on_the_disk() {
    let scene = Scene {
        rate: 375,
        server: (0.08, 0.05),
        client: (0.02, 0.0),
        waits: &[(Wait::Replica, 0.85)],
        idle: 1.56,
        syncs: 0.5,
        ..Scene::default()
    };
    let mut evidence = scene.evidence();
    evidence.load.statements = 20 * evidence.load.transactions;
    evidence.load.commit_ns = evidence.load.transaction_ns / 100 * 88;
    let verdict = check("standby", &evidence, Limit::Replicas);
    assert!(
        verdict.headline.contains("standby") && !verdict.headline.contains("vda"),
        "{}",
        verdict.headline
    );
    assert!(verdict.bounds.faster_disk.unwrap() < 1.05, "{:?}", verdict.bounds);
    assert_eq!(verdict.confidence, Confidence::High);
    // Who waits for a row behind such a commit waits for the replica, too.
    let queue = Scene { waits: &[(Wait::Lock, 0.85)], roots: &[(Wait::Replica, 1.0)], ..scene };
    let verdict = check("one row", &queue.evidence(), Limit::Locks);
    assert!(verdict.chain.unwrap().contains("replica"));
    assert!(verdict.bounds.faster_disk.unwrap() < 1.05, "{:?}", verdict.bounds);
}

#[test]
fn an_open_loop_that_keeps_up_is_limited_by_nothing() {
    let mut evidence = Scene::default().evidence();
    evidence.load.busy_ns /= 4;
    evidence.load.asked_per_second = Some(1000.0);
    let verdict = check("satisfied", &evidence, Limit::Nothing);
    assert!((verdict.profile.paused - 0.75).abs() < 1e-9, "{}", verdict.profile.paused);
    // From here on the result warns that the schedule was not kept.
    evidence.load.late = 1.5 * LATE_SHARE_MAX;
    assert_ne!(judge(&evidence).limit, Limit::Nothing);
    evidence.load.late = 0.0;
    evidence.load.asked_per_second = Some(5000.0);
    evidence.load.busy_ns *= 4;
    check("asked for more than its connections can", &evidence, Limit::LoadGenerator);
}

#[test]
fn write_back_is_told_from_commits_by_what_the_device_writes() {
    let scene = Scene {
        server: (0.05, 0.02),
        waits: &[(Wait::Commit, 0.6), (Wait::Latch, 0.2), (Wait::Client, 0.1)],
        device: disk(0.0, 1490.0, 0.98),
        syncs: 0.5,
        ..Scene::default()
    };
    let mut evidence = scene.evidence();
    let counters = Counters {
        page_writes: Some(13_000),
        log_full: Some(0.9),
        syncs: Some(5000),
        log_bytes: Some(20_000_000),
        ..Counters::default()
    };
    evidence.watched.counters = Some(counters);
    check("small log", &evidence, Limit::WriteBack);
    evidence.watched.counters = Some(Counters { log_full: Some(0.1), ..counters });
    check("large log", &evidence, Limit::CommitLatency);
    evidence.watched.counters = Some(Counters { page_writes: Some(200), ..counters });
    check("hardly any pages", &evidence, Limit::CommitLatency);
    // PostgreSQL lets nobody wait for a checkpoint; it has the device write the same pages twice.
    let postgres = Counters { log_full: None, forced_checkpoints: Some(3), ..counters };
    evidence.watched.counters = Some(postgres);
    check("checkpoints every few seconds", &evidence, Limit::WriteBack);
    evidence.watched.counters = Some(Counters { forced_checkpoints: Some(0), ..postgres });
    check("no checkpoint is forced", &evidence, Limit::CommitLatency);
    evidence.watched.device.as_mut().unwrap().write_bytes_per_second = 3e6;
    let images = Counters { page_writes: Some(3000), log_page_images: Some(2000), ..postgres };
    evidence.watched.counters = Some(images);
    check("images of pages fill the log", &evidence, Limit::WriteBack);
    evidence.watched.counters = Some(Counters { log_page_images: Some(100), ..images });
    check("hardly any images", &evidence, Limit::CommitLatency);
}

/// MariaDB 10.11 with a log of 4 MB on a device throttled above its queue, which is therefore hardly in use.
#[test]
fn a_full_log_holds_up_writers_whatever_the_device_looks_like() {
    let scene = Scene {
        sessions: 16,
        rate: 1400,
        server: (0.05, 0.2),
        waits: &[(Wait::Latch, 0.7)],
        idle: 1.2,
        device: disk(0.0, 656.0, 0.1),
        ..Scene::default()
    };
    let mut evidence = scene.evidence();
    let counters = Counters {
        page_writes: Some(7849),
        checkpoint_age: Some(1.0),
        log_full: Some(1.0),
        ..Counters::default()
    };
    evidence.watched.counters = Some(counters);
    let verdict = check("a log of 4 MB", &evidence, Limit::WriteBack);
    assert!(
        verdict.evidence[0].contains("the log was full in 100 % of the samples"),
        "{:?}",
        verdict.evidence
    );
    assert!(verdict.traps.iter().all(|trap| trap.key != "never-touches-the-disk"), "{:?}", verdict.traps);
    // A session that is woken and finds no space in the log waits for a processor before it sleeps again.
    let tasks = evidence.watched.session_tasks.as_mut().unwrap();
    tasks.queued_ns = tasks.total_ns / 100 * 85;
    let woken = check("woken in vain", &evidence, Limit::WriteBack);
    assert!(woken.share > 0.85, "{woken:?}");
    let tasks = evidence.watched.session_tasks.as_mut().unwrap();
    tasks.queued_ns = tasks.total_ns / 5;
    // One look of ten is no state.
    evidence.watched.counters = Some(Counters { log_full: Some(0.1), ..counters });
    check("a log that was full once", &evidence, Limit::Latches);
    // What waits in half of the time waits for room: that, and what is seen to wait for it, is more than the rest.
    evidence.watched.counters = Some(Counters { log_full: Some(0.6), ..counters });
    let partly = check("a log that was full for most of the time", &evidence, Limit::WriteBack);
    assert!(partly.share < 0.65, "{partly:?}");
    let waits = Counters { log_full: Some(0.0), free_page_waits: Some(14_000), ..counters };
    evidence.watched.counters = Some(waits);
    check("a pool without free pages", &evidence, Limit::WriteBack);
    evidence.load.is_read_only = true;
    check("nothing is changed", &evidence, Limit::Latches);
}

#[test]
fn too_little_seen_is_said() {
    let mut evidence = Scene::default().evidence();
    evidence.watched = Watched {
        elapsed_ns: ELAPSED_NS,
        processors: 2,
        unseen: vec!["no".to_string()],
        ..Watched::default()
    };
    let verdict = check("a server elsewhere", &evidence, Limit::CannotTell);
    assert_eq!((verdict.confidence, verdict.bounds.faster_disk), (Confidence::Low, None));
    assert_eq!(verdict.unseen, ["no"]);
    evidence.load.commit_ns = evidence.load.transaction_ns / 10 * 7;
    let session_tasks = Scene::default().evidence().watched.session_tasks;
    evidence.watched.session_tasks = session_tasks;
    check("the client's clock alone knows of commits", &evidence, Limit::CommitLatency);
    evidence.load.transactions = 0;
    assert!(check("nothing ran", &evidence, Limit::CannotTell).headline.contains("no transaction"));
}

/// PostgreSQL on another machine: its sessions are seen, and of processors the client's alone.
#[test]
fn processors_of_the_client_say_nothing_of_a_server_elsewhere() {
    let working: &[(Wait, f64)] = &[(Wait::Client, 0.15)];
    let far: &[(Wait, f64)] = &[(Wait::Client, 0.9)];
    let most: &[(Wait, f64)] = &[(Wait::Commit, 0.85)];
    let some: &[(Wait, f64)] = &[(Wait::Commit, 0.4)];
    for (name, client, waits, idle, limit, confidence) in [
        ("the client's processors are idle", (0.02, 0.0), working, 1.7, Limit::CannotTell, Confidence::Low),
        ("they are used up", (0.02, 0.0), working, 0.02, Limit::CannotTell, Confidence::Low),
        ("the network takes most of it", (0.02, 0.0), far, 1.7, Limit::CannotTell, Confidence::Low),
        ("commits", (0.02, 0.0), most, 1.7, Limit::CommitLatency, Confidence::Medium),
        // What runs for longer than it waits may wait for processors that nobody saw.
        ("commits beside work", (0.02, 0.0), some, 1.7, Limit::CommitLatency, Confidence::Low),
        ("other programs beside the client", (0.02, 0.4), far, 0.0, Limit::OtherPrograms, Confidence::High),
        ("a client that works for most of it", (0.6, 0.0), far, 0.2, Limit::ClientCpu, Confidence::High),
    ] {
        let scene = Scene { sessions: 3, client, waits, idle, ..Scene::default() };
        let mut evidence = scene.evidence();
        let watched = &mut evidence.watched;
        (watched.cpu.server_ns, watched.session_tasks) = (None, None);
        (watched.syncs, watched.device) = (None, None);
        let verdict = check(name, &evidence, limit);
        assert_eq!(verdict.confidence, confidence, "{name}: {verdict:#?}");
        assert!(verdict.traps.is_empty(), "{name}: {:?}", verdict.traps);
    }
}

/// Two servers and the client on two processors that are used up: what the servers use is in nobody's name.
#[test]
fn servers_of_which_one_was_watched_are_no_other_programs() {
    let crowded: &[(Wait, f64)] = &[(Wait::Client, 0.3)];
    for (name, client, client_processors, waits, limit) in [
        ("the client waits behind somebody", (0.05, 0.3), 2, crowded, Limit::CannotTell),
        ("the client works, too", (0.3, 0.0), 2, crowded, Limit::CannotTell),
        ("its one processor is taken", (0.05, 0.3), 1, crowded, Limit::LoadGenerator),
        ("the client works for most of it", (0.6, 0.0), 2, crowded, Limit::ClientCpu),
        ("commits", (0.05, 0.0), 2, &[(Wait::Commit, 0.85)][..], Limit::CommitLatency),
    ] {
        let scene = Scene { server: (0.1, 0.2), client, waits, idle: 0.0, ..Scene::default() };
        let mut evidence = scene.evidence();
        (evidence.watched.server_processors, evidence.watched.client_processors) = (2, client_processors);
        evidence.watched = evidence.watched.of_first("unix:/run/a.sock");
        let verdict = check(name, &evidence, limit);
        let said = verdict.evidence.iter().any(|it| it.contains("what servers use of them is in the rest"));
        assert!(said, "{name}: {:?}", verdict.evidence);
    }
}

#[test]
fn near_ties_and_few_samples_lower_confidence() {
    let clear = Scene { server: (0.05, 0.02), waits: &[(Wait::Commit, 0.9)], syncs: 0.5, ..Scene::default() };
    assert_eq!(judge(&clear.evidence()).confidence, Confidence::High);
    let tie = Scene { waits: &[(Wait::Commit, 0.45), (Wait::Lock, 0.42)], ..clear };
    assert_eq!(judge(&tie.evidence()).confidence, Confidence::Low);
    let mut few = Scene { waits: &[(Wait::Commit, 0.6), (Wait::Lock, 0.25)], ..tie }.evidence();
    assert_eq!(judge(&few).confidence, Confidence::High);
    let sessions = few.watched.sessions.as_mut().unwrap();
    sessions.waits.values_mut().for_each(|count| *count /= 50);
    assert_ne!(judge(&few).confidence, Confidence::High);
}

#[test]
fn traps_are_flagged_where_they_lie() {
    let keys = |evidence: &Evidence| -> Vec<String> {
        judge(evidence).traps.into_iter().map(|trap| trap.key).collect()
    };
    let idle = Scene {
        sessions: 1,
        server: (0.3, 0.0),
        client: (0.1, 0.0),
        waits: &[(Wait::Client, 0.7)],
        idle: 1.5,
        syncs: 1.0,
        ..Scene::default()
    };
    assert_eq!(keys(&idle.evidence()), ["idle-wake-ups"]);
    let relaxed =
        Scene { server: (0.4, 0.5), waits: &[], client: (0.05, 0.0), idle: 0.1, ..Scene::default() };
    assert_eq!(keys(&relaxed.evidence()), ["never-touches-the-disk"]);
    let mixed = Scene {
        server: (0.2, 0.5),
        waits: &[(Wait::Commit, 0.2)],
        idle: 0.05,
        syncs: 0.7,
        ..Scene::default()
    };
    assert_eq!(keys(&mixed.evidence()), ["saturation-hides-commits"]);
    let mut cached = mixed.evidence();
    cached.watched.counters = Some(Counters { page_reads: Some(50_000), ..Counters::default() });
    assert!(keys(&cached).contains(&"reads-from-the-page-cache".to_string()));
}

#[test]
fn sleeping_is_divided_by_samples_and_running_by_clocks() {
    let scene = Scene {
        server: (0.2, 0.2),
        // Samples say that half of the sessions run; the clocks say 0.4. What sleeps shares the rest.
        waits: &[(Wait::Commit, 0.25), (Wait::Client, 0.25)],
        client: (0.1, 0.0),
        ..Scene::default()
    };
    let profile = judge(&scene.evidence()).profile;
    for (part, expected) in
        [(Part::ServerRuns, 0.2), (Part::Commit, 0.3), (Part::ClientRuns, 0.1), (Part::Between, 0.2)]
    {
        assert!((profile.share(part) - expected).abs() < 1e-9, "{part:?}: {profile:?}");
    }
}
