//! pread and pwrite, one at a time per thread.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use weir_core::result::record::EngineRecord;

use super::{Action, Done, Engine, Setup, Step, Wait, result_of, sync_now};

/// The synchronous engine.
pub struct Psync {
    descriptors: Vec<i32>,
    finished: Option<Done>,
}

impl Psync {
    /// The engine over a job's files, which must stay open as long as it lives.
    pub fn new(setup: &Setup<'_>) -> Psync {
        Psync { descriptors: setup.files.iter().map(File::as_raw_fd).collect(), finished: None }
    }
}

impl Engine for Psync {
    #[inline(always)]
    fn push(&mut self, step: &Step) {
        let fd = self.descriptors[step.file as usize];
        let (buffer, len, offset) = (step.buffer, step.len as usize, step.offset as libc::off64_t);
        let result = match step.action {
            // SAFETY: the buffer belongs to the step and holds at least `len` bytes.
            Action::Read => result_of(unsafe { libc::pread64(fd, buffer.cast(), len, offset) }),
            // SAFETY: as above.
            Action::Write => result_of(unsafe { libc::pwrite64(fd, buffer.cast(), len, offset) }),
            Action::WriteDurable => {
                let vector = libc::iovec { iov_base: buffer.cast(), iov_len: len };
                // SAFETY: one vector over the step's own buffer.
                result_of(unsafe { libc::pwritev2(fd, &vector, 1, offset, libc::RWF_DSYNC) })
            }
            Action::Sync(mode) => sync_now(fd, mode, step.offset, step.len),
        };
        self.finished = Some(Done { slot: step.slot, result });
    }

    #[inline(always)]
    fn reap(&mut self, _wait: Wait, done: &mut Vec<Done>) -> io::Result<()> {
        done.extend(self.finished.take());
        Ok(())
    }

    fn describe(&self) -> EngineRecord {
        EngineRecord { name: "psync".to_string(), batch: 1, ..EngineRecord::default() }
    }
}
