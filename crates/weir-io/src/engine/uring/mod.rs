//! io_uring: registered ring, files and buffers; one entry into the kernel submits and waits.

mod ring;
mod sys;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use weir_core::result::record::EngineRecord;
use weir_core::stats::Histogram;
use weir_core::stats::histogram::bucket_of;
use weir_core::workload::spec::SyncMode;

use self::ring::Ring;
use self::sys::Submission;
use super::{Action, Done, Engine, Latest, Setup, Step, Wait, batch_for};
use crate::IoError;
use crate::sys::arena::Arena;
use crate::sys::clock::now_ns;

/// Every 64th submission is looked at apart, to learn whether steps finish inside the submitting call.
const PROBE_EVERY: u64 = 64;
/// Size of the read that tries polling: a multiple of every device's block.
const PROBE_BYTES: usize = 4096;
/// How often its completion is asked for, and how long between.
const PROBE_REAPS: u32 = 1000;
const PROBE_PAUSE: Duration = Duration::from_micros(100);

/// The engine over one ring.
pub struct Uring {
    ring: Ring,
    descriptors: Vec<i32>,
    fixed_files: bool,
    fixed_buffers: bool,
    describes: EngineRecord,
    in_flight: u32,
    entries_made: u64,
    latest: Latest,
    inline: (u64, u64),
    submits: Option<Histogram>,
}

/// Setup flags from the best to none; a kernel that does not know one answers EINVAL, and the next row is tried.
const LADDER: [&[(u32, &str)]; 5] = [
    &[SINGLE_ISSUER, DEFER_TASKRUN, NO_SQARRAY, SUBMIT_ALL],
    &[SINGLE_ISSUER, DEFER_TASKRUN, SUBMIT_ALL],
    &[SINGLE_ISSUER, COOP_TASKRUN, SUBMIT_ALL],
    &[COOP_TASKRUN, SUBMIT_ALL],
    &[],
];
const SINGLE_ISSUER: (u32, &str) = (sys::SETUP_SINGLE_ISSUER, "SINGLE_ISSUER");
const DEFER_TASKRUN: (u32, &str) = (sys::SETUP_DEFER_TASKRUN, "DEFER_TASKRUN");
const COOP_TASKRUN: (u32, &str) = (sys::SETUP_COOP_TASKRUN, "COOP_TASKRUN");
const NO_SQARRAY: (u32, &str) = (sys::SETUP_NO_SQARRAY, "NO_SQARRAY");
const SUBMIT_ALL: (u32, &str) = (sys::SETUP_SUBMIT_ALL, "SUBMIT_ALL");

impl Uring {
    /// A ring for the job's depth. Must be called on the thread that will use it (SINGLE_ISSUER).
    pub fn new(setup: &Setup<'_>) -> Result<Uring, IoError> {
        let mut describes = EngineRecord {
            name: "io_uring".to_string(),
            batch: batch_for(setup.depth),
            ..EngineRecord::default()
        };
        let ring = climb_down(setup, &mut describes).map_err(setup_error)?;
        let mut engine = Uring {
            ring,
            descriptors: setup.files.iter().map(File::as_raw_fd).collect(),
            fixed_files: false,
            fixed_buffers: false,
            describes,
            in_flight: 0,
            entries_made: 0,
            latest: Latest::new(setup.depth),
            inline: (0, 0),
            submits: setup.time_submits.then(Histogram::new),
        };
        engine.register_what_can_be(setup);
        if setup.iopoll && engine.polling_is_refused() {
            return Err(IoError::environment("IOPOLL: this device or file system has no queue to poll")
                .hint(
                    "NVMe has poll queues with the module parameter nvme.poll_queues; else leave out iopoll",
                ));
        }
        Ok(engine)
    }

