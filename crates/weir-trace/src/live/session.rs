//! A running session.

use super::{Options, Slow, Snapshot};
use crate::Error;

/// Programs attached to the kernel; they go away when this is dropped.
pub struct Session {
    snapshot: Snapshot,
}

impl Session {
    /// Loads and attaches the programs the options need.
    ///
    /// # Errors
    /// What is missing: privilege, kernel support, or what the kernel refused.
    pub fn start(_options: &Options) -> Result<Session, Error> {
        Err(Error::Unsupported { lacking: "live sessions".into() })
    }

    /// All that was counted since the start.
    pub fn snapshot(&mut self) -> Snapshot {
        self.snapshot.clone()
    }

    /// The slow requests since the last call, in order of completion.
    pub fn slow(&mut self) -> Vec<Slow> {
        Vec::new()
    }
}
