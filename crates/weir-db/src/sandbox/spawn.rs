//! Programs that have nothing of weir's: no descriptor, no variable, no terminal, no handler of signals.
//!
//! `std::process::Command` makes no namespaces, gives no descriptor of the process, and lets a program run before there is
//! somebody who ends it when weir is killed. Here a program waits until it is minded.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, pidfd_send_signal, waitpid};

/// How often a process is asked to end: the first process of a namespace never hears of what it was sent before it
/// listens.
const AGAIN: Duration = Duration::from_secs(1);
/// Status of a child whose program could not be started, as a shell has it.
const NOT_STARTED: libc::c_int = 127;

/// What kernels and containers say that forbid namespaces, or mounts in them, or do not have them.
const FORBIDDEN: [i32; 6] =
    [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EINVAL, libc::ENODEV, libc::EOPNOTSUPP];
/// What clone(2) says besides where the caller may have no more namespaces, or none. Of a mount ENOSPC says that there are too
/// many (sysctl fs.mount-max), which is no ban and may be over the next moment.
const NO_MORE: [i32; 2] = [libc::ENOSPC, libc::EUSERS];

/// What is done between fork and exec: only system calls.
type Settle = Box<dyn FnMut() -> io::Result<()>>;

/// A program to be started.
pub(super) struct Program {
    path: PathBuf,
    words: Vec<OsString>,
    environment: Vec<OsString>,
    spaces: libc::c_int,
    settle: Settle,
}

impl Program {
    /// One with these variables (`NAME=value`), in new namespaces (`CLONE_NEW…`); `settle` is the child's last step
    /// before it becomes the program.
    pub fn new(path: &Path, environment: Vec<OsString>, spaces: libc::c_int, settle: Settle) -> Program {
        Program { path: path.to_path_buf(), words: vec![path.into()], environment, spaces, settle }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One more argument.
    pub fn arg(&mut self, word: impl AsRef<OsStr>) -> &mut Program {
        self.words.push(word.as_ref().to_os_string());
        self
    }

    /// More arguments.
    pub fn args<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> &mut Program {
        words.into_iter().for_each(|word| self.words.push(word.into()));
        self
    }

    /// Whether this kernel or container lets a process be made like this.
    ///
    /// # Errors
    /// What says nothing about that: other accounts may have taken all processes for a moment.
    pub fn is_possible(&mut self) -> io::Result<bool> {
        let settle = &mut self.settle;
        let mut child = || settle().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // SAFETY: `settle` makes only system calls.
        let status = unsafe { fork(self.spaces, &mut child) }.and_then(|mut child| child.wait());
        let (error, is_of_clone) = match status {
            Ok(status) if status.success() => return Ok(true),
            // The number of an error fits a status.
            Ok(status) => (io::Error::from_raw_os_error(status.code().unwrap_or(libc::EINTR)), false),
            Err(error) => (error, true),
        };
        if is_ban(error.raw_os_error().unwrap_or(0), is_of_clone) { Ok(false) } else { Err(error) }
    }

    /// Starts it, with its output going there, once `mind` has seen to its end.
    ///
    /// # Errors
    /// When it could not be started or minded: it does not run then.
    pub fn spawn(
        &mut self,
        (output, errors): (&File, &File),
        mind: impl FnOnce(&Running) -> io::Result<()>,
    ) -> io::Result<Running> {
        let (program, words) = (text(self.path.as_os_str())?, texts(&self.words)?);
        let environment = texts(&self.environment)?;
        let (arguments, variables) = (pointers(&words), pointers(&environment));
        let input = File::open("/dev/null")?;
        let streams = [input.as_raw_fd(), output.as_raw_fd(), errors.as_raw_fd()];
        let (near, far) = channel()?;
        let (settle, parents) = (&mut self.settle, near.as_raw_fd());
        let mut child = || {
            // Else the child itself would keep the channel open when weir is killed.
            // SAFETY: the child's copy, which nothing of it uses.
            unsafe { libc::close(parents) };
            let settled = take_streams(streams).and_then(|()| settle());
            let error = match settled.and_then(|()| may_go(&far)) {
                Ok(()) => {
                    // SAFETY: texts and the lists of pointers to them, which end with null, live until here.
                    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
                    io::Error::last_os_error()
                }
                Err(error) => error,
            };
            let number = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
            let _ = send(&far, &number, SendFlags::NOSIGNAL);
            NOT_STARTED
        };
        // SAFETY: what the child does is system calls alone.
        let running = unsafe { fork(self.spaces, &mut child) }?;
        drop(far);
        mind(&running)?;
        // One that could not even settle has ended, and says why.
        let _ = send(&near, b"!", SendFlags::NOSIGNAL);
        let mut number = [0; 4];
        match recv(&near, &mut number[..], RecvFlags::empty()) {
            Ok((4, _)) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number))),
            // The other end went with the exec.
            _ => Ok(running),
        }
    }
}

/// Whether an error, of clone(2) itself or of what followed in the child, says that namespaces are not to be had here.
fn is_ban(number: i32, is_of_clone: bool) -> bool {
    FORBIDDEN.contains(&number) || is_of_clone && NO_MORE.contains(&number)
}

