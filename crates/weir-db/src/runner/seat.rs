//! The life of one connection's thread: connect, wait for the start, run transactions until the end.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use weir_oltp::Seat;
use weir_oltp::record::ServerRecord;

use super::clock::now_ns;
use super::gate::{Span, lock};
use super::recorder::{Recorder, SeatCounters, code_of};
use super::shared::Shared;
use super::{Driver, Workload};
use crate::error::DbError;
use crate::server::Canceller;

/// The first wait before connecting again, and the longest: each is twice the one before.
const BACK_OFF_NS: (u64, u64) = (10_000_000, 1_000_000_000);

/// The thread. Says through `ready` whether it is connected.
pub fn work(
    shared: &Shared,
    workload: &dyn Workload,
    seat: Seat,
    ready: &Sender<(u32, Result<ServerRecord, DbError>)>,
) {
    let opened = shared.permits.hold(|| {
        // When the start was called off, those who have not begun to connect need not.
        if shared.gate.is_off() { Err(DbError::Stopped) } else { workload.open(seat) }
    });
    let driver = match opened {
        Ok(driver) => driver,
        Err(error) => {
            let _ = ready.send((seat.index, Err(error)));
            return;
        }
    };
    set_canceller(shared, seat.index, driver.canceller());
    let _ = ready.send((seat.index, Ok(driver.server())));
    if let Some(span) = shared.gate.wait()
        && shared.halt.sleep_until(span.epoch_ns)
    {
        let counters = &shared.book.seats[seat.index as usize];
        let recorder = Recorder::new(&shared.book, seat.index);
        let mut at_work = AtWork { shared, counters, driver, recorder, span, index: seat.index };
        at_work.run();
        at_work.driver.close(&mut at_work.recorder);
        counters.ended_ns.store(now_ns(), Relaxed);
    }
    set_canceller(shared, seat.index, None);
}

fn set_canceller(shared: &Shared, index: u32, canceller: Option<Canceller>) {
    if let Some(place) = lock(&shared.cancellers).get_mut(index as usize) {
        *place = canceller;
    }
}

/// What becomes of a transaction after an error.
enum After {
    /// It runs again.
    Again,
    /// It is given up, because the run is over.
    GiveUp,
}

/// A connection that runs transactions.
struct AtWork<'a> {
    shared: &'a Shared,
    counters: &'a SeatCounters,
    driver: Box<dyn Driver>,
    recorder: Recorder<'a>,
    span: Span,
    index: u32,
}

