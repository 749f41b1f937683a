//! What the threads of a run share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use weir_core::workload::schedule::Schedule;
use weir_oltp::OltpSpec;

use super::gate::{Gate, Halt, Permits, lock};
use super::recorder::Book;
use crate::server::Canceller;

/// What the threads of a run share.
pub struct Shared {
    /// What was asked for.
    pub spec: OltpSpec,
    /// All counts.
    pub book: Book,
    /// Open loop: when transactions are meant to start.
    pub schedule: Option<Mutex<Schedule>>,
    /// Warm-up is over.
    pub measuring: AtomicBool,
    /// Transactions begun since then, where their number is limited.
    pub tickets: AtomicU64,
    /// Open loop: a transaction that was to begin had no time left.
    pub out_of_time: AtomicBool,
    /// No transaction is to start any more.
    pub halt: Halt,
    /// Statements have been cancelled at the end of the run.
    pub cancelled: AtomicBool,
    /// The error that ended the run.
    pub failure: Mutex<Option<String>>,
    /// By what each connection's statements are cancelled.
    pub cancellers: Mutex<Vec<Option<Canceller>>>,
    /// Few connect at a time.
    pub permits: Permits,
    /// The start.
    pub gate: Gate,
}

impl Shared {
    /// Ends the run with an error; the first one stands.
    pub fn fail(&self, error: String) {
        lock(&self.failure).get_or_insert(error);
        self.halt.raise();
    }

    /// Whether an error has ended the run.
    pub fn has_failed(&self) -> bool {
        lock(&self.failure).is_some()
    }
}
