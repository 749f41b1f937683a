//! Engines: how one operation reaches the kernel. One file each, behind one small trait.

pub mod libaio;
pub mod mmap;
pub mod null;
pub mod psync;
pub mod uring;

use std::fs::File;
use std::io;

use weir_core::result::record::EngineRecord;
use weir_core::stats::Histogram;
use weir_core::workload::spec::SyncMode;

/// One step handed to an engine. The buffer stays the step's own until its completion is seen.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Which operation in flight it belongs to; comes back in [`Done`].
    pub slot: u32,
    /// Index of the file.
    pub file: u32,
    /// Length in bytes.
    pub len: u32,
    /// What to do.
    pub action: Action,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// The slot's buffer.
    pub buffer: *mut u8,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read into the buffer.
    Read,
    /// Write from the buffer.
    Write,
    /// Write from the buffer, durable when it returns (RWF_DSYNC).
    WriteDurable,
    /// Make the file durable.
    Sync(SyncMode),
}

/// A finished step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The step's slot.
    pub slot: u32,
    /// Bytes moved, or a negative errno.
    pub result: i32,
}

/// How an engine is asked to wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// Return when this many steps have finished (0: do not wait).
    pub min: u32,
    /// Return after this long even if fewer have; `None`: no limit.
    pub timeout_ns: Option<u64>,
    /// Return after this long if at least one has; 0: no such limit. Engines that cannot, wait for one only.
    pub patience_ns: u64,
}

/// How operations reach the kernel. An engine belongs to one thread.
pub trait Engine {
    /// Takes a step: queues it, or, in a synchronous engine, carries it out.
    fn push(&mut self, step: &Step);

    /// Submits what is queued, waits as asked, and appends what has finished.
    fn reap(&mut self, wait: Wait, done: &mut Vec<Done>) -> io::Result<()>;

    /// What became of the engine's options.
    fn describe(&self) -> EngineRecord;

    /// Of the steps looked at, how many had finished when the submitting call returned: `(finished, looked at)`.
    /// A share near one means that the kernel ran them one after another and depth had no effect.
    fn inline_share(&self) -> (u64, u64) {
        (0, 0)
    }

    /// For each step, how long handing it to the kernel took; `None` where that is not asked for, or is no call of its
    /// own.
    fn submits(&self) -> Option<&Histogram> {
        None
    }
}

/// What an engine is built from.
pub struct Setup<'a> {
    /// The job's open files, by index.
    pub files: &'a [File],
    /// Size of each file, in bytes.
    pub file_bytes: &'a [u64],
    /// Most steps in flight.
    pub depth: u32,
    /// The buffers' region, one slot behind the other: start and length in bytes.
    pub region: (*mut u8, usize),
    /// Poll for completions.
    pub iopoll: bool,
    /// Whether anything is written.
    pub writes: bool,
    /// Measure how long handing steps to the kernel takes.
    pub time_submits: bool,
}

/// The steps handed over last, distinguished from earlier ones that finish meanwhile.
pub(crate) struct Latest {
    /// By slot, when its step was handed over.
    rounds: Vec<u32>,
    round: u32,
}

impl Latest {
    /// None so far, of as many slots as the depth.
    pub(crate) fn new(depth: u32) -> Latest {
        Latest { rounds: vec![0; depth as usize], round: 1 }
    }

    /// This slot's step is among the next to be handed over.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: u32) {
        self.rounds[slot as usize] = self.round;
    }

    /// What was pushed is being handed over: the number of the round.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self) -> u32 {
        let next = self.round.wrapping_add(1);
        std::mem::replace(&mut self.round, next)
    }

    /// How many of a round's steps are among what has finished.
    pub(crate) fn finished(&self, round: u32, done: &[Done]) -> u64 {
        done.iter().filter(|done| self.rounds[done.slot as usize] == round).count() as u64
    }
}

/// Turns a system call's answer into [`Done::result`].
pub(crate) fn result_of(answer: isize) -> i32 {
    if answer >= 0 {
        return answer as i32;
    }
    -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// fsync, fdatasync or sync_file_range, as a [`Done::result`].
pub(crate) fn sync_now(fd: i32, mode: SyncMode, offset: u64, len: u32) -> i32 {
    // SAFETY: these calls take a descriptor and numbers only; a bad one gives an error.
    let answer = unsafe {
        match mode {
            SyncMode::Fsync => libc::fsync(fd),
            SyncMode::Fdatasync | SyncMode::RwfDsync => libc::fdatasync(fd),
            SyncMode::SyncFileRange => libc::sync_file_range(
                fd,
                offset as libc::off64_t,
                i64::from(len),
                libc::SYNC_FILE_RANGE_WAIT_BEFORE
                    | libc::SYNC_FILE_RANGE_WRITE
                    | libc::SYNC_FILE_RANGE_WAIT_AFTER,
            ),
        }
    };
    result_of(answer as isize)
}

/// How many steps are submitted and awaited together at a depth: enough to share the cost of a system call, few
/// enough that the device keeps three quarters of the depth.
pub(crate) fn batch_for(depth: u32) -> u32 {
    (depth / 4).clamp(1, 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_earlier_did_not_finish_in_the_submitting_call() {
        let done =
            |slots: &[u32]| -> Vec<Done> { slots.iter().map(|&slot| Done { slot, result: 0 }).collect() };
        let mut latest = Latest::new(4);
        // (handed over, finished then, of these the first)
        for (pushed, finished, expected) in [
            (&[0, 1][..], &[][..], 0),
            (&[2], &[0, 1], 0),
            (&[0, 1], &[2, 1], 1),
            (&[1, 2], &[0, 2, 2], 2),
            (&[], &[1], 0),
        ] {
            pushed.iter().for_each(|&slot| latest.push(slot));
            let round = latest.hand_over();
            assert_eq!(latest.finished(round, &done(finished)), expected, "{pushed:?}, {finished:?}");
        }
    }
}
