//! One ring: its mappings, its queues, and entering the kernel. The crate io-uring (0.7) is as fast (1.8 µs of processor
//! time a read, at 32 in flight from memory), but keeps the number of a registered ring in a borrow of the ring, which an
//! engine that owns one could only hold by leaking it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys::{self, Completion, Params, Submission, Timespec, WaitArgument};

/// A mapping that is undone on drop.
struct Region {
    base: *mut u8,
    bytes: usize,
}

impl Region {
    fn map(fd: &OwnedFd, bytes: usize, offset: i64) -> io::Result<Region> {
        // SAFETY: a shared mapping of a ring descriptor at one of its documented offsets; the result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Region { base: base.cast(), bytes })
        }
    }

    /// The counter at a byte offset the kernel gave.
    fn counter(&self, offset: u32) -> *const AtomicU32 {
        debug_assert!((offset as usize) < self.bytes);
        // SAFETY: the kernel gave an offset inside this mapping, aligned for a u32.
        unsafe { self.base.add(offset as usize).cast() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// A ring for one thread.
pub struct Ring {
    // Field order is drop order: mappings before the descriptor.
    submissions: Region,
    rings: Region,
    fd: OwnedFd,
    params: Params,
    /// Descriptor number and flag to enter with: a registered index, or the descriptor itself.
    enter_fd: i32,
    enter_flags: u32,
    sq_tail: u32,
    queued: u32,
}

impl Ring {
    /// A ring of at least `entries` submissions with these setup flags.
    pub fn new(entries: u32, flags: u32) -> io::Result<Ring> {
        let mut params = Params { flags, cq_entries: entries * 2, ..Params::default() };
        let number = sys::setup(entries, &mut params)?;
        // SAFETY: io_uring_setup returned a fresh descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        if params.features & sys::FEAT_SINGLE_MMAP == 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let sq_bytes = params.sq.array as usize + params.sq_entries as usize * 4;
        let cq_bytes = params.cq.completions as usize + params.cq_entries as usize * size_of::<Completion>();
        let rings = Region::map(&fd, sq_bytes.max(cq_bytes), sys::OFF_SQ_RING)?;
        let submissions =
            Region::map(&fd, params.sq_entries as usize * size_of::<Submission>(), sys::OFF_SQES)?;
        if flags & sys::SETUP_NO_SQARRAY == 0 {
            // Submission i always stands at index i, so the indirection is filled once.
            let array = rings.counter(params.sq.array);
            for index in 0..params.sq_entries {
                // SAFETY: the array has `sq_entries` entries inside the mapping.
                unsafe { (*array.add(index as usize)).store(index, Ordering::Relaxed) };
            }
        }
        Ok(Ring { submissions, rings, enter_fd: number, fd, params, enter_flags: 0, sq_tail: 0, queued: 0 })
    }

    /// The descriptor, for registration.
    pub fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Whether the kernel has a feature of `sys::FEAT_*`.
    pub fn has(&self, feature: u32) -> bool {
        self.params.features & feature != 0
    }

    /// Registers the ring's own descriptor, which saves a reference count on every entry.
    pub fn register_self(&mut self) -> io::Result<()> {
        let update = sys::ResourceUpdate { offset: u32::MAX, reserved: 0, data: self.fd() as u64 };
        // SAFETY: one update that names our own descriptor; the kernel writes the index back into it.
        unsafe { sys::register(self.fd(), sys::REGISTER_RING_FDS, &update, 1)? };
        // SAFETY: `update` is live; the read is volatile because the kernel changed it behind the compiler's back.
        let index = unsafe { std::ptr::from_ref(&update.offset).read_volatile() };
        self.enter_fd = index as i32;
        self.enter_flags = sys::ENTER_REGISTERED_RING;
        Ok(())
    }

    /// Queues one submission. The caller never queues more than the ring has entries between two entries.
    #[inline(always)]
    pub fn push(&mut self, submission: Submission) {
        debug_assert!(self.queued < self.params.sq_entries);
        let index = self.sq_tail & (self.params.sq_entries - 1);
        // SAFETY: the index is below the number of entries (a power of two), and the kernel has consumed this
        // entry: every call of `enter` submits all that was queued before.
        unsafe { self.submissions.base.cast::<Submission>().add(index as usize).write(submission) };
        self.sq_tail = self.sq_tail.wrapping_add(1);
        self.queued += 1;
    }

    /// Submissions queued since the last entry.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Submits all that is queued; with `min` > 0 also waits for that many completions, until `timeout_ns` at most,
    /// or `patience_ns` when one has arrived (where the kernel can). Time-outs and signals are no errors.
    pub fn enter(
        &mut self,
        min: u32,
        get_events: bool,
        timeout_ns: Option<u64>,
        patience_ns: u64,
    ) -> io::Result<()> {
        // SAFETY: the tail counter lies inside the mapping and lives as long as it.
        unsafe { (*self.rings.counter(self.params.sq.tail)).store(self.sq_tail, Ordering::Release) };
        let timespec = timeout_ns.map(|ns| Timespec {
            seconds: (ns / 1_000_000_000) as i64,
            nanoseconds: (ns % 1_000_000_000) as i64,
        });
        let argument = WaitArgument {
            min_wait_us: if self.has(sys::FEAT_MIN_TIMEOUT) { (patience_ns / 1000) as u32 } else { 0 },
            timespec: timespec.as_ref().map_or(0, |t| std::ptr::from_ref(t) as u64),
            ..WaitArgument::default()
        };
        // Linux 5.10 waits in this call without a limit; there the wait for a time comes after it.
        let (min, wait_after) = match timeout_ns {
            Some(ns) if min > 0 && !self.has(sys::FEAT_EXT_ARG) => (0, Some(ns)),
            _ => (min, None),
        };
        let extended = min > 0 && (argument.timespec != 0 || argument.min_wait_us != 0);
        let mut flags = self.enter_flags | if get_events { sys::ENTER_GETEVENTS } else { 0 };
        if extended {
            flags |= sys::ENTER_EXT_ARG;
        }
        loop {
            match sys::enter(self.enter_fd, self.queued, min, flags, extended.then_some(&argument)) {
                Ok(taken) => self.queued -= taken.min(self.queued),
                Err(error) => match error.raw_os_error() {
                    // EBUSY and EAGAIN: the kernel wants completions reaped first; the caller does that next.
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => return Ok(()),
                    _ => return Err(error),
                },
            }
            if self.queued == 0 {
                break;
            }
        }
        match wait_after {
            Some(ns) => self.wait_for_one(ns),
            None => Ok(()),
        }
    }

    /// Waits until the ring holds a completion, for so long at most. A polled ring finds none by itself: its owner
    /// enters again.
    fn wait_for_one(&self, timeout_ns: u64) -> io::Result<()> {
        if self.params.flags & sys::SETUP_IOPOLL != 0 {
            return Ok(());
        }
        let mut ring = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: one descriptor and a time, both live during the call; no signal mask.
        let status = unsafe { libc::ppoll(&raw mut ring, 1, &raw const timeout, std::ptr::null()) };
        match io::Error::last_os_error() {
            error if status < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Calls `each` for every completion that has arrived, and returns how many there were.
    #[inline(always)]
    pub fn drain(&mut self, mut each: impl FnMut(Completion)) -> u32 {
        let (head_counter, tail_counter) =
            (self.rings.counter(self.params.cq.head), self.rings.counter(self.params.cq.tail));
        // SAFETY: both counters lie inside the mapping; only this thread moves the head.
        let (mut head, tail) =
            unsafe { ((*head_counter).load(Ordering::Relaxed), (*tail_counter).load(Ordering::Acquire)) };
        let count = tail.wrapping_sub(head);
        while head != tail {
            let index = head & (self.params.cq_entries - 1);
            // SAFETY: the index is below the number of entries, and the kernel has published it (tail).
            let completion = unsafe {
                let first = self.rings.base.add(self.params.cq.completions as usize).cast::<Completion>();
                first.add(index as usize).read()
            };
            each(completion);
            head = head.wrapping_add(1);
        }
        // SAFETY: as above.
        unsafe { (*head_counter).store(head, Ordering::Release) };
        count
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A ring that waits as on Linux 5.10, whether or not this kernel knows better.
    #[test]
    fn a_wait_for_a_time_ends_without_the_extended_argument() {
        let mut ring = Ring::new(4, 0).unwrap();
        ring.params.features &= !(sys::FEAT_EXT_ARG | sys::FEAT_MIN_TIMEOUT);
        let begun = Instant::now();
        ring.enter(1, true, Some(20_000_000), 0).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20) && ring.drain(|_| {}) == 0);
        ring.push(Submission { user_data: 7, ..Submission::default() });
        let begun = Instant::now();
        ring.enter(1, true, Some(60_000_000_000), 0).unwrap();
        let mut done = Vec::new();
        ring.drain(|completion| done.push(completion.user_data));
        assert_eq!(done, [7], "after {:?}", begun.elapsed());
    }
}
