//! Descriptors that a program which is started must not have.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use rustix::fs::{Mode, OFlags, RawDir};

/// Has the kernel close every descriptor from `first` on at the next exec. Only system calls: it may run between fork and exec.
///
/// # Errors
/// Those of reading `/proc/self/fd`, where close_range(2) cannot do it: a kernel before 5.11 has no such flag, and old
/// containers' filters do not let the call through.
pub fn close_at_exec(first: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers, and closes nothing now.
    let status =
        unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if status == 0 { Ok(()) } else { one_by_one(first) }
}

fn one_by_one(first: RawFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty())?;
    let mut space = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&list, &mut space);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(number) = number.filter(|number| *number >= first) {
            // SAFETY: takes numbers. The list's own has the flag already.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::offset_of;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// From here on close_range(2) answers as Linux 5.10 does, which knows one flag.
    fn forget_the_flag() -> io::Result<()> {
        // linux/bpf_common.h and linux/seccomp.h: a word of the call, a jump that compares it, an answer.
        let step = |code, k: u32, jt, jf| libc::sock_filter { code, jt, jf, k };
        let third = offset_of!(libc::seccomp_data, args) + 2 * size_of::<u64>();
        let program = [
            step(0x20, offset_of!(libc::seccomp_data, nr) as u32, 0, 0),
            step(0x15, libc::SYS_close_range as u32, 0, 3),
            step(0x20, third as u32, 0, 0),
            step(0x15, libc::CLOSE_RANGE_CLOEXEC, 0, 1),
            step(0x06, 0x0005_0000 | libc::EINVAL as u32, 0, 0),
            step(0x06, 0x7fff_0000, 0, 0),
        ];
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: the kernel reads the program and its instructions, which live until here.
        let status = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program)
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    #[test]
    fn a_program_gets_none_of_them_on_an_old_kernel_either() {
        let file = File::open("/").unwrap();
        // SAFETY: takes numbers; the descriptor is open.
        let inherited = unsafe { libc::dup(file.as_raw_fd()) };
        let is_there = |settle: fn() -> io::Result<()>| {
            let mut shell = Command::new("test");
            shell.arg("-e").arg(format!("/proc/self/fd/{inherited}"));
            // SAFETY: what is done between fork and exec is system calls alone.
            unsafe { shell.pre_exec(settle) };
            shell.status().unwrap().success()
        };
        assert!(is_there(|| Ok(())), "it is not inherited: this test looks at nothing");
        assert!(!is_there(|| close_at_exec(3)));
        assert!(!is_there(|| forget_the_flag().and_then(|()| close_at_exec(3))));
    }
}