/// Two ends, which no program inherits.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Waits until a minder watches it. The process that starts the minder may have been killed meanwhile.
fn may_go(far: &OwnedFd) -> io::Result<()> {
    let mut word = [0];
    match recv(far, &mut word[..], RecvFlags::empty())? {
        (1, _) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
    }
}

/// Makes these the first three descriptors.
pub(super) fn take_streams(streams: [RawFd; 3]) -> io::Result<()> {
    for (number, stream) in (0..).zip(streams) {
        // SAFETY: takes numbers.
        if unsafe { libc::dup2(stream, number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Forks into new namespaces. The child has one thread, no handler of signals, and ends with what `child` returns.
///
/// # Safety
/// `child` may only make system calls: another thread may have held any lock, that of the allocator too. It must not call
/// what the C library does for all threads, such as its `setuid`.
pub(super) unsafe fn fork(
    spaces: libc::c_int,
    child: &mut dyn FnMut() -> libc::c_int,
) -> io::Result<Running> {
    let mut held: libc::c_int = -1;
    let flags = libc::c_long::from(spaces | libc::CLONE_PIDFD | libc::SIGCHLD);
    let blocked = Blocked::all();
    // SAFETY: without CLONE_VM the child has its own memory and goes on on a copy of this stack; the kernel writes the
    // descriptor to `held`. The order of the last two arguments differs between architectures, and both are unused.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut held, 0, 0) };
    if pid == 0 {
        forget_handlers();
        drop(blocked);
        let status = child();
        // SAFETY: takes a number. Nothing of weir's is run at this exit.
        unsafe { libc::_exit(status) };
    }
    let error = io::Error::last_os_error();
    drop(blocked);
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
        return Err(error);
    };
    // SAFETY: the kernel has just opened it for this process.
    let fd = unsafe { OwnedFd::from_raw_fd(held) };
    Ok(Running { pid, fd, ended: None, is_apart: spaces & libc::CLONE_NEWPID != 0 })
}

/// Signals are blocked until this is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Blocked {
        // SAFETY: both sets are this function's own; the calls write them and cannot fail.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Blocked(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: a set that the kernel wrote.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// What weir does at a signal, its child does not; what weir ignores, a program need not.
fn forget_handlers() {
    for signal in 1..=31 {
        // SAFETY: takes numbers; the two signals that nobody may handle are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn text(word: &OsStr) -> io::Result<CString> {
    CString::new(word.as_bytes()).map_err(io::Error::from)
}

fn texts(words: &[OsString]) -> io::Result<Vec<CString>> {
    words.iter().map(|word| text(word)).collect()
}

/// A list as exec takes it.
pub(super) fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A child, held by its descriptor. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    pid: Pid,
    fd: OwnedFd,
    ended: Option<ExitStatus>,
    /// It is the first process of a namespace: whatever runs there ends with it, before it has ended itself.
    is_apart: bool,
}

impl Running {
    /// Its number.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(WaitOptions::NOHANG)
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.reap(WaitOptions::empty()) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn reap(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none()
            && let Some((_, status)) = waitpid(Some(self.pid), options)?
        {
            self.ended = Some(ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.ended)
    }

    /// The same, for so long at most.
    pub fn wait_for(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            is_ready(self.fd.as_fd(), limit);
        }
        self.try_wait()
    }

    /// Asks it to end by `signal`, and kills it where it does not within `patience`.
    pub fn end(&mut self, signal: Signal, patience: Duration) -> io::Result<()> {
        let until = Instant::now() + patience;
        while self.try_wait()?.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if signal == Signal::KILL || left.is_zero() {
                self.kill();
                self.wait()?;
            } else {
                let _ = pidfd_send_signal(&self.fd, signal);
                self.wait_for(left.min(AGAIN))?;
            }
        }
        Ok(())
    }

    /// Kills it and what it started: all of its namespace, or else its process group.
    fn kill(&self) {
        // It has not been waited for, so that the number is still its own.
        let _ = if self.is_apart {
            pidfd_send_signal(&self.fd, Signal::KILL)
        } else {
            kill_process_group(self.pid, Signal::KILL).or_else(|_| pidfd_send_signal(&self.fd, Signal::KILL))
        };
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.wait();
        }
    }
}

/// Waits so long at most for something to read, or for the end of a process. Makes only system calls.
pub(super) fn is_ready(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ban_means_that_namespaces_are_forbidden() {
        let possible = |number: Option<i32>| {
            let settle = move || number.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)));
            let possible = Program::new(Path::new("/"), Vec::new(), 0, Box::new(settle)).is_possible();
            possible.map_err(|error| error.raw_os_error())
        };
        assert_eq!(possible(None), Ok(true));
        for number in [libc::EPERM, libc::ENODEV, libc::EINVAL] {
            assert_eq!(possible(Some(number)), Ok(false), "{number}");
        }
        for number in [libc::EAGAIN, libc::ENOMEM, libc::EIO, libc::ENOSPC] {
            assert_eq!(possible(Some(number)), Err(Some(number)));
        }
        assert!(is_ban(libc::ENOSPC, true), "the limit of namespaces is zero, or reached");
    }
}
