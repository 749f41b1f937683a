//! The runner on connections that are none: every way a run can go, without a server.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Rate};

use super::*;
use crate::error::ServerError;
use crate::rows::Done;

/// What the n-th attempt of a run does (from 0), and the n-th connecting.
#[derive(Clone)]
struct Fake {
    attempts: Arc<AtomicU64>,
    opened: Arc<AtomicU64>,
    attempt: fn(u64) -> Result<Done, DbError>,
    open: fn(u64) -> Result<(), DbError>,
    /// Whether there is another transaction after so many attempts of a run.
    has_more: fn(u64) -> bool,
}

impl Fake {
    fn new(attempt: fn(u64) -> Result<Done, DbError>) -> Fake {
        let (attempts, opened) = (Arc::default(), Arc::default());
        Fake { attempts, opened, attempt, open: |_| Ok(()), has_more: |_| true }
    }
}

impl Workload for Fake {
    fn open(&self, _seat: Seat) -> Result<Box<dyn Driver>, DbError> {
        (self.open)(self.opened.fetch_add(1, SeqCst))?;
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Fake {
    fn attempt(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError> {
        let result = (self.attempt)(self.attempts.fetch_add(1, SeqCst));
        recorder.statement(Kind::IndexUpdate, &result);
        result.map(|_| ())
    }

    fn roll_back(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError> {
        recorder.statement(Kind::Rollback, &Ok(Done::default()));
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), DbError> {
        (self.open)(self.opened.fetch_add(1, SeqCst))
    }

    fn has_more(&self) -> bool {
        (self.has_more)(self.attempts.load(SeqCst))
    }

    fn server(&self) -> ServerRecord {
        ServerRecord { version: "none".to_string(), ..ServerRecord::default() }
    }

    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

const CHANGED: Done = Done { rows: 0, affected: 1, last_insert_id: 0 };

fn server_error(number: u16) -> DbError {
    ServerError { number, sqlstate: "HY000".to_string(), message: "no".to_string() }.into()
}

fn lost() -> DbError {
    DbError::Lost { place: "nowhere".to_string(), source: std::io::ErrorKind::ConnectionReset.into() }
}

/// 200 transactions on four connections, however long they take.
fn spec() -> OltpSpec {
    OltpSpec { threads: 4, transactions: 200, duration: Nanos(0), ..OltpSpec::default() }
}

fn outcome(spec: &OltpSpec, fake: Fake) -> Result<OltpRecord, DbError> {
    run_workload(spec, Arc::new(fake), &RunOptions::default(), &mut Silent, &Stop::default())
}

fn count(record: &OltpRecord, kind: Kind) -> u64 {
    record.kinds.get(&kind).map_or(0, |kind| kind.latency.count())
}

#[test]
fn every_transaction_is_counted_once_and_by_its_connection() {
    let fake = Fake::new(|attempt| Ok(if attempt % 2 == 0 { CHANGED } else { Done::default() }));
    let record = outcome(&spec(), fake).unwrap();
    assert_eq!((count(&record, Kind::Transaction), count(&record, Kind::IndexUpdate)), (200, 200));
    let updates = &record.kinds[&Kind::IndexUpdate];
    assert_eq!((updates.rows, updates.empty, updates.errors), (100, 100, 0));
    assert_eq!(record.threads.iter().map(|c| c.transactions).sum::<u64>(), 200);
    assert_eq!((record.threads.len(), record.server.version.as_str()), (4, "none"));
    assert_eq!((record.error, record.lateness.is_none(), record.notes.len()), (None, true, 0));
    let in_intervals: u64 = record.intervals.iter().map(|i| i.classes[&Kind::Transaction].count).sum();
    assert_eq!(in_intervals, 200);
}

#[test]
fn a_deadlock_runs_again_and_counts_once() {
    let fake = Fake::new(|attempt| if attempt % 4 == 0 { Err(server_error(1213)) } else { Ok(CHANGED) });
    // One connection, so that no transaction meets two.
    let record = outcome(&OltpSpec { threads: 1, ..spec() }, fake).unwrap();
    let retries = record.ignored_errors["1213"];
    assert_eq!(count(&record, Kind::Transaction), 200);
    assert_eq!(record.kinds[&Kind::Transaction].errors, 0);
    assert_eq!((record.retried, count(&record, Kind::Rollback)), (retries, retries));
    assert_eq!(record.kinds[&Kind::IndexUpdate].errors, retries);
    assert!((66..=67).contains(&retries), "{retries}");
}

#[test]
fn an_attempt_that_is_no_transaction_counts_as_none() {
    let fake = Fake::new(|attempt| if attempt % 2 == 0 { Ok(CHANGED) } else { Err(DbError::Stopped) });
    let record = outcome(&OltpSpec { threads: 1, ..spec() }, fake).unwrap();
    assert_eq!((count(&record, Kind::Transaction), record.threads[0].transactions), (100, 100));
    assert_eq!((record.kinds[&Kind::Transaction].errors, record.error), (0, None));
}

#[test]
fn errors_that_the_user_lists_run_again_and_others_end_the_run() {
    fn refuse_once(attempt: u64) -> Result<Done, DbError> {
        if attempt == 100 { Err(server_error(1062)) } else { Ok(CHANGED) }
    }
    for listed in ["1062", "all"] {
        let spec = OltpSpec { retry_errors: vec![listed.to_string()], ..spec() };
        let record = outcome(&spec, Fake::new(refuse_once)).unwrap();
        assert_eq!((record.error, record.ignored_errors["1062"], record.retried), (None, 1, 1));
    }
    let record = outcome(&spec(), Fake::new(refuse_once)).unwrap();
    let error = record.error.clone().unwrap();
    assert!(error.contains("1062") && error.contains("of 4"), "{error}");
    assert_eq!(record.kinds[&Kind::Transaction].errors, 1);
    // What others had begun is still counted.
    assert!((97..200).contains(&count(&record, Kind::Transaction)), "{}", count(&record, Kind::Transaction));
}

#[test]
fn a_late_start_in_the_warm_up_does_not_count() {
    let fake = Fake::new(|attempt| {
        if attempt == 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(CHANGED)
    });
    let spec = OltpSpec {
        threads: 1,
        transactions: 0,
        rate: Some(Rate { iops: 20.0, arrival: Arrival::Constant }),
        warmup: Nanos::from_millis(1400),
        duration: Nanos::from_millis(200),
        ..spec()
    };
    let lateness = outcome(&spec, fake).unwrap().lateness.unwrap();
    assert!(lateness.start_delay_max_ns < 900_000_000, "{lateness:?}");
}

#[test]
fn a_lost_connection_is_made_again_only_when_asked_for() {
    fn lose_twice(attempt: u64) -> Result<Done, DbError> {
        if attempt == 50 || attempt == 90 { Err(lost()) } else { Ok(CHANGED) }
    }
    let spec = OltpSpec { reconnect: true, ..spec() };
    let mut fake = Fake::new(lose_twice);
    // The server is not back at once.
    fake.open = |opened| if opened == 4 { Err(lost()) } else { Ok(()) };
    let record = outcome(&spec, fake).unwrap();
    assert_eq!((record.error.as_deref(), record.reconnects, record.ignored_errors["lost"]), (None, 2, 2));
    assert_eq!(count(&record, Kind::Transaction), 200);

    let record = outcome(&self::spec(), Fake::new(lose_twice)).unwrap();
    assert!(record.error.unwrap().contains("lost"));
    assert_eq!(record.reconnects, 0);
}

#[test]
fn connections_that_cannot_be_made_end_the_run_before_it_starts() {
    let mut refused = Fake::new(|_| Ok(CHANGED));
    refused.open = |_| Err(server_error(1045));
    assert!(matches!(outcome(&spec(), refused), Err(DbError::Server(error)) if error.number == 1045));

    let mut full = Fake::new(|_| Ok(CHANGED));
    full.open = |opened| if opened < 3 { Ok(()) } else { Err(server_error(1040)) };
    let attempts = full.attempts.clone();
    let error = outcome(&OltpSpec { threads: 50, ..spec() }, full).err().unwrap();
    assert!(error.is_full(), "{error}");
    assert_eq!(attempts.load(SeqCst), 0, "a transaction ran although the run did not start");
}

#[test]
fn an_open_loop_accounts_for_every_transaction_that_was_due() {
    let fake = || {
        Fake::new(|_| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(CHANGED)
        })
    };
    for arrival in [Arrival::Constant, Arrival::Poisson] {
        // One connection can do 500 a second at most: of 2,000 a second, most are late or never start.
        let spec = OltpSpec {
            threads: 1,
            transactions: 0,
            duration: Nanos(300_000_000),
            rate: Some(Rate { iops: 2000.0, arrival }),
            late_after: Nanos(10_000_000),
            ..OltpSpec::default()
        };
        let record = outcome(&spec, fake()).unwrap();
        let lateness = record.lateness.clone().unwrap();
        assert_eq!(lateness.intended, count(&record, Kind::Transaction) + lateness.not_started);
        assert!((400..800).contains(&lateness.intended), "{lateness:?}");
        assert!(lateness.late > lateness.intended / 2 && lateness.not_started > 0, "{lateness:?}");
        // Latencies run from the intended start: the last ones have waited for most of the run.
        assert!(record.kinds[&Kind::Transaction].latency.max() > Some(50_000_000));
        assert!(record.kinds[&Kind::IndexUpdate].latency.quantile(0.5) < Some(50_000_000));
    }
}

/// At a low rate the last transactions end long before the next would start.
#[test]
fn an_open_loop_lasts_as_long_as_was_asked_for() {
    // Where their number is limited, too, connections wait with a transaction that is one of these.
    for transactions in [0, 3] {
        let spec = OltpSpec {
            threads: 2,
            transactions,
            duration: Nanos::from_millis(500),
            rate: Some(Rate { iops: 4.0, arrival: Arrival::Constant }),
            ..spec()
        };
        let record = outcome(&spec, Fake::new(|_| Ok(CHANGED))).unwrap();
        assert!(record.elapsed_ns >= spec.duration.0, "{transactions}: {}", record.elapsed_ns);
    }
}

#[test]
fn a_limit_on_transactions_holds_in_an_open_loop_too() {
    let rate = Some(Rate { iops: 5000.0, arrival: Arrival::Poisson });
    let record = outcome(&OltpSpec { rate, ..spec() }, Fake::new(|_| Ok(CHANGED))).unwrap();
    assert_eq!(count(&record, Kind::Transaction), 200);
    assert_eq!(record.lateness.unwrap().intended, 200);
}

#[test]
fn what_hangs_at_the_end_is_left_behind_and_said() {
    let fake = Fake::new(|attempt| {
        if attempt == 3 {
            std::thread::sleep(Duration::from_secs(60));
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(CHANGED)
    });
    let spec = OltpSpec { transactions: 0, duration: Nanos(50_000_000), ..spec() };
    let options = RunOptions { grace_ns: 50_000_000, ..RunOptions::default() };
    let record = run_workload(&spec, Arc::new(fake), &options, &mut Silent, &Stop::default()).unwrap();
    let keys: Vec<&str> = record.notes.iter().map(|note| note.key.as_str()).collect();
    assert_eq!(keys, ["cancelled", "abandoned"]);
    assert!(count(&record, Kind::Transaction) > 3);
    assert!(record.intervals.last().unwrap().oldest_ns >= 100_000_000, "the hang shows in the last interval");
}

/// What is set for the time of a run would stay set for as long as the server likes.
#[test]
fn a_server_that_makes_no_connection_stand_ends_the_run_before_it_begins() {
    let fake = Fake {
        open: |opened| {
            if opened > 1 {
                std::thread::sleep(Duration::from_secs(60));
            }
            Ok(())
        },
        ..Fake::new(|_| Ok(CHANGED))
    };
    let options = RunOptions { ready_within: Duration::from_millis(100), ..RunOptions::default() };
    let ran = run_workload(&spec(), Arc::new(fake), &options, &mut Silent, &Stop::default());
    let error = ran.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("2 of 4 connections") && error.contains("did not make more stand"), "{error}");
}

#[test]
fn a_request_to_stop_keeps_what_was_measured() {
    struct StopAt(Stop);
    impl Observer for StopAt {
        fn tick(&mut self, tick: &Tick<'_>) {
            if tick.interval.classes.contains_key(&Kind::Transaction) {
                self.0.request(2);
            }
        }
    }
    let stop = Stop::default();
    let spec = OltpSpec { transactions: 0, ..spec() };
    let options = RunOptions { tick_ns: 20_000_000, ..RunOptions::default() };
    let fake = Fake::new(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(CHANGED)
    });
    let record = run_workload(&spec, Arc::new(fake), &options, &mut StopAt(stop.clone()), &stop).unwrap();
    assert!(count(&record, Kind::Transaction) > 0);
    assert!(record.error.is_none());
}

/// The time of a run that its script ends is the time until then, and nothing was due afterwards.
#[test]
fn a_run_that_its_script_ends_took_no_longer() {
    for rate in [None, Some(Rate { iops: 1000.0, arrival: Arrival::Constant })] {
        let fake = Fake { has_more: |attempts| attempts < 20, ..Fake::new(|_| Ok(CHANGED)) };
        let duration = Nanos::from_millis(30_000);
        let record = outcome(&OltpSpec { transactions: 0, duration, rate, ..spec() }, fake).unwrap();
        assert!(count(&record, Kind::Transaction) >= 20);
        assert!(record.elapsed_ns < duration.0 / 2, "{}", record.elapsed_ns);
        let not_started = record.lateness.map_or(0, |lateness| lateness.not_started);
        assert!(not_started < 1000, "{not_started}");
    }
}

/// Its time is the connections' own, whenever the end is noticed: the shortest of several runs is as short as its script,
/// however busy the machine is.
#[test]
fn a_run_of_a_few_milliseconds_is_not_rounded_up() {
    const LONGEST_NS: u64 = 15_000_000;
    let took_ns = || {
        let once = |_| {
            std::thread::sleep(Duration::from_millis(3));
            Ok(CHANGED)
        };
        let fake = Fake { has_more: |_| false, ..Fake::new(once) };
        let duration = Nanos::from_millis(30_000);
        outcome(&OltpSpec { threads: 1, transactions: 0, duration, ..spec() }, fake).unwrap().elapsed_ns
    };
    assert!((0..200).any(|_| (3_000_000..LONGEST_NS).contains(&took_ns())));
}

/// A stall before the end, however that comes, is part of the run's time, and what was due meanwhile was not started.
#[test]
fn a_stall_that_ends_a_run_took_its_time() {
    struct StopAfter(u64, Stop);
    impl Observer for StopAfter {
        fn tick(&mut self, tick: &Tick<'_>) {
            if tick.at_ns >= self.0 as i64 {
                self.1.request(2);
            }
        }
    }
    const STALL_NS: u64 = 300_000_000;
    // A statement that is cancelled, and one that the server refuses after a while.
    fn hang(attempt: u64) -> Result<Done, DbError> {
        if attempt > 3 {
            std::thread::sleep(Duration::from_millis(500));
            return Err(lost());
        }
        Ok(CHANGED)
    }
    fn fail_late(attempt: u64) -> Result<Done, DbError> {
        if attempt > 3 {
            std::thread::sleep(Duration::from_nanos(STALL_NS));
            return Err(server_error(1062));
        }
        Ok(CHANGED)
    }
    let rate = Some(Rate { iops: 1000.0, arrival: Arrival::Constant });
    let spec = OltpSpec { transactions: 0, duration: Nanos::from_millis(60_000), rate, ..spec() };
    for (attempt, stop_after_ns) in [(hang as fn(u64) -> _, STALL_NS), (fail_late, u64::MAX / 4)] {
        let stop = Stop::default();
        let options = RunOptions { tick_ns: 20_000_000, grace_ns: 150_000_000, ..RunOptions::default() };
        let mut observer = StopAfter(stop_after_ns, stop.clone());
        let fake = Arc::new(Fake::new(attempt));
        let record = run_workload(&spec, fake, &options, &mut observer, &stop).unwrap();
        assert!(record.elapsed_ns >= STALL_NS, "{}", record.elapsed_ns);
        let lateness = record.lateness.unwrap();
        assert!(lateness.not_started > 200, "{lateness:?}");
    }
}

#[test]
fn warming_up_does_not_count() {
    let fake = Fake::new(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(CHANGED)
    });
    let attempts = fake.attempts.clone();
    let record = outcome(&OltpSpec { warmup: Nanos(50_000_000), ..spec() }, fake).unwrap();
    // One that was under way when measuring began counts with those after it.
    let counted = count(&record, Kind::Transaction);
    assert!((200..=204).contains(&counted), "{counted}");
    assert!(attempts.load(SeqCst) > counted, "nothing ran before measuring began");
    assert_eq!(record.threads.iter().map(|c| c.transactions).sum::<u64>(), counted);
}

#[test]
fn a_panic_is_the_runs_failure() {
    let fake = Fake::new(|attempt| if attempt == 20 { panic!("made to") } else { Ok(CHANGED) });
    let record = outcome(&spec(), fake).unwrap();
    assert!(record.error.unwrap().contains("panicked"));
}

#[test]
fn a_thousand_connections_run() {
    let spec = OltpSpec { threads: 1000, transactions: 5000, ..spec() };
    let record = outcome(&spec, Fake::new(|_| Ok(CHANGED))).unwrap();
    assert_eq!((count(&record, Kind::Transaction), record.threads.len()), (5000, 1000));
}
