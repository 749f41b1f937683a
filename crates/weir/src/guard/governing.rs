//! What turns a limit: the kernel's, or none at all.

use weir_control::Limits;
use weir_host::knob::{Governor, KnobError, Move};

/// A limit that can be turned.
pub trait Governing {
    /// As read now.
    ///
    /// # Errors
    /// When it cannot be read.
    fn limits(&mut self) -> Result<Limits, KnobError>;

    /// Sets it to so many bytes.
    ///
    /// # Errors
    /// When the kernel does not take it.
    fn set(&mut self, bytes: u64) -> Result<Move, KnobError>;

    /// Restores the baseline.
    ///
    /// # Errors
    /// When the kernel does not take it.
    fn release(&mut self) -> Result<Move, KnobError>;

    /// A sign of life, after every sample.
    ///
    /// # Errors
    /// When nobody would restore the limit any more.
    fn beat(&mut self) -> Result<Move, KnobError>;

    /// Restores the baseline, for good. The sentences tell what was restored.
    ///
    /// # Errors
    /// When the kernel does not take it.
    fn stop(self: Box<Self>) -> Result<Vec<String>, KnobError>;
}

impl Governing for Governor {
    fn limits(&mut self) -> Result<Limits, KnobError> {
        Governor::limits(self)
    }

    fn set(&mut self, bytes: u64) -> Result<Move, KnobError> {
        Governor::set(self, bytes)
    }

    fn release(&mut self) -> Result<Move, KnobError> {
        Governor::release(self)
    }

    fn beat(&mut self) -> Result<Move, KnobError> {
        Governor::beat(self)
    }

    fn stop(self: Box<Self>) -> Result<Vec<String>, KnobError> {
        Governor::stop(*self)
    }
}

/// Turns nothing: the limit stays at the baseline.
pub struct Shadow {
    limits: Limits,
}

impl Shadow {
    /// Of limits as they were found.
    pub fn of(limits: Limits) -> Shadow {
        Shadow { limits: Limits { now_bytes: limits.saved_bytes, ..limits } }
    }
}

impl Governing for Shadow {
    fn limits(&mut self) -> Result<Limits, KnobError> {
        Ok(self.limits)
    }

    fn set(&mut self, bytes: u64) -> Result<Move, KnobError> {
        Ok(Move::Written { bytes: bytes.max(self.limits.floor_bytes).min(self.limits.saved_bytes) })
    }

    fn release(&mut self) -> Result<Move, KnobError> {
        self.beat()
    }

    fn beat(&mut self) -> Result<Move, KnobError> {
        Ok(Move::Written { bytes: self.limits.now_bytes })
    }

    fn stop(self: Box<Self>) -> Result<Vec<String>, KnobError> {
        Ok(Vec::new())
    }
}
