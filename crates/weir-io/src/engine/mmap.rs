//! memcpy to and from a shared mapping of each file; sync is msync.
//!
//! An I/O error under a mapping arrives as SIGBUS. The handler here puts a private zero page under the address that
//! failed, so that the copy can go on, and leaves a mark by which the step reports EIO instead of the process dying.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;

use weir_core::result::record::EngineRecord;
use weir_core::workload::spec::SyncMode;

use super::{Action, Done, Engine, Setup, Step, Wait, result_of};
use crate::IoError;

thread_local! {
    /// Set by the SIGBUS handler of this thread.
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// One file's mapping.
struct Mapping {
    base: *mut u8,
    bytes: usize,
}

/// The engine over mappings.
pub struct Mmap {
    mappings: Vec<Mapping>,
    finished: Option<Done>,
}

impl Mmap {
    /// Maps every file of the job whole.
    pub fn new(setup: &Setup<'_>) -> Result<Mmap, IoError> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install_sigbus_handler);
        let mut mappings = Vec::with_capacity(setup.files.len());
        for (file, bytes) in setup.files.iter().zip(setup.file_bytes) {
            mappings.push(map(file, *bytes as usize, setup.writes)?);
        }
        Ok(Mmap { mappings, finished: None })
    }

    fn carry_out(&self, step: &Step) -> i32 {
        let mapping = &self.mappings[step.file as usize];
        let (offset, len) = (step.offset as usize, step.len as usize);
        if offset + len > mapping.bytes {
            return -libc::EINVAL;
        }
        FAULTED.set(false);
        // SAFETY: offset + len lies inside the mapping, and the buffer belongs to the step and holds `len` bytes.
        unsafe {
            match step.action {
                Action::Read => std::ptr::copy_nonoverlapping(mapping.base.add(offset), step.buffer, len),
                Action::Write | Action::WriteDurable => {
                    std::ptr::copy_nonoverlapping(step.buffer, mapping.base.add(offset), len);
                }
                Action::Sync(_) => {}
            }
        }
        if FAULTED.get() { -libc::EIO } else { len as i32 }
    }
}

fn map(file: &File, bytes: usize, writes: bool) -> Result<Mapping, IoError> {
    let protection = libc::PROT_READ | if writes { libc::PROT_WRITE } else { 0 };
    // SAFETY: a shared mapping of an open file at an address of the kernel's choice; the result is checked.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        return Err(IoError::environment(format!("cannot map {bytes} bytes: {error}"))
            .hint("use another engine, or a smaller size"));
    }
    Ok(Mapping { base: base.cast(), bytes })
}

fn install_sigbus_handler() {
    // SAFETY: sigaction is plain data, for which zero is a valid value; the handler below is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_sigbus(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo; mmap with MAP_FIXED over the page that just failed replaces a page
    // of our own mapping that nobody can read any more; mmap is a bare system call and safe in a handler.
    unsafe {
        let page = (*info).si_addr() as usize & !4095;
        let answer = libc::mmap(
            page as *mut libc::c_void,
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
        if answer == libc::MAP_FAILED {
            libc::abort();
        }
    }
    FAULTED.set(true);
}

impl Engine for Mmap {
    fn push(&mut self, step: &Step) {
        let result = match step.action {
            Action::Sync(mode) => {
                let mapping = &self.mappings[step.file as usize];
                // A mapping has no sync_file_range; MS_ASYNC is the nearest that promises as little.
                let flags = if mode == SyncMode::SyncFileRange { libc::MS_ASYNC } else { libc::MS_SYNC };
                // SAFETY: base and length are those of a live mapping.
                result_of(unsafe { libc::msync(mapping.base.cast(), mapping.bytes, flags) } as isize)
            }
            _ => self.carry_out(step),
        };
        self.finished = Some(Done { slot: step.slot, second: false, result });
    }

    fn reap(&mut self, _wait: Wait, done: &mut Vec<Done>) -> io::Result<()> {
        done.extend(self.finished.take());
        Ok(())
    }

    fn describe(&self) -> EngineRecord {
        EngineRecord { name: "mmap".to_string(), batch: 1, ..EngineRecord::default() }
    }
}

impl Drop for Mmap {
    fn drop(&mut self) {
        for mapping in &self.mappings {
            // SAFETY: base and length are those of the mapping, unmapped once.
            unsafe { libc::munmap(mapping.base.cast(), mapping.bytes) };
        }
    }
}
