//! memcpy to and from a shared mapping of each file; sync is msync.
//!
//! An I/O error under a mapping arrives as SIGBUS. The handler here puts a private zero page under the address that
//! failed, so that the copy can go on, and leaves a mark by which the step reports EIO instead of the process dying. It
//! does so only for a fault in the mapping that this thread copies from or to at this moment; any other SIGBUS goes where
//! it would have gone without it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

use weir_core::result::record::EngineRecord;

use super::{Action, Done, Engine, Setup, Step, Wait, result_of};
use crate::IoError;

/// What a thread copies from or to, and what became of it. Read by the signal handler, so all of it is atomic.
struct Copying {
    start: AtomicUsize,
    end: AtomicUsize,
    faulted: AtomicBool,
}

thread_local! {
    static COPYING: Copying =
        const { Copying { start: AtomicUsize::new(0), end: AtomicUsize::new(0), faulted: AtomicBool::new(false) } };
}

/// What was installed before, and the size of a page: there before the handler is.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

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
        install_sigbus_handler();
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
        mapping.watched(|| {
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
        });
        if COPYING.with(|copying| copying.faulted.load(Relaxed)) { -libc::EIO } else { len as i32 }
    }
}

impl Mapping {
    /// Copies; a fault in the mapping meanwhile leaves a mark.
    fn watched(&self, copy: impl FnOnce()) {
        COPYING.with(|copying| {
            copying.faulted.store(false, Relaxed);
            copying.start.store(self.base as usize, Relaxed);
            copying.end.store(self.base as usize + self.bytes, Relaxed);
            // The handler runs on this thread, so what the compiler keeps in order is in order.
            compiler_fence(SeqCst);
            copy();
            compiler_fence(SeqCst);
            copying.end.store(0, Relaxed);
        });
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
    BEFORE.get_or_init(|| {
        // SAFETY: sigaction is plain data, for which zero is a valid value, and the call fills it; sysconf takes a number.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before);
            (before, usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096))
        }
    });
    // SAFETY: as above; the handler is async-signal-safe: it reads atomics and makes system calls. Installing it twice
    // changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some((before, page_bytes)) = BEFORE.get() else { return };
    // SAFETY: the kernel hands a valid siginfo. Only what it sends itself (a positive code) has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let is_ours = code > 0
        && COPYING.with(|copying| {
            (copying.start.load(Relaxed)..copying.end.load(Relaxed)).contains(&address)
                && replace_page(address & !(page_bytes - 1), *page_bytes)
                && {
                    copying.faulted.store(true, Relaxed);
                    true
                }
        });
    if !is_ours {
        pass_on(before, signal, code, info, context);
    }
}

/// Puts zeros under an address of a mapping that nobody can read any more.
fn replace_page(page: usize, page_bytes: usize) -> bool {
    let answer =
        // SAFETY: the page lies in a mapping of this engine's; mmap is a bare system call and safe in a handler.
        unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
    answer != libc::MAP_FAILED
}

/// Does what would have been done without this engine.
fn pass_on(
    before: &libc::sigaction,
    signal: i32,
    code: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let handler = before.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: both calls are safe in a handler. A fault happens again when this returns; what another process sent
        // has to be sent again.
        unsafe {
            libc::sigaction(signal, before, std::ptr::null_mut());
            if code <= 0 {
                libc::raise(signal);
            }
        }
        return;
    }
    // SAFETY: sigaction said that this is a handler, and its flags say which kind.
    unsafe {
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let call: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(handler);
            call(signal, info, context);
        } else {
            let call: extern "C" fn(i32) = std::mem::transmute(handler);
            call(signal);
        }
    }
}

impl Engine for Mmap {
    fn push(&mut self, step: &Step) {
        let result = match step.action {
            Action::Sync(_) => {
                let mapping = &self.mappings[step.file as usize];
                // SAFETY: base and length are those of a live mapping.
                result_of(unsafe { libc::msync(mapping.base.cast(), mapping.bytes, libc::MS_SYNC) } as isize)
            }
            _ => self.carry_out(step),
        };
        self.finished = Some(Done { slot: step.slot, result });
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// In a child of the test below: after a run of the engine, a SIGBUS that is none of its business.
    fn fault(how: &str) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        let bytes = [1 << 16];
        let files = [file];
        let setup = Setup {
            files: &files,
            file_bytes: &bytes,
            depth: 1,
            region: (std::ptr::null_mut(), 0),
            iopoll: false,
            writes: true,
            time_submits: false,
        };
        let mut engine = Mmap::new(&setup).unwrap();
        let mut buffer = vec![1_u8; 4096];
        let mut done = Vec::new();
        let mut read = |offset| {
            let buffer = buffer.as_mut_ptr();
            engine.push(&Step { slot: 0, file: 0, len: 4096, action: Action::Read, offset, buffer });
            engine.reap(Wait { min: 1, timeout_ns: None, patience_ns: 0 }, &mut done).unwrap();
            done.pop().unwrap().result
        };
        assert_eq!(read(8192), 4096);
        files[0].set_len(4096).unwrap();
        assert_eq!((read(8192), read(0)), (-libc::EIO, 4096));
        if how == "sent" {
            // Once for the handler of Rust's own start, which takes the first for a fault that will come again.
            for _ in 0..2 {
                // SAFETY: raise takes a number.
                unsafe { libc::raise(libc::SIGBUS) };
            }
        } else {
            let other = map(&files[0], 1 << 16, false).unwrap();
            // SAFETY: mapped, though nothing is behind it any more: a SIGBUS.
            println!("{}", unsafe { other.base.add(8192).read_volatile() });
        }
        println!("went on");
    }

    #[test]
    fn faults_of_others_are_not_taken() {
        const HOW: &str = "WEIR_TEST_SIGBUS";
        if let Ok(how) = std::env::var(HOW) {
            return fault(&how);
        }
        for how in ["outside", "sent"] {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "engine::mmap::tests::faults_of_others_are_not_taken", "--nocapture"])
                .env(HOW, how)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout).into_owned();
            assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{how}: {said}");
            assert!(!said.contains("went on"), "{how}: {said}");
        }
    }
}