impl AtWork<'_> {
    fn run(&mut self) {
        self.recorder.mark();
        while let Some(start_ns) = self.next_start() {
            self.counters.started_ns.store(start_ns, Relaxed);
            let result = self.transaction(start_ns);
            self.counters.started_ns.store(0, Relaxed);
            if let Err(error) = result {
                let of = self.shared.spec.threads;
                self.shared.fail(format!("connection {} of {of}: {error}", self.index + 1));
                return;
            }
            if !self.driver.has_more() {
                return;
            }
        }
    }

    /// When the next transaction is meant to start, once that time has come; `None`: the run is over.
    #[inline]
    fn next_start(&mut self) -> Option<u64> {
        let now_ns = self.recorder.now_ns();
        if self.shared.halt.is_raised() || now_ns >= self.span.deadline_ns || !self.take_ticket() {
            return None;
        }
        match &self.shared.schedule {
            None => Some(now_ns),
            Some(schedule) => {
                let at_ns = self.span.epoch_ns.saturating_add(lock(schedule).next_ns());
                self.wait_until(at_ns, now_ns)
            }
        }
    }

    /// Whether another transaction may begin, where their number is limited. Those of the warm-up do not count.
    fn take_ticket(&self) -> bool {
        let limit = self.shared.spec.transactions;
        limit == 0
            || !self.shared.measuring.load(Relaxed)
            || self.shared.tickets.fetch_add(1, Relaxed) < limit
    }

    /// Waits for a transaction's time.
    fn wait_until(&mut self, at_ns: u64, now_ns: u64) -> Option<u64> {
        if at_ns >= self.span.deadline_ns {
            // The time asked for is what a schedule's rate is measured over: a connection ends with it, not before.
            self.shared.halt.sleep_until(self.span.deadline_ns);
            self.shared.out_of_time.store(true, Relaxed);
            return None;
        }
        if at_ns > now_ns {
            if !self.shared.halt.sleep_until(at_ns) {
                return None;
            }
            self.recorder.mark();
        }
        let delay_ns = self.recorder.now_ns().saturating_sub(at_ns);
        self.counters.start_delay_max_ns.fetch_max(delay_ns, Relaxed);
        if self.recorder.now_ns() >= self.span.deadline_ns {
            // It was due, and there is no time left for it.
            self.counters.not_started.fetch_add(1, Relaxed);
            self.shared.out_of_time.store(true, Relaxed);
            return None;
        }
        self.counters.intended.fetch_add(1, Relaxed);
        Some(at_ns)
    }

    /// One transaction with all its attempts. `Err` ends the run.
    fn transaction(&mut self, start_ns: u64) -> Result<(), DbError> {
        let begun_ns = self.recorder.now_ns();
        let mut attempts = 1u32;
        while let Err(error) = self.driver.attempt(&mut self.recorder) {
            if matches!(error, DbError::Stopped) {
                return Ok(());
            }
            match self.recover(error) {
                Ok(After::Again) => attempts += 1,
                Ok(After::GiveUp) => {
                    self.recorder.transaction_failed();
                    return Ok(());
                }
                Err(error) => {
                    self.recorder.transaction_failed();
                    return Err(error);
                }
            }
            if attempts == 2 {
                self.shared.book.retried.fetch_add(1, Relaxed);
            }
        }
        if self.recorder.now_ns() == begun_ns {
            // No statement has looked at the clock.
            self.recorder.mark();
        }
        self.finished(start_ns, begun_ns);
        Ok(())
    }

    #[inline]
    fn finished(&mut self, start_ns: u64, begun_ns: u64) {
        let end_ns = self.recorder.now_ns();
        self.recorder.transaction(start_ns);
        let add = |counter: &std::sync::atomic::AtomicU64, n: u64| {
            // This thread alone writes to its counters.
            counter.store(counter.load(Relaxed) + n, Relaxed);
        };
        add(&self.counters.transactions, 1);
        add(&self.counters.busy_ns, end_ns - begun_ns);
        self.counters.last_ns.store(end_ns, Relaxed);
        if self.shared.schedule.is_some() && end_ns - start_ns > self.shared.spec.late_after.0 {
            add(&self.counters.late, 1);
        }
    }

    /// Brings the connection back to where an attempt can begin. `Err`: the run cannot go on.
    fn recover(&mut self, error: DbError) -> Result<After, DbError> {
        let over = self.shared.halt.is_raised();
        if over && self.shared.cancelled.load(Relaxed) {
            return Ok(After::GiveUp);
        }
        if error.is_lost() {
            return self.reconnect(error);
        }
        if !self.driver.may_retry(&error) && !self.is_listed(&error) {
            return Err(error);
        }
        self.shared.book.ignore(&error);
        match self.driver.roll_back(&mut self.recorder) {
            Ok(()) if over => Ok(After::GiveUp),
            Ok(()) => Ok(After::Again),
            Err(error) if error.is_lost() => self.reconnect(error),
            Err(error) => Err(error),
        }
    }

    fn is_listed(&self, error: &DbError) -> bool {
        let code = code_of(error);
        matches!(error, DbError::Server(_))
            && self.shared.spec.retry_errors.iter().any(|listed| *listed == code || listed == "all")
    }

    /// Connects again, with a pause before every attempt that is twice the one before.
    fn reconnect(&mut self, error: DbError) -> Result<After, DbError> {
        if matches!(error, DbError::Timeout { .. })
            && let Some(canceller) = self.driver.canceller()
        {
            // The server may be at the statement still; whether it hears of this makes no difference here.
            let _ = canceller.cancel();
        }
        if !self.shared.spec.reconnect {
            return Err(error);
        }
        self.shared.book.ignore(&error);
        let mut pause_ns = BACK_OFF_NS.0;
        loop {
            if !self.pause(pause_ns) {
                return Ok(After::GiveUp);
            }
            pause_ns = (pause_ns * 2).min(BACK_OFF_NS.1);
            match self.shared.permits.hold(|| self.driver.reconnect()) {
                Ok(()) => break,
                Err(error) if may_come_back(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.shared.book.reconnects.fetch_add(1, Relaxed);
        set_canceller(self.shared, self.index, self.driver.canceller());
        self.recorder.mark();
        Ok(After::Again)
    }

    /// `false`: the run is over.
    fn pause(&self, time_ns: u64) -> bool {
        let until_ns = now_ns() + time_ns;
        until_ns < self.span.deadline_ns && self.shared.halt.sleep_until(until_ns)
    }
}

/// Whether a server that answers so, or not at all, may be one that is starting.
fn may_come_back(error: &DbError) -> bool {
    match error {
        DbError::Connect { .. } | DbError::Lost { .. } | DbError::Timeout { .. } => true,
        // Too many connections: those of the server's last life are still being counted.
        DbError::Server(_) => error.is_lost() || error.is_full(),
        _ => false,
    }
}
