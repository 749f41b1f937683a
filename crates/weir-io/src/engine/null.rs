//! Finishes every step at once, without a system call: weir's own floor, and the mock that tests run on.

use std::io;

use weir_core::result::record::EngineRecord;

use super::{Action, Done, Engine, Step, Wait};

/// The engine that does nothing.
#[derive(Default)]
pub struct Null {
    finished: Vec<Done>,
}

impl Engine for Null {
    #[inline(always)]
    fn push(&mut self, step: &Step) {
        let result = match step.action {
            Action::Sync(_) => 0,
            Action::Read | Action::Write | Action::WriteDurable => step.len as i32,
        };
        self.finished.push(Done { slot: step.slot, result });
    }

    #[inline(always)]
    fn reap(&mut self, _wait: Wait, done: &mut Vec<Done>) -> io::Result<()> {
        done.append(&mut self.finished);
        Ok(())
    }

    fn describe(&self) -> EngineRecord {
        EngineRecord { name: "null".to_string(), batch: 1, ..EngineRecord::default() }
    }
}