    /// Whether a read of the first file is refused, as each would be during the run. The buffer is not the job's: those
    /// hold what it will write.
    fn polling_is_refused(&mut self) -> bool {
        let Some(fd) = self.descriptors.first() else { return false };
        // Opened anew, as a job that only writes cannot read through its own.
        let file =
            File::options().read(true).custom_flags(libc::O_DIRECT).open(format!("/proc/self/fd/{fd}"));
        let (Ok(file), Ok(arena)) = (file, Arena::new(1, PROBE_BYTES)) else { return false };
        self.ring.push(Submission {
            opcode: sys::OP_READ,
            fd: file.as_raw_fd(),
            address: arena.pointer(0) as u64,
            len: PROBE_BYTES as u32,
            ..Submission::default()
        });
        self.in_flight += 1;
        let mut done = Vec::new();
        // A refusal may come from a worker of the kernel, after the call that submitted has returned.
        for _ in 0..PROBE_REAPS {
            let reaped = self.reap(Wait { min: 1, timeout_ns: None, patience_ns: 0 }, &mut done);
            if reaped.is_err() || !done.is_empty() {
                break;
            }
            std::thread::sleep(PROBE_PAUSE);
        }
        let Some(read) = done.first() else {
            // The kernel may still write to it.
            std::mem::forget(arena);
            return false;
        };
        read.result == -libc::EOPNOTSUPP
    }

    /// Registers ring, files and buffers; what the kernel refuses is noted and done without.
    fn register_what_can_be(&mut self, setup: &Setup<'_>) {
        let own = self.ring.register_self();
        self.note("registered-ring", own);
        // SAFETY: the descriptors live in `self` and stay open as long as the engine.
        let files = unsafe {
            let count = self.descriptors.len() as u32;
            sys::register(self.ring.fd(), sys::REGISTER_FILES, self.descriptors.as_ptr(), count)
        };
        self.fixed_files = files.is_ok();
        self.note("registered-files", files.map(drop));
        let (first, bytes) = setup.region;
        let slot_bytes = bytes / setup.depth as usize;
        let buffers: Vec<libc::iovec> = (0..setup.depth as usize)
            .map(|slot| libc::iovec {
                iov_base: first.wrapping_add(slot * slot_bytes).cast(),
                iov_len: slot_bytes,
            })
            .collect();
        // SAFETY: every vector lies in the thread's arena, which outlives the engine.
        let buffers =
            unsafe { sys::register(self.ring.fd(), sys::REGISTER_BUFFERS, buffers.as_ptr(), setup.depth) };
        self.fixed_buffers = buffers.is_ok();
        self.note("registered-buffers", buffers.map(drop));
    }

    fn note(&mut self, what: &str, result: io::Result<()>) {
        match result {
            Ok(()) => self.describes.granted.push(what.to_string()),
            Err(error) => self.describes.refused.push(format!("{what}: {error}")),
        }
    }

    #[inline(always)]
    fn submission(&self, step: &Step) -> Submission {
        let (fd, flags) = if self.fixed_files {
            (step.file as i32, sys::SQE_FIXED_FILE)
        } else {
            (self.descriptors[step.file as usize], 0)
        };
        let transfer = |fixed: u8, plain: u8, op_flags: u32| Submission {
            opcode: if self.fixed_buffers { fixed } else { plain },
            flags,
            fd,
            offset: step.offset,
            address: step.buffer as u64,
            len: step.len,
            op_flags,
            user_data: u64::from(step.slot),
            buffer_index: if self.fixed_buffers { step.slot as u16 } else { 0 },
            ..Submission::default()
        };
        match step.action {
            Action::Read => transfer(sys::OP_READ_FIXED, sys::OP_READ, 0),
            Action::Write => transfer(sys::OP_WRITE_FIXED, sys::OP_WRITE, 0),
            Action::WriteDurable => transfer(sys::OP_WRITE_FIXED, sys::OP_WRITE, libc::RWF_DSYNC as u32),
            Action::Sync(mode) => {
                let base = Submission { flags, fd, user_data: u64::from(step.slot), ..Submission::default() };
                match mode {
                    SyncMode::Fsync => Submission { opcode: sys::OP_FSYNC, ..base },
                    SyncMode::Fdatasync | SyncMode::RwfDsync => {
                        Submission { opcode: sys::OP_FSYNC, op_flags: sys::FSYNC_DATASYNC, ..base }
                    }
                    SyncMode::SyncFileRange => Submission {
                        opcode: sys::OP_SYNC_FILE_RANGE,
                        offset: step.offset,
                        len: step.len,
                        op_flags: (libc::SYNC_FILE_RANGE_WAIT_BEFORE
                            | libc::SYNC_FILE_RANGE_WRITE
                            | libc::SYNC_FILE_RANGE_WAIT_AFTER),
                        ..base
                    },
                }
            }
        }
    }

