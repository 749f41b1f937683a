//! One thread's loop: take operations from the stream, hand them to the engine, record what comes back.
//!
//! Closed loop: an operation's intended start is the moment its slot became free. Open loop: it is the scheduled
//! time, however late the operation really starts. Either way the latency ends when the completion is seen.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use weir_core::result::record::Class;
use weir_core::result::run_result::START_IS_LATE_NS;
use weir_core::workload::spec::{Job, OpenSync, SyncMode};
use weir_core::workload::{Op, OpKind, OpSource, Then};

use crate::content::Content;
use crate::engine::{Action, Done, Engine, Step, Wait};
use crate::place::Place;
use crate::recorder::ThreadCounters;
use crate::sys::arena::Arena;
use crate::sys::clock::{now_ns, sleep_until_ns};

/// How often a thread that waits for an operation's time looks whether it should stop.
const LOOK_UP_NS: u64 = 50_000_000;
/// Below this distance a thread spins instead of sleeping, because a sleep may take longer.
const SPIN_NS: u64 = 2_000;
/// So long before a recorded I/O's time a replay stops sleeping and looks at the clock instead: sleeps of virtual machines
/// end tens of microseconds late, and a replay is there to start each I/O at its time.
const REPLAY_AWAKE_NS: u64 = 150_000;
/// What all threads of a job share.
pub struct Shared {
    /// The job.
    pub job: Job,
    /// Where operations come from.
    pub source: Mutex<Box<dyn OpSource>>,
    /// Raised when the job should end: time is up, an operation failed, or the user asked.
    pub halt: AtomicBool,
    /// The first failure.
    pub failure: Mutex<Option<String>>,
    /// The files, whose paths messages name.
    pub places: Vec<Place>,
    /// Sizes of the files in bytes.
    pub file_bytes: Vec<u64>,
}

/// An operation in flight.
#[derive(Clone, Copy)]
struct Slot {
    op: Op,
    /// Intended start.
    start_ns: u64,
    /// Start of the current step: of the sync, once the write is done.
    step_ns: u64,
    /// The write of a commit is done and its sync is under way.
    syncing: bool,
}

/// One thread at work.
pub struct Worker<'a, E: Engine> {
    shared: &'a Shared,
    counters: &'a ThreadCounters,
    engine: E,
    arena: Arena,
    content: Content,
    slots: Vec<Slot>,
    free: Vec<u32>,
    batch: Vec<Op>,
    batch_len: usize,
    next: usize,
    held: Option<Op>,
    ended: bool,
    /// It was the time that ended it, not the end of the stream, a failure or the user.
    lasted: bool,
    /// Nothing more could start when operations were last started: all of the depth was in flight.
    is_full: bool,
    in_flight: u32,
    min_reap: u32,
    epoch_ns: u64,
    deadline_ns: u64,
    open_loop: bool,
    /// Below this distance from an operation's time this thread spins.
    spin_ns: u64,
    durable_writes: bool,
    /// Operations in flight, integrated over time.
    integral: u64,
    /// Steps finished.
    finished: u64,
    /// Running mean of latencies.
    latency_ns: u64,
    /// The last wait took longer than that.
    stalling: bool,
}

/// When a thread starts and ends, ns on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Zero of the open loop's schedule.
    pub epoch_ns: u64,
    /// This thread's own start (ramp).
    pub start_ns: u64,
    /// No operation starts after this; `u64::MAX`: no limit.
    pub deadline_ns: u64,
}

