//! Watches server and machine while transactions are measured, on the run's own clock.
//!
//! One thread with a connection of its own looks about eight times a second. It is started before the measuring, so that
//! finding the server and loading programs into the kernel is done by then, and told when measuring begins and ends. The
//! time between looks grows with what looking costs: at most a hundredth of a processor.

mod eyes;
mod kernel;
mod machine;
pub mod place;
mod processes;
pub mod sessions;
mod threads;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_db::error::DbError;
use weir_db::runner::{Observer, Tick};
use weir_db::server::Server;
use weir_oltp::OltpRecord;
use weir_oltp::limits::Watched;
use weir_oltp::record::ServerRecord;

use eyes::Eyes;

/// Between two looks. InnoDB renews its lists of transactions and locks at most ten times a second
/// (storage/innobase/trx/trx0i_s.cc, CACHE_MIN_IDLE_TIME_NS).
const PERIOD: Duration = Duration::from_millis(125);
/// Looking takes at most one part in so many of one processor's time.
const ONE_IN: u32 = 100;
/// ... but sessions are looked at this often in any case.
const PERIOD_MAX: Duration = Duration::from_secs(2);
/// Longest wait for the watcher to be ready; it goes on getting ready while transactions run.
const READY_AFTER: Duration = Duration::from_secs(10);

/// What is to be watched.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The server, with the database that transactions use.
    pub server: Server,
    /// By programs in the kernel.
    pub trace: Trace,
}

/// What programs in the kernel watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Nothing.
    Nothing,
    /// Requests to the device.
    Requests,
    /// Requests, and the server's syncs: where functions of the kernel cannot be traced, every system call of the machine
    /// pays for it.
    RequestsAndSyncs,
}

impl Trace {
    /// What is worth its cost: who only reads waits for no sync.
    pub fn of(allowed: bool, writes: bool) -> Trace {
        match (allowed, writes) {
            (false, _) => Trace::Nothing,
            (true, false) => Trace::Requests,
            (true, true) => Trace::RequestsAndSyncs,
        }
    }
}

/// What the watcher is told.
enum Order {
    Begin,
    End,
}

/// A watcher. Dropped without [`Watch::end`], it goes away by itself.
struct Watch {
    orders: Sender<Order>,
    thread: Option<JoinHandle<Watched>>,
}

impl Watch {
    /// Finds the server's processes and everything else there is to see, and waits for the run.
    fn prepare(scope: Scope) -> Watch {
        let (orders, told) = channel();
        let (ready, is_ready) = channel();
        let watching = move || watch(&scope, &told, &ready);
        let thread = std::thread::Builder::new().name("watch".to_string()).spawn(watching).ok();
        // A watcher that did not start, or that takes its time, is no reason not to run.
        let _ = is_ready.recv_timeout(READY_AFTER);
        Watch { orders, thread }
    }

    /// Measuring begins now.
    fn begin(&self) {
        let _ = self.orders.send(Order::Begin);
    }

    /// Measuring has ended: what was seen.
    fn end(mut self) -> Watched {
        let _ = self.orders.send(Order::End);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_else(|| Watched {
            unseen: vec!["the thread that watches could not be started, or ended early".to_string()],
            ..Watched::default()
        })
    }
}

/// Runs with a watcher beside it: `run` is given the observer to run with. The record has what was seen.
///
/// # Errors
/// Those of `run`; what the watcher cannot see is no error.
pub fn watched(
    scope: Scope,
    observer: &mut dyn Observer,
    run: impl FnOnce(&mut dyn Observer) -> Result<OltpRecord, DbError>,
) -> Result<OltpRecord, DbError> {
    let watch = Watch::prepare(scope);
    let mut record = run(&mut Both { observer, watch: &watch })?;
    record.watched = Some(watch.end());
    Ok(record)
}

/// Tells the watcher when measuring begins, and the observer everything.
struct Both<'a> {
    observer: &'a mut dyn Observer,
    watch: &'a Watch,
}

impl Observer for Both<'_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        self.observer.tick(tick);
    }

    fn started(&mut self, server: &ServerRecord) {
        self.observer.started(server);
    }

    fn measuring(&mut self) {
        self.watch.begin();
        self.observer.measuring();
    }
}

fn watch(scope: &Scope, told: &Receiver<Order>, ready: &Sender<()>) -> Watched {
    let mut eyes = Eyes::open(scope);
    let _ = ready.send(());
    if !matches!(told.recv(), Ok(Order::Begin)) {
        return Watched::default();
    }
    eyes.begin();
    let mut period = PERIOD;
    while matches!(told.recv_timeout(period), Err(RecvTimeoutError::Timeout)) {
        period = (eyes.look() * ONE_IN).clamp(PERIOD, PERIOD_MAX);
    }
    eyes.end()
}