    #[inline(always)]
    fn drain(&mut self, done: &mut Vec<Done>) -> u32 {
        let count = self.ring.drain(|c| {
            done.push(Done { slot: c.user_data as u32, result: c.result });
        });
        self.in_flight -= count;
        count
    }
}

/// Tries each rung of the ladder until the kernel takes one.
fn climb_down(setup: &Setup<'_>, describes: &mut EngineRecord) -> io::Result<Ring> {
    let always = sys::SETUP_CQSIZE | sys::SETUP_CLAMP | if setup.iopoll { sys::SETUP_IOPOLL } else { 0 };
    let entries = setup.depth.next_power_of_two();
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for rung in LADDER {
        let names = || rung.iter().map(|(_, name)| (*name).to_string());
        match Ring::new(entries, always | rung.iter().fold(0, |all, (flag, _)| all | flag)) {
            Ok(ring) => {
                describes.granted.extend(names());
                describes.granted.extend(setup.iopoll.then(|| "IOPOLL".to_string()));
                return Ok(ring);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                describes.refused.push(format!("{}: {error}", names().collect::<Vec<_>>().join("|")));
                last = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn setup_error(error: io::Error) -> IoError {
    let hint = match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            "this kernel has no io_uring, or a container hides it: use --engine libaio or psync"
        }
        Some(libc::EPERM) => {
            "io_uring is switched off here (sysctl kernel.io_uring_disabled, or a container's seccomp filter): \
             use --engine libaio or psync"
        }
        Some(libc::ENOMEM) => {
            "RLIMIT_MEMLOCK is too small for the ring (ulimit -l): raise it or use --engine libaio"
        }
        _ => "use --engine libaio or psync",
    };
    IoError::environment(format!("cannot set up io_uring: {error}")).hint(hint)
}

impl Engine for Uring {
    #[inline(always)]
    fn push(&mut self, step: &Step) {
        let submission = self.submission(step);
        self.ring.push(submission);
        self.latest.push(step.slot);
        self.in_flight += 1;
    }

    #[inline(always)]
    fn reap(&mut self, wait: Wait, done: &mut Vec<Done>) -> io::Result<()> {
        let (queued, round) = (self.ring.queued(), self.latest.hand_over());
        self.entries_made += 1;
        let mut ready = 0;
        // To be timed, submitting has to be a call of its own.
        if queued > 0 && (self.submits.is_some() || self.entries_made.is_multiple_of(PROBE_EVERY)) {
            let start_ns = if self.submits.is_some() { now_ns() } else { 0 };
            self.ring.enter(0, false, None, 0)?;
            if let Some(submits) = &mut self.submits {
                // Each of them had to wait for the whole call.
                submits.add_bucket(bucket_of(now_ns() - start_ns), u64::from(queued));
            }
            let before = done.len();
            ready = self.drain(done);
            self.inline.0 += self.latest.finished(round, &done[before..]);
            self.inline.1 += u64::from(queued);
        }
        let min = wait.min.saturating_sub(ready).min(self.in_flight);
        // Who only looks (a minimum of none) enters as well: the kernel completes nothing for this thread outside of its calls.
        if self.ring.queued() > 0 || min > 0 || wait.min == 0 {
            // A kernel that cannot bound its patience is asked for one completion: that delays nothing that has finished.
            let bounded = wait.patience_ns == 0 || self.ring.has(sys::FEAT_MIN_TIMEOUT);
            let min = if bounded { min } else { min.min(1) };
            self.ring.enter(min, true, wait.timeout_ns, wait.patience_ns)?;
        }
        self.drain(done);
        Ok(())
    }

    fn describe(&self) -> EngineRecord {
        self.describes.clone()
    }

    fn inline_share(&self) -> (u64, u64) {
        self.inline
    }

    fn submits(&self) -> Option<&Histogram> {
        self.submits.as_ref()
    }
}