impl<'a, E: Engine> Worker<'a, E> {
    /// A worker with its own engine and buffers.
    pub fn new(
        shared: &'a Arc<Shared>,
        counters: &'a ThreadCounters,
        engine: E,
        arena: Arena,
        content: Content,
        span: Span,
    ) -> Self {
        let job = &shared.job;
        let depth = counters.started_ns.len() as u32;
        let empty = Op { kind: OpKind::Read, then: Then::Nothing, file: 0, len: 0, offset: 0, at_ns: 0 };
        let slot = Slot { op: empty, start_ns: 0, step_ns: 0, syncing: false };
        let open_loop = job.is_open_loop();
        let min_reap = if open_loop { 1 } else { crate::engine::batch_for(depth) };
        Worker {
            shared,
            counters,
            engine,
            arena,
            content,
            slots: vec![slot; depth as usize],
            free: (0..depth).rev().collect(),
            batch: Vec::with_capacity(64),
            batch_len: shared.source.lock().map_or(1, |s| s.batch().max(1)),
            next: 0,
            held: None,
            ended: false,
            lasted: false,
            is_full: false,
            in_flight: 0,
            min_reap,
            epoch_ns: span.epoch_ns,
            deadline_ns: span.deadline_ns,
            open_loop,
            spin_ns: if job.replay.is_some() { REPLAY_AWAKE_NS } else { SPIN_NS },
            durable_writes: job.open_sync != OpenSync::None,
            integral: 0,
            finished: 0,
            latency_ns: 0,
            stalling: false,
        }
    }

    /// Works until the stream or the time has ended and nothing is in flight any more.
    pub fn run(&mut self) {
        let mut done = Vec::with_capacity(self.slots.len() * 2);
        let mut now = now_ns();
        self.counters.first_ns.store(now, Relaxed);
        loop {
            self.fill(now);
            self.publish(now);
            if self.in_flight == 0 {
                if self.ended && self.held.is_none() {
                    return;
                }
                now = self.wait_for_time(now);
                continue;
            }
            let wait = self.wait_for(now);
            if let Err(error) = self.engine.reap(wait, &mut done) {
                return self.give_up(&error);
            }
            let before = now;
            now = now_ns();
            self.integral += u64::from(self.in_flight) * (now - before);
            self.stalling = now - before > self.latency_ns;
            for finished in done.drain(..) {
                self.finish(finished, now);
            }
        }
    }

    /// The engine itself has failed, and what is in flight will never be heard of. Its buffers are left where they
    /// are, because the kernel may still write to them.
    fn give_up(&mut self, error: &std::io::Error) {
        self.fail(format!("{}: {error}", self.shared.job.engine.name()));
        self.arena.leave_mapped();
    }

    /// What the engine says of itself, once the work is done.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Whether it was at work until its time was up.
    pub fn has_lasted(&self) -> bool {
        self.lasted
    }

    /// What verification found.
    pub fn into_content(self) -> Content {
        self.content
    }

    fn publish(&mut self, now: u64) {
        let counters = self.counters;
        counters.in_flight.store(self.in_flight, Relaxed);
        counters.in_flight_integral.store(self.integral, Relaxed);
        counters.operations.store(self.finished, Relaxed);
        counters.last_ns.store(now, Relaxed);
    }

