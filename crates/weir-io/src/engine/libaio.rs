//! Linux native asynchronous I/O: io_submit in batches, completions read from the ring the kernel maps for us.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_core::result::record::EngineRecord;
use weir_core::stats::Histogram;
use weir_core::workload::spec::SyncMode;

use super::{Action, Done, Engine, Latest, Setup, Step, Wait, sync_now};
use crate::IoError;
use crate::sys::clock::now_ns;

const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;
const CMD_FSYNC: u16 = 2;
const CMD_FDSYNC: u16 = 3;
/// Value of [`Ring::magic`] for the layout below (fs/aio.c).
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct iocb` of linux/aio_abi.h, little-endian layout.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    result2: i64,
}

/// `struct aio_ring` of fs/aio.c, which a context's number is the address of.
#[repr(C)]
struct Ring {
    id: u32,
    slots: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compat_features: u32,
    incompat_features: u32,
    header_bytes: u32,
}

/// The engine over one context.
pub struct Libaio {
    context: u64,
    descriptors: Vec<i32>,
    controls: Vec<Control>,
    queued: Vec<*const Control>,
    finished: Vec<Done>,
    events: Vec<Event>,
    pending: u32,
    latest: Latest,
    inline: (u64, u64),
    batch: u32,
    has_ring: bool,
    /// Where submitting is timed, it is done as sysbench does it: one step a call, and whoever fills the depth waits
    /// for any completion.
    submits: Option<Histogram>,
    last_submit_ns: Option<u64>,
}

impl Libaio {
    /// A context for as many steps as the job keeps in flight.
    pub fn new(setup: &Setup<'_>) -> Result<Libaio, IoError> {
        let mut context: u64 = 0;
        // SAFETY: io_setup fills one zeroed context number.
        let status = unsafe { libc::syscall(libc::SYS_io_setup, setup.depth, &mut context) };
        if status != 0 {
            let error = io::Error::last_os_error();
            return Err(IoError::environment(format!("io_setup for {} requests: {error}", setup.depth))
                .hint(
                    "fs.aio-max-nr limits all contexts of the machine together; or use --engine io_uring",
                ));
        }
        // SAFETY: a context's number is the address of its ring, mapped until io_destroy; the header is readable.
        let magic = unsafe { (*(context as *const Ring)).magic };
        Ok(Libaio {
            context,
            descriptors: setup.files.iter().map(File::as_raw_fd).collect(),
            controls: vec![Control::default(); setup.depth as usize],
            queued: Vec::with_capacity(setup.depth as usize),
            finished: Vec::new(),
            events: vec![Event::default(); setup.depth as usize],
            pending: 0,
            latest: Latest::new(setup.depth),
            inline: (0, 0),
            batch: super::batch_for(setup.depth),
            has_ring: magic == RING_MAGIC,
            submits: setup.time_submits.then(Histogram::new),
            last_submit_ns: None,
        })
    }

    /// Hands everything queued to the kernel. A step the kernel refuses comes back with its error.
    fn submit(&mut self) -> io::Result<()> {
        let mut first = 0;
        while first < self.queued.len() {
            let timed = self.submits.is_some();
            let rest = if timed { &self.queued[first..=first] } else { &self.queued[first..] };
            let start_ns = if timed { now_ns() } else { 0 };
            // SAFETY: every pointer is to a control block of `self.controls`, whose buffers live until completion.
            let taken =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len() as i64, rest.as_ptr()) };
            if taken > 0 {
                if timed {
                    self.note_last(Some(now_ns() - start_ns));
                }
                self.pending += taken as u32;
                first += taken as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => {}
                Some(code) => {
                    // SAFETY: the pointer is to a live control block of ours.
                    let slot = unsafe { (*self.queued[first]).data } as u32;
                    self.finished.push(Done { slot, result: -code });
                    first += 1;
                }
                None => return Err(error),
            }
        }
        self.queued.clear();
        Ok(())
    }

    /// Counts the last step handed over, now that it has waited for whatever it had to, and remembers the next one.
    fn note_last(&mut self, next_ns: Option<u64>) {
        let last_ns = std::mem::replace(&mut self.last_submit_ns, next_ns);
        if let (Some(submits), Some(ns)) = (&mut self.submits, last_ns) {
            submits.record(ns);
        }
    }

    /// The wait of one who has as much in flight as may be is part of handing over, as sysbench has it.
    fn wait_as_part_of_submitting(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Done>,
    ) -> io::Result<u32> {
        let full = self.pending as usize == self.controls.len();
        let start_ns = now_ns();
        let got = self.wait(1, timeout_ns, done)?;
        if let Some(ns) = self.last_submit_ns.as_mut().filter(|_| full) {
            *ns += now_ns() - start_ns;
        }
        Ok(got)
    }

    /// Takes what has finished from the mapped ring, without a system call.
    fn drain_ring(&mut self, done: &mut Vec<Done>) -> u32 {
        if !self.has_ring {
            return 0;
        }
        let base = self.context as *const Ring;
        // SAFETY: the ring stays mapped until io_destroy; only this thread moves the head.
        let ring = unsafe { &*base };
        let tail = ring.tail.load(Ordering::Acquire);
        let mut head = ring.head.load(Ordering::Relaxed);
        let mut taken = 0;
        while head != tail {
            // SAFETY: head < slots, so the event lies inside the ring, and the kernel has published it (tail).
            let event = unsafe {
                let events = base.cast::<u8>().add(ring.header_bytes as usize).cast::<Event>();
                *events.add(head as usize)
            };
            done.push(Done { slot: event.data as u32, result: event.result as i32 });
            head = if head + 1 >= ring.slots { 0 } else { head + 1 };
            taken += 1;
        }
        ring.head.store(head, Ordering::Release);
        taken
    }

    /// Waits in the kernel for at least `min` completions or the timeout.
    fn wait(&mut self, min: u32, timeout_ns: Option<u64>, done: &mut Vec<Done>) -> io::Result<u32> {
        let limit = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` holds as many entries as said; the timeout is null or valid.
        let got = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                i64::from(min),
                self.events.len() as i64,
                self.events.as_mut_ptr(),
                limit,
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) };
        }
        let finished = self.events[..got as usize].iter();
        done.extend(finished.map(|e| Done { slot: e.data as u32, result: e.result as i32 }));
        Ok(got as u32)
    }
}

