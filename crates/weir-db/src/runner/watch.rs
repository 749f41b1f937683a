//! Watches a run: once a tick it takes the difference of the counters, keeps it as an interval, and tells the observer.
//! It also ends the run when its time is up or the user asks, and cancels what hangs then.

use std::sync::atomic::Ordering::Relaxed;

use weir_core::result::intervals::{Intervals, between};
use weir_core::result::record::{Interval, Note};
use weir_core::stats::counters::Totals;
use weir_core::workload::schedule::Schedule;
use weir_oltp::Kind;
use weir_oltp::record::ConnectionRecord;

use super::clock::{now_ns, process_cpu_ns, sleep_until_ns};
use super::gate::lock;
use super::recorder::{SeatCounters, Sums};
use super::running::Running;
use super::{Observer, RunOptions, Stop, Tick};

/// Between ticks the watcher wakes this often to see whether the run has ended or should.
const LOOK_NS: u64 = 20_000_000;
/// [`RunOptions::grace_ns`] at most, once the user has asked to stop.
const STOPPED_GRACE_NS: u64 = 2_000_000_000;

/// What was seen of a run.
#[derive(Default)]
pub struct Seen {
    /// Counts when measuring began.
    pub base: Sums,
    /// What each connection had done when measuring began.
    pub base_seats: Vec<ConnectionRecord>,
    /// Finished intervals.
    pub intervals: Intervals<Kind>,
    /// CPU clocks when measuring began: process user, process system, machine.
    pub base_cpu: Cpu,
    /// The same when the run ended.
    pub end_cpu: Cpu,
    /// What was noticed.
    pub notes: Vec<Note>,
    /// Statements were left behind.
    pub abandoned: bool,
    /// The user asked to stop.
    pub stopped: bool,
    /// When no transaction was to start any more, by the time asked for, a request or a failure; `None`: the connections came to
    /// their end before that. Ns on the monotonic clock.
    pub over_ns: Option<u64>,
    /// When the last connection had ended or was left behind, on the same clock.
    pub end_ns: u64,
}

/// Process user, process system, machine; ns.
pub type Cpu = (u64, u64, Option<u64>);

/// What each connection had done at a moment between two looks at them, at which they had `counted` transactions
/// together: they go on while their counts are read, and their shares are to add up to what was counted.
fn shares_of(
    counted: u64,
    mut before: Vec<ConnectionRecord>,
    after: &[ConnectionRecord],
) -> Vec<ConnectionRecord> {
    let mut missing = counted.saturating_sub(before.iter().map(|share| share.transactions).sum());
    for (share, after) in before.iter_mut().zip(after) {
        let ended = after.transactions - share.transactions;
        let taken = ended.min(missing);
        if taken > 0 {
            share.transactions += taken;
            share.busy_ns += (after.busy_ns - share.busy_ns) / ended * taken;
            missing -= taken;
        }
    }
    before
}

/// What changes from one look to the next.
struct Watch<'a> {
    running: &'a mut Running,
    options: &'a RunOptions,
    seen: Seen,
    last: Sums,
    last_ns: u64,
    next_tick_ns: u64,
    measuring: bool,
    /// When statements that still ran were cancelled.
    cancelled_ns: Option<u64>,
}

/// Watches until every connection has ended.
pub fn watch(running: &mut Running, options: &RunOptions, observer: &mut dyn Observer, stop: &Stop) -> Seen {
    let start_ns = running.span.epoch_ns;
    let mut watch = Watch {
        options,
        seen: Seen::default(),
        last: Sums::default(),
        last_ns: start_ns,
        next_tick_ns: start_ns + options.tick_ns,
        measuring: false,
        cancelled_ns: None,
        running,
    };
    while !watch.look(observer, stop) {
        sleep_until_ns(watch.next_look_ns());
    }
    watch.seen
}

