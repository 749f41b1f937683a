//! Runs transactions on many connections at once and measures them: one thread a connection, a closed or an open
//! loop, and a thread that watches.
//!
//! What a connection does comes from a [`Workload`]: the transactions of [`OltpSpec`], or a user's script. Everything
//! else is the same for both: pace, warm-up, retries, reconnects, latencies, intervals, the end, the record.

mod clock;
mod finish;
mod gate;
mod oltp;
mod recorder;
mod running;
mod seat;
mod shared;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weir_core::result::record::Interval;
use weir_core::stats::Histogram;
pub use weir_core::stop::Stop;
use weir_oltp::record::{ConnectionRecord, ServerRecord};
use weir_oltp::{Kind, OltpRecord, OltpSpec, Seat};

use crate::error::DbError;
use crate::server::{Canceller, Server};

pub(crate) use gate::lock;
pub use recorder::Recorder;

/// What every connection of a run does. Shared by the threads; each makes its own [`Driver`] from it.
pub trait Workload: Send + Sync {
    /// Connects and makes ready, in the thread of the connection. Few threads are in here at a time.
    fn open(&self, seat: Seat) -> Result<Box<dyn Driver>, DbError>;

    /// The run is over, and statements that still run are being cancelled: an error is nobody's failure any more.
    fn cancelled(&self) {}
}

/// One connection at work. Lives and dies in one thread.
pub trait Driver {
    /// One attempt at a transaction, from its first statement to its last. The recorder is told of every statement,
    /// of failed ones too; the first failure ends the attempt. [`DbError::Stopped`]: there is to be no transaction, and
    /// this was none.
    fn attempt(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError>;

    /// After an error of the server: ends the transaction, so that another attempt may begin.
    fn roll_back(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError>;

    /// Whether a transaction that met this error is to run again. The codes of [`OltpSpec::retry_errors`] come on top.
    fn may_retry(&mut self, error: &DbError) -> bool {
        error.is_retryable()
    }

    /// Connects again and makes ready, after the connection was lost.
    fn reconnect(&mut self) -> Result<(), DbError>;

    /// Whether there is another transaction after the last one; a script may want no more.
    fn has_more(&self) -> bool {
        true
    }

    /// Who answers; asked once, when the connection is made.
    fn server(&self) -> ServerRecord;

    /// By what another thread ends a statement of this connection that hangs; asked whenever a connection is made.
    fn canceller(&self) -> Option<Canceller>;

    /// After the last transaction; statements that it still sends count.
    fn close(&mut self, _recorder: &mut Recorder<'_>) {}
}

/// How a run is carried out; what is measured is in the [`OltpSpec`].
#[derive(Clone)]
pub struct RunOptions {
    /// Length of an interval and distance between ticks.
    pub tick_ns: u64,
    /// A statement that still runs so long after the end is cancelled, and left behind after as long again. A user who
    /// asks to stop waits for two seconds at most each time.
    pub grace_ns: u64,
    /// All connections stand within this, and a tenth of a second more for each: what is set for the time of a run must not wait for
    /// a server that never answers.
    pub ready_within: Duration,
    /// Threads that connect at the same time.
    pub connecting: u32,
    /// Time all processors have spent on anything but idling, in ns, if the machine says.
    pub machine_busy_ns: Option<fn() -> Option<u64>>,
}

/// For an answer to what is asked around a run, too.
pub const READY_WITHIN: Duration = Duration::from_secs(60);

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            tick_ns: 1_000_000_000,
            grace_ns: 5_000_000_000,
            ready_within: READY_WITHIN,
            connecting: 32,
            machine_busy_ns: None,
        }
    }
}

/// What an observer sees once a tick.
pub struct Tick<'a> {
    /// What runs.
    pub spec: &'a OltpSpec,
    /// Time since the start of measuring, in ns; negative while warming up.
    pub at_ns: i64,
    /// What happened since the last tick.
    pub interval: &'a Interval<Kind>,
    /// Exact latencies of what finished since the last tick, by kind; kinds without any are absent.
    pub latencies: &'a BTreeMap<Kind, Histogram>,
    /// Errors since the last tick after which a transaction ran again or was left out.
    pub ignored_errors: u64,
    /// Connections made again since the last tick.
    pub reconnects: u64,
    /// Open loop: transactions that are due and not begun.
    pub queued: u64,
    /// Each connection's share since the start.
    pub threads: &'a dyn Fn() -> Vec<ConnectionRecord>,
}

/// Is told what happens while a run is under way, from the thread that called [`run`].
pub trait Observer {
    /// Once per tick.
    fn tick(&mut self, tick: &Tick<'_>);

    /// All connections stand, and transactions are about to start.
    fn started(&mut self, _server: &ServerRecord) {}

    /// Warming up is over: what happens from now on counts.
    fn measuring(&mut self) {}
}

/// Observes nothing.
pub struct Silent;

impl Observer for Silent {
    fn tick(&mut self, _tick: &Tick<'_>) {}
}

/// The servers as a workload asks them: each has as long for an answer as the workload allows.
pub fn with_timeout(spec: &OltpSpec, servers: &[Server]) -> Vec<Server> {
    let longest = (spec.statement_timeout.0 > 0).then(|| Duration::from_nanos(spec.statement_timeout.0));
    let timed =
        |server: &Server| Server { answer_timeout: longest.or(server.answer_timeout), ..server.clone() };
    servers.iter().map(timed).collect()
}

/// Runs the transactions of `spec` against servers that hold its tables; connections are spread over them round robin.
/// The measurements before an error that ends the run are kept, and the error is in the record. `Err`: nothing was
/// measured, because connections could not be made or statements not be prepared.
pub fn run(
    spec: &OltpSpec,
    servers: &[Server],
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<OltpRecord, DbError> {
    let workload = Arc::new(oltp::Oltp::new(spec, servers)?);
    let result = run_workload(spec, workload, options, observer, stop);
    let mut record = result.map_err(|error| oltp::with_limit(error, servers))?;
    record.server.places = servers.iter().map(|server| server.place.to_string()).collect();
    Ok(record)
}

/// Runs any workload. Of `spec` only what concerns every workload counts: threads, pace, duration, warm-up, retries
/// and reconnects.
pub fn run_workload(
    spec: &OltpSpec,
    workload: Arc<dyn Workload>,
    options: &RunOptions,
    observer: &mut dyn Observer,
    stop: &Stop,
) -> Result<OltpRecord, DbError> {
    let mut running = running::Running::launch(spec, workload, options, stop)?;
    observer.started(&running.server);
    running.go();
    let seen = watch::watch(&mut running, options, observer, stop);
    Ok(finish::record(running, seen))
}
