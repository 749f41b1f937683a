//! Where threads wait: for their turn to connect, for the start, and for a transaction's time or the end of the run.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::{now_ns, sleep_until_ns};

/// Waits up to this long are slept through: whoever ends the run then waits for this at most.
const SLEEP_NS: u64 = 20_000_000;
/// A wait on a condition ends this long before the time meant; the rest is slept, which is more exact.
const EARLY_NS: u64 = 2_000_000;

/// When threads start and end, ns on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Zero of the schedule.
    pub epoch_ns: u64,
    /// No transaction starts after this; `u64::MAX`: no limit.
    pub deadline_ns: u64,
}

/// A lock whose holder may have panicked: what it guards are plain counts and flags.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The start, which may be called off.
#[derive(Default)]
pub struct Gate {
    answer: Mutex<Option<Option<Span>>>,
    opened: Condvar,
}

impl Gate {
    /// Lets everybody go, or (`None`) away. The first answer stands.
    pub fn open(&self, span: Option<Span>) {
        lock(&self.answer).get_or_insert(span);
        self.opened.notify_all();
    }

    /// Waits for the answer.
    pub fn wait(&self) -> Option<Span> {
        let mut answer = lock(&self.answer);
        loop {
            if let Some(span) = *answer {
                return span;
            }
            answer = self.opened.wait(answer).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the start was called off.
    pub fn is_off(&self) -> bool {
        matches!(*lock(&self.answer), Some(None))
    }
}

/// So many at a time.
pub struct Permits {
    free: Mutex<u32>,
    returned: Condvar,
}

impl Permits {
    /// Permits for `count` at a time.
    pub fn new(count: u32) -> Permits {
        Permits { free: Mutex::new(count.max(1)), returned: Condvar::new() }
    }

    /// Does something while holding a permit, once one is free.
    pub fn hold<T>(&self, act: impl FnOnce() -> T) -> T {
        let mut free = lock(&self.free);
        while *free == 0 {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let done = act();
        *lock(&self.free) += 1;
        self.returned.notify_one();
        done
    }
}

/// Says that no transaction is to start any more, to sleepers too.
#[derive(Default)]
pub struct Halt {
    raised: AtomicBool,
    asleep: Mutex<()>,
    woken: Condvar,
}

impl Halt {
    /// Ends the run.
    pub fn raise(&self) {
        if !self.raised.swap(true, Relaxed) {
            let _guard = lock(&self.asleep);
            self.woken.notify_all();
        }
    }

    /// Whether the run is to end.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Relaxed)
    }

    /// Sleeps until `deadline_ns`, or until the run is to end: `false` then.
    pub fn sleep_until(&self, deadline_ns: u64) -> bool {
        let far = || Some(deadline_ns.saturating_sub(now_ns())).filter(|left_ns| *left_ns > SLEEP_NS);
        if far().is_some() {
            let mut guard = lock(&self.asleep);
            while let Some(left_ns) = far()
                && !self.is_raised()
            {
                let wait = Duration::from_nanos(left_ns - EARLY_NS);
                guard = self.woken.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        if !self.is_raised() {
            sleep_until_ns(deadline_ns);
        }
        !self.is_raised()
    }
}
