//! The newest state of a daemon, for threads that answer: they see copies and cannot hold up the daemon.

use std::sync::{Arc, Mutex, PoisonError};

/// The newest state, for whoever asks.
pub struct Board<T>(Arc<Mutex<Option<Arc<T>>>>);

impl<T> Default for Board<T> {
    fn default() -> Board<T> {
        Board(Arc::default())
    }
}

impl<T> Clone for Board<T> {
    fn clone(&self) -> Board<T> {
        Board(self.0.clone())
    }
}

impl<T> Board<T> {
    /// Replaces it.
    pub fn publish(&self, state: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(state));
    }

    /// The newest one.
    pub fn read(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
