//! The commands of blktrace (kernel/trace/blktrace.c) to a device node.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// linux/fs.h.
pub(super) const BLKTRACESETUP: libc::c_ulong = 0xc048_1273;
pub(super) const BLKTRACESTART: libc::c_ulong = 0x1274;
pub(super) const BLKTRACESTOP: libc::c_ulong = 0x1275;
pub(super) const BLKTRACETEARDOWN: libc::c_ulong = 0x1276;

/// Ends a trace that was set up, whoever did.
pub fn take_down(node: &Path) {
    if let Ok(node) = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(node) {
        let _ = command(&node, BLKTRACESTOP);
        let _ = command(&node, BLKTRACETEARDOWN);
    }
}

/// Gives a command that takes no argument.
pub(super) fn command(node: &File, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these commands take no argument.
    if unsafe { libc::ioctl(node.as_raw_fd(), request as _) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
