//! What the threads of connections write and the watcher reads. Connections are many and histograms are large, so
//! connections share a few sets of them: adding to a counter costs some ns, a statement some 10 µs at least.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_core::stats::counters::{Counters, Totals};
use weir_core::stats::histogram::BUCKETS;
use weir_oltp::Kind;
use weir_oltp::kind::Tally;
use weir_oltp::record::ConnectionRecord;

use super::clock::now_ns;
use super::gate::lock;
use crate::error::DbError;
use crate::rows::Done;

/// Sets of histograms at most. Up to as many connections have one of their own.
const SETS_MAX: u32 = 16;

/// Histograms by kind, for some of the connections.
struct Set {
    kinds: [Counters; Kind::ALL.len()],
    /// Writing statements that changed nothing, by kind.
    empty: [AtomicU64; Kind::ALL.len()],
}

/// Zeros for [`Counters::over`]; untouched pages of them cost nothing.
fn zeros() -> Box<[AtomicU64]> {
    let zeros = vec![0u64; BUCKETS].into_boxed_slice();
    // SAFETY: AtomicU64 has the size, alignment and representation of u64.
    unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [AtomicU64]) }
}

/// One connection's own counts, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
pub struct SeatCounters {
    /// Transactions finished.
    pub transactions: AtomicU64,
    /// Time spent in them.
    pub busy_ns: AtomicU64,
    /// Intended start of the transaction under way, ns on the monotonic clock; 0: none.
    pub started_ns: AtomicU64,
    /// When the last transaction ended.
    pub last_ns: AtomicU64,
    /// When the connection came to its end; 0: not yet, or by a panic.
    pub ended_ns: AtomicU64,
    /// Open loop: transactions taken whose time had come.
    pub intended: AtomicU64,
    /// Open loop: ended late.
    pub late: AtomicU64,
    /// Open loop: due and taken when the run ended.
    pub not_started: AtomicU64,
    /// Open loop: longest distance from intended to real start.
    pub start_delay_max_ns: AtomicU64,
}

impl SeatCounters {
    /// What the connection has done so far.
    pub fn share(&self) -> ConnectionRecord {
        ConnectionRecord {
            transactions: self.transactions.load(Relaxed),
            busy_ns: self.busy_ns.load(Relaxed),
        }
    }
}

/// All counts of a run.
pub struct Book {
    sets: Vec<Set>,
    /// By number of the connection.
    pub seats: Vec<SeatCounters>,
    /// Transactions that took more than one attempt.
    pub retried: AtomicU64,
    /// Connections made again.
    pub reconnects: AtomicU64,
    ignored: Mutex<BTreeMap<String, u64>>,
}

/// Sums over all connections at one moment.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// By kind.
    pub kinds: BTreeMap<Kind, Totals>,
    /// Writing statements that changed nothing, by kind.
    pub empty: BTreeMap<Kind, u64>,
    /// Errors that did not end the run, by code.
    pub ignored: BTreeMap<String, u64>,
    /// Transactions that took more than one attempt.
    pub retried: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Open loop: transactions taken.
    pub intended: u64,
    /// Open loop: ended late.
    pub late: u64,
}

impl Book {
    /// For so many connections.
    pub fn new(connections: u32) -> Book {
        let set = || Set {
            kinds: std::array::from_fn(|_| Counters::over(zeros())),
            empty: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Book {
            sets: (0..connections.clamp(1, SETS_MAX)).map(|_| set()).collect(),
            seats: (0..connections).map(|_| SeatCounters::default()).collect(),
            retried: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            ignored: Mutex::default(),
        }
    }

    /// Counts an error after which the run goes on.
    pub fn ignore(&self, error: &DbError) {
        *lock(&self.ignored).entry(code_of(error)).or_default() += 1;
    }

    /// Everything counted so far.
    pub fn sums(&self) -> Sums {
        let of_seats = |count: fn(&SeatCounters) -> &AtomicU64| {
            self.seats.iter().map(|seat| count(seat).load(Relaxed)).sum()
        };
        let mut sums = Sums {
            ignored: lock(&self.ignored).clone(),
            retried: self.retried.load(Relaxed),
            reconnects: self.reconnects.load(Relaxed),
            intended: of_seats(|seat| &seat.intended),
            late: of_seats(|seat| &seat.late),
            ..Sums::default()
        };
        for kind in Kind::ALL {
            let mut total = Totals::default();
            self.sets.iter().for_each(|set| set.kinds[kind as usize].add_to(&mut total));
            sums.kinds.insert(kind, total);
            sums.empty.insert(kind, self.sets.iter().map(|s| s.empty[kind as usize].load(Relaxed)).sum());
        }
        sums
    }
}

/// What an error is counted under: the server's code, or a word.
pub fn code_of(error: &DbError) -> String {
    match error {
        DbError::Server(error) => error.code(),
        DbError::Timeout { .. } => "timeout".to_string(),
        _ => "lost".to_string(),
    }
}

/// Counts the statements of one connection. It reads the clock once a statement: each is taken to begin where the one
/// before it ended, unless [`Recorder::mark`] says otherwise.
pub struct Recorder<'a> {
    set: &'a Set,
    now_ns: u64,
}

impl<'a> Recorder<'a> {
    /// The recorder of a connection.
    pub fn new(book: &'a Book, seat: u32) -> Recorder<'a> {
        Recorder { set: &book.sets[seat as usize % book.sets.len()], now_ns: now_ns() }
    }

    /// Looks at the clock: what comes next begins now. For work of the client's own between statements that is not to
    /// count as the server's, and at the end of a transaction for such work that is to count as the transaction's.
    #[inline]
    pub fn mark(&mut self) {
        self.now_ns = now_ns();
    }

    /// When the last statement ended, or the last mark was made; ns on the monotonic clock.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A statement has ended: counts it with the time since the last one, or its failure.
    #[inline]
    pub fn statement(&mut self, kind: Kind, result: &Result<Done, DbError>) {
        let start_ns = std::mem::replace(&mut self.now_ns, now_ns());
        let counters = &self.set.kinds[kind as usize];
        match result {
            Ok(done) => {
                counters.record_shared(self.now_ns.saturating_sub(start_ns), done.rows.max(done.affected));
                if done.affected == 0 && kind.tally() == Some(Tally::Write) {
                    self.set.empty[kind as usize].fetch_add(1, Relaxed);
                }
            }
            Err(_) => counters.record_error(),
        }
    }

    /// Counts a statement that somebody else has timed: so many rows, or a failure.
    pub fn answered(&mut self, kind: Kind, took_ns: u64, rows: Option<u64>) {
        let counters = &self.set.kinds[kind as usize];
        match rows {
            Some(rows) => counters.record_shared(took_ns, rows),
            None => counters.record_error(),
        }
    }

    /// A transaction that was meant to start at `start_ns` has ended.
    pub(super) fn transaction(&self, start_ns: u64) {
        self.set.kinds[Kind::Transaction as usize].record_shared(self.now_ns.saturating_sub(start_ns), 0);
    }

    /// A transaction was given up.
    pub(super) fn transaction_failed(&self) {
        self.set.kinds[Kind::Transaction as usize].record_error();
    }
}
