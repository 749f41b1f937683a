//! The threads of a run: launched, connected, let go, and joined.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_core::workload::schedule::Schedule;
use weir_oltp::record::ServerRecord;
use weir_oltp::{OltpSpec, Seat};

use super::clock::now_ns;
use super::gate::{Gate, Halt, Permits, Span};
use super::recorder::Book;
use super::seat::work;
use super::shared::Shared;
use super::{RunOptions, Stop, Workload};
use crate::error::DbError;

/// Enough for TLS and a script's state; a thread that never goes deep never touches it.
const STACK_BYTES: usize = 512 << 10;
/// Between the signal to start and the first transaction, so that all threads are awake by then.
const START_DELAY_NS: u64 = 1_000_000;
/// More of it for every thread that has to wake up.
const START_DELAY_PER_THREAD_NS: u64 = 20_000;
/// How often somebody who waits for connections looks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(20);

/// For each connection, beyond what all have to come to stand.
const EACH: Duration = Duration::from_millis(100);

/// When a run does not come to its start: who is still connecting then, against a server that does not answer, is
/// left behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run whose connections stand.
pub struct Running {
    /// What the threads share.
    pub shared: Arc<Shared>,
    /// Who answers.
    pub server: ServerRecord,
    /// When measuring starts, ns on the monotonic clock.
    pub measure_from_ns: u64,
    /// When transactions start and end.
    pub span: Span,
    /// What runs.
    pub workload: Arc<dyn Workload>,
    threads: Vec<JoinHandle<()>>,
}

/// A connection that stands, or not.
type Ready = (u32, Result<ServerRecord, DbError>);

impl Running {
    /// Starts the threads and waits until all of them have connected. When one cannot, all go away again.
    pub fn launch(
        spec: &OltpSpec,
        workload: Arc<dyn Workload>,
        options: &RunOptions,
        stop: &Stop,
    ) -> Result<Running, DbError> {
        let schedule = Schedule::new(spec.rate, spec.seed);
        let shared = Arc::new(Shared {
            book: Book::new(spec.threads),
            schedule: schedule.is_open().then(|| Mutex::new(schedule)),
            measuring: AtomicBool::new(spec.warmup.0 == 0),
            tickets: AtomicU64::new(0),
            out_of_time: AtomicBool::new(false),
            halt: Halt::default(),
            cancelled: AtomicBool::new(false),
            failure: Mutex::default(),
            cancellers: Mutex::new(vec![None; spec.threads as usize]),
            permits: Permits::new(options.connecting),
            gate: Gate::default(),
            spec: spec.clone(),
        });
        let (sender, ready) = channel();
        let span = Span { epoch_ns: 0, deadline_ns: u64::MAX };
        let server = ServerRecord::default();
        let mut running = Running { shared, server, measure_from_ns: 0, span, workload, threads: Vec::new() };
        let result = running.start_threads(&sender).and_then(|()| {
            drop(sender);
            running.connect(&ready, options.ready_within, stop)
        });
        if let Err(error) = result {
            running.shared.gate.open(None);
            running.wait_for_all(PATIENCE);
            running.join(true);
            return Err(error);
        }
        Ok(running)
    }

    fn start_threads(&mut self, ready: &Sender<Ready>) -> Result<(), DbError> {
        let of = self.shared.spec.threads;
        for index in 0..of {
            let (shared, workload, ready) = (self.shared.clone(), self.workload.clone(), ready.clone());
            let thread = std::thread::Builder::new()
                .name(format!("weir-db-{index}"))
                .stack_size(STACK_BYTES)
                .spawn(move || work(&shared, workload.as_ref(), Seat { index, of }, &ready))
                .map_err(|e| {
                    DbError::Unsupported(format!("cannot start thread {} of {of}: {e}", index + 1))
                })?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Collects the threads' answers.
    fn connect(&mut self, ready: &Receiver<Ready>, within: Duration, stop: &Stop) -> Result<(), DbError> {
        let total = self.shared.spec.threads;
        let within = within + EACH * total;
        let (mut connected, begun) = (0, Instant::now());
        let too_few = |connected, source: DbError| {
            Err(DbError::Connections { connected, total, allowed: None, source: source.into() })
        };
        while connected < total {
            match ready.recv_timeout(LOOK_UP) {
                Ok((index, Ok(server))) => {
                    connected += 1;
                    if index == 0 {
                        self.server = server;
                    }
                }
                // What the first one is refused for, a password or a name, all are; only a full server may have
                // answered them in another order.
                Ok((_, Err(error))) if connected == 0 && !error.is_full() => return Err(error),
                Ok((_, Err(error))) => return too_few(connected, error),
                Err(RecvTimeoutError::Timeout) if stop.requested().is_some() => return Err(DbError::Stopped),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() >= within => {
                    let why = format!("the server did not make more stand in {} s", within.as_secs());
                    return too_few(connected, DbError::Unsupported(why));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(DbError::Unsupported("a thread ended before it was connected".to_string()));
                }
            }
        }
        Ok(())
    }

    /// Lets all threads start.
    pub fn go(&mut self) {
        let spec = &self.shared.spec;
        let delay_ns = START_DELAY_NS + START_DELAY_PER_THREAD_NS * u64::from(spec.threads);
        let epoch_ns = now_ns() + delay_ns;
        self.measure_from_ns = epoch_ns + spec.warmup.0;
        let deadline_ns =
            if spec.duration.0 > 0 { self.measure_from_ns.saturating_add(spec.duration.0) } else { u64::MAX };
        self.span = Span { epoch_ns, deadline_ns };
        self.shared.gate.open(Some(self.span));
    }

    /// Whether every thread has ended.
    pub fn all_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Gives the threads some time to end.
    fn wait_for_all(&self, longest: Duration) {
        let until_ns = now_ns() + longest.as_nanos() as u64;
        while !self.all_ended() && now_ns() < until_ns {
            std::thread::sleep(LOOK_UP);
        }
    }

    /// Joins the threads; those that hang are left behind where `abandon` says so. A panic is the run's failure.
    pub fn join(&mut self, abandon: bool) {
        for thread in self.threads.drain(..) {
            if abandon && !thread.is_finished() {
                continue;
            }
            if thread.join().is_err() {
                self.shared.fail("a thread panicked; see the message above".to_string());
            }
        }
    }
}