impl Engine for Libaio {
    #[inline(always)]
    fn push(&mut self, step: &Step) {
        let fd = self.descriptors[step.file as usize];
        let (opcode, rw_flags) = match step.action {
            Action::Read => (CMD_PREAD, 0),
            Action::Write => (CMD_PWRITE, 0),
            Action::WriteDurable => (CMD_PWRITE, libc::RWF_DSYNC),
            Action::Sync(SyncMode::Fsync) => (CMD_FSYNC, 0),
            Action::Sync(SyncMode::SyncFileRange) => {
                // Native AIO has no such command: carried out on the spot.
                let result = sync_now(fd, SyncMode::SyncFileRange, step.offset, step.len);
                self.finished.push(Done { slot: step.slot, result });
                return;
            }
            Action::Sync(_) => (CMD_FDSYNC, 0),
        };
        let transfers = opcode == CMD_PREAD || opcode == CMD_PWRITE;
        let control = &mut self.controls[step.slot as usize];
        *control = Control {
            data: u64::from(step.slot),
            opcode,
            rw_flags,
            fd: fd as u32,
            buffer: if transfers { step.buffer as u64 } else { 0 },
            bytes: if transfers { u64::from(step.len) } else { 0 },
            offset: if transfers { step.offset as i64 } else { 0 },
            ..Control::default()
        };
        self.queued.push(control);
        self.latest.push(step.slot);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Done>) -> io::Result<()> {
        let submitted = self.queued.len() as u64;
        if submitted > 0 {
            self.submit()?;
        }
        let refused = self.finished.len() as u32;
        done.append(&mut self.finished);
        let (before, round) = (done.len(), self.latest.hand_over());
        let ready = self.drain_ring(done);
        self.pending -= ready;
        if submitted > 0 {
            self.inline.0 += self.latest.finished(round, &done[before..]);
            self.inline.1 += submitted;
        }
        if self.submits.is_some() {
            if ready + refused == 0 && wait.min > 0 && self.pending > 0 {
                self.pending -= self.wait_as_part_of_submitting(wait.timeout_ns, done)?;
            }
            self.note_last(None);
        } else if ready + refused < wait.min && self.pending > 0 {
            // io_getevents cannot bound its patience: asked for one completion, it delays nothing that has finished.
            let min = if wait.patience_ns > 0 { 1 } else { wait.min - ready - refused };
            self.pending -= self.wait(min.min(self.pending), wait.timeout_ns, done)?;
        }
        Ok(())
    }

    fn describe(&self) -> EngineRecord {
        let submit = if self.submits.is_some() { "single-submit" } else { "batched-submit" };
        let mut granted = vec![submit.to_string()];
        if self.has_ring {
            granted.push("completion-ring".to_string());
        }
        EngineRecord { name: "libaio".to_string(), granted, batch: self.batch, ..EngineRecord::default() }
    }

    fn inline_share(&self) -> (u64, u64) {
        self.inline
    }

    fn submits(&self) -> Option<&Histogram> {
        self.submits.as_ref()
    }
}

impl Drop for Libaio {
    fn drop(&mut self) {
        // SAFETY: the context is ours; io_destroy waits for what is in flight, so the buffers outlive it.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