    /// Starts operations until the depth is reached, the stream ends, or the next one's time has not come.
    #[inline(always)]
    fn fill(&mut self, now: u64) {
        if self.shared.halt.load(Relaxed) || now >= self.deadline_ns {
            self.lasted |= now >= self.deadline_ns && !self.ended;
            self.end(now);
        }
        // At most one operation for each slot: one that may not start now leaves its slot free, and what it waits for ends only
        // where completions are taken.
        for _ in 0..self.free.len() {
            let Some(op) = self.take() else { break };
            let start_ns = if self.open_loop { self.epoch_ns + op.at_ns } else { now };
            if self.open_loop && start_ns > now {
                self.held = Some(op);
                break;
            }
            self.start(op, start_ns, now);
        }
        self.is_full = self.free.is_empty();
        if self.in_flight > self.counters.in_flight_max.load(Relaxed) {
            self.counters.in_flight_max.store(self.in_flight, Relaxed);
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Op> {
        if self.ended {
            return None;
        }
        if let Some(op) = self.held.take() {
            return Some(op);
        }
        if self.next == self.batch.len() {
            self.refill();
        }
        let op = self.batch.get(self.next).copied();
        self.next += 1;
        op
    }

    fn refill(&mut self) {
        self.batch.clear();
        self.next = 0;
        if let Ok(mut source) = self.shared.source.lock() {
            source.fill(&mut self.batch, self.batch_len);
        }
        if self.batch.is_empty() {
            self.ended = true;
        }
    }

    /// Takes no further operations.
    fn end(&mut self, now: u64) {
        self.ended = true;
        let due_ns = now.min(self.deadline_ns);
        if self.held.take().is_some_and(|op| self.epoch_ns + op.at_ns < due_ns) {
            let counters = self.counters;
            counters.not_started.store(counters.not_started.load(Relaxed) + 1, Relaxed);
        }
    }

    #[inline(always)]
    fn start(&mut self, op: Op, start_ns: u64, now: u64) {
        if self.open_loop {
            self.note_intended(now - start_ns);
        }
        let Some(slot) = self.free.pop() else { return };
        if !self.content.before(&op, &mut self.arena, slot) {
            return self.free.push(slot);
        }
        let step = Step {
            slot,
            file: op.file,
            len: op.len,
            action: action_of(&op),
            offset: op.offset,
            buffer: self.arena.pointer(slot),
        };
        // Told before the engine takes it, for a synchronous one returns only when the operation is done.
        self.in_flight += 1;
        self.counters.started_ns[slot as usize].store(start_ns, Relaxed);
        self.counters.in_flight.store(self.in_flight, Relaxed);
        self.engine.push(&step);
        self.slots[slot as usize] = Slot { op, start_ns, step_ns: start_ns, syncing: false };
    }

    fn note_intended(&self, delay_ns: u64) {
        let counters = self.counters;
        if let Some(delays) = &counters.start_delays {
            delays.record(delay_ns, 0);
        }
        if self.is_full && delay_ns > START_IS_LATE_NS {
            counters.waited_for_depth.store(counters.waited_for_depth.load(Relaxed) + 1, Relaxed);
        }
        counters.intended.store(counters.intended.load(Relaxed) + 1, Relaxed);
    }

    #[inline(always)]
    fn finish(&mut self, done: Done, now: u64) {
        let mut slot = self.slots[done.slot as usize];
        let step_is_sync = slot.syncing || matches!(slot.op.kind, OpKind::Sync(_));
        if done.result < 0 || (!step_is_sync && done.result as u32 != slot.op.len) {
            return self.finish_badly(done, slot, step_is_sync);
        }
        let (class, bytes) = match slot.op.kind {
            _ if step_is_sync => (Class::Sync, 0),
            OpKind::Read => (Class::Read, u64::from(slot.op.len)),
            _ => (Class::Write, u64::from(slot.op.len)),
        };
        self.counters.class(class).record(now - slot.step_ns, bytes);
        self.finished += 1;
        if class != Class::Sync {
            self.content.after(&slot.op, &mut self.arena, done.slot);
            let durable = self.durable_writes && class == Class::Write;
            match slot.op.then {
                Then::Commit(SyncMode::RwfDsync) => self.record_commit(&slot, now),
                Then::Commit(mode) => {
                    slot.step_ns = now;
                    slot.syncing = true;
                    self.slots[done.slot as usize] = slot;
                    return self.push_sync(&slot.op, done.slot, mode);
                }
                Then::Nothing if durable => self.record_commit(&slot, now),
                Then::Nothing => {}
            }
        } else if slot.syncing {
            self.record_commit(&slot, now);
        }
        self.release(done.slot, now - slot.start_ns);
    }

    #[inline(always)]
    fn record_commit(&mut self, slot: &Slot, now: u64) {
        self.counters.class(Class::Commit).record(now - slot.start_ns, u64::from(slot.op.len));
    }

    fn push_sync(&mut self, op: &Op, slot: u32, mode: SyncMode) {
        let buffer = self.arena.pointer(slot);
        let action = Action::Sync(mode);
        self.engine.push(&Step { slot, file: op.file, len: op.len, action, offset: op.offset, buffer });
    }

    #[inline(always)]
    fn release(&mut self, slot: u32, latency_ns: u64) {
        self.counters.started_ns[slot as usize].store(0, Relaxed);
        self.free.push(slot);
        self.in_flight -= 1;
        if self.open_loop && latency_ns > self.shared.job.late_after.0 {
            self.counters.late.store(self.counters.late.load(Relaxed) + 1, Relaxed);
        }
        // A running mean over some 32 operations, for the patience of the next wait.
        self.latency_ns = self.latency_ns - self.latency_ns / 32 + latency_ns / 32;
    }

    fn finish_badly(&mut self, done: Done, slot: Slot, step_is_sync: bool) {
        let class = match slot.op.kind {
            _ if step_is_sync => Class::Sync,
            OpKind::Read => Class::Read,
            _ => Class::Write,
        };
        self.counters.class(class).record_error();
        self.fail(self.describe_failure(&slot.op, done.result, step_is_sync));
        self.release(done.slot, 0);
    }

    fn describe_failure(&self, op: &Op, result: i32, step_is_sync: bool) -> String {
        let path = self
            .shared
            .places
            .get(op.file as usize)
            .map(|p| p.path().display().to_string())
            .unwrap_or_default();
        let what = match op.kind {
            _ if step_is_sync => "sync",
            OpKind::Read => "read",
            _ => "write",
        };
        let place = format!("{what} of {path} at offset {}, {} bytes", op.offset, op.len);
        if result < 0 {
            return format!("{place}: {}", std::io::Error::from_raw_os_error(-result));
        }
        format!("{place}: only {result} bytes (the file or device is shorter than the workload, or full)")
    }

    /// Keeps the first failure and ends the job.
    fn fail(&mut self, failure: String) {
        if let Ok(mut first) = self.shared.failure.lock() {
            first.get_or_insert(failure);
        }
        self.shared.halt.store(true, Relaxed);
        self.end(now_ns());
    }

    /// How long the next reap may wait.
    #[inline(always)]
    fn wait_for(&self, now: u64) -> Wait {
        if !self.open_loop {
            let min = if self.ended { self.in_flight } else { self.min_reap.min(self.in_flight) };
            // A batch is a quarter of the depth, and at a steady rate gathers in a quarter of the mean latency. If the
            // last one took longer than a whole one, something is stalling, and what has finished is taken as it is.
            // Only then, because a timer for every wait costs as much as some I/Os.
            let patience_ns = if self.stalling && min > 1 { self.latency_ns.max(1) } else { 0 };
            return Wait { min, timeout_ns: None, patience_ns };
        }
        // With a slot free and nothing held, the last operation could not start, and the next one may be due.
        let passed_over = (!self.ended && !self.is_full).then_some(0);
        let held = self.held.map(|op| (self.epoch_ns + op.at_ns).saturating_sub(now));
        let timeout_ns = held.or(passed_over);
        match timeout_ns {
            // The next operation is due at once: only look.
            Some(ns) if ns <= self.spin_ns => Wait { min: 0, timeout_ns: None, patience_ns: 0 },
            _ => Wait { min: 1, timeout_ns: timeout_ns.map(|ns| ns - self.spin_ns / 2), patience_ns: 0 },
        }
    }

    /// Nothing is in flight: sleeps until the held operation is due, in steps short enough to notice a stop.
    fn wait_for_time(&self, now: u64) -> u64 {
        let Some(op) = self.held else { return now_ns() };
        let due = (self.epoch_ns + op.at_ns).min(self.deadline_ns);
        if due > now + self.spin_ns {
            sleep_until_ns((due - self.spin_ns / 2).min(now + LOOK_UP_NS));
        } else {
            std::hint::spin_loop();
        }
        now_ns()
    }
}

#[inline(always)]
fn action_of(op: &Op) -> Action {
    match op.kind {
        OpKind::Read => Action::Read,
        OpKind::Write if op.then == Then::Commit(SyncMode::RwfDsync) => Action::WriteDurable,
        OpKind::Write => Action::Write,
        OpKind::Sync(mode) => Action::Sync(mode),
    }
}
