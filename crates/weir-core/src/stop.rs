//! A request to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A request to stop, shared with signal handlers: runs end early, keep what they measured and clean up.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    own: Arc<AtomicU8>,
    above: Option<Arc<AtomicU8>>,
}

impl Stop {
    /// Asks everything that holds a clone to stop.
    pub fn request(&self, signal: u8) {
        let _ = self.own.compare_exchange(0, signal.max(1), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The signal that asked, if any (1 where it was no signal).
    pub fn requested(&self) -> Option<u8> {
        let own = self.own.load(Ordering::Relaxed);
        let above = self.above.as_ref().map_or(0, |above| above.load(Ordering::Relaxed));
        [own, above].into_iter().find(|signal| *signal != 0)
    }

    /// A request that this one raises too, but that does not raise this one: ends one run out of several.
    pub fn of_one_run(&self) -> Stop {
        Stop { own: Arc::default(), above: Some(self.own.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_ends_alone_and_all_end_together() {
        let all = Stop::default();
        let (first, second) = (all.of_one_run(), all.of_one_run());
        first.request(1);
        assert_eq!((first.requested(), second.requested(), all.requested()), (Some(1), None, None));
        all.request(2);
        assert_eq!((first.requested(), second.requested(), all.requested()), (Some(1), Some(2), Some(2)));
    }
}
