//! A request to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A request to stop, shared with signal handlers: runs end early, keep what they measured and clean up.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Asks everything that holds a clone to stop.
    pub fn request(&self, signal: u8) {
        let _ = self.0.compare_exchange(0, signal.max(1), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The signal that asked, if any (1 where it was no signal).
    pub fn requested(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}