impl Watch<'_> {
    fn next_look_ns(&self) -> u64 {
        let now = now_ns();
        let start = if self.measuring { u64::MAX } else { self.running.measure_from_ns };
        let end = if self.seen.over_ns.is_some() { u64::MAX } else { self.running.span.deadline_ns };
        self.next_tick_ns.min(start).min(end).min(now + LOOK_NS)
    }

    /// One look; `true`: it was the last.
    fn look(&mut self, observer: &mut dyn Observer, stop: &Stop) -> bool {
        // Before the clock and the halt: what has ended the last connection shows in both.
        let ended = self.running.all_ended();
        let now = now_ns();
        if now >= self.running.span.deadline_ns || stop.requested().is_some() {
            self.running.shared.halt.raise();
            self.seen.stopped |= stop.requested().is_some() && now < self.running.span.deadline_ns;
        }
        if self.running.shared.halt.is_raised() {
            self.seen.over_ns.get_or_insert(now);
        }
        if !self.measuring && now >= self.running.measure_from_ns {
            self.begin_measuring(now);
            observer.measuring();
        }
        let abandoned = !ended && self.end_hung(now, stop.requested().is_some());
        if now >= self.next_tick_ns || ended || abandoned {
            self.tick(now, observer);
        }
        if ended || abandoned {
            if !self.measuring {
                self.begin_measuring(now);
            }
            self.seen.abandoned = abandoned;
            self.seen.end_cpu = self.cpu();
            self.seen.end_ns = now;
        }
        ended || abandoned
    }

    fn cpu(&self) -> Cpu {
        let (user, system) = process_cpu_ns();
        (user, system, self.options.machine_busy_ns.and_then(|busy_ns| busy_ns()))
    }

    /// Everything counted before this moment is warm-up.
    fn begin_measuring(&mut self, now: u64) {
        self.measuring = true;
        self.running.shared.measuring.store(true, Relaxed);
        self.seen.base_cpu = self.cpu();
        let seats = &self.running.shared.book.seats;
        if self.running.shared.spec.warmup.0 == 0 {
            self.seen.base_seats = vec![ConnectionRecord::default(); seats.len()];
            return;
        }
        let shares = || seats.iter().map(SeatCounters::share).collect::<Vec<_>>();
        let before = shares();
        self.seen.base = self.running.shared.book.sums();
        let counted = self.seen.base.kinds.get(&Kind::Transaction).map_or(0, Totals::count);
        self.seen.base_seats = shares_of(counted, before, &shares());
        seats.iter().for_each(|seat| seat.start_delay_max_ns.store(0, Relaxed));
        self.last = self.seen.base.clone();
        self.running.measure_from_ns = now;
        self.last_ns = now;
        self.next_tick_ns = now + self.options.tick_ns;
    }

    fn tick(&mut self, now: u64, observer: &mut dyn Observer) {
        let shared = &self.running.shared;
        let current = shared.book.sums();
        let (classes, latencies) = between(&self.last.kinds, &current.kinds);
        let started: Vec<u64> =
            shared.book.seats.iter().map(|seat| seat.started_ns.load(Relaxed)).filter(|ns| *ns > 0).collect();
        let interval = Interval {
            start_ns: self.last_ns.saturating_sub(self.running.measure_from_ns),
            len_ns: now.saturating_sub(self.last_ns),
            classes,
            oldest_ns: started.iter().map(|start| now.saturating_sub(*start)).max().unwrap_or(0),
            in_flight: started.len() as u32,
        };
        let ignored = |sums: &Sums| sums.ignored.values().sum::<u64>();
        observer.tick(&Tick {
            spec: &shared.spec,
            at_ns: now as i64 - self.running.measure_from_ns as i64,
            interval: &interval,
            latencies: &latencies,
            ignored_errors: ignored(&current) - ignored(&self.last),
            reconnects: current.reconnects - self.last.reconnects,
            queued: self.queued(now),
            threads: &|| shared.book.seats.iter().map(SeatCounters::share).collect(),
        });
        if self.measuring {
            self.seen.intervals.keep(interval, self.options.tick_ns);
        }
        self.last = current;
        self.last_ns = now;
        // Ticks stay on their grid: a late one does not delay the next.
        while self.next_tick_ns <= now {
            self.next_tick_ns += self.options.tick_ns.max(1);
        }
    }

    /// Transactions whose time has come and that nobody has taken.
    fn queued(&self, now: u64) -> u64 {
        let Some(schedule) = &self.running.shared.schedule else { return 0 };
        // A copy runs ahead of what the threads have taken.
        let copy = lock(schedule).clone();
        due_before(copy, now.saturating_sub(self.running.span.epoch_ns))
    }

    /// Cancels statements that still run a while after the end, and gives them up after as long again: `true` then.
    fn end_hung(&mut self, now: u64, is_stopped: bool) -> bool {
        let Some(over_ns) = self.seen.over_ns else { return false };
        let longest_ns = if is_stopped { STOPPED_GRACE_NS } else { u64::MAX };
        let grace_ns = self.options.grace_ns.min(longest_ns);
        let Some(cancelled_ns) = self.cancelled_ns else {
            if now >= over_ns.saturating_add(grace_ns) {
                self.cancelled_ns = Some(now);
                self.cancel(now - over_ns);
            }
            return false;
        };
        let abandoned = now >= cancelled_ns.saturating_add(grace_ns);
        if abandoned {
            let stuck = self.stuck().len();
            self.note(
                "abandoned",
                format!("{stuck} connections did not come back after the end and were left behind"),
            );
        }
        abandoned
    }

    /// Connections in the middle of a transaction.
    fn stuck(&self) -> Vec<usize> {
        let seats = self.running.shared.book.seats.iter().enumerate();
        seats.filter(|(_, seat)| seat.started_ns.load(Relaxed) > 0).map(|(index, _)| index).collect()
    }

    fn cancel(&mut self, after_ns: u64) {
        let stuck = self.stuck();
        let shared = self.running.shared.clone();
        shared.cancelled.store(true, Relaxed);
        self.running.workload.cancelled();
        let after_ms = after_ns / 1_000_000;
        self.note(
            "cancelled",
            format!("{} statements still ran {after_ms} ms after the end and were cancelled", stuck.len()),
        );
        // Cancelling connects to the server, which may hang as well: not in the thread that watches.
        std::thread::spawn(move || {
            let cancellers = lock(&shared.cancellers).clone();
            for canceller in stuck.into_iter().filter_map(|index| cancellers.get(index).cloned().flatten()) {
                let _ = canceller.cancel();
            }
        });
    }

    fn note(&mut self, key: &str, text: String) {
        self.seen.notes.push(Note { key: key.to_string(), text });
    }
}

/// How many of a schedule's next times lie before `end_ns`.
pub fn due_before(mut schedule: Schedule, end_ns: u64) -> u64 {
    std::iter::repeat_with(|| schedule.next_ns()).take_while(|at_ns| *at_ns < end_ns).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_what_was_counted_between_two_looks() {
        let shares = |of: [(u64, u64); 3]| {
            of.map(|(transactions, busy_ns)| ConnectionRecord { transactions, busy_ns }).to_vec()
        };
        let (before, after) =
            (shares([(10, 100), (5, 50), (7, 70)]), shares([(12, 140), (5, 90), (10, 100)]));
        assert_eq!(shares_of(22, before.clone(), &after), before);
        assert_eq!(shares_of(25, before.clone(), &after), shares([(12, 140), (5, 50), (8, 80)]));
        assert_eq!(shares_of(27, before, &after), shares([(12, 140), (5, 50), (10, 100)]));
    }
}
