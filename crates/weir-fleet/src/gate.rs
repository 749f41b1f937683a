//! What hosts wait for: their turn, and one another.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_core::stop::Stop;

/// How often a wait looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);

/// Time between the last arrival and the start: for a thread of each host to be awake.
const MARGIN: Duration = Duration::from_millis(300);

/// At most so many at a time.
pub struct Gate {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A place behind the gate, until it is dropped.
pub struct Pass<'a>(&'a Gate);

impl Gate {
    /// For so many.
    pub fn new(places: usize) -> Gate {
        Gate { free: Mutex::new(places.max(1)), changed: Condvar::new() }
    }

    /// Waits for a place; none where somebody asked to stop.
    pub fn enter(&self, stop: &Stop) -> Option<Pass<'_>> {
        let mut free = locked(&self.free);
        while *free == 0 {
            if stop.requested().is_some() {
                return None;
            }
            (free, _) = self.changed.wait_timeout(free, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        stop.requested().is_none().then(|| Pass(self)).or_else(|| {
            *free += 1;
            None
        })
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *locked(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}

/// A host that is to come to a line: once this is dropped it is ready, or will never be.
pub struct Arrival<'a>(&'a Line);

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.0.arrive();
    }
}

/// The line from which hosts start together.
pub struct Line {
    state: Mutex<(usize, Option<Instant>)>,
    changed: Condvar,
}

impl Line {
    /// For so many hosts; at a given time, or as soon as each is ready or has failed.
    pub fn new(expected: usize, at: Option<Instant>) -> Line {
        Line { state: Mutex::new((expected, at)), changed: Condvar::new() }
    }

    /// What a host's thread owns from before it starts, so that nobody waits for one that cannot start or panics.
    pub fn arrival(&self) -> Arrival<'_> {
        Arrival(self)
    }

    fn arrive(&self) {
        let mut state = locked(&self.state);
        state.0 = state.0.saturating_sub(1);
        if state.0 == 0 && state.1.is_none() {
            state.1 = Some(Instant::now() + MARGIN);
            self.changed.notify_all();
        }
    }

    /// Waits until it is time, less what a word takes on its way. Whether it is; not where somebody asked to stop.
    pub fn wait(&self, on_the_way: Duration, stop: &Stop) -> bool {
        let mut state = locked(&self.state);
        let at = loop {
            if stop.requested().is_some() {
                return false;
            }
            if let Some(at) = state.1 {
                break at.checked_sub(on_the_way).unwrap_or(at);
            }
            (state, _) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        while Instant::now() < at {
            if stop.requested().is_some() {
                return false;
            }
            std::thread::sleep(at.saturating_duration_since(Instant::now()).min(LOOK));
        }
        true
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_than_the_places_are_behind_a_gate() {
        let (gate, stop, inside, most) =
            (Gate::new(2), Stop::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _pass = gate.enter(&stop).unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 2);
        stop.request(2);
        assert!(gate.enter(&stop).is_none());
        assert!(Gate::new(1).enter(&Stop::default()).is_some());
    }

    #[test]
    fn nobody_starts_before_all_are_there() {
        let (line, stop, arrived) = (Line::new(3, None), Stop::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for n in 0..3 {
                let (arrival, line, stop, arrived) = (line.arrival(), &line, &stop, &arrived);
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(10 * n));
                    arrived.fetch_add(1, Ordering::SeqCst);
                    drop(arrival);
                    // The last one failed.
                    if n < 2 {
                        assert!(line.wait(Duration::ZERO, stop));
                        assert_eq!(arrived.load(Ordering::SeqCst), 3);
                    }
                });
            }
        });
        stop.request(15);
        assert!(!Line::new(9, None).wait(Duration::ZERO, &stop));
    }
}
