//! What is written, and what is checked of what is read. One per thread.

use std::sync::Arc;

use weir_core::result::record::VerifyRecord;
use weir_core::workload::{Job, Op, OpKind};

use crate::sys::arena::Arena;

/// Generations of all blocks, shared by the threads of a job; absent unless blocks are verified.
pub type Generations = Option<Arc<()>>;

/// The content of one thread's buffers.
pub struct Content {
    unique: u64,
}

impl Content {
    /// What the threads of a job share.
    pub fn shared(_job: &Job, _file_bytes: &[u64]) -> Generations {
        None
    }

    /// The content of one thread.
    pub fn new(_job: &Job, thread: u32, _depth: u32, _generations: Generations) -> Content {
        Content { unique: u64::from(thread) << 48 }
    }

    /// Fills all buffers before the start.
    pub fn fill(&mut self, arena: &mut Arena, depth: u32, block: usize) {
        for slot in 0..depth {
            arena.slice_mut(slot, block).fill(7);
        }
    }

    /// Makes a write's buffer ready; `None`: this block may not be written just now.
    #[inline(always)]
    pub fn before(&mut self, op: &Op, _arena: &mut Arena, _slot: u32) -> Option<u32> {
        if op.kind == OpKind::Write {
            self.unique += 1;
        }
        Some(0)
    }

    /// Checks what was read; notes what was written.
    #[inline(always)]
    pub fn after(&mut self, _op: &Op, _generation: u32, _arena: &mut Arena, _slot: u32) {}

    /// What was found.
    pub fn verify_record(self) -> VerifyRecord {
        VerifyRecord::default()
    }
}
