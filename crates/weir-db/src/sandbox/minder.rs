//! The minder ends a server when weir is killed: it is a process that waits for the end of its channel to weir. A destructor does not
//! run after SIGKILL, and a signal at the death of a parent (prctl) comes at the death of its *thread*.
//!
//! It was forked off a process with threads, so it makes system calls alone. Once the server has ended, it becomes a program
//! that does away with the sandbox as `clean` does: weir itself.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};

use super::account::leave_keys;
use super::left;
use super::spawn::{self, Running};

/// The hidden first argument by which a program knows that it is to do away with a sandbox: see [`remover_main`].
pub const ARGUMENT: &str = "__sandbox-remover";

/// So long a server may take to end in order where that matters, and to be gone when it was killed. Nobody waits for that, and
/// beside a busy disk it takes a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the minder has its end of the channel, and the locks of both folders.
const CHANNEL: RawFd = 3;
const LOCKS: [RawFd; 2] = [4, 5];
/// Above those.
const ASIDE: RawFd = 16;

static REMOVER: OnceLock<CString> = OnceLock::new();

/// Names the program that does away with sandboxes of this process when it is killed, and takes [`ARGUMENT`] for that. Without one
/// their servers end, and the rest is left for [`super::clean`]. The first name counts.
pub fn set_remover(program: &Path) {
    if let Ok(program) = CString::new(program.as_os_str().as_bytes()) {
        let _ = REMOVER.set(program);
    }
}

/// All that such a program does; it stands in the sandbox's folder and is told that for the socket.
pub fn remover_main(arguments: &[String]) -> ExitCode {
    let done = matches!(arguments, [run] if left::end_here(Path::new(run), Path::new(".")).is_ok());
    if done { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

/// What a minder has to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Minded<'a> {
    /// The sandbox's folder.
    pub dir: BorrowedFd<'a>,
    /// Its folder for the socket.
    pub run: &'a Path,
    /// The locks of both.
    pub locks: [&'a File; 2],
    /// Whether its data are to stay.
    pub keep: bool,
    /// Whether the server runs in namespaces of its own.
    pub apart: bool,
}

/// A running minder.
#[derive(Debug)]
pub(super) struct Minder {
    // Dropped first, so that it does nothing when its channel ends.
    _process: Running,
    channel: OwnedFd,
}

impl Minder {
    /// From now on what the sandbox made goes away with this process; the data only unless they are to stay.
    pub fn start(minded: Minded<'_>) -> io::Result<Minder> {
        let words =
            [c"weir".to_owned(), CString::new(ARGUMENT)?, CString::new(minded.run.as_os_str().as_bytes())?];
        let (arguments, variables) = (spawn::pointers(&words), spawn::pointers(&[]));
        let (remover, null) = (REMOVER.get(), File::options().read(true).write(true).open("/dev/null")?);
        let (near, far) = spawn::channel()?;
        let mut child = || {
            // A process that is still alive may still write there: that is left for `clean`.
            if come_away(minded, &null, &far).is_ok()
                && mind(minded.keep, minded.apart)
                && let Some(remover) = remover
            {
                // SAFETY: texts and the lists of pointers to them, which end with null, are this process's copies.
                unsafe { libc::execve(remover.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
            }
            1
        };
        // SAFETY: what the child does is system calls alone.
        let process = unsafe { spawn::fork(0, &mut child) }?;
        Ok(Minder { _process: process, channel: near })
    }

    /// The server to end; `None`: there is none any more.
    pub fn mind(&self, server: Option<&Running>) -> io::Result<()> {
        let number = server.map_or(0, Running::id).to_ne_bytes();
        let held = server.map(|server| [server.as_fd()]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        if let Some(held) = &held {
            message.push(SendAncillaryMessage::ScmRights(held));
        }
        sendmsg(&self.channel, &[IoSlice::new(&number)], &mut message, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Out of reach of a terminal's Ctrl-C, with nothing open but the channel and the locks, which the program that follows has too.
fn come_away(minded: Minded<'_>, null: &File, far: &OwnedFd) -> io::Result<()> {
    rustix::process::setsid()?;
    leave_keys();
    rustix::thread::set_name(c"weir-minder")?;
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: takes numbers.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    rustix::process::fchdir(minded.dir)?;
    let held = [far.as_raw_fd(), minded.locks[0].as_raw_fd(), minded.locks[1].as_raw_fd()];
    // SAFETY: takes numbers. One of them may have another's number.
    let aside = held.map(|fd| unsafe { libc::fcntl(fd, libc::F_DUPFD, ASIDE) });
    spawn::take_streams([null.as_raw_fd(); 3])?;
    let is_put = |(from, to): (RawFd, RawFd)| {
        // SAFETY: takes numbers; nothing that is closed by it is used any more.
        unsafe { libc::dup2(from, to) == to }
    };
    let first: libc::c_uint = LOCKS[1].unsigned_abs() + 1;
    // SAFETY: takes numbers; nothing that is closed is used any more.
    let close = || unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0 };
    let done = aside.into_iter().zip([CHANNEL, LOCKS[0], LOCKS[1]]).all(is_put) && close();
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits for the end of weir, then ends the server that it was told of last; whether that is gone.
fn mind(keep: bool, apart: bool) -> bool {
    // SAFETY: it was put there, and stays open.
    let channel = unsafe { BorrowedFd::borrow_raw(CHANNEL) };
    let mut server: Option<(OwnedFd, u32)> = None;
    loop {
        let mut number = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut number)];
        match recvmsg(channel, &mut parts, &mut message, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes == 4 => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => break,
        }
        let held = message.drain().find_map(|part| match part {
            RecvAncillaryMessage::ScmRights(mut held) => held.next(),
            _ => None,
        });
        server = held.map(|held| (held, u32::from_ne_bytes(number)));
    }
    let Some((held, number)) = server else { return true };
    // Its number may be another's by now.
    if spawn::is_ready(held.as_fd(), Duration::ZERO) {
        return true;
    }
    // Data that stay are left in order. PostgreSQL gives its shared memory back; what is apart, the kernel frees.
    let group = i32::try_from(number).ok().and_then(Pid::from_raw).filter(|_| !apart);
    if keep || !apart {
        let _ = match group {
            Some(group) => kill_process_group(group, Signal::QUIT),
            None => pidfd_send_signal(&held, Signal::QUIT),
        };
        if spawn::is_ready(held.as_fd(), PATIENCE) {
            return true;
        }
    }
    // It has not ended, so the group bears its number.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = pidfd_send_signal(&held, Signal::KILL);
    spawn::is_ready(held.as_fd(), PATIENCE)
}
