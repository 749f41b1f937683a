//! Scripts as a workload of the runner: an event is a transaction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use weir_oltp::Seat;
use weir_oltp::record::ServerRecord;
use weir_sysbench::log::Priority;

use super::Shared;
use super::state::ScriptError;
use super::thread::{Attempt, Thread};
use crate::error::{DbError, ServerError};
use crate::runner::{Driver, Recorder, Workload};
use crate::server::Canceller;

/// A script that every connection of a run runs. The message of a script that fails is printed at once; the runner learns
/// only that it did.
pub struct Events {
    shared: Arc<Shared>,
    used_sql: Arc<AtomicBool>,
    /// The first script that failed, in its own words.
    failure: Arc<Mutex<Option<String>>>,
}

impl Events {
    /// The events of a script that has been read once before and whose options are known.
    pub fn new(shared: Arc<Shared>) -> Events {
        Events { shared, used_sql: Arc::default(), failure: Arc::default() }
    }

    /// Whether any thread has connected to a server.
    pub fn used_sql(&self) -> bool {
        self.used_sql.load(Ordering::Relaxed)
    }

    /// What the first script that failed said.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().map_or(None, |failure| failure.clone())
    }

    fn client(&self, thread: Thread) -> Client {
        Client {
            thread: Some(thread),
            shared: self.shared.clone(),
            failure: self.failure.clone(),
            is_last: false,
        }
    }
}

fn failed(shared: &Shared, failure: &Mutex<Option<String>>, error: &ScriptError) -> DbError {
    let words = error.to_string();
    if !shared.stop.load(Ordering::Relaxed) {
        (shared.say)(Priority::Fatal, &words);
        if let Ok(mut failure) = failure.lock() {
            failure.get_or_insert(words.clone());
        }
    }
    DbError::Unsupported(words)
}

impl Workload for Events {
    fn open(&self, seat: Seat) -> Result<Box<dyn Driver>, DbError> {
        (self.shared.say)(Priority::Debug, &format!("Worker thread (#{}) started", seat.index));
        let thread = Thread::start(&self.shared, seat.index)
            .map_err(|error| failed(&self.shared, &self.failure, &error))?;
        (self.shared.say)(Priority::Debug, &format!("Worker thread (#{}) initialized", seat.index));
        if thread.state().session().borrow().connection().is_some() {
            self.used_sql.store(true, Ordering::Relaxed);
        }
        Ok(Box::new(self.client(thread)))
    }

    fn cancelled(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// One thread at work.
struct Client {
    /// Taken at the end.
    thread: Option<Thread>,
    shared: Arc<Shared>,
    failure: Arc<Mutex<Option<String>>>,
    is_last: bool,
}

impl Client {
    /// Hands the statements of an attempt to whoever measures.
    fn hand_over(thread: &Thread, recorder: &mut Recorder<'_>) {
        let session = &mut *thread.state().session().borrow_mut();
        for answered in session.answered.drain(..) {
            let took_ns = answered.took.as_nanos() as u64;
            recorder.answered(answered.kind, took_ns, (!answered.failed).then_some(answered.rows));
        }
        recorder.mark();
    }
}

impl Driver for Client {
    fn attempt(&mut self, recorder: &mut Recorder<'_>) -> Result<(), DbError> {
        let Some(thread) = self.thread.as_mut().filter(|_| !self.is_last) else {
            return Err(DbError::Stopped);
        };
        let attempt = thread.attempt();
        Client::hand_over(thread, recorder);
        match attempt {
            Ok(Attempt::Done) => Ok(()),
            Ok(Attempt::Last) => {
                self.is_last = true;
                Ok(())
            }
            Ok(Attempt::Over) => {
                self.is_last = true;
                Err(DbError::Stopped)
            }
            Ok(Attempt::Again(fault)) => Err(DbError::Server(ServerError {
                number: fault.number,
                sqlstate: fault.state,
                message: fault.message,
            })),
            Err(error) => Err(failed(&self.shared, &self.failure, &error)),
        }
    }

    /// The session has done that, as far as the script lets it.
    fn roll_back(&mut self, _: &mut Recorder<'_>) -> Result<(), DbError> {
        Ok(())
    }

    /// Only errors that the script may ignore come this far.
    fn may_retry(&mut self, error: &DbError) -> bool {
        matches!(error, DbError::Server(_))
    }

    /// The session has connected again already, before it asked for another attempt.
    fn reconnect(&mut self) -> Result<(), DbError> {
        Ok(())
    }

    fn has_more(&self) -> bool {
        !self.is_last
    }

    fn server(&self) -> ServerRecord {
        let Some(thread) = &self.thread else { return ServerRecord::default() };
        let session = thread.state().session().borrow();
        session.connection().map_or_else(ServerRecord::default, |sql| ServerRecord {
            dialect: Some(sql.dialect()),
            version: sql.version().to_string(),
            places: self.shared.connect.places(sql.dialect()),
            tls: sql.is_encrypted(),
            ..ServerRecord::default()
        })
    }

    fn canceller(&self) -> Option<Canceller> {
        self.thread.as_ref()?.state().session().borrow().connection()?.canceller()
    }

    fn close(&mut self, recorder: &mut Recorder<'_>) {
        let Some(mut thread) = self.thread.take() else { return };
        let ended = thread.finish();
        Client::hand_over(&thread, recorder);
        if let Err(error) = ended {
            failed(&self.shared, &self.failure, &error);
        }
    }
}
